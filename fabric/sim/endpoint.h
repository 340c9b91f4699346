#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

/// One work request in flight.
struct Operation {
  WorkRequest request;
  std::vector<std::byte> inlined;
  uint64_t sequence = 0;
  bool due = false;          // the card has seen it
  bool arrived = false;      // at the responder's card
  bool done = false;         // the answer is back
  bool answer_lost = false;  // by the fault plan
  bool has_turn = false;     // an atomic: at turn_ns
  int64_t turn_ns = 0;
  size_t parts_left = 0;   // parts that have not taken effect
  bool overtaken = false;  // a READ that later requests need not wait for, unless they READ too
  CompletionStatus status = CompletionStatus::kOk;
  Host* responder = nullptr;  // once launched
  bool counts_as_read() const {
    return request.opcode == Opcode::kRead || request.opcode == Opcode::kCompareAndSwap ||
           request.opcode == Opcode::kFetchAdd;
  }
};

inline constexpr int64_t kRetransmitNs = 200'000;
inline constexpr uint32_t kWordBytes = 8;

/// The right that a one-sided operation needs on its memory.
inline Access Wanted(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
      return Access::kRead;
    case Opcode::kWrite:
    case Opcode::kWriteWithImmediate:
      return Access::kWrite;
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAdd:
      return Access::kAtomic;
    default:
      return Access::kNone;
  }
}

inline bool CarriesPayload(Opcode opcode) {
  return opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImmediate || opcode == Opcode::kSend;
}

inline bool NeedsReceive(Opcode opcode) {
  return opcode == Opcode::kWriteWithImmediate || opcode == Opcode::kSend;
}

/// One end of a reliable connection.
///
///     requester                                   responder
///     Post ─▶ Launch ──── way ────▶ Arrive ─▶ Execute (in posting order)
///                                                │ READ, atomics: fetch, then the answer's bytes
///     Complete (in posting order) ◀── Return ◀───┘
///
/// The fault plan lets operations take effect in parts. A READ fetched in parts may be passed by WRITEs and
/// atomics posted behind it, never by another READ: fabric.h promises no more.
///
/// Every arrow is an event in virtual time. An event finds its endpoints by weak pointers and does nothing
/// once the requester has failed. One exception: requests that have arrived at a stopped responder card take
/// effect when the card continues, unless the responder's end fails first. Disconnect waits for that.
class Endpoint final : public std::enable_shared_from_this<Endpoint> {
 public:
  /// `completions` may be null: for the end of a passive listener, or one not yet accepted.
  static std::shared_ptr<Endpoint> Create(Network& network, Process& process, SimCompletionQueue* completions,
                                          const QueuePairOptions& options, std::string peer_name);
  static void Connect(const std::shared_ptr<Endpoint>& a, const std::shared_ptr<Endpoint>& b, bool b_passive);
  Endpoint(Network& network, Process& process, SimCompletionQueue* completions,
           const QueuePairOptions& options, std::string peer_name);

  uint64_t id() const { return id_; }
  bool ready() const { return ready_; }
  /// True if neither end has failed. The peer's host may already be dead while the news is in flight.
  bool connected() const {
    const std::shared_ptr<Endpoint> peer = peer_.lock();
    return ready_ && peer != nullptr && peer->ready_;
  }
  const std::string& peer_name() const { return peer_name_; }
  const QueuePairOptions& options() const { return options_; }
  uint32_t sends_used() const { return sends_used_; }
  uint32_t receives_used() const { return receives_used_; }
  const Process& process() const { return process_; }
  std::shared_ptr<Endpoint> peer() const { return peer_.lock(); }

  /// For the end of a passive listener: `rights` limits the peer; `held` is kept until this end fails.
  void Serve(Access rights, std::shared_ptr<void> held) {
    rights_ = rights;
    held_ = std::move(held);
  }
  /// Accept: this end now completes into `completions`.
  void Bind(SimCompletionQueue& completions, const QueuePairOptions& options);
  /// Requires checked room and form.
  void Post(std::span<const WorkRequest> batch);
  void PostReceive(std::span<const ReceiveRequest> batch);
  /// Called when the queue pair is destroyed.
  void Close();
  /// Executes a one-sided operation on the calling thread, behind all posted requests. Its local buffer need
  /// not be registered. A status other than kOk has failed the queue pair.
  CompletionStatus ExecuteNow(const WorkRequest& request, uint64_t* old);
  /// The peer's bytes if a READ of them would succeed, else nullptr. They stay mapped until Close.
  const std::byte* View(RemoteAddress from, size_t bytes);
  /// The card works again.
  void Continue();
  /// Fails this end, and waits until the peer's end has learned of it.
  absl::Status Disconnect(Deadline deadline);
  /// Completes everything pending, the oldest with `status`. Tells the peer if `tell_peer`.
  void Fail(CompletionStatus status, bool tell_peer);
  /// Lets the peer fail after `after_ns`: by its own timeout, or by a message. A message that cannot pass is
  /// retried until then.
  void TellPeer(int64_t after_ns, bool by_timeout);

 private:
  /// A WRITE or an atomic whose requester has failed.
  struct Left {
    WorkRequest request;
    std::vector<std::byte> payload;
  };
  struct Receive {
    ReceiveRequest request;
    bool matched = false;
    bool done = false;  // to be delivered
    Completion completion;
  };

  Operation& At(uint64_t sequence) { return *sends_[sequence - completed_]; }
  const std::shared_ptr<Operation>& Held(const Operation& operation) const {
    return sends_[operation.sequence - completed_];
  }
  uint64_t posted() const { return completed_ + sends_.size(); }
  void Schedule(int64_t at_ns, void (Endpoint::*step)(Operation&), std::shared_ptr<Operation> operation);

  // The requester's card.
  void SeeDue(Operation& operation);
  void LaunchDue();
  bool Launch(Operation& operation);
  void Return(Operation& operation);
  void Complete(Operation& operation);
  void CompleteInOrder();

  // The responder's card, for operations of this requester.
  void Arrive(Operation& operation);
  void EndArrival(Operation& operation);
  void ExecuteArrived();
  enum class Progress : uint8_t {
    kDone,
    kWaits,     // for a receive, its turn, or its other parts; so do all behind it
    kOvertaken  // it continues, and later requests may begin
  };
  Progress Execute(Operation& operation, Endpoint& responder);
  Progress ExecuteMessage(Operation& operation, Endpoint& responder, std::byte* at);
  bool HasTurn(Operation& operation, const Endpoint& responder);
  /// Resolves this end's memory for the peer: kOk, or the completion status.
  CompletionStatus ResolveForPeer(const WorkRequest& request, std::byte*& at) const;
  static uint64_t ExecuteAtomic(const WorkRequest& request, std::byte* at);
  /// The word boundaries at which an operation is split.
  std::vector<uint32_t> Cuts(const WorkRequest& request, bool overtaken);
  bool TakesEffectInParts(Operation& operation);
  void SchedulePart(Operation& operation, uint32_t begin, uint32_t end, int64_t at_ns);
  void TakeEffect(Operation& operation, uint32_t begin, uint32_t end);
  void EndParts(Operation& operation);
  /// For ExecuteNow: the peer's bytes once earlier requests are done, or the final status.
  CompletionStatus ResolveNow(const WorkRequest& request, std::byte*& at);
  CompletionStatus CopyNow(const WorkRequest& request);
  CompletionStatus ChangeWordNow(const WorkRequest& request, uint64_t* old);
  static void Copy(std::byte* to, const std::byte* from, size_t bytes);
  const std::byte* PayloadOf(const Operation& operation) const;
  /// This requester has failed: a stopped responder keeps the requests that have arrived.
  void LeaveArrived();
  void ExecuteLeft();
  void EndExecution(Operation& operation);
  void Answer(Operation& operation);
  void SendAnswer(Operation& operation);

  // Receives of this end.
  Receive* Match();
  void FinishReceive(Receive& receive, const Completion& completion);
  void DeliverReceives(bool all);
  void LearnOfEnd(const Host& peers_host, int64_t lost_ns);
  bool Draw(double probability) { return network_.random().Happens(probability); }

  Network& network_;
  Process& process_;
  const uint64_t id_;
  std::string peer_name_;
  SimCompletionQueue* completions_;
  QueuePairOptions options_;
  std::weak_ptr<Endpoint> peer_;
  const Host* peers_host_ = nullptr;
  bool passive_ = false;
  Access rights_ = Access::kAll;  // of the peer, on this end's memory
  std::shared_ptr<void> held_;
  bool ready_ = true;

  std::deque<std::shared_ptr<Operation>> sends_;  // posted, not completed
  uint64_t completed_ = 0;                        // sequence of the oldest in sends_
  uint64_t launched_ = 0;                         // sequence of the next to leave
  uint64_t executed_ = 0;                         // sequence of the next to take effect
  uint32_t sends_used_ = 0;
  uint32_t unsignaled_ = 0;  // extra places that the next completion frees
  uint32_t reads_in_flight_ = 0;
  uint32_t overtaken_ = 0;         // READs still fetching
  bool launches_stopped_ = false;  // an operation cannot be launched: nothing behind it may leave
  bool executions_failed_ = false;
  bool executions_stopped_ = false;  // an operation failed or is half executed: nothing behind it may execute

  std::vector<Left> left_;  // requests of the failed peer that this end must still execute

  std::deque<Receive> receives_;
  uint32_t receives_used_ = 0;
  std::map<uint32_t, std::shared_ptr<const void>> viewed_;  // by key
};

}  // namespace nam::fabric::sim
