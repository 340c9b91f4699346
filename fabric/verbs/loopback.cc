#include "fabric/verbs/loopback.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace nam::fabric::verbs {
namespace {

constexpr int64_t kTimeoutUs = 2'000'000;

absl::Status Failed(const char* what, int error) {
  return absl::InternalError(absl::StrFormat("%s: %s", what, std::strerror(error)));
}

absl::Status Modify(ibv_qp* pair, ibv_qp_attr& attributes, int mask, const char* what) {
  const int error = ibv_modify_qp(pair, &attributes, mask);
  return error == 0 ? absl::OkStatus() : Failed(what, error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loopback>> Loopback::Connect(ibv_context* context, uint8_t port,
                                                            const ibv_port_attr& attributes,
                                                            const ibv_gid_entry& gid) {
  std::unique_ptr<Loopback> loopback(new Loopback);
  NAM_RETURN_IF_ERROR(loopback->Create(context));
  ibv_qp* const initiator = loopback->initiator_.get();
  ibv_qp* const target = loopback->target_.get();
  NAM_RETURN_IF_ERROR(loopback->ConnectPair(initiator, target, port, attributes, gid));
  NAM_RETURN_IF_ERROR(loopback->ConnectPair(target, initiator, port, attributes, gid));
  return loopback;
}

absl::Status Loopback::Create(ibv_context* context) {
  domain_.reset(ibv_alloc_pd(context));
  if (domain_ == nullptr) return Failed("no protection domain", errno);
  completions_.reset(ibv_create_cq(context, 4, nullptr, nullptr, 0));
  if (completions_ == nullptr) return Failed("no completion queue", errno);
  region_.reset(ibv_reg_mr(
      domain_.get(), words_.data(), sizeof(words_),
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
  if (region_ == nullptr) return Failed("cannot register 16 bytes", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
  for (QueuePairHandle* pair : {&initiator_, &target_}) {
    pair->reset(ibv_create_qp(domain_.get(), &wanted));
    if (*pair == nullptr) return Failed("no queue pair", errno);
  }
  return absl::OkStatus();
}

absl::Status Loopback::ConnectPair(ibv_qp* mine, ibv_qp* theirs, uint8_t port,
                                   const ibv_port_attr& attributes, const ibv_gid_entry& gid) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = port;
  init.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  NAM_RETURN_IF_ERROR(Modify(mine, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                             "queue pair to INIT"));
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = attributes.active_mtu;
  receive.dest_qp_num = theirs->qp_num;
  receive.max_dest_rd_atomic = 1;
  receive.min_rnr_timer = 12;  // 0.64 ms
  receive.ah_attr.dlid = attributes.lid;
  receive.ah_attr.port_num = port;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.grh.dgid = gid.gid;
  receive.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid.gid_index);
  receive.ah_attr.grh.hop_limit = 64;
  NAM_RETURN_IF_ERROR(Modify(mine, receive,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                             "queue pair to RTR"));
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.timeout = 14;  // 67 ms
  send.retry_cnt = send.rnr_retry = 7;
  send.max_rd_atomic = 1;
  return Modify(mine, send,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                    IBV_QP_MAX_QP_RD_ATOMIC,
                "queue pair to RTS");
}

absl::StatusOr<uint64_t> Loopback::CompareAndSwap(uint64_t compare, uint64_t swap) {
  ibv_sge old{reinterpret_cast<uint64_t>(&words_[1]), sizeof(uint64_t), region_->lkey};
  ibv_send_wr request{};
  request.sg_list = &old;
  request.num_sge = 1;
  request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic.remote_addr = reinterpret_cast<uint64_t>(words_.data());
  request.wr.atomic.rkey = region_->rkey;
  request.wr.atomic.compare_add = compare;
  request.wr.atomic.swap = swap;
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(initiator_.get(), &request, &refused); error != 0) {
    return Failed("the swap was not taken", error);
  }
  NAM_RETURN_IF_ERROR(AwaitCompletion());
  return words_[1];
}

absl::Status Loopback::AwaitCompletion() {
  const Deadline deadline = RealClock().After(kTimeoutUs);
  ibv_wc completion{};
  int taken = 0;
  while ((taken = ibv_poll_cq(completions_.get(), 1, &completion)) == 0) {
    if (RealClock().Passed(deadline)) {
      return absl::DeadlineExceededError("no completion within 2 s: does the port reach itself?");
    }
    sched_yield();
  }
  if (taken < 0) return absl::InternalError("the completion queue cannot be polled");
  if (completion.status == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("the swap failed: %s", ibv_wc_status_str(completion.status)));
}

}  // namespace nam::fabric::verbs
