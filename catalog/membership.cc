#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/client.h"

namespace nam::catalog {

absl::StatusOr<std::unique_ptr<Membership>> Membership::Join(Client& client, fabric::Fabric& fabric,
                                                             const proto::Member& member, Hooks hooks) {
  NAM_ASSIGN_OR_RETURN(const proto::JoinReply reply, client.Join(member));
  return std::unique_ptr<Membership>(new Membership(client, fabric, MemberId(reply.id()),
                                                    int64_t{reply.lease_ms()} * 1'000, std::move(hooks)));
}

Membership::Membership(Client& client, fabric::Fabric& fabric, MemberId id, int64_t lease_us, Hooks hooks)
    : client_(client),
      fabric_(fabric),
      id_(id),
      lease_us_(lease_us),
      hooks_(std::move(hooks)),
      stop_(fabric.CreateEvent()),
      thread_(fabric.StartThread("nam-lease", [this] { RenewLoop(); })) {}

Membership::~Membership() {
  stop_->Set();
  thread_.reset();
  // Not heard, or not a member any more: the lease ends by itself.
  client_.Leave(id_).IgnoreError();
}

void Membership::RenewLoop() {
  Clock& clock = fabric_.clock();
  int64_t pause_us = lease_us_ / 3;
  while (!stop_->Wait(clock.After(pause_us))) {
    proto::RenewRequest request;
    request.set_id(id_.value());
    if (hooks_.before_renew) hooks_.before_renew(request);
    const absl::StatusOr<proto::RenewReply> reply = client_.Renew(request);
    if (reply.ok()) {
      pause_us = lease_us_ / 3;
      if (hooks_.after_renew) hooks_.after_renew(*reply);
      continue;
    }
    if (!absl::IsNotFound(reply.status())) {
      // Out of reach is not expelled: a catalog that comes back gives every member it knows a fresh lease,
      // and a memory server that ended meanwhile would take its data with it.
      pause_us = lease_us_ / 10;
      continue;
    }
    if (hooks_.on_lost) {
      hooks_.on_lost(absl::Status(reply.status().code(),
                                  absl::StrFormat("the membership (id %d) in the cluster is lost: %s",
                                                  id_.value(), std::string(reply.status().message()))));
    }
    return;
  }
}

}  // namespace nam::catalog
