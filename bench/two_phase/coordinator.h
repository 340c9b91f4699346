#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "bench/two_phase/timestamp_service.h"
#include "bench/two_phase/transport.h"
#include "bench/two_phase/wire.h"

namespace nam::bench::two_phase {

/// The paper's transaction manager, with a timestamp service of its own process. Any number of coordinators
/// may share the service and the participants; a client uses one of them.
///
///     client       coordinator            participants
///       │ kCommit ────▶ │ kPrepare ───────────▶ │   to all that hold rows of it, at once
///       │               │ ◀────────────── kVote │   all yes: take a timestamp. Decided.
///       │ ◀─── kOutcome │ kDecide ────────────▶ │   in parallel, if the client does not wait for its commit
///       │               │ ◀────────────── kDone │   all done: the snapshots may grow past it
///       │ ◀ ─ kOutcome  │                       │   else: once it is in the snapshot that comes with it
///
/// With a single participant, prepare carries the timestamp and commits at once. The timestamp is then older
/// than the locks. That is harmless: no snapshot reaches it before it is done.
///
/// Nothing is logged: transactions end with the coordinator, and the coordinator ends with any of its
/// participants, whose rows are lost. From then on every answer is Outcome::kUnavailable. One thread.
class Coordinator final : public Role {
 public:
  Coordinator(Transport& transport, TimestampService& timestamps);
  ~Coordinator() override;

  /// Called before the first frame.
  absl::Status Connect(const std::vector<std::string>& participants, Deadline deadline);

  void OnFrame(ConnectionId connection, std::span<const std::byte> frame) override;
  void OnLost(ConnectionId connection) override;
  void AfterBatch() override;

 private:
  struct Transaction {
    ConnectionId client;
    uint64_t request = 0;
    uint64_t timestamp = 0;
    bool when_visible = false;
    bool decided = false;
    Outcome outcome = Outcome::kYes;
    uint32_t awaited = 0;  // votes, then dones
    std::vector<ConnectionId> prepared;
  };
  /// An answer that waits for a larger snapshot.
  struct Waiting {
    ConnectionId client;
    MessageHead answer;
  };

  bool Ask(ConnectionId client, const MessageHead& head);
  bool Commit(ConnectionId client, const MessageHead& head, FrameReader body);
  bool ReadParts(const MessageHead& head, FrameReader body);
  bool Vote(ConnectionId participant, const MessageHead& head);
  bool Done(const MessageHead& head);
  void Decide(uint64_t id, Transaction& transaction);
  void Visible(const Transaction& transaction);
  void AnswerWhenVisible(uint64_t timestamp, Waiting waiting);
  void Answer(ConnectionId client, MessageHead answer);
  void AnswerCommit(const Transaction& transaction, Outcome outcome);
  void Fail();

  struct Part {
    uint16_t participant;
    std::span<const std::byte> writes;
  };

  Transport& transport_;
  TimestampService& timestamps_;
  std::vector<ConnectionId> participants_;
  absl::flat_hash_map<uint64_t, Transaction> transactions_;
  std::multimap<uint64_t, Waiting> waiting_;  // by timestamp
  int waiting_count_ = 0;                     // as last told to the service
  std::vector<Part> parts_;                   // of the current commit request
  uint64_t last_id_ = 0;
  bool failed_ = false;
};

}  // namespace nam::bench::two_phase
