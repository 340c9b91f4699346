#include "fabric/tcp/datagram_queue_pair.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/datagram_rules.h"
#include "fabric/threads.h"

namespace nam::fabric::tcp {
namespace {

constexpr size_t kTargetsMax = 1u << 16;
constexpr size_t kGroupsMax = 256;
constexpr int kSourceEventsMax = 16;

/// The address of a group, or the reason why the text is invalid.
absl::StatusOr<DatagramAddress> ParseGroup(const std::string& text) {
  const auto address = ParseDatagramAddress(text);
  if (!address.has_value() || !address->is_group()) return NotAnAddress(text, "multicast group", "tcp");
  return *address;
}

bool SameTarget(const DatagramAddress& a, const DatagramAddress& b) {
  return a.ip == b.ip && a.port == b.port && a.target == b.target;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatagramQueuePair>> TcpDatagramQueuePair::Create(
    std::shared_ptr<Core> core, TcpCompletionQueue& queue, const DatagramOptions& options) {
  NAM_RETURN_IF_ERROR(CheckDatagramOptions(options));
  NAM_ASSIGN_OR_RETURN(DatagramInterface interface, FindDatagramInterface(core->options()));
  NAM_ASSIGN_OR_RETURN(UniqueFd socket, OpenDatagramSocket(interface, core->options().multicast_ttl));
  std::unique_ptr<TcpDatagramQueuePair> pair(
      new TcpDatagramQueuePair(std::move(core), queue, options, std::move(interface), RandomBits()));
  if (!pair->epoll_.valid()) {
    return absl::ResourceExhaustedError("no file descriptors left for datagrams: raise `ulimit -n`");
  }
  pair->own_.address = {pair->interface_.ip, DatagramPort(socket.get()), pair->identity_};
  pair->own_.socket = std::move(socket);
  NAM_RETURN_IF_ERROR(pair->Watch(pair->own_));
  NAM_RETURN_IF_ERROR(queue.Attach(*pair));
  return pair;
}

TcpDatagramQueuePair::TcpDatagramQueuePair(std::shared_ptr<Core> core, TcpCompletionQueue& queue,
                                           const DatagramOptions& options, DatagramInterface interface,
                                           uint64_t identity)
    : core_(std::move(core)),
      queue_(queue),
      options_(options),
      interface_(std::move(interface)),
      id_(core_->NextId()),
      identity_(identity),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      key_(core_->options().secret, identity, core_->options().encrypt),
      verifier_(core_->options().secret, core_->options().encrypt),
      sealed_(core_->options().encrypt ? std::make_unique_for_overwrite<std::byte[]>(
                                             size_t{options.send_depth} * kMaxDatagramBytes)
                                       : nullptr),
      places_(options.send_depth),
      receives_(options.receive_depth) {}

TcpDatagramQueuePair::~TcpDatagramQueuePair() {
  queue_.Detach(*this);
  for (const auto& group : groups_) Unwatch(*group);
  Unwatch(own_);
}

absl::Status TcpDatagramQueuePair::Watch(Source& source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &source}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, source.socket.get(), &event) != 0) {
    return absl::ResourceExhaustedError("cannot watch another socket: raise fs.epoll.max_user_watches");
  }
  core_->datagram_counters().Watch(source.socket.get());
  return absl::OkStatus();
}

void TcpDatagramQueuePair::Unwatch(Source& source) {
  core_->datagram_counters().Unwatch(source.socket.get());
}

std::string TcpDatagramQueuePair::address() const {
  return FormatDatagramAddress(own_.address);
}

absl::StatusOr<DatagramTarget> TcpDatagramQueuePair::AddTarget(const DatagramAddress& address) {
  const auto known =
      std::find_if(targets_.begin(), targets_.end(), [&](const auto& at) { return SameTarget(at, address); });
  if (known != targets_.end()) return DatagramTarget{static_cast<uint32_t>(known - targets_.begin() + 1)};
  NAM_RETURN_IF_ERROR(CheckTargetRoom(targets_.size(), kTargetsMax));
  targets_.push_back(address);
  return DatagramTarget{static_cast<uint32_t>(targets_.size())};
}

absl::StatusOr<DatagramTarget> TcpDatagramQueuePair::Resolve(const std::string& address) {
  const auto parsed = ParseDatagramAddress(address);
  if (!parsed.has_value() || parsed->is_group()) return NotAnAddress(address, "datagram queue pair", "tcp");
  return AddTarget(*parsed);
}

absl::StatusOr<DatagramTarget> TcpDatagramQueuePair::OpenGroup(uint32_t number) {
  const DatagramAddress group = MakeGroupAddress(number, RandomBits(), RandomBits());
  NAM_RETURN_IF_ERROR(CheckMulticast(interface_, own_.socket.get(), group));
  return AddTarget(group);
}

absl::StatusOr<std::string> TcpDatagramQueuePair::GroupAddress(DatagramTarget group) const {
  const size_t index = size_t{group.handle} - 1;
  if (group.handle == 0 || index >= targets_.size() || !targets_[index].is_group()) {
    return NotAGroup(group);
  }
  return FormatDatagramAddress(targets_[index]);
}

absl::Status TcpDatagramQueuePair::Join(const std::string& group_address) {
  NAM_ASSIGN_OR_RETURN(const DatagramAddress group, ParseGroup(group_address));
  for (const DatagramAddress& target : targets_) {
    if (SameTarget(target, group)) return SenderCannotJoin();
  }
  for (const auto& joined : groups_) {
    if (SameTarget(joined->address, group)) return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(CheckGroupRoom(groups_.size(), kGroupsMax));
  auto source = std::make_unique<Source>();
  source->address = group;
  NAM_ASSIGN_OR_RETURN(source->socket, OpenMemberSocket(interface_, group));
  NAM_RETURN_IF_ERROR(Watch(*source));
  groups_.push_back(std::move(source));
  return absl::OkStatus();
}

absl::Status TcpDatagramQueuePair::Leave(const std::string& group_address) {
  NAM_ASSIGN_OR_RETURN(const DatagramAddress group, ParseGroup(group_address));
  for (auto at = groups_.begin(); at != groups_.end(); ++at) {
    if (!SameTarget((*at)->address, group)) continue;
    Unwatch(**at);
    groups_.erase(at);
    return absl::OkStatus();
  }
  return NotAMember(group_address);
}

absl::Status TcpDatagramQueuePair::Post(std::span<const DatagramRequest> batch) {
  NAM_RETURN_IF_ERROR(
      CheckDatagrams(batch, bytes_max(), targets_.size(), posted_ - freed_, options_.send_depth));
  for (const DatagramRequest& request : batch) Enqueue(request);
  SendPending();
  return absl::OkStatus();
}

void TcpDatagramQueuePair::Enqueue(const DatagramRequest& request) {
  Place& place = PlaceOf(posted_++);
  const DatagramAddress& target = targets_[request.to.handle - 1];
  place.id = request.id;
  place.signal = request.signal;
  const bool registered = request.local.bytes == 0 || core_->regions().Contains(request.local);
  place.status = registered ? CompletionStatus::kOk : CompletionStatus::kLocalError;
  if (place.status != CompletionStatus::kOk) return;
  place.payload = request.local.data;
  place.to = SocketAddress(target.ip, target.port);
  place.header = {.bytes = static_cast<uint16_t>(request.local.bytes),
                  .sender = identity_,
                  .target = target.target,
                  .sequence = sequence_++};
  const std::span payload(place.payload, place.header.bytes);
  if (sealed_ == nullptr) {
    place.header.tag = key_.Sign(place.header, payload);
    return;
  }
  std::byte* const into = sealed_.get() + static_cast<size_t>(&place - places_.data()) * kMaxDatagramBytes;
  place.header.tag = key_.Seal(place.header, payload, into);
  place.payload = into;
}

void TcpDatagramQueuePair::SendPending() {
  while (sent_ < posted_) {
    if (PlaceOf(sent_).status != CompletionStatus::kOk) {
      ++sent_;
    } else if (!SendBatch()) {
      break;
    }
  }
  WatchOutput(sent_ < posted_);
}

bool TcpDatagramQueuePair::SendBatch() {
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, 2 * kBatch> parts;
  unsigned count = 0;
  for (uint64_t at = sent_; at < posted_ && count < kBatch; ++at, ++count) {
    Place& place = PlaceOf(at);
    if (place.status != CompletionStatus::kOk) break;
    parts[2 * count] = {&place.header, sizeof(place.header)};
    parts[2 * count + 1] = {place.payload, place.header.bytes};
    msghdr& message = messages[count].msg_hdr;
    message.msg_name = &place.to;
    message.msg_namelen = sizeof(place.to);
    message.msg_iov = &parts[2 * count];
    message.msg_iovlen = 2;
  }
  const int sent = sendmmsg(own_.socket.get(), messages.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) {
    sent_ += static_cast<uint64_t>(sent);
    return true;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  // No route, a firewall, no memory: the datagram is lost, which datagrams allow.
  if (errno != EINTR) ++sent_;
  return true;
}

void TcpDatagramQueuePair::WatchOutput(bool wanted) {
  if (output_watched_ == wanted) return;
  output_watched_ = wanted;
  epoll_event event{.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data = {.ptr = &own_}};
  NAM_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, own_.socket.get(), &event) == 0);
}

void TcpDatagramQueuePair::Progress() {
  if (sent_ < posted_) SendPending();
  std::array<epoll_event, kSourceEventsMax> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kSourceEventsMax, 0);
  for (int i = 0; i < count; ++i) {
    if ((events[i].events & (EPOLLIN | EPOLLERR)) != 0) Receive(*static_cast<Source*>(events[i].data.ptr));
  }
}

size_t TcpDatagramQueuePair::UsableReceives() {
  for (; !receives_.empty() && !core_->regions().Contains(receives_[0].into); receives_.Pop()) {
    FinishReceive(receives_[0], CompletionStatus::kLocalError, 0);
  }
  size_t usable = 0;
  while (usable < kBatch && usable < receives_.size() && core_->regions().Contains(receives_[usable].into)) {
    ++usable;
  }
  return usable;
}

void TcpDatagramQueuePair::Receive(Source& source) {
  const size_t wanted = UsableReceives();
  if (wanted == 0) {
    DropWaiting(source);
    return;
  }
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, 2 * kBatch> parts;
  for (size_t i = 0; i < wanted; ++i) {
    const LocalBuffer& into = receives_[i].into;
    const uint32_t headroom = std::min(into.bytes, kDatagramHeadroomBytes);
    parts[2 * i] = {&headers_[i], sizeof(headers_[i])};
    parts[2 * i + 1] = {into.data + headroom, std::min(into.bytes - headroom, kMaxDatagramBytes)};
    messages[i].msg_hdr.msg_iov = &parts[2 * i];
    messages[i].msg_hdr.msg_iovlen = 2;
  }
  const int received = recvmmsg(source.socket.get(), messages.data(), static_cast<unsigned>(wanted),
                                MSG_DONTWAIT | MSG_TRUNC, nullptr);
  std::array<ReceiveRequest, kBatch> unused;
  size_t unused_count = 0;
  for (int i = 0; i < received; ++i) {
    const ReceiveRequest& receive = receives_[static_cast<size_t>(i)];
    const Verdict verdict = Judge(source, messages[i], receive.into, headers_[i]);
    if (verdict == Verdict::kGood) {
      FinishReceive(receive, CompletionStatus::kOk, headers_[i].bytes);
      continue;
    }
    unused[unused_count++] = receive;
    if (verdict == Verdict::kNoReceive) {
      core_->datagram_counters().AddNoReceive(1);
    } else {
      core_->datagram_counters().AddRefused();
    }
  }
  if (received <= 0) return;
  receives_.Pop(static_cast<size_t>(received) - unused_count);
  for (size_t i = 0; i < unused_count; ++i) receives_[i] = unused[i];
}

TcpDatagramQueuePair::Verdict TcpDatagramQueuePair::Judge(const Source& source, const mmsghdr& message,
                                                          const LocalBuffer& into,
                                                          const DatagramHeader& header) {
  if (message.msg_len < sizeof(header)) return Verdict::kRefused;
  const bool cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
  const auto bytes =
      std::span<const std::byte, sizeof(header)>(reinterpret_cast<const std::byte*>(&header), sizeof(header));
  const auto decoded = DecodeDatagram(bytes, message.msg_len - sizeof(header));
  if (!decoded.has_value() || decoded->target != source.address.target) return Verdict::kRefused;
  // Longer than the receive; it cannot be verified without its end.
  if (cut) return Verdict::kNoReceive;
  std::byte* const payload = into.data + std::min(into.bytes, kDatagramHeadroomBytes);
  return verifier_.Verify(header, {payload, header.bytes}) ? Verdict::kGood : Verdict::kRefused;
}

void TcpDatagramQueuePair::DropWaiting(Source& source) {
  std::array<mmsghdr, kBatch> messages{};
  const int dropped = recvmmsg(source.socket.get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (dropped > 0) core_->datagram_counters().AddNoReceive(static_cast<uint64_t>(dropped));
}

void TcpDatagramQueuePair::FinishReceive(const ReceiveRequest& receive, CompletionStatus status,
                                         uint32_t bytes) {
  received_.push_back(
      {.id = receive.id, .queue_pair = id_, .status = status, .opcode = Opcode::kReceive, .bytes = bytes});
}

absl::Status TcpDatagramQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  const uint64_t outstanding = receives_.size() + received_.size();
  NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), outstanding, options_.receive_depth));
  receives_.Push(batch);
  return absl::OkStatus();
}

size_t TcpDatagramQueuePair::Pop(std::span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size() && taken_ < sent_) {
    const Place& place = PlaceOf(taken_++);
    if (place.status == CompletionStatus::kOk && place.signal == Signal::kUnsignaled) continue;
    completions[count++] = {
        .id = place.id, .queue_pair = id_, .status = place.status, .opcode = Opcode::kSend};
    freed_ = taken_;
  }
  while (count < completions.size() && !received_.empty()) {
    completions[count++] = received_.front();
    received_.pop_front();
  }
  return count;
}

}  // namespace nam::fabric::tcp
