#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "fabric/sim/endpoint.h"

/// What the responder's card does for operations of this requester, from their arrival to the answer: in
/// parts if the fault plan says so, and late if the card stands still.
namespace nam::fabric::sim {
namespace {

constexpr size_t kPartsMax = 64;

}  // namespace

void Endpoint::Arrive(Operation& operation) {
  const int64_t now_ns = network_.scheduler().NowNs();
  const auto& held = Held(operation);
  if (!network_.Passes(process_.host, *operation.responder)) {
    Schedule(now_ns + kRetransmitNs, &Endpoint::Arrive, held);
    return;
  }
  const uint32_t payload = CarriesPayload(operation.request.opcode) ? operation.request.local.bytes : 0;
  const int64_t end_ps = operation.responder->nic.Receive(
      now_ns * kPsPerNs, WireBytes(network_.model(), payload), WireBytes(network_.model(), kWordBytes));
  Schedule(CeilNs(end_ps), &Endpoint::EndArrival, held);
}

void Endpoint::EndArrival(Operation& operation) {
  operation.arrived = true;
  ExecuteArrived();
}

void Endpoint::ExecuteArrived() {
  while (ready_ && !executions_stopped_ && executed_ < launched_ && At(executed_).arrived) {
    const std::shared_ptr<Endpoint> responder = peer_.lock();
    if (responder == nullptr || !responder->ready_) return;  // the news of its end is in flight
    if (responder->process_.card_stopped) return;
    Operation& operation = At(executed_);
    if (overtaken_ > 0 && operation.request.opcode == Opcode::kRead) return;
    switch (Execute(operation, *responder)) {
      case Progress::kDone:
        EndExecution(operation);
        break;
      case Progress::kWaits:
        return;
      case Progress::kOvertaken:
        ++executed_;
        break;
    }
  }
}

// Requests that have arrived at this end's card take effect although their requester has failed since.
void Endpoint::LeaveArrived() {
  const std::shared_ptr<Endpoint> responder = peer_.lock();
  if (responder == nullptr || !responder->ready_ || !responder->process_.card_stopped) return;
  for (; !executions_failed_ && executed_ < launched_ && At(executed_).arrived; ++executed_) {
    const Operation& operation = At(executed_);
    const WorkRequest& request = operation.request;
    if (NeedsReceive(request.opcode)) return;
    if (request.opcode == Opcode::kRead) continue;
    if (!request.inlined && !process_.regions.Contains(request.local)) return;
    Left left{.request = request, .payload = {}};
    if (CarriesPayload(request.opcode))
      left.payload.assign(PayloadOf(operation), PayloadOf(operation) + request.local.bytes);
    responder->left_.push_back(std::move(left));
  }
}

void Endpoint::ExecuteLeft() {
  if (process_.card_stopped || !ready_) return;
  for (const Left& left : std::exchange(left_, {})) {
    const WorkRequest& request = left.request;
    std::byte* at = nullptr;
    if (ResolveForPeer(request, at) != CompletionStatus::kOk) return;
    if (CarriesPayload(request.opcode)) {
      Copy(at, left.payload.data(), left.payload.size());
    } else {
      ExecuteAtomic(request, at);
    }
  }
}

void Endpoint::Continue() {
  if (!left_.empty()) {
    const int64_t at_ns = network_.scheduler().NowNs() + network_.random().UpTo(kRetransmitNs);
    network_.scheduler().At(at_ns, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->ExecuteLeft();
    });
  }
  LaunchDue();
  if (const std::shared_ptr<Endpoint> peer = peer_.lock(); peer != nullptr) peer->ExecuteArrived();
}

void Endpoint::EndExecution(Operation& operation) {
  network_.Record(Trace::Kind::kExecute, id_, operation.sequence, static_cast<uint64_t>(operation.status));
  ++executed_;
  executions_failed_ = executions_failed_ || operation.status != CompletionStatus::kOk;
  executions_stopped_ = executions_failed_;
  Answer(operation);
}

CompletionStatus Endpoint::ResolveForPeer(const WorkRequest& request, std::byte*& at) const {
  const Access wanted = Wanted(request.opcode);
  if (!Allows(rights_, wanted)) return CompletionStatus::kRemoteAccessError;
  return process_.regions.Resolve(request.remote, request.local.bytes, wanted, at);
}

Endpoint::Progress Endpoint::Execute(Operation& operation, Endpoint& responder) {
  const WorkRequest& request = operation.request;
  if (!request.inlined && !process_.regions.Contains(request.local)) {
    operation.status = CompletionStatus::kLocalError;
    return Progress::kDone;
  }
  std::byte* at = nullptr;
  if (request.opcode != Opcode::kSend) {
    operation.status = responder.ResolveForPeer(request, at);
    if (operation.status != CompletionStatus::kOk) return Progress::kDone;
  }
  if (NeedsReceive(request.opcode)) return ExecuteMessage(operation, responder, at);
  if (request.opcode == Opcode::kRead || request.opcode == Opcode::kWrite) {
    if (TakesEffectInParts(operation)) return operation.overtaken ? Progress::kOvertaken : Progress::kWaits;
    TakeEffect(operation, 0, request.local.bytes);
    return Progress::kDone;
  }
  if (!HasTurn(operation, responder)) return Progress::kWaits;
  const uint64_t old = ExecuteAtomic(request, at);
  std::memcpy(request.local.data, &old, sizeof(old));
  return Progress::kDone;
}

// Atomics on one word take turns, in order of arrival.
bool Endpoint::HasTurn(Operation& operation, const Endpoint& responder) {
  const int64_t now_ns = network_.scheduler().NowNs();
  if (!operation.has_turn) {
    const uint64_t word = responder.process_.regions.NumberOf(operation.request.remote);
    operation.has_turn = true;
    operation.turn_ns = responder.process_.host.nic.TakeTurn(
        uint64_t{responder.process_.id.value()} << 48 | word, operation.request.remote, now_ns);
    if (operation.turn_ns > now_ns) Schedule(operation.turn_ns, &Endpoint::EndArrival, Held(operation));
  }
  return now_ns >= operation.turn_ns;
}

const std::byte* Endpoint::PayloadOf(const Operation& operation) const {
  return operation.request.inlined ? operation.inlined.data() : operation.request.local.data;
}

void Endpoint::Copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// Returns the previous value.
uint64_t Endpoint::ExecuteAtomic(const WorkRequest& request, std::byte* at) {
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(at));
  uint64_t old = request.compare;
  if (request.opcode == Opcode::kFetchAdd) return word.fetch_add(request.swap_or_add);
  word.compare_exchange_strong(old, request.swap_or_add);
  return old;
}

std::vector<uint32_t> Endpoint::Cuts(const WorkRequest& request, bool overtaken) {
  RandomStream& random = network_.random();
  const uint32_t bytes = request.local.bytes;
  const auto to_word = static_cast<uint32_t>((kWordBytes - request.remote.offset % kWordBytes) % kWordBytes);
  const uint32_t words = (bytes - to_word - 1) / kWordBytes;  // possible cuts
  std::vector<uint32_t> cuts = {0};
  if (!overtaken) {
    cuts.push_back(to_word + kWordBytes * static_cast<uint32_t>(1 + random.Below(words)));
  } else {
    const uint64_t longest = uint64_t{1} << random.Below(5);
    for (uint64_t cut = 1; cut <= words && cuts.size() < kPartsMax; cut += 1 + random.Below(longest)) {
      cuts.push_back(to_word + kWordBytes * static_cast<uint32_t>(cut));
    }
  }
  cuts.push_back(bytes);
  return cuts;
}

// True if the operation takes effect in parts, now and later.
bool Endpoint::TakesEffectInParts(Operation& operation) {
  const WorkRequest& request = operation.request;
  const FaultPlan& faults = network_.faults();
  RandomStream& random = network_.random();
  const auto to_word = static_cast<uint32_t>((kWordBytes - request.remote.offset % kWordBytes) % kWordBytes);
  if (request.local.bytes <= to_word + kWordBytes) return false;
  operation.overtaken = request.opcode == Opcode::kRead && Draw(faults.overtaking_fetch);
  if (!operation.overtaken && !Draw(faults.torn_operation)) return false;
  const std::vector<uint32_t> cuts = Cuts(request, operation.overtaken);
  operation.parts_left = cuts.size() - 1;
  if (operation.overtaken) {
    ++overtaken_;
  } else {
    executions_stopped_ = true;
  }
  const int64_t now_ns = network_.scheduler().NowNs();
  const bool first_last = random.Below(2) == 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    int64_t at_ns = now_ns;
    if (operation.overtaken) {
      at_ns += random.UpTo(faults.overtaking_ns_max);
    } else if (first_last == (i == 0)) {
      at_ns += 1 + random.UpTo(faults.torn_ns_max);
    }
    SchedulePart(operation, cuts[i], cuts[i + 1], at_ns);
  }
  return true;
}

void Endpoint::SchedulePart(Operation& operation, uint32_t begin, uint32_t end, int64_t at_ns) {
  network_.scheduler().At(at_ns, [weak = weak_from_this(), held = Held(operation), begin, end] {
    const auto self = weak.lock();
    if (self == nullptr || !self->ready_) return;
    self->TakeEffect(*held, begin, end);
    if (--held->parts_left == 0) self->EndParts(*held);
  });
}

void Endpoint::EndParts(Operation& operation) {
  if (operation.overtaken) {
    --overtaken_;
    network_.Record(Trace::Kind::kExecute, id_, operation.sequence, static_cast<uint64_t>(operation.status));
    if (operation.status != CompletionStatus::kOk) executions_failed_ = executions_stopped_ = true;
    Answer(operation);
  } else {
    EndExecution(operation);
  }
  ExecuteArrived();
}

// Bytes [begin, end) of a READ or WRITE.
void Endpoint::TakeEffect(Operation& operation, uint32_t begin, uint32_t end) {
  const WorkRequest& request = operation.request;
  const std::shared_ptr<Endpoint> responder = peer_.lock();
  if (responder == nullptr || !responder->ready_ || operation.status != CompletionStatus::kOk) return;
  std::byte* at = nullptr;
  operation.status = responder->ResolveForPeer(request, at);
  if (operation.status != CompletionStatus::kOk) return;
  if (!request.inlined && !process_.regions.Contains(request.local)) {
    operation.status = CompletionStatus::kLocalError;
  } else if (request.opcode == Opcode::kRead) {
    Copy(request.local.data + begin, at + begin, end - begin);
  } else {
    Copy(at + begin, PayloadOf(operation) + begin, end - begin);
  }
}

// Executes SEND and WRITE_WITH_IMMEDIATE, whose address has been checked.
Endpoint::Progress Endpoint::ExecuteMessage(Operation& operation, Endpoint& responder, std::byte* at) {
  const WorkRequest& request = operation.request;
  const uint32_t bytes = request.local.bytes;
  if (responder.passive_) {
    operation.status = CompletionStatus::kRemoteInvalidRequest;
    return Progress::kDone;
  }
  Receive* receive = responder.Match();
  if (receive == nullptr) return Progress::kWaits;
  const LocalBuffer& into = receive->request.into;
  Completion completion{
      .id = receive->request.id, .queue_pair = responder.id_, .opcode = Opcode::kReceive, .bytes = bytes};
  if (request.opcode == Opcode::kWriteWithImmediate) {
    completion.has_immediate = true;
    completion.immediate = request.immediate;
    Copy(at, PayloadOf(operation), bytes);
  } else if (!responder.process_.regions.Contains(into)) {
    completion.status = CompletionStatus::kLocalError;
    operation.status = CompletionStatus::kRemoteInvalidRequest;
  } else if (bytes > into.bytes) {
    completion.status = operation.status = CompletionStatus::kRemoteInvalidRequest;
  } else {
    Copy(into.data, PayloadOf(operation), bytes);
  }
  responder.FinishReceive(*receive, completion);
  if (operation.status != CompletionStatus::kOk) {
    responder.Fail(CompletionStatus::kFlushed, false);
    // After the answer, which says why.
    responder.TellPeer(2 * network_.WayNs(), false);
  }
  return Progress::kDone;
}

void Endpoint::Answer(Operation& operation) {
  const NicModel& model = network_.model();
  const int64_t now_ns = network_.scheduler().NowNs();
  const auto& held = Held(operation);
  const Nic& nic = operation.responder->nic;
  if (operation.counts_as_read() && operation.status == CompletionStatus::kOk) {
    Schedule(now_ns + nic.Slowed(model.read_ns - 2 * network_.WayNs() - model.poll_ns), &Endpoint::SendAnswer,
             held);
  } else {
    Schedule(now_ns + nic.Slowed(model.write_ns - network_.WayNs() - model.poll_ns), &Endpoint::Return, held);
  }
}

void Endpoint::SendAnswer(Operation& operation) {
  Nic& nic = operation.responder->nic;
  const int64_t leaves_ps = nic.Send(network_.scheduler().NowNs() * kPsPerNs,
                                     WireBytes(network_.model(), operation.request.local.bytes));
  Schedule(CeilNs(leaves_ps) + nic.Slowed(network_.WayNs()), &Endpoint::Return, Held(operation));
}

}  // namespace nam::fabric::sim
