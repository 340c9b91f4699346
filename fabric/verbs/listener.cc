#include "fabric/verbs/listener.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/tcp/socket.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/queue_pair.h"

namespace nam::fabric::verbs {

absl::StatusOr<std::unique_ptr<Listener>> VerbsListener::Create(std::shared_ptr<Core> core,
                                                                const ListenOptions& options) {
  NAM_ASSIGN_OR_RETURN(
      auto acceptor,
      tcp::Acceptor::Listen(options.address, {.credentials = {.secret = core->options().secret},
                                              .peer_timeout_us = core->options().peer_timeout_us,
                                              .first_bytes = sizeof(Offer)}));
  return std::unique_ptr<Listener>(new VerbsListener(std::move(core), options.passive, std::move(acceptor)));
}

VerbsListener::VerbsListener(std::shared_ptr<Core> core, bool passive,
                             std::unique_ptr<tcp::Acceptor> acceptor)
    : core_(std::move(core)), passive_(passive), acceptor_(std::move(acceptor)) {
  acceptor_->Start(*this);
}

tcp::ServerVerdict VerbsListener::Judge(const tcp::ClientHello& /*hello*/) {
  tcp::ServerVerdict verdict{.mode = passive_ ? tcp::ListenMode::kPassive : tcp::ListenMode::kPaired};
  if (waiting_.size() >= waiting_.kMax) verdict.status = tcp::HandshakeStatus::kBusy;
  return verdict;
}

void VerbsListener::Admit(tcp::AuthenticatedSocket authenticated, const tcp::ClientHello& /*hello*/,
                          std::span<const std::byte> first) {
  UniqueFd socket = std::move(authenticated.fd);
  const auto offer = DecodeOffer(first.first<sizeof(Offer)>());
  if (!offer || offer->refused != 0) return;
  std::string peer = tcp::PeerName(socket.get());
  if (passive_) {
    // A peer that cannot be served learns it by the refusal, and tries elsewhere or again.
    (void)Serve(std::move(socket), *offer, peer);
  } else if (waiting_.size() < waiting_.kMax) {
    waiting_.Add({std::move(socket), *offer, std::move(peer)});
  }
}

absl::Status VerbsListener::Serve(UniqueFd socket, const Offer& offer, const std::string& peer) {
  const int fd = socket.get();
  const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
  auto made = CreateQueuePair(*core_, core_->idle_completions(), {.send = 1});
  absl::Status ready = made.status();
  if (ready.ok()) ready = BringUp(*core_, *made, offer, peer);
  if (!ready.ok()) {
    (void)SendOffer(fd, {.refused = 1}, soon);
    return ready;
  }
  const Offer answer = made->offer;
  const auto channel =
      std::make_shared<ControlChannel>(std::move(socket), core_->registry(), std::move(made->handle));
  // The answer first: from then on the control thread is the one that writes.
  NAM_RETURN_IF_ERROR(SendOffer(fd, answer, soon));
  return core_->control().Add(channel);
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
    NAM_RETURN_IF_ERROR(queue->CheckRoom(uint64_t{options.send_depth} + options.receive_depth));
    std::optional<Waiting> next = waiting_.Take(deadline);
    if (!next) {
      return absl::DeadlineExceededError(absl::StrFormat("nobody connected to %s in time", address()));
    }
    const int fd = next->socket.get();
    const Deadline soon = RealClock().After(core_->options().peer_timeout_us);
    auto pair = VerbsQueuePair::Create(core_, *queue, options, std::move(next->peer));
    absl::Status ready = pair.status();
    if (ready.ok()) ready = (*pair)->BringUp(next->offer);
    if (!ready.ok()) {
      (void)SendOffer(fd, {.refused = 1}, soon);
      return ready;
    }
    // Who is gone meanwhile is not worth an error: the next one may wait.
    if (!SendOffer(fd, (*pair)->offer(), soon).ok() || !ReceiveReady(fd, soon).ok()) continue;
    NAM_RETURN_IF_ERROR((*pair)->Start(std::move(next->socket), false));
    return std::unique_ptr<QueuePair>(*std::move(pair));
  }
}

}  // namespace nam::fabric::verbs
