#pragma once

#include <cstdint>

#include "base/check.h"

/// What a cluster's transactions share, in one extent of one memory server; all zeroes is a valid start.
///
///     0          next timestamp to be given out, less one     FETCH_ADD
///     64         a timestamp up to which all are done         CAS, upwards; may lag
///     128        horizon: rows deleted before it may be gone  CAS, upwards
///     512        how often indexes were made or dropped       FETCH_ADD
///     4096       client slots, 64 bytes each; client 0 is nobody
///     then       the ring: 65,536 entries of 8 bytes          CAS, FETCH_ADD
///     then       a log for each client
///
/// docs/design/transactions.md.
namespace nam::txn {

inline constexpr uint64_t kNextOffset = 0;
inline constexpr uint64_t kWatermarkOffset = 64;
inline constexpr uint64_t kHorizonOffset = 128;
inline constexpr uint64_t kIndexChangesOffset = 512;
inline constexpr uint64_t kClientsOffset = 4'096;
inline constexpr uint32_t kClientSlotBytes = 64;
inline constexpr uint64_t kRingEntries = 65'536;
inline constexpr uint32_t kLogBytes = 16'384;

/// The ring's entry of timestamp t is the word at t mod kRingEntries:
///
///     done 1 │ client 15 │ timestamp 48      claimed by a client; then done, without the client
///
/// and as long as nobody has claimed t, still that of t - kRingEntries.
class RingEntry {
 public:
  constexpr explicit RingEntry(uint64_t word) : word_(word) {}
  static constexpr RingEntry Claimed(uint32_t client, uint64_t timestamp) {
    return RingEntry(uint64_t{client} << 48 | timestamp);
  }
  static constexpr RingEntry Done(uint64_t timestamp) { return RingEntry(uint64_t{1} << 63 | timestamp); }
  /// What it is before `timestamp` is claimed. There is no timestamp 0.
  static constexpr RingEntry Before(uint64_t timestamp) {
    return timestamp <= kRingEntries ? RingEntry(0) : Done(timestamp - kRingEntries);
  }
  /// Added to a claimed entry it makes it a done one.
  static constexpr uint64_t DoneAddend(uint32_t client) {
    return (uint64_t{1} << 63) - (uint64_t{client} << 48);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool done() const { return word_ >> 63 != 0; }
  constexpr uint32_t client() const { return static_cast<uint32_t>(word_ >> 48) & 0x7fff; }
  constexpr uint64_t timestamp() const { return word_ & ((uint64_t{1} << 48) - 1); }
  constexpr bool operator==(const RingEntry&) const = default;

 private:
  uint64_t word_;
};

/// A client slot's words.
///
///     0   owner: member 32 │ state; CAS
///     8   the oldest snapshot that it may use, 0: none; WRITE by the owner
///     16  the client that recovers it, 0: none; CAS
enum class SlotState : uint32_t { kFree = 0, kUsed = 1, kRecovered = 2 };
struct SlotOwner {
  uint32_t member = 0;
  SlotState state = SlotState::kFree;
  static constexpr SlotOwner FromWord(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<SlotState>(word & 3)};
  }
  constexpr uint64_t word() const { return uint64_t{member} << 32 | static_cast<uint32_t>(state); }
};
inline constexpr uint64_t kSlotOwnerOffset = 0;
inline constexpr uint64_t kSlotSnapshotOffset = 8;
inline constexpr uint64_t kSlotRecovererOffset = 16;

/// Where things are in a state of `bytes`; clients are as many as fit.
class StateGeometry {
 public:
  constexpr explicit StateGeometry(uint64_t bytes)
      : clients_(static_cast<uint32_t>((bytes - kClientsOffset - kRingEntries * 8) /
                                       (kClientSlotBytes + kLogBytes))) {}
  /// Clients are 1 … clients_max().
  constexpr uint32_t clients_max() const { return clients_ - 1 < 0x7fff ? clients_ - 1 : 0x7fff; }
  constexpr uint64_t slot(uint32_t client) const { return kClientsOffset + client * kClientSlotBytes; }
  constexpr uint64_t ring() const { return kClientsOffset + uint64_t{clients_} * kClientSlotBytes; }
  constexpr uint64_t entry(uint64_t timestamp) const { return ring() + timestamp % kRingEntries * 8; }
  constexpr uint64_t log(uint32_t client) const {
    return ring() + kRingEntries * 8 + uint64_t{client} * kLogBytes;
  }

 private:
  uint32_t clients_;
};
inline constexpr uint64_t kStateBytes = uint64_t{8} << 20;
static_assert(StateGeometry(kStateBytes).clients_max() > 450);
static_assert(StateGeometry(kStateBytes).log(StateGeometry(kStateBytes).clients_max()) + kLogBytes <=
              kStateBytes);

/// A client's log holds the transaction under way: which records it will lock, before it locks the first.
///
///     header 16 B │ entries 32 B each
struct LogHeader {
  uint64_t checksum = 0;  // XXH3 of what follows: the count, and the entries
  uint64_t entries = 0;
};
struct LogEntry {
  static constexpr uint64_t kInsert = uint64_t{1} << 63;
  uint64_t allocation = 0;  // of the table
  uint64_t record = 0;      // its number; kInsert: a new one
  uint64_t header = 0;      // as it was before the lock
  uint64_t key_hash = 0;    // of an insert
};
static_assert(sizeof(LogHeader) == 16 && sizeof(LogEntry) == 32);
inline constexpr size_t kLogEntriesMax = (kLogBytes - sizeof(LogHeader)) / sizeof(LogEntry);

}  // namespace nam::txn
