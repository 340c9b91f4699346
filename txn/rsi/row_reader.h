#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/record_block.h"
#include "txn/record_blocks.h"
#include "txn/rsi/session_core.h"
#include "txn/snapshot_scan.h"

namespace nam::txn {

/// Finds rows by their keys at the transaction's snapshot: looks up records in the hash indexes, then reads
/// all their blocks at once, and repeats those that have moved.
///
///     where memory is in place          StartInPlace ─▶ ReadInPlace ─▶ true
///     otherwise, and if that is false   Find: LookUp ─▶ ReadRound*
///     before the snapshot is known      AddLookUp ─▶ LookedUp ─▶ ReadLookedUp
class RowReader {
 public:
  /// The snapshot that sees the newest version of every row.
  static constexpr uint64_t kNewest = storage::kTimestampMask;

  explicit RowReader(SessionCore& core)
      : core_(core),
        tables_(core.tables),
        channel_(core.channel.get()),
        batch_(core.batch),
        recovery_(core.recovery.get()),
        transaction_(core.transaction),
        recover_([this](uint32_t client) { return RecoverHolder(client); }) {}

  /// Finds each key. Rows stay until the transaction ends or scratch memory is reset.
  absl::Status Find(std::span<SoughtRow> sought);
  /// As Find, but not in place.
  absl::Status FindInRounds(std::span<SoughtRow> sought);

  /// Prefetches the index's entries of all keys. False: memory is not in place, or the keys are too many.
  bool StartInPlace(std::span<const SoughtRow> sought);
  /// False: the results do not count.
  bool ReadInPlace(std::span<SoughtRow> sought);

  /// Adds the look-up's READs to the batch; at most HashIndex::kClaimsMax keys.
  absl::Status AddLookUp(std::span<const SoughtRow> sought);
  /// False: some records are unknown.
  bool LookedUp();
  /// Reads the blocks of the records from LookedUp.
  absl::Status ReadLookedUp(std::span<SoughtRow> sought);

  /// A record that may have the key of sought[place].
  struct Candidate {
    uint32_t place = 0;
    uint64_t record = 0;
  };
  /// Finds each key among these records only. False: a record moved in every round.
  absl::StatusOr<bool> ReadCandidates(std::span<SoughtRow> sought, std::span<const Candidate> candidates,
                                      int rounds_max);

  /// Reads whole blocks, from which Choose takes a version.
  absl::Status ReadBlocks(RecordTable& from, std::span<BlockRead> blocks, uint64_t snapshot) {
    return ReadVersions(from.blocks(), blocks, At(snapshot), tables_.fabric().clock());
  }
  storage::VersionChoice Choose(const RecordTable& table, const BlockRead& block) {
    return Choose(table, block, transaction_.snapshot);
  }
  storage::VersionChoice Choose(const RecordTable& table, const BlockRead& block, uint64_t snapshot) {
    return ChooseVersion(table.blocks(), block, At(snapshot));
  }
  ReadAt At(uint64_t snapshot) {
    return {.snapshot = snapshot,
            .state = &core_.state,
            .torn = core_.options.broken.torn_reads,
            .recover = &recover_};
  }

 private:
  struct Reading {
    uint32_t sought = 0;
    BlockRead block;
  };
  /// One key's way through ReadInPlace.
  struct Look {
    const std::byte* at = nullptr;         // its entries, then its block; null: there is no row
    const fabric::Grant* grant = nullptr;  // of that memory; the table holds it while open
    uint32_t slot = 0;
  };

  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status RecoverHolder(uint32_t client);
  absl::Status LookUp(std::span<const SoughtRow> sought);
  void AddReadings(std::span<const SoughtRow> sought, size_t first);
  absl::Status ReadUntilStill(std::span<SoughtRow> sought);
  absl::Status ReadRound(std::span<SoughtRow> sought);
  absl::Status ReadSlots(std::span<SoughtRow> sought);
  absl::Status HelpHolders(std::span<const SoughtRow> sought);
  bool ResolveRow(SoughtRow& sought, const BlockRead& block);

  // row_reader_in_place.cc
  bool LookAtBlocks(std::span<SoughtRow> sought);
  bool CopyRows(std::span<SoughtRow> sought);

  SessionCore& core_;
  Tables& tables_;
  storage::Channel* const channel_;
  storage::VerbBatch& batch_;
  Recovery* const recovery_;
  const RsiTransaction& transaction_;
  const std::function<absl::Status(uint32_t client)> recover_;

  // Kept for their memory.
  std::vector<Reading> readings_, again_;
  std::vector<Look> looks_;
  std::vector<std::vector<HashIndex::Probe>> probes_;  // by table: the lookups under way
  std::vector<uint32_t> probed_;                       // by table: how many of them have been taken
};

}  // namespace nam::txn
