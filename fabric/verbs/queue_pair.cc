#include "fabric/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"
#include "fabric/request_rules.h"

namespace nam::fabric::verbs {
namespace {

/// A split request takes two of the NIC's, and so does an atomic on Soft-RoCE.
constexpr uint32_t kWorkRequestsPerPlace = 2;
constexpr size_t kRemoteRegionsMax = 4096;
constexpr uint32_t kWordBytes = 8;

Access NeededRights(Opcode opcode) {
  if (opcode == Opcode::kRead) return Access::kRead;
  return IsAtomic(opcode) ? Access::kAtomic : Access::kWrite;
}

ibv_wr_opcode NicOpcode(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kWriteWithImmediate:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::kCompareAndSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Opcode::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Opcode::kSend:
    case Opcode::kReceive:
      return IBV_WR_SEND;
  }
  return IBV_WR_SEND;
}

/// The cause of an NIC error; nothing for errors that only follow from others.
std::optional<CompletionStatus> OwnCause(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
      return CompletionStatus::kRemoteAccessError;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return CompletionStatus::kRemoteInvalidRequest;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_MW_BIND_ERR:
      return CompletionStatus::kLocalError;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsQueuePair>> VerbsQueuePair::Create(std::shared_ptr<Core> core,
                                                                       VerbsCompletionQueue& queue,
                                                                       const QueuePairOptions& options,
                                                                       std::string peer) {
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
  NAM_RETURN_IF_ERROR(queue.CheckRoom(PlacesOf(options)));
  std::unique_ptr<VerbsQueuePair> pair(new VerbsQueuePair(std::move(core), queue, options, std::move(peer)));
  NAM_ASSIGN_OR_RETURN(pair->nic_, CreateQueuePair(*pair->core_, queue.handle(),
                                                   {.send = options.send_depth * kWorkRequestsPerPlace,
                                                    .receive = options.receive_depth,
                                                    .inline_bytes = options.inline_bytes_max}));
  if (pair->nic_.inline_bytes < options.inline_bytes_max) NAM_RETURN_IF_ERROR(pair->PrepareInlineCopies());
  NAM_RETURN_IF_ERROR(queue.Attach(pair->id_, *pair, PlacesOf(options)));
  pair->attached_ = true;
  return pair;
}

VerbsQueuePair::VerbsQueuePair(std::shared_ptr<Core> core, VerbsCompletionQueue& queue,
                               const QueuePairOptions& options, std::string peer)
    : core_(std::move(core)),
      queue_(queue),
      options_(options),
      id_(Core::NextId()),
      peer_(std::move(peer)),
      no_answer_(uint64_t{std::random_device()()} << 32 | id_),
      sends_(options.send_depth),
      receives_(std::max(1u, options.receive_depth)),
      local_regions_(core_->registry()) {
  batch_.reserve(size_t{options.send_depth} * kWorkRequestsPerPlace);
  batch_parts_.reserve(batch_.capacity());
  receive_batch_.reserve(options.receive_depth);
  receive_parts_.reserve(options.receive_depth);
}

absl::Status VerbsQueuePair::PrepareInlineCopies() {
  const size_t bytes = size_t{options_.send_depth} * options_.inline_bytes_max;
  NAM_ASSIGN_OR_RETURN(AnonymousMapping copies, AnonymousMapping::Create(bytes, false, false));
  inline_copies_ = std::make_unique<AnonymousMapping>(std::move(copies));
  inline_region_.reset(
      ibv_reg_mr(core_->device().pd(), inline_copies_->data(), bytes, IBV_ACCESS_LOCAL_WRITE));
  if (inline_region_ != nullptr) return absl::OkStatus();
  return VerbsError(core_->device(), absl::StrFormat("cannot register %d bytes for inline sends", bytes),
                    errno, "pinned memory is limited (`ulimit -l`)");
}

VerbsQueuePair::~VerbsQueuePair() {
  if (channel_ != nullptr) {
    channel_->Close();
    core_->control().Remove(*channel_);
  }
  nic_.handle.reset();
  if (attached_) queue_.Detach(id_, PlacesOf(options_));
}

absl::Status VerbsQueuePair::BringUp(const Offer& peer) {
  path_mtu_bytes_ = MtuBytes(PathMtu(*core_, peer));
  return verbs::BringUp(*core_, nic_, peer, peer_);
}

absl::Status VerbsQueuePair::Start(UniqueFd socket, bool peer_is_passive) {
  peer_is_passive_ = peer_is_passive;
  net::ConfigurePeerSocket(socket.get(), core_->options().peer_timeout_us);
  channel_ = std::make_shared<ControlChannel>(std::move(socket), core_->registry(), nic_.handle.get());
  return core_->control().Add(channel_);
}

std::string VerbsQueuePair::peer() const {
  const std::string& device = core_->device().name();
  if (nic_error_ == nullptr) return absl::StrFormat("%s over %s", peer_, device);
  return absl::StrFormat("%s over %s, whose NIC said \"%s\"", peer_, device, nic_error_);
}

// -- Posting ----------------------------------------------------------------------

absl::Status VerbsQueuePair::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    NAM_RETURN_IF_ERROR(CheckWorkRequest(request, options_.inline_bytes_max));
  }
  NAM_RETURN_IF_ERROR(CheckSendRoom(batch.size(), sends_posted_ - sends_taken_, options_.send_depth, peer_));
  if (batch.empty()) return absl::OkStatus();
  batch_.clear();
  batch_parts_.clear();
  for (const WorkRequest& request : batch) Enqueue(request);
  for (size_t i = 0; i + 1 < batch_.size(); ++i) batch_[i].next = &batch_[i + 1];
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(nic_.handle.get(), batch_.data(), &refused);
  return error == 0 ? absl::OkStatus() : PostError("cannot post work requests", error);
}

void VerbsQueuePair::Enqueue(const WorkRequest& request) {
  SendPlace& place = sends_[sends_posted_ % sends_.size()];
  place = {request.id, request.opcode, request.signal};
  Resolved resolved;
  if (state_ == QueuePairState::kError || blocked_) {
    place.status = CompletionStatus::kFlushed;
  } else {
    place.status = Resolve(request, resolved);
    blocked_ = place.status != CompletionStatus::kOk;
  }
  if (place.status != CompletionStatus::kOk) {
    AppendNothing(sends_posted_);
  } else if (IsAtomic(request.opcode)) {
    ExpectAnswer(request, place);
    AppendAtomic(request, resolved);
  } else {
    if (request.opcode == Opcode::kRead) ExpectAnswer(request, place);
    Append(request, resolved);
  }
  ++sends_posted_;
}

void VerbsQueuePair::ExpectAnswer(const WorkRequest& request, SendPlace& place) {
  if (!core_->device().soft_roce() || request.local.bytes < kWordBytes) return;
  place.answer = request.local.data + request.local.bytes - kWordBytes;
  std::memcpy(&place.before, place.answer, kWordBytes);
  std::memcpy(place.answer, &no_answer_, kWordBytes);
}

CompletionStatus VerbsQueuePair::Resolve(const WorkRequest& request, Resolved& resolved) {
  if (!request.inlined) {
    const auto key = local_regions_.NicKey(request.local);
    if (!key) return CompletionStatus::kLocalError;
    resolved.nic_lkey = *key;
  }
  if (request.opcode != Opcode::kSend) return ResolveRemote(request, resolved);
  // A passive peer posts no receives: the message would wait forever.
  return peer_is_passive_ ? CompletionStatus::kRemoteInvalidRequest : CompletionStatus::kOk;
}

CompletionStatus VerbsQueuePair::ResolveRemote(const WorkRequest& request, Resolved& resolved) {
  const uint32_t key = request.remote.rkey.value;
  const bool refused = peer_is_passive_ && request.opcode == Opcode::kWriteWithImmediate;
  auto known = remote_regions_.find(key);
  if (known == remote_regions_.end() || refused) {
    const auto asked = channel_->AskRegion(key, RealClock().After(core_->options().peer_timeout_us));
    if (absl::IsNotFound(asked.status())) return CompletionStatus::kRemoteAccessError;
    if (!asked.ok()) return CompletionStatus::kPeerLost;
    if (remote_regions_.size() >= kRemoteRegionsMax) remote_regions_.clear();
    known = remote_regions_.insert_or_assign(key, *asked).first;
  }
  const ControlChannel::RemoteRegion& region = known->second;
  const uint64_t offset = request.remote.offset;
  const bool allowed = Allows(region.access, NeededRights(request.opcode));
  if (IsAtomic(request.opcode) && offset % kWordBytes != 0) {
    return allowed ? CompletionStatus::kRemoteInvalidRequest : CompletionStatus::kRemoteAccessError;
  }
  resolved.inside = offset <= region.bytes && request.local.bytes <= region.bytes - offset;
  if (refused) {
    return allowed && resolved.inside ? CompletionStatus::kRemoteInvalidRequest
                                      : CompletionStatus::kRemoteAccessError;
  }
  // The NIC checks bounds and rights: it knows of later deregistrations.
  resolved.nic_rkey = region.nic_key;
  resolved.remote_address = region.base + offset;
  return CompletionStatus::kOk;
}

void VerbsQueuePair::Append(const WorkRequest& request, const Resolved& resolved) {
  std::byte* data = request.local.data;
  uint32_t bytes = request.local.bytes;
  uint32_t lkey = resolved.nic_lkey;
  unsigned flags = 0;
  if (request.inlined && bytes <= nic_.inline_bytes) {
    flags = IBV_SEND_INLINE;
  } else if (request.inlined) {
    data = inline_copies_->data() + sends_posted_ % sends_.size() * options_.inline_bytes_max;
    std::memcpy(data, request.local.data, bytes);
    lkey = inline_region_->lkey;
  }
  uint64_t remote_address = resolved.remote_address;
  const ibv_wr_opcode opcode = NicOpcode(request.opcode);
  const auto one_sided = [&](ibv_send_wr& work) -> ibv_send_wr& {
    work.wr.rdma.remote_addr = remote_address;
    work.wr.rdma.rkey = resolved.nic_rkey;
    return work;
  };
  // Packets begin at the operation's first byte. If that is not on a word boundary, words would cross packets
  // and be torn, as Soft-RoCE's copy of a packet tears them. So the bytes up to the next word go ahead.
  const auto head = static_cast<uint32_t>((kWordBytes - remote_address % kWordBytes) % kWordBytes);
  const uint32_t whole_bytes = core_->device().soft_roce() ? head : path_mtu_bytes_;
  if (resolved.inside && head > 0 && bytes > whole_bytes) {
    ibv_send_wr& work = one_sided(AppendOne(sends_posted_, data, head, lkey));
    work.opcode = request.opcode == Opcode::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    work.send_flags = flags;
    data += head;
    bytes -= head;
    remote_address += head;
  }
  ibv_send_wr& work = AppendOne(sends_posted_, data, bytes, lkey);
  work.opcode = opcode;
  work.send_flags = flags;
  if (request.signal == Signal::kSignaled) work.send_flags |= IBV_SEND_SIGNALED;
  work.imm_data = htonl(request.immediate);
  if (request.opcode != Opcode::kSend) one_sided(work);
}

void VerbsQueuePair::AppendAtomic(const WorkRequest& request, const Resolved& resolved) {
  ibv_send_wr& work = AppendOne(sends_posted_, request.local.data, request.local.bytes, resolved.nic_lkey);
  const bool add = request.opcode == Opcode::kFetchAdd;
  work.opcode = NicOpcode(request.opcode);
  work.wr.atomic.remote_addr = resolved.remote_address;
  work.wr.atomic.rkey = resolved.nic_rkey;
  work.wr.atomic.compare_add = add ? request.swap_or_add : request.compare;
  work.wr.atomic.swap = request.swap_or_add;
  const unsigned signal = request.signal == Signal::kSignaled ? IBV_SEND_SIGNALED : 0;
  if (!core_->device().soft_roce()) {
    work.send_flags = signal;
    return;
  }
  // The acknowledgement of a repeated WRITE has the number of the last request other than a READ. If that is
  // an atomic, the acknowledgement passes for its answer; so another request follows it.
  ibv_send_wr& behind = AppendOne(sends_posted_, nullptr, 0, 0);
  behind.opcode = IBV_WR_RDMA_WRITE;
  behind.send_flags = signal;
}

void VerbsQueuePair::AppendNothing(uint64_t position) {
  // No bytes: the peer's NIC checks neither key nor address.
  ibv_send_wr& work = AppendOne(position, nullptr, 0, 0);
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
}

ibv_send_wr& VerbsQueuePair::AppendOne(uint64_t position, std::byte* data, uint32_t bytes, uint32_t lkey) {
  NAM_CHECK(batch_.size() < batch_.capacity(), "room was checked");
  ibv_send_wr& work = batch_.emplace_back();
  work.wr_id = WorkId::Make(id_, false, position);
  if (bytes == 0) return work;
  work.sg_list = &batch_parts_.emplace_back(ibv_sge{reinterpret_cast<uintptr_t>(data), bytes, lkey});
  work.num_sge = 1;
  return work;
}

absl::Status VerbsQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(
      CheckReceiveRoom(batch.size(), receives_posted_ - receives_taken_, options_.receive_depth));
  if (batch.empty()) return absl::OkStatus();
  receive_batch_.clear();
  receive_parts_.clear();
  for (const ReceiveRequest& request : batch) {
    const auto key = local_regions_.NicKey(request.into);
    receives_[receives_posted_ % receives_.size()] = {request.id, !key};
    ibv_recv_wr& work = receive_batch_.emplace_back();
    work.wr_id = WorkId::Make(id_, true, receives_posted_++);
    // Without a buffer, every message is too long.
    if (!key || request.into.bytes == 0) continue;
    work.sg_list = &receive_parts_.emplace_back(
        ibv_sge{reinterpret_cast<uintptr_t>(request.into.data), request.into.bytes, *key});
    work.num_sge = 1;
  }
  for (size_t i = 0; i + 1 < receive_batch_.size(); ++i) receive_batch_[i].next = &receive_batch_[i + 1];
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_recv(nic_.handle.get(), receive_batch_.data(), &refused);
  if (error != 0) return PostError("cannot post receives", error);
  // Some NICs flush receives only when the queue pair enters the error state.
  if (state_ == QueuePairState::kError || channel_->lost()) MoveToError(nic_.handle.get());
  return absl::OkStatus();
}

absl::Status VerbsQueuePair::PostError(const char* what, int error) {
  const char* state = state_ == QueuePairState::kReady ? "ready" : "error";
  Fail(CompletionStatus::kFlushed, CompletionStatus::kPeerLost);
  return VerbsError(core_->device(),
                    absl::StrFormat("%s on queue pair %d (state %s) with %s", what, id_, state, peer_), error,
                    "the device is being removed, or its driver limits the queue further");
}

absl::StatusOr<std::span<const std::byte>> VerbsQueuePair::View(RemoteAddress, size_t) {
  return absl::FailedPreconditionError("the verbs fabric has no view of a peer's memory: READ it instead");
}

// -- Completions ------------------------------------------------------------------

std::optional<Completion> VerbsQueuePair::Translate(const ibv_wc& completion) {
  return WorkId::IsReceive(completion.wr_id) ? TranslateReceive(completion) : TranslateSend(completion);
}

std::optional<Completion> VerbsQueuePair::TranslateSend(const ibv_wc& completion) {
  const uint64_t position = WorkId::Position(completion.wr_id, sends_taken_);
  // The second half of a request whose first half failed.
  if (position >= sends_posted_) return std::nullopt;
  const SendPlace& place = sends_[position % sends_.size()];
  CompletionStatus status = SendStatus(completion, place, position);
  if (status == CompletionStatus::kOk && !AnswersCame(position)) status = CompletionStatus::kPeerLost;
  if (status != CompletionStatus::kOk && state_ == QueuePairState::kReady) {
    if (status == CompletionStatus::kPeerLost && completion.status == IBV_WC_SUCCESS) {
      nic_error_ = "success, but an answer is missing";
    }
    if (completion.status != IBV_WC_SUCCESS) nic_error_ = ibv_wc_status_str(completion.status);
    Fail(status, CompletionStatus::kPeerLost);
  }
  sends_taken_ = position + 1;
  return Completion{.id = place.id, .queue_pair = id_, .status = status, .opcode = place.opcode};
}

CompletionStatus VerbsQueuePair::SendStatus(const ibv_wc& completion, const SendPlace& place,
                                            uint64_t position) {
  if (completion.status == IBV_WC_SUCCESS) return place.status;
  const bool failed_before = state_ == QueuePairState::kError;
  if (failed_before && place.status != CompletionStatus::kOk) return place.status;
  if (failed_before && position >= posted_at_error_) return CompletionStatus::kFlushed;
  if (const auto cause = OwnCause(completion.status)) {
    // Malformed one-sided requests were found before posting. Cards differ in the error for a request that
    // the connection has no right to.
    const bool forbidden = *cause == CompletionStatus::kRemoteInvalidRequest && IsOneSided(place.opcode);
    return forbidden ? CompletionStatus::kRemoteAccessError : *cause;
  }
  if (failed_before) {
    return lost_ ? CompletionStatus::kPeerLost : std::exchange(oldest_pending_, CompletionStatus::kFlushed);
  }
  if (channel_->lost()) return channel_->reason();
  if (completion.status == IBV_WC_RETRY_EXC_ERR || completion.status == IBV_WC_RNR_RETRY_EXC_ERR) {
    return WhyUnanswered(place.opcode);
  }
  return completion.status == IBV_WC_WR_FLUSH_ERR ? CompletionStatus::kFlushed
                                                  : CompletionStatus::kLocalError;
}

// Checks all requests that this completion covers.
bool VerbsQueuePair::AnswersCame(uint64_t position) const {
  for (uint64_t i = sends_taken_; i <= position; ++i) {
    if (!AnswerCame(sends_[i % sends_.size()])) return false;
  }
  return true;
}

bool VerbsQueuePair::AnswerCame(const SendPlace& place) const {
  return place.answer == nullptr || std::memcmp(place.answer, &no_answer_, kWordBytes) != 0;
}

CompletionStatus VerbsQueuePair::WhyUnanswered(Opcode opcode) {
  // Either the peer is gone, or its NIC refused the request and the refusal was lost: then its queue pair is
  // in the error state and answers nothing more.
  const auto ready = channel_->AskWhetherReady(RealClock().After(core_->options().peer_timeout_us));
  if (!ready.ok()) return channel_->lost() ? channel_->reason() : CompletionStatus::kPeerLost;
  if (*ready) return CompletionStatus::kPeerLost;
  return opcode == Opcode::kSend ? CompletionStatus::kRemoteInvalidRequest
                                 : CompletionStatus::kRemoteAccessError;
}

std::optional<Completion> VerbsQueuePair::TranslateReceive(const ibv_wc& completion) {
  const uint64_t position = WorkId::Position(completion.wr_id, receives_taken_);
  if (position >= receives_posted_) return std::nullopt;
  const ReceivePlace& place = receives_[position % receives_.size()];
  receives_taken_ = position + 1;
  Completion received{.id = place.id, .queue_pair = id_, .opcode = Opcode::kReceive};
  received.status = ReceiveStatus(completion, place);
  if (!received.ok()) return received;
  received.bytes = completion.byte_len;
  received.has_immediate = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (received.has_immediate) received.immediate = ntohl(completion.imm_data);
  return received;
}

CompletionStatus VerbsQueuePair::ReceiveStatus(const ibv_wc& completion, const ReceivePlace& place) {
  if (completion.status == IBV_WC_SUCCESS) return CompletionStatus::kOk;
  if (state_ == QueuePairState::kError)
    return lost_ ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed;
  if (completion.status == IBV_WC_WR_FLUSH_ERR) {
    const bool peer_lost = channel_->lost() && channel_->reason() == CompletionStatus::kPeerLost;
    const CompletionStatus status = peer_lost ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed;
    Fail(status, CompletionStatus::kPeerLost);
    return status;
  }
  // The peer's message did not fit, or had no buffer: its sender is told so.
  Fail(CompletionStatus::kFlushed, CompletionStatus::kRemoteInvalidRequest);
  if (place.local_error) return CompletionStatus::kLocalError;
  if (completion.status == IBV_WC_LOC_LEN_ERR) return CompletionStatus::kRemoteInvalidRequest;
  return OwnCause(completion.status).value_or(CompletionStatus::kLocalError);
}

absl::Status VerbsQueuePair::Disconnect(Deadline deadline) {
  Fail(CompletionStatus::kFlushed, CompletionStatus::kPeerLost);
  // Repeated, because a full socket buffer may have swallowed the first one.
  channel_->TellEnded(CompletionStatus::kPeerLost);
  const auto ready = channel_->AskWhetherReady(deadline);
  if (ready.ok() && !*ready) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "%s has not confirmed the end of the connection: packets in flight may still take effect", peer()));
}

void VerbsQueuePair::Fail(CompletionStatus status, CompletionStatus told) {
  if (state_ == QueuePairState::kError) return;
  state_ = QueuePairState::kError;
  posted_at_error_ = sends_posted_;
  lost_ = status == CompletionStatus::kPeerLost;
  if (channel_->lost() && status == CompletionStatus::kFlushed) oldest_pending_ = channel_->reason();
  MoveToError(nic_.handle.get());
  channel_->TellEnded(told);
  for (uint64_t i = sends_taken_; i < sends_posted_; ++i) {
    const SendPlace& place = sends_[i % sends_.size()];
    if (!AnswerCame(place)) std::memcpy(place.answer, &place.before, kWordBytes);
  }
}

}  // namespace nam::fabric::verbs
