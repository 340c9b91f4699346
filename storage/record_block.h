#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "storage/row_bytes.h"

/// A row of a record table with its versions, as it lies in a memory server. Pure functions on its words;
/// txn/ decides what to READ and when. The paper's section 4.2, table 1; docs/design/transactions.md.
///
///     ┌────────┬──────┬─────────────┬──────┬─────────────┬─ … ─┬─────────┐
///     │ header │ word │ row         │ word │ row         │     │ padding │
///     └────────┴──────┴─────────────┴──────┴─────────────┴─ … ─┴─────────┘
///     0        8      16            └──────── slot 1 ──┘           multiple of 64
///              └────── slot 0 ────┘   a multiple of 8 bytes: the row padded behind its version word
///
///     header   unlocked   0 │ rollbacks 15 │ timestamp 48     of the newest version
///              locked     1 │ client 15    │ timestamp 48
///              free       0
///     word     deleted 1 │ first 1 │ 0 14 │ timestamp 48;     0: the slot is empty
///
/// A version is one contiguous WRITE: its word, then its row. A new block's header precedes both, so an
/// insert is one WRITE, too. A READ of a slot brings the version word with the row. A slot has no checksum,
/// and fields lie at fixed offsets: a writer that knows a slot's contents may WRITE only the version word and
/// the fields that differ.
///
/// A version may be written before its transaction has a timestamp. Its word then says kPendingTimestamp,
/// under the writer's lock.
///
/// `first` marks an inserted version: nothing is older. `rollbacks` makes a header that was locked and rolled
/// back differ from its earlier value, because the victim may have changed meanwhile.
namespace nam::storage {

inline constexpr uint64_t kTimestampMask = (uint64_t{1} << 48) - 1;
/// No transaction has this timestamp, and all snapshots are below it: the version's transaction has none yet.
inline constexpr uint64_t kPendingTimestamp = kTimestampMask;
/// Clients are numbered from 1.
inline constexpr uint32_t kClientMax = (1u << 15) - 1;
inline constexpr uint32_t kVersionsMax = 16;

/// The first word of a block.
class RecordHeader {
 public:
  constexpr RecordHeader() = default;
  constexpr explicit RecordHeader(uint64_t word) : word_(word) {}
  /// `rollbacks`: only its lowest 15 bits count.
  static constexpr RecordHeader Unlocked(uint64_t timestamp, uint64_t rollbacks = 0) {
    return RecordHeader((rollbacks & kClientMax) << 48 | timestamp);
  }
  /// The header of a row that is being inserted: no version yet.
  static constexpr RecordHeader NewlyLocked(uint32_t client) { return RecordHeader().LockedBy(client); }

  constexpr uint64_t word() const { return word_; }
  constexpr bool free() const { return word_ == 0; }
  constexpr bool locked() const { return word_ >> 63 != 0; }
  constexpr uint64_t timestamp() const { return word_ & kTimestampMask; }
  constexpr uint32_t client() const { return locked() ? bits() : 0; }

  constexpr RecordHeader LockedBy(uint32_t client) const {
    return RecordHeader(uint64_t{1} << 63 | uint64_t{client} << 48 | timestamp());
  }
  /// The header after the lock's holder, which locked this header, has given up.
  constexpr RecordHeader RolledBack() const { return Unlocked(timestamp(), uint64_t{bits()} + 1); }
  constexpr bool operator==(const RecordHeader&) const = default;

 private:
  constexpr uint32_t bits() const { return static_cast<uint32_t>(word_ >> 48) & kClientMax; }
  uint64_t word_ = 0;
};

/// The first word of a slot.
class VersionWord {
 public:
  constexpr VersionWord() = default;
  constexpr explicit VersionWord(uint64_t word) : word_(word) {}
  static constexpr VersionWord Of(uint64_t timestamp, bool deleted, bool first) {
    return VersionWord(uint64_t{deleted} << 63 | uint64_t{first} << 62 | timestamp);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t timestamp() const { return word_ & kTimestampMask; }
  constexpr bool deleted() const { return word_ >> 63 != 0; }
  constexpr bool first() const { return (word_ >> 62 & 1) != 0; }

 private:
  uint64_t word_ = 0;
};

struct RecordGeometry {
  uint32_t row_bytes = 0;
  uint32_t slots = 0;

  /// A table that keeps one version has two slots: the spare one takes the next version.
  static constexpr RecordGeometry Of(uint32_t row_bytes, uint32_t versions) {
    NAM_CHECK(row_bytes > 0 && row_bytes <= kRowBytesMax && versions > 0 && versions <= kVersionsMax);
    return {row_bytes, versions < 2 ? 2 : versions};
  }
  /// Bytes of a version as written: its word and its row.
  constexpr uint32_t version_bytes() const { return 8 + row_bytes; }
  constexpr uint32_t slot_bytes() const { return (version_bytes() + 7) / 8 * 8; }
  constexpr uint32_t word_offset(uint32_t slot) const { return 8 + slot * slot_bytes(); }
  constexpr uint32_t row_offset(uint32_t slot) const { return word_offset(slot) + 8; }
  constexpr uint32_t block_bytes() const { return (word_offset(slots) + 63) / 64 * 64; }
};

/// The version words of a block, by slot, read in place or gathered.
class VersionWords {
 public:
  VersionWords(const std::byte* block, const RecordGeometry& geometry)
      : first_(reinterpret_cast<const uint64_t*>(block) + 1),
        stride_(geometry.slot_bytes() / 8),
        size_(geometry.slots) {}
  constexpr explicit VersionWords(std::span<const uint64_t> gathered)
      : first_(gathered.data()), stride_(1), size_(static_cast<uint32_t>(gathered.size())) {}
  constexpr uint32_t size() const { return size_; }
  constexpr VersionWord operator[](uint32_t slot) const {
    return VersionWord(first_[size_t{slot} * stride_]);
  }

 private:
  const uint64_t* first_;
  uint32_t stride_;  // in words
  uint32_t size_;
};

/// The slot for the next version: the oldest; under a lock, the one whose version the holder has already
/// written. It may be overwritten while the header is locked.
uint32_t VictimSlot(VersionWords words, uint64_t newest);

/// The holder of a lock, and the transaction that it was committing when asked. It must be asked before the
/// block is READ: a version is whole once its client commits, and stays so until another header announces it.
struct LockHolder {
  uint32_t client = 0;      // 0: no client was asked
  uint64_t committing = 0;  // timestamp; 0: none
};

/// The version of a block that a snapshot sees, from words READ between two READs of its header.
///
/// A version newer than a locked header's timestamp is the holder's. If its timestamp is in the snapshot, it
/// was either committed, or skipped and will be cleared. Only the holder's slot word can tell, and only if it
/// still says `committing` with exactly this timestamp. A holder that has left a commit has flipped all its
/// headers, so a later READ of the block shows that.
struct VersionChoice {
  enum class Outcome : uint8_t {
    kVersion,  // in `slot`; a deleted row has a version too
    kNone,     // the row did not exist yet, or the block is free
    kTooOld,   // was replaced
    kMoved,    // the block changed during the READs: READ again
    kInDoubt,  // ask the lock's holder, then READ again
  };
  Outcome outcome = Outcome::kNone;
  uint32_t slot = 0;
  VersionWord version;
};
VersionChoice ChooseVersion(RecordHeader before, VersionWords words, RecordHeader after, uint64_t snapshot,
                            LockHolder holder = {});
/// The timestamp of the version above a locked header's timestamp, if it is not above `snapshot`; 0 if none.
uint64_t VersionUnderLock(RecordHeader header, VersionWords words, uint64_t snapshot);

}  // namespace nam::storage
