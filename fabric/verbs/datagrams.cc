#include "fabric/verbs/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/datagram_rules.h"
#include "fabric/verbs/control.h"
#include "fabric/verbs/wire.h"

namespace nam::fabric::verbs {
namespace {

constexpr size_t kTargetsMax = 1u << 16;
constexpr uint32_t kMulticastQueuePair = 0xff'ffff;
/// No queue pair has this number.
constexpr uint32_t kNoQueuePair = 0xff'fffe;
/// A RoCE v2 NIC puts 20 unused bytes and the IPv4 header before the payload.
constexpr size_t kSourceAt = 32;
constexpr size_t kDestinationAt = 36;
constexpr size_t kMappedV4At = 12;  // in a GID

bool SameV4(const ibv_gid& gid, const std::byte* address) {
  return std::memcmp(gid.raw + kMappedV4At, address, sizeof(in_addr)) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatagramQueuePair>> VerbsDatagramQueuePair::Create(
    std::shared_ptr<Core> core, VerbsCompletionQueue& queue, const DatagramOptions& options) {
  NAM_RETURN_IF_ERROR(CheckDatagramOptions(options));
  NAM_RETURN_IF_ERROR(queue.CheckRoom(PlacesOf(options)));
  std::unique_ptr<VerbsDatagramQueuePair> pair(new VerbsDatagramQueuePair(std::move(core), queue, options));
  NAM_RETURN_IF_ERROR(pair->Prepare());
  NAM_RETURN_IF_ERROR(queue.Attach(pair->id_, *pair, PlacesOf(options)));
  pair->attached_ = true;
  return pair;
}

VerbsDatagramQueuePair::VerbsDatagramQueuePair(std::shared_ptr<Core> core, VerbsCompletionQueue& queue,
                                               const DatagramOptions& options)
    : core_(std::move(core)),
      queue_(queue),
      options_(options),
      id_(Core::NextId()),
      sends_(options.send_depth),
      receives_(std::max(1u, options.receive_depth)),
      local_regions_(core_->registry()) {}

VerbsDatagramQueuePair::~VerbsDatagramQueuePair() {
  // A queue pair that is a member of a group cannot be destroyed.
  while (!joined_.empty()) Leave(std::string(joined_.begin()->first)).IgnoreError();
  handle_.reset();
  if (attached_) queue_.Detach(id_, PlacesOf(options_));
}

absl::Status VerbsDatagramQueuePair::Prepare() {
  const Device& device = core_->device();
  NAM_ASSIGN_OR_RETURN(AnonymousMapping overflow, AnonymousMapping::Create(kOverflowBytes, false, false));
  overflow_ = std::make_unique<AnonymousMapping>(std::move(overflow));
  overflow_region_.reset(ibv_reg_mr(device.pd(), overflow_->data(), kOverflowBytes, IBV_ACCESS_LOCAL_WRITE));
  if (overflow_region_ == nullptr) {
    return VerbsError(device, "cannot register memory for datagrams", errno,
                      "pinned memory is limited (`ulimit -l`)");
  }
  ibv_qp_init_attr initial{};
  initial.qp_type = IBV_QPT_UD;
  initial.send_cq = initial.recv_cq = queue_.handle();
  initial.cap.max_send_wr = options_.send_depth;
  initial.cap.max_recv_wr = std::max(1u, options_.receive_depth);
  initial.cap.max_send_sge = 1;
  initial.cap.max_recv_sge = 2;
  handle_.reset(ibv_create_qp(device.pd(), &initial));
  if (handle_ == nullptr) {
    return VerbsError(device,
                      absl::StrFormat("cannot make a datagram queue pair for %d sends and %d receives",
                                      options_.send_depth, options_.receive_depth),
                      errno,
                      absl::StrFormat("the device has %d queue pairs of at most %d work requests",
                                      device.attributes().max_qp, device.attributes().max_qp_wr));
  }
  NAM_RETURN_IF_ERROR(BringUp());
  DatagramAddress nobody{device.gid(), kNoQueuePair, device.lid()};
  return AddTarget(nobody, std::nullopt).status();
}

absl::Status VerbsDatagramQueuePair::BringUp() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = core_->device().port();
  attributes.qkey = core_->queue_key();
  int error =
      ibv_modify_qp(handle_.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attributes.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(handle_.get(), &attributes, IBV_QP_STATE);
  attributes.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ibv_modify_qp(handle_.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (error == 0) return absl::OkStatus();
  return VerbsError(core_->device(),
                    absl::StrFormat("cannot bring up datagram queue pair %d", handle_->qp_num), error,
                    "is the port still active (`rdma link`)?");
}

uint32_t VerbsDatagramQueuePair::bytes_max() const {
  return std::min(kMaxDatagramBytes, MtuBytes(core_->device().mtu()));
}

std::string VerbsDatagramQueuePair::address() const {
  return FormatDatagramAddress({core_->device().gid(), handle_->qp_num, core_->device().lid()});
}

absl::StatusOr<DatagramTarget> VerbsDatagramQueuePair::AddTarget(const DatagramAddress& address,
                                                                 std::optional<ibv_gid> group) {
  NAM_RETURN_IF_ERROR(CheckTargetRoom(targets_.size(), kTargetsMax));
  const Device& device = core_->device();
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = device.port();
  attributes.dlid = address.lid;
  attributes.grh.dgid = address.gid;
  attributes.grh.sgid_index = device.gid_index();
  attributes.grh.hop_limit = 64;
  AddressHandle handle(ibv_create_ah(device.pd(), &attributes));
  if (handle == nullptr) {
    return VerbsError(device, absl::StrFormat("cannot address %s", GidText(address.gid)), errno,
                      "is it reachable from this port (`ip route get`, `ip neigh`)?");
  }
  targets_.push_back({std::move(handle), address.queue_pair, group});
  return DatagramTarget{static_cast<uint32_t>(targets_.size() - 1)};
}

absl::StatusOr<DatagramTarget> VerbsDatagramQueuePair::Resolve(const std::string& address) {
  if (const auto known = resolved_.find(address); known != resolved_.end()) return known->second;
  NAM_ASSIGN_OR_RETURN(const DatagramAddress parsed, ParseDatagramAddress(address));
  NAM_ASSIGN_OR_RETURN(const DatagramTarget target, AddTarget(parsed, std::nullopt));
  resolved_.emplace(address, target);
  return target;
}

absl::StatusOr<DatagramTarget> VerbsDatagramQueuePair::OpenGroup(uint32_t number) {
  const Device& device = core_->device();
  if (number > kGroupNumberMax) {
    return absl::InvalidArgumentError(absl::StrFormat("group %d: at most %d", number, kGroupNumberMax));
  }
  if (!device.ethernet() || !IsMappedV4(device.gid())) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "multicast over verbs is IPv4 multicast of RoCE v2, and %s is not that: choose a GID that is an IPv4 "
        "address by --rdma=DEVICE:PORT,gid=N",
        device.name()));
  }
  if (device.attributes().max_mcast_grp == 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s has no multicast groups: see its driver's documentation", device.name()));
  }
  const ibv_gid group = GroupGid(number);
  return AddTarget({.gid = group, .queue_pair = kMulticastQueuePair}, group);
}

absl::StatusOr<std::string> VerbsDatagramQueuePair::GroupAddress(DatagramTarget group) const {
  if (group.handle >= targets_.size() || !targets_[group.handle].group) {
    return NotAGroup(group);
  }
  return FormatGroupAddress({*targets_[group.handle].group, core_->device().gid(), handle_->qp_num});
}

absl::Status VerbsDatagramQueuePair::Join(const std::string& group_address) {
  NAM_ASSIGN_OR_RETURN(const verbs::GroupAddress address, ParseGroupAddress(group_address));
  if (joined_.contains(group_address)) return absl::OkStatus();
  const Device& device = core_->device();
  // The interface delivers only groups that the kernel is a member of; the switches learn of it, too.
  UniqueFd membership(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, address.group.raw + kMappedV4At, sizeof(in_addr));
  request.imr_ifindex = static_cast<int>(device.interface_index());
  if (!membership.valid() ||
      setsockopt(membership.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) != 0) {
    return VerbsError(device, absl::StrFormat("cannot join multicast group %s", GidText(address.group)),
                      errno, "does the interface allow multicast (`ip link`)?");
  }
  const int error = InGroup(address.group) ? 0 : ibv_attach_mcast(handle_.get(), &address.group, 0);
  if (error != 0) {
    return VerbsError(
        device, absl::StrFormat("cannot attach to multicast group %s", GidText(address.group)), error,
        absl::StrFormat("the device has %d groups of at most %d queue pairs",
                        device.attributes().max_mcast_grp, device.attributes().max_mcast_qp_attach));
  }
  joined_.emplace(group_address, Joined{address, std::move(membership)});
  return absl::OkStatus();
}

bool VerbsDatagramQueuePair::InGroup(const ibv_gid& group) const {
  return std::any_of(joined_.begin(), joined_.end(), [&](const auto& entry) {
    return std::memcmp(entry.second.address.group.raw, group.raw, sizeof(group.raw)) == 0;
  });
}

absl::Status VerbsDatagramQueuePair::Leave(const std::string& group_address) {
  const auto found = joined_.find(group_address);
  if (found == joined_.end()) return NotAMember(group_address);
  const ibv_gid group = found->second.address.group;
  joined_.erase(found);
  if (!InGroup(group)) ibv_detach_mcast(handle_.get(), &group, 0);
  return absl::OkStatus();
}

absl::Status VerbsDatagramQueuePair::Post(std::span<const DatagramRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckDatagrams(batch, bytes_max(), targets_.size() - 1, sends_posted_ - sends_taken_,
                                     options_.send_depth));
  for (const DatagramRequest& request : batch) {
    const auto key = local_regions_.NicKey(request.local);
    SendPlace& place = sends_[sends_posted_ % sends_.size()];
    place = {request.id, request.signal, key ? CompletionStatus::kOk : CompletionStatus::kLocalError};
    const Target& to = targets_[key ? request.to.handle : 0];
    ibv_sge part{reinterpret_cast<uintptr_t>(request.local.data), request.local.bytes, key.value_or(0)};
    ibv_send_wr work{};
    work.wr_id = WorkId::Make(id_, false, sends_posted_);
    work.opcode = IBV_WR_SEND;
    if (request.signal == Signal::kSignaled || !key) work.send_flags = IBV_SEND_SIGNALED;
    if (key && request.local.bytes > 0) {
      work.sg_list = &part;
      work.num_sge = 1;
    }
    work.wr.ud.ah = to.handle.get();
    work.wr.ud.remote_qpn = to.queue_pair;
    work.wr.ud.remote_qkey = core_->queue_key();
    ibv_send_wr* refused = nullptr;
    if (const int error = ibv_post_send(handle_.get(), &work, &refused); error != 0) {
      return VerbsError(core_->device(),
                        absl::StrFormat("cannot post datagrams on queue pair %d", handle_->qp_num), error,
                        "the device is being removed");
    }
    ++sends_posted_;
  }
  return absl::OkStatus();
}

absl::Status VerbsDatagramQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(
      CheckReceiveRoom(batch.size(), receives_posted_ - receives_taken_, options_.receive_depth));
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto key = local_regions_.NicKey(batch[i].into);
    if (!key) return absl::InvalidArgumentError("a receive into memory that is not registered");
    receives_[(receives_posted_ + i) % receives_.size()] = {batch[i], *key};
  }
  const int error = PostPlaces(receives_posted_, receives_posted_ + batch.size());
  receives_posted_ += batch.size();
  if (error == 0) return absl::OkStatus();
  return VerbsError(core_->device(),
                    absl::StrFormat("cannot post receives on queue pair %d", handle_->qp_num), error,
                    "the device is being removed");
}

int VerbsDatagramQueuePair::PostPlaces(uint64_t begin, uint64_t end) {
  for (uint64_t position = begin; position < end; ++position) {
    const ReceivePlace& place = receives_[position % receives_.size()];
    const LocalBuffer& into = place.request.into;
    std::array<ibv_sge, 2> parts{};
    int count = 0;
    if (into.bytes > 0) parts[count++] = {reinterpret_cast<uintptr_t>(into.data), into.bytes, place.nic_lkey};
    if (into.bytes < kOverflowBytes) {
      parts[count++] = {reinterpret_cast<uintptr_t>(overflow_->data()), kOverflowBytes,
                        overflow_region_->lkey};
    }
    ibv_recv_wr work{};
    work.wr_id = WorkId::Make(id_, true, position);
    work.sg_list = parts.data();
    work.num_sge = count;
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(handle_.get(), &work, &refused); error != 0) return error;
  }
  return 0;
}

std::optional<Completion> VerbsDatagramQueuePair::Translate(const ibv_wc& completion) {
  return WorkId::IsReceive(completion.wr_id) ? TranslateReceive(completion) : TranslateSend(completion);
}

std::optional<Completion> VerbsDatagramQueuePair::TranslateSend(const ibv_wc& completion) {
  const uint64_t position = WorkId::Position(completion.wr_id, sends_taken_);
  if (position >= sends_posted_) return std::nullopt;
  const SendPlace& place = sends_[position % sends_.size()];
  sends_taken_ = position + 1;
  const CompletionStatus status =
      completion.status == IBV_WC_SUCCESS ? place.status : CompletionStatus::kLocalError;
  return Completion{.id = place.id, .queue_pair = id_, .status = status, .opcode = Opcode::kSend};
}

std::optional<Completion> VerbsDatagramQueuePair::TranslateReceive(const ibv_wc& completion) {
  const uint64_t position = WorkId::Position(completion.wr_id, receives_taken_);
  if (position >= receives_posted_) return std::nullopt;
  const ReceivePlace place = receives_[position % receives_.size()];
  receives_taken_ = position + 1;
  Completion received{.id = place.request.id, .queue_pair = id_, .opcode = Opcode::kReceive};
  if (completion.status != IBV_WC_SUCCESS) {
    received.status = CompletionStatus::kFlushed;
    return received;
  }
  const bool fits =
      completion.byte_len >= kDatagramHeadroomBytes && completion.byte_len <= place.request.into.bytes;
  if (fits && IsWanted(completion, place)) {
    received.bytes = completion.byte_len - kDatagramHeadroomBytes;
    return received;
  }
  (fits ? core_->datagrams_refused : core_->datagrams_unreceived).fetch_add(1, std::memory_order_relaxed);
  // The receive waits again. The NIC has the room that this completion freed.
  receives_[receives_posted_ % receives_.size()] = place;
  if (PostPlaces(receives_posted_, receives_posted_ + 1) == 0) ++receives_posted_;
  return std::nullopt;
}

bool VerbsDatagramQueuePair::IsWanted(const ibv_wc& completion, const ReceivePlace& place) const {
  const std::byte* header = place.request.into.data;
  const bool v4 = (completion.wc_flags & IBV_WC_GRH) != 0 && IsMappedV4(core_->device().gid());
  if (!v4 || !IN_MULTICAST(std::to_integer<uint32_t>(header[kDestinationAt]) << 24)) return true;
  if (completion.src_qp == handle_->qp_num && SameV4(core_->device().gid(), header + kSourceAt)) return false;
  return std::any_of(joined_.begin(), joined_.end(), [&](const auto& entry) {
    const verbs::GroupAddress& address = entry.second.address;
    return address.queue_pair == completion.src_qp && SameV4(address.group, header + kDestinationAt) &&
           SameV4(address.sender, header + kSourceAt);
  });
}

}  // namespace nam::fabric::verbs
