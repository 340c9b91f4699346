#include "fabric/verbs/connection.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"
#include "fabric/threads.h"
#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/memory.h"

namespace nam::fabric::verbs {
namespace {

/// READs and atomics in flight that an end answers; NICs have 16 to 128.
constexpr int kReadsMax = 64;
/// 7 means forever: a SEND waits as long as its peer has no receive posted. In rxe a request then also waits
/// forever for an answer, which is why the other count stays below.
constexpr uint8_t kReceiverNotReadyRetries = 7;
constexpr uint8_t kRetries = 6;
constexpr uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms

template <typename T>
std::span<const std::byte, sizeof(T)> BytesOf(const T& object) {
  return std::span<const std::byte, sizeof(T)>(reinterpret_cast<const std::byte*>(&object), sizeof(T));
}

/// The exponent of 4.096 µs such that all tries together take between half and all of the peer timeout.
uint8_t TimeoutExponent(int64_t peer_timeout_us) {
  uint8_t exponent = 1;
  while (exponent < 24 &&
         (kRetries + 1) * 4.096 * (2ll << exponent) <= static_cast<double>(peer_timeout_us)) {
    ++exponent;
  }
  return exponent;
}

absl::Status StateError(const Core& core, const NewQueuePair& queue_pair, const char* state,
                        const std::string& peer_name, int error) {
  return VerbsError(
      core.device(),
      absl::StrFormat("cannot move queue pair %d to %s with %s", queue_pair.handle->qp_num, state, peer_name),
      error,
      "is the peer's address reachable from this port (another subnet, RoCE v1 against v2, a GID "
      "that went away)? See `rdma link` and choose by --rdma=DEVICE:PORT,gid=N");
}

int ToReadyToReceive(const Core& core, ibv_qp* queue_pair, const Offer& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = PathMtu(core, peer);
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = peer.psn;
  attributes.max_dest_rd_atomic =
      static_cast<uint8_t>(std::min(core.device().attributes().max_qp_rd_atom, kReadsMax));
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = core.device().port();
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.grh.sgid_index = core.device().gid_index();
  attributes.ah_attr.grh.hop_limit = 64;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  return ibv_modify_qp(queue_pair, &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int ToReadyToSend(const Core& core, ibv_qp* queue_pair, const Offer& own, const Offer& peer) {
  const int reads = std::min<int>(core.device().attributes().max_qp_init_rd_atom, kReadsMax);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = TimeoutExponent(core.options().peer_timeout_us);
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kReceiverNotReadyRetries;
  attributes.sq_psn = own.psn;
  attributes.max_rd_atomic = static_cast<uint8_t>(std::clamp<int>(peer.reads_max, 1, std::max(1, reads)));
  return ibv_modify_qp(queue_pair, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace

ibv_mtu PathMtu(const Core& core, const Offer& peer) {
  return std::min(core.device().mtu(), static_cast<ibv_mtu>(peer.mtu));
}

absl::StatusOr<NewQueuePair> CreateQueuePair(const Core& core, ibv_cq* completions, const QueueDepths& depths,
                                             Access rights) {
  const Device& device = core.device();
  ibv_qp_init_attr initial{};
  initial.qp_type = IBV_QPT_RC;
  initial.send_cq = initial.recv_cq = completions;
  initial.cap.max_send_wr = depths.send;
  initial.cap.max_recv_wr = std::max(1u, depths.receive);
  initial.cap.max_send_sge = initial.cap.max_recv_sge = 1;
  NewQueuePair queue_pair;
  // The fabric copies payloads that do not go inline into the NIC's queue, so fewer inline bytes suffice.
  for (uint32_t inline_bytes = depths.inline_bytes;; inline_bytes /= 2) {
    initial.cap.max_inline_data = queue_pair.inline_bytes = inline_bytes;
    queue_pair.handle.reset(ibv_create_qp(device.pd(), &initial));
    if (queue_pair.handle != nullptr || inline_bytes == 0) break;
  }
  if (queue_pair.handle == nullptr) {
    return VerbsError(device,
                      absl::StrFormat("cannot make a queue pair for %d sends and %d receives", depths.send,
                                      initial.cap.max_recv_wr),
                      errno,
                      absl::StrFormat("the device has %d queue pairs of at most %d work requests, and pinned "
                                      "memory is limited (`ulimit -l`)",
                                      device.attributes().max_qp, device.attributes().max_qp_wr));
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device.port();
  attributes.qp_access_flags = NicAccess(rights);
  const int error = ibv_modify_qp(queue_pair.handle.get(), &attributes,
                                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return StateError(core, queue_pair, "INIT", "any peer", error);
  queue_pair.offer = {
      .mtu = static_cast<uint8_t>(device.mtu()),
      .queue_pair = queue_pair.handle->qp_num,
      .psn = static_cast<uint32_t>(RandomBits() & kPsnMax),
      .lid = device.lid(),
      .reads_max = static_cast<uint16_t>(std::min(device.attributes().max_qp_rd_atom, kReadsMax))};
  std::memcpy(queue_pair.offer.gid.data(), device.gid().raw, queue_pair.offer.gid.size());
  return queue_pair;
}

absl::Status BringUp(const Core& core, const NewQueuePair& queue_pair, const Offer& peer,
                     const std::string& peer_name) {
  ibv_gid gid{};
  std::memcpy(gid.raw, peer.gid.data(), peer.gid.size());
  const std::string name =
      absl::StrFormat("%s (queue pair %d at %s)", peer_name, peer.queue_pair, GidText(gid));
  int error = ToReadyToReceive(core, queue_pair.handle.get(), peer);
  if (error != 0) return StateError(core, queue_pair, "RTR", name, error);
  error = ToReadyToSend(core, queue_pair.handle.get(), queue_pair.offer, peer);
  if (error != 0) return StateError(core, queue_pair, "RTS", name, error);
  return absl::OkStatus();
}

absl::Status SendOffer(int fd, const Offer& offer, Deadline deadline) {
  return net::SendAll(fd, BytesOf(offer), deadline);
}

absl::StatusOr<Offer> ReceiveOffer(int fd, const std::string& peer_name, Deadline deadline) {
  std::array<std::byte, sizeof(Offer)> bytes;
  const absl::Status received = net::ReceiveAll(fd, bytes, deadline);
  if (absl::IsDeadlineExceeded(received)) {
    return absl::DeadlineExceededError(
        absl::StrFormat("%s received the connection, but did not accept it in time", peer_name));
  }
  if (!received.ok()) {
    return absl::UnavailableError(absl::StrFormat(
        "%s closed the connection while queue pairs were exchanged: it is shutting down, or no verbs fabric",
        peer_name));
  }
  const auto offer = DecodeOffer(bytes);
  if (!offer) {
    return absl::UnavailableError(absl::StrFormat(
        "%s is not a verbs fabric of this release: check the address, and run the same release everywhere",
        peer_name));
  }
  switch (offer->refused) {
    case Refusal::kNone:
      return *offer;
    case Refusal::kNoQueuePair:
      return absl::UnavailableError(absl::StrFormat(
          "%s could not make a queue pair: it is out of them, or may pin no more memory (`ulimit -l`)",
          peer_name));
    case Refusal::kNoSuchMember:
      break;
  }
  return absl::PermissionDeniedError(
      absl::StrFormat("%s has fenced this member meanwhile: the membership has ended", peer_name));
}

absl::Status SendReady(int fd, Deadline deadline) {
  return net::SendAll(fd, BytesOf(Frame{.kind = FrameKind::kReady}), deadline);
}

absl::Status ReceiveReady(int fd, Deadline deadline) {
  std::array<std::byte, sizeof(Frame)> bytes;
  NAM_RETURN_IF_ERROR(net::ReceiveAll(fd, bytes, deadline));
  const auto frame = DecodeFrame(bytes);
  if (!frame || frame->kind != FrameKind::kReady)
    return absl::UnavailableError("the peer does not follow the protocol");
  return absl::OkStatus();
}

}  // namespace nam::fabric::verbs
