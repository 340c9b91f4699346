#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/client.h"

namespace nam::catalog {

absl::StatusOr<std::unique_ptr<Membership>> Membership::Join(Client& client, fabric::Fabric& fabric,
                                                             const proto::Member& member, Hooks hooks) {
  const int64_t asked_ns = fabric.clock().NowNs();
  NAM_ASSIGN_OR_RETURN(const proto::JoinReply reply, client.Join(member));
  std::unique_ptr<Membership> joined(new Membership(client, fabric, reply, asked_ns, std::move(hooks)));
  NAM_ASSIGN_OR_RETURN(joined->thread_, fabric.TryStartThread("nam-lease", [membership = joined.get()] {
    membership->RenewLoop();
  }));
  return joined;
}

Membership::Membership(Client& client, fabric::Fabric& fabric, const proto::JoinReply& reply,
                       int64_t asked_ns, Hooks hooks)
    : client_(client),
      fabric_(fabric),
      id_(reply.id()),
      joined_(reply),
      lease_us_(int64_t{reply.lease_ms()} * 1'000),
      hooks_(std::move(hooks)),
      lease_end_ns_(asked_ns + lease_us_ * 1'000),
      stop_(fabric.CreateEvent()) {}

Membership::~Membership() {
  stop_->Set();
  thread_.reset();
  // If this is lost or the membership has ended, the lease ends by itself.
  client_.Leave(id_, proof()).IgnoreError();
}

absl::StatusOr<proto::RenewReply> Membership::Renew(proto::RenewRequest request) {
  request.set_id(id_.value());
  request.set_proof(proof());
  const int64_t asked_ns = fabric_.clock().NowNs();
  NAM_ASSIGN_OR_RETURN(proto::RenewReply reply, client_.Renew(request));
  const int64_t end_ns = asked_ns + lease_us_ * 1'000;
  for (int64_t seen_ns = lease_end_ns_;
       seen_ns < end_ns && !lease_end_ns_.compare_exchange_weak(seen_ns, end_ns);) {
  }
  return reply;
}

absl::Status Membership::Confirm() {
  if (fabric_.clock().NowNs() < lease_end_ns_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return Ask();
}

absl::Status Membership::Ask() {
  return Renew({}).status();
}

void Membership::RenewLoop() {
  Clock& clock = fabric_.clock();
  int64_t pause_us = lease_us_ / 3;
  while (!stop_->Wait(clock.After(pause_us))) {
    proto::RenewRequest request;
    if (hooks_.before_renew) hooks_.before_renew(request);
    const absl::StatusOr<proto::RenewReply> reply = Renew(std::move(request));
    if (reply.ok()) {
      pause_us = lease_us_ / 3;
      if (hooks_.after_renew) hooks_.after_renew(*reply);
      continue;
    }
    if (!absl::IsNotFound(reply.status())) {
      // Unreachable is not expelled: a catalog that comes back gives every known member a fresh lease, and a
      // memory server that ended meanwhile would lose its data.
      pause_us = lease_us_ / 10;
      continue;
    }
    lease_end_ns_ = 0;  // Confirm fails from now on
    if (hooks_.on_lost) {
      hooks_.on_lost(absl::Status(reply.status().code(),
                                  absl::StrFormat("the membership (id %d) in the cluster is lost: %s",
                                                  id_.value(), std::string(reply.status().message()))));
    }
    return;
  }
}

}  // namespace nam::catalog
