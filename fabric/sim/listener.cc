#include "fabric/sim/listener.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/endpoint.h"
#include "fabric/sim/queue_pair.h"

namespace nam::fabric::sim {

SimListener::SimListener(Network& network, std::shared_ptr<ListeningPort> port, bool in_place)
    : network_(network), port_(std::move(port)), in_place_(in_place) {}

SimListener::~SimListener() {
  network_.Close(*port_);
  Scheduler& scheduler = network_.scheduler();
  while (port_->questions > 0) {
    scheduler.Wait({&port_->acceptors}, {"questions about members to process", port_->process.id.value()},
                   Deadline::Never());
  }
}

absl::StatusOr<std::unique_ptr<QueuePair>> SimListener::Accept(CompletionQueue& completions,
                                                               const QueuePairOptions& options,
                                                               Deadline deadline) {
  if (port_->passive) return absl::FailedPreconditionError("a passive listener accepts by itself");
  const uint32_t depth_max = network_.model().queue_depth_max;
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options, depth_max, depth_max));
  auto* queue = dynamic_cast<SimCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
  Scheduler& scheduler = network_.scheduler();
  scheduler.Charge(network_.model().poll_ns);
  scheduler.Sync();
  while (true) {
    if (!port_->open) {
      return absl::UnavailableError(
          absl::StrFormat("no process listens at %s any more: %s", port_->address, port_->process.end));
    }
    while (!port_->backlog.empty()) {
      const std::shared_ptr<Endpoint> end = port_->backlog.front();
      port_->backlog.pop_front();
      if (!end->ready()) continue;  // failed before it was accepted
      port_->process.unowned.erase(end->id());
      end->Bind(*queue, options);
      return MakeQueuePair(network_.scheduler(), end, in_place_);
    }
    if (scheduler.NowNs() >= deadline.ns) {
      return absl::DeadlineExceededError(absl::StrFormat("no peer connected to %s in time", port_->address));
    }
    scheduler.Wait({&port_->acceptors}, {"a connection to a listener of process", port_->process.id.value()},
                   deadline);
  }
}

}  // namespace nam::fabric::sim
