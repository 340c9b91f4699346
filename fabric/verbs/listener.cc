#include "fabric/verbs/listener.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/net/socket.h"
#include "fabric/request_rules.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/queue_pair.h"

namespace nam::fabric::verbs {
namespace {

class ServedByNic final : public ServedEnd {
 public:
  explicit ServedByNic(std::shared_ptr<ControlChannel> channel) : channel_(std::move(channel)) {}
  bool Stop(bool /*kill*/) override {
    channel_->Fence();
    return true;
  }

 private:
  const std::shared_ptr<ControlChannel> channel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> VerbsListener::Create(std::shared_ptr<Core> core,
                                                                const ListenOptions& options) {
  std::unique_ptr<Admission> admission;
  if (options.passive && options.member_keys != nullptr) {
    admission = std::make_unique<Admission>(*options.member_keys);
  }
  NAM_ASSIGN_OR_RETURN(
      auto acceptor,
      net::Acceptor::Listen(options.address, {.credentials = {.secret = core->options().secret},
                                              .peer_timeout_us = core->options().peer_timeout_us,
                                              .first_bytes = sizeof(Offer),
                                              .admission = admission.get()}));
  return std::unique_ptr<Listener>(
      new VerbsListener(std::move(core), options.passive, std::move(admission), std::move(acceptor)));
}

VerbsListener::VerbsListener(std::shared_ptr<Core> core, bool passive, std::unique_ptr<Admission> admission,
                             std::unique_ptr<net::Acceptor> acceptor)
    : core_(std::move(core)),
      passive_(passive),
      admission_(std::move(admission)),
      acceptor_(std::move(acceptor)) {
  acceptor_->Start(*this);
}

bool VerbsListener::Fence(MemberId member, bool kill) {
  return admission_ == nullptr || admission_->connections().Fence(member, kill);
}

std::vector<MemberId> VerbsListener::Members() {
  return admission_ == nullptr ? std::vector<MemberId>() : admission_->connections().Members();
}

net::ServerVerdict VerbsListener::Judge(const net::ClientHello& /*hello*/) {
  net::ServerVerdict verdict{.mode = passive_ ? net::ListenMode::kPassive : net::ListenMode::kPaired};
  if (waiting_.size() >= waiting_.kMax) verdict.status = net::HandshakeStatus::kBusy;
  return verdict;
}

void VerbsListener::Admit(net::AuthenticatedSocket authenticated, const net::ClientHello& /*hello*/,
                          net::Grant grant, std::span<const std::byte> first) {
  UniqueFd socket = std::move(authenticated.fd);
  const auto offer = DecodeOffer(first.first<sizeof(Offer)>());
  if (!offer || offer->refused != Refusal::kNone) return;
  std::string peer = net::PeerName(socket.get());
  if (passive_) {
    // A refused peer learns why from the offer, and tries elsewhere or again.
    (void)Serve(std::move(socket), *offer, std::move(grant), peer);
  } else if (waiting_.size() < waiting_.kMax) {
    waiting_.Add({std::move(socket), *offer, std::move(peer)},
                 RealClock().After(core_->options().peer_timeout_us).ns);
  }
}

absl::Status VerbsListener::Serve(UniqueFd socket, const Offer& offer, net::Grant grant,
                                  const std::string& peer) {
  const int fd = socket.get();
  const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
  auto made = CreateQueuePair(*core_, core_->idle_completions(), {.send = 1}, grant.rights);
  absl::Status ready = made.status();
  if (ready.ok()) ready = BringUp(*core_, *made, offer, peer);
  if (!ready.ok()) {
    (void)SendOffer(fd, {.refused = Refusal::kNoQueuePair}, soon);
    return ready;
  }
  const Offer answer = made->offer;
  const bool members = admission_ != nullptr && grant.rights != Access::kRead;
  const auto place = std::make_shared<MemberConnections::Place>(std::move(grant.place));
  const auto channel =
      std::make_shared<ControlChannel>(std::move(socket), core_->registry(), std::move(made->handle), place);
  // Before the peer knows the queue pair's number.
  if (members && !place->Serve(grant.key, std::make_shared<ServedByNic>(channel))) {
    (void)SendOffer(fd, {.refused = Refusal::kNoSuchMember}, soon);
    return absl::PermissionDeniedError("the member was fenced meanwhile");
  }
  // Answer first: afterwards only the control thread writes.
  absl::Status served = SendOffer(fd, answer, soon);
  if (served.ok()) served = core_->control().Add(channel);
  if (!served.ok()) channel->Release();
  return served;
}

absl::StatusOr<std::unique_ptr<QueuePair>> VerbsListener::Accept(CompletionQueue& completions,
                                                                 const QueuePairOptions& options,
                                                                 Deadline deadline) {
  if (passive_) {
    return absl::FailedPreconditionError(
        "a passive listener is served by the fabric: there is nothing to accept");
  }
  auto* queue = dynamic_cast<VerbsCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  while (true) {
    NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
    NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
    std::optional<Waiting> next = waiting_.Take(deadline);
    if (!next) {
      return absl::DeadlineExceededError(absl::StrFormat("no peer connected to %s in time", address()));
    }
    const int fd = next->socket.get();
    const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
    auto pair = VerbsQueuePair::Create(core_, *queue, options, std::move(next->peer));
    absl::Status ready = pair.status();
    if (ready.ok()) ready = (*pair)->BringUp(next->offer);
    if (!ready.ok()) {
      (void)SendOffer(fd, {.refused = Refusal::kNoQueuePair}, soon);
      return ready;
    }
    // A peer that has gone meanwhile is no error: the next one may wait.
    if (!SendOffer(fd, (*pair)->offer(), soon).ok() || !ReceiveReady(fd, soon).ok()) continue;
    NAM_RETURN_IF_ERROR((*pair)->Start(std::move(next->socket), false));
    return std::unique_ptr<QueuePair>(*std::move(pair));
  }
}

}  // namespace nam::fabric::verbs
