#include "fabric/sim/endpoint.h"

#include <algorithm>
#include <utility>

/// The requester, receives, and the end of the connection; endpoint_responder.cc has the responder.
namespace nam::fabric::sim {

std::shared_ptr<Endpoint> Endpoint::Create(Network& network, Process& process,
                                           SimCompletionQueue* completions, const QueuePairOptions& options,
                                           std::string peer_name) {
  auto endpoint = std::make_shared<Endpoint>(network, process, completions, options, std::move(peer_name));
  process.endpoints.emplace(endpoint->id(), endpoint);
  return endpoint;
}

Endpoint::Endpoint(Network& network, Process& process, SimCompletionQueue* completions,
                   const QueuePairOptions& options, std::string peer_name)
    : network_(network),
      process_(process),
      id_(network.NextId()),
      peer_name_(std::move(peer_name)),
      completions_(nullptr),
      options_(options) {
  if (completions != nullptr) Bind(*completions, options);
}

void Endpoint::Connect(const std::shared_ptr<Endpoint>& a, const std::shared_ptr<Endpoint>& b,
                       bool b_passive) {
  a->peer_ = b;
  b->peer_ = a;
  a->peers_host_ = &b->process_.host;
  b->peers_host_ = &a->process_.host;
  b->passive_ = b_passive;
  a->network_.Record(Trace::Kind::kConnect, a->id_, b->id_);
}

void Endpoint::Bind(SimCompletionQueue& completions, const QueuePairOptions& options) {
  completions_ = &completions;
  options_ = options;
  completions.Attach(PlacesOf(options));
}

void Endpoint::Schedule(int64_t at_ns, void (Endpoint::*step)(Operation&),
                        std::shared_ptr<Operation> operation) {
  network_.scheduler().At(at_ns, [weak = weak_from_this(), step, operation = std::move(operation)] {
    const auto self = weak.lock();
    if (self != nullptr && self->ready_) (self.get()->*step)(*operation);
  });
}

// -- The requester.

void Endpoint::Post(std::span<const WorkRequest> batch) {
  Scheduler& scheduler = network_.scheduler();
  const NicModel& model = network_.model();
  int64_t due_ns = scheduler.NowNs();
  scheduler.Charge(model.doorbell_ns + model.post_ns * static_cast<int64_t>(batch.size()));
  for (const WorkRequest& request : batch) {
    ++sends_used_;
    network_.Record(Trace::Kind::kPost, id_, posted(), static_cast<uint64_t>(request.opcode),
                    request.remote.rkey.value, request.remote.offset, request.local.bytes);
    if (!ready_) {
      completions_->Push({.id = request.id,
                          .queue_pair = id_,
                          .status = CompletionStatus::kFlushed,
                          .opcode = request.opcode},
                         &sends_used_, 1);
      continue;
    }
    auto operation = std::make_shared<Operation>();
    operation->request = request;
    operation->sequence = posted();
    if (request.inlined)
      operation->inlined.assign(request.local.data, request.local.data + request.local.bytes);
    sends_.push_back(operation);
    Schedule(due_ns, &Endpoint::SeeDue, std::move(operation));
    due_ns += model.post_ns;
  }
}

void Endpoint::SeeDue(Operation& operation) {
  operation.due = true;
  LaunchDue();
}

void Endpoint::LaunchDue() {
  while (ready_ && !process_.card_stopped && !launches_stopped_ && launched_ < posted() &&
         At(launched_).due) {
    Operation& next = At(launched_);
    if (next.counts_as_read() && reads_in_flight_ >= network_.model().reads_in_flight_max) return;
    ++launched_;
    launches_stopped_ = !Launch(next);
  }
}

// False: nothing behind it may leave.
bool Endpoint::Launch(Operation& operation) {
  const WorkRequest& request = operation.request;
  const std::shared_ptr<Endpoint> responder = peer_.lock();
  if (responder == nullptr) return false;  // the news of its end is in flight
  if (!request.inlined && !process_.regions.Contains(request.local)) {
    operation.status = CompletionStatus::kLocalError;
    operation.done = true;
    CompleteInOrder();
    return false;
  }
  if (Draw(network_.faults().queue_pair_error)) {
    network_.Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kOperationBreaks), id_,
                    operation.sequence);
    operation.answer_lost = network_.random().Below(2) == 0;
    if (!operation.answer_lost) {
      Fail(CompletionStatus::kPeerLost, true);
      return false;
    }
  }
  if (operation.counts_as_read()) ++reads_in_flight_;
  operation.responder = &responder->process_.host;
  const int64_t now_ns = network_.scheduler().NowNs();
  const int64_t wire_bytes =
      WireBytes(network_.model(), CarriesPayload(request.opcode) ? request.local.bytes : 0);
  Nic& nic = process_.host.nic;
  const int64_t leaves_ps = nic.Send(now_ns * kPsPerNs, wire_bytes);
  Schedule(CeilNs(leaves_ps) + nic.Slowed(network_.WayNs()) + network_.ExtraDelayNs(), &Endpoint::Arrive,
           Held(operation));
  return true;
}

void Endpoint::Return(Operation& operation) {
  const int64_t now_ns = network_.scheduler().NowNs();
  if (!network_.Passes(*operation.responder, process_.host)) {
    Schedule(now_ns + kRetransmitNs, &Endpoint::Return, Held(operation));
    return;
  }
  if (operation.answer_lost) {
    Fail(CompletionStatus::kPeerLost, true);
    return;
  }
  if (!operation.counts_as_read() || operation.status != CompletionStatus::kOk) {
    Complete(operation);
    return;
  }
  const int64_t end_ps =
      process_.host.nic.Receive(now_ns * kPsPerNs, WireBytes(network_.model(), operation.request.local.bytes),
                                WireBytes(network_.model(), kWordBytes));
  Schedule(CeilNs(end_ps), &Endpoint::Complete, Held(operation));
}

void Endpoint::Complete(Operation& operation) {
  operation.done = true;
  if (operation.counts_as_read()) --reads_in_flight_;
  CompleteInOrder();
  LaunchDue();
}

void Endpoint::CompleteInOrder() {
  while (ready_ && !sends_.empty() && sends_.front()->done) {
    const Operation& first = *sends_.front();
    if (first.status != CompletionStatus::kOk) {
      Fail(first.status, true);
      return;
    }
    network_.Record(Trace::Kind::kComplete, id_, first.sequence, static_cast<uint64_t>(first.status));
    ++unsignaled_;
    if (first.request.signal == Signal::kSignaled) {
      completions_->Push({.id = first.request.id, .queue_pair = id_, .opcode = first.request.opcode},
                         &sends_used_, std::exchange(unsignaled_, 0));
    }
    sends_.pop_front();
    ++completed_;
  }
}

// -- Receives of this end.

void Endpoint::PostReceive(std::span<const ReceiveRequest> batch) {
  Scheduler& scheduler = network_.scheduler();
  scheduler.Charge(network_.model().post_ns * static_cast<int64_t>(batch.size()));
  for (const ReceiveRequest& request : batch) {
    ++receives_used_;
    Receive receive{.request = request};
    receive.completion = {.id = request.id,
                          .queue_pair = id_,
                          .status = CompletionStatus::kFlushed,
                          .opcode = Opcode::kReceive};
    receives_.push_back(receive);
  }
  if (!ready_) {
    DeliverReceives(true);
    return;
  }
  // A message may have waited for them.
  scheduler.At(scheduler.NowNs(), [weak = peer_] {
    const auto requester = weak.lock();
    if (requester != nullptr) requester->ExecuteArrived();
  });
}

Endpoint::Receive* Endpoint::Match() {
  for (Receive& receive : receives_) {
    if (!receive.matched) return &receive;
  }
  return nullptr;
}

void Endpoint::FinishReceive(Receive& receive, const Completion& completion) {
  const NicModel& model = network_.model();
  receive.matched = true;
  receive.completion = completion;
  network_.Record(Trace::Kind::kReceive, id_, completion.bytes, static_cast<uint64_t>(completion.status));
  network_.scheduler().At(network_.scheduler().NowNs() + model.write_ns - network_.WayNs() - model.poll_ns,
                          [weak = weak_from_this()] {
                            const auto self = weak.lock();
                            if (self == nullptr || !self->ready_) return;
                            // Receives are matched and delivered in posting order.
                            for (Receive& first : self->receives_) {
                              if (first.done) continue;
                              first.done = true;
                              break;
                            }
                            self->DeliverReceives(false);
                          });
}

void Endpoint::DeliverReceives(bool all) {
  while (!receives_.empty() && (all || receives_.front().done)) {
    if (completions_ != nullptr) completions_->Push(receives_.front().completion, &receives_used_, 1);
    receives_.pop_front();
  }
}

// -- Failure and end.

void Endpoint::Fail(CompletionStatus status, bool tell_peer) {
  if (!ready_) return;
  const std::shared_ptr<Endpoint> self = shared_from_this();
  LeaveArrived();
  left_.clear();
  ready_ = false;
  network_.Record(Trace::Kind::kFail, id_, static_cast<uint64_t>(status));
  const bool lost = status == CompletionStatus::kPeerLost;
  for (const auto& operation : sends_) {
    const bool oldest = operation == sends_.front();
    const CompletionStatus flushed = lost ? CompletionStatus::kPeerLost : CompletionStatus::kFlushed;
    if (completions_ == nullptr) continue;
    completions_->Push({.id = operation->request.id,
                        .queue_pair = id_,
                        .status = oldest ? status : flushed,
                        .opcode = operation->request.opcode},
                       &sends_used_, std::exchange(unsignaled_, 0) + 1);
  }
  completed_ += sends_.size();
  sends_.clear();
  for (Receive& receive : receives_) {
    if (!receive.matched && lost) receive.completion.status = CompletionStatus::kPeerLost;
  }
  DeliverReceives(true);
  if (tell_peer) TellPeer(network_.WayNs(), false);
  process_.endpoints.erase(id_);
  process_.unowned.erase(id_);
  held_.reset();
}

void Endpoint::TellPeer(int64_t after_ns, bool by_timeout) {
  const int64_t at_ns = network_.scheduler().NowNs() + after_ns;
  network_.scheduler().At(at_ns, [&host = process_.host, weak = peer_, at_ns, by_timeout] {
    const auto peer = weak.lock();
    if (peer == nullptr) return;
    const int64_t timeout_ns = by_timeout ? 0 : peer->process_.options.peer_timeout_us * 1000;
    peer->LearnOfEnd(host, at_ns + timeout_ns);
  });
}

// Fails as soon as the peer's host can report the end, at `lost_ns` at the latest.
void Endpoint::LearnOfEnd(const Host& peers_host, int64_t lost_ns) {
  const int64_t now_ns = network_.scheduler().NowNs();
  if (!ready_) return;
  const bool busy = process_.card_stopped || !left_.empty();
  if (!busy && (now_ns >= lost_ns || network_.Passes(peers_host, process_.host))) {
    Fail(CompletionStatus::kPeerLost, false);
    return;
  }
  const int64_t again_ns = now_ns + kRetransmitNs;
  network_.scheduler().At(lost_ns > now_ns ? std::min(lost_ns, again_ns) : again_ns,
                          [weak = weak_from_this(), &peers_host, lost_ns] {
                            if (const auto self = weak.lock()) self->LearnOfEnd(peers_host, lost_ns);
                          });
}

absl::Status Endpoint::Disconnect(Deadline deadline) {
  Scheduler& scheduler = network_.scheduler();
  Fail(CompletionStatus::kFlushed, true);
  scheduler.SleepUntil({scheduler.NowNs() + 2 * network_.WayNs()});
  while (true) {
    const std::shared_ptr<Endpoint> peer = peer_.lock();
    const bool over = peer == nullptr || !peer->ready_;
    if (over && process_.alive && network_.Passes(*peers_host_, process_.host)) return absl::OkStatus();
    if (!process_.alive || scheduler.NowNs() >= deadline.ns) {
      return absl::UnavailableError(peer_name_ + " has not said that its end of the connection is over");
    }
    scheduler.SleepUntil({std::min(deadline.ns, scheduler.NowNs() + kRetransmitNs)});
  }
}

void Endpoint::Close() {
  if (ready_) {
    LeaveArrived();
    TellPeer(network_.WayNs(), false);
  }
  ready_ = false;
  left_.clear();
  sends_.clear();
  receives_.clear();
  viewed_.clear();
  completions_->Detach(id_, PlacesOf(options_));
  completions_ = nullptr;
  process_.endpoints.erase(id_);
}

}  // namespace nam::fabric::sim
