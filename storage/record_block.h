#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"

/// A row of a record table with its versions, as it lies in a memory server, and what its words say. Pure
/// functions: what is READ and when is txn/'s. The paper's section 4.2, table 1; docs/design/transactions.md.
///
///     word 0      unlocked   0 │ rollbacks 15 │ timestamp 48     of the newest version
///                 locked     1 │ client 15    │ timestamp 48
///                 free       0
///     word 1 … n  of slot 0 … n-1:  deleted 1 │ first 1 │ 0 14 │ timestamp 48;   0: nothing there
///     then        slot 0 … n-1, row_bytes each, padded to 8 bytes; the block padded to 64
///
/// `first` marks the version that an insert made: nothing is older. `rollbacks` makes a header that was
/// locked and given back differ from what it was before, as its victim may have changed meanwhile.
namespace nam::storage {

inline constexpr uint64_t kTimestampMask = (uint64_t{1} << 48) - 1;
/// Clients are numbered from 1.
inline constexpr uint32_t kClientMax = (1u << 15) - 1;
inline constexpr uint32_t kVersionsMax = 16;
inline constexpr uint32_t kRowBytesMax = 64u << 10;

/// Word 0.
class RecordHeader {
 public:
  constexpr RecordHeader() = default;
  constexpr explicit RecordHeader(uint64_t word) : word_(word) {}
  static constexpr RecordHeader Unlocked(uint64_t timestamp) { return RecordHeader(timestamp); }
  /// Of a row that is being inserted: no version yet.
  static constexpr RecordHeader NewlyLocked(uint32_t client) { return RecordHeader().LockedBy(client); }

  constexpr uint64_t word() const { return word_; }
  constexpr bool free() const { return word_ == 0; }
  constexpr bool locked() const { return word_ >> 63 != 0; }
  constexpr uint64_t timestamp() const { return word_ & kTimestampMask; }
  constexpr uint32_t client() const { return locked() ? bits() : 0; }

  constexpr RecordHeader LockedBy(uint32_t client) const {
    return RecordHeader(uint64_t{1} << 63 | uint64_t{client} << 48 | timestamp());
  }
  /// What the header becomes when whoever locked it, when it was this, gives up.
  constexpr RecordHeader RolledBack() const {
    return RecordHeader(((uint64_t{bits()} + 1) & kClientMax) << 48 | timestamp());
  }
  constexpr bool operator==(const RecordHeader&) const = default;

 private:
  constexpr uint32_t bits() const { return static_cast<uint32_t>(word_ >> 48) & kClientMax; }
  uint64_t word_ = 0;
};

/// Words 1 … n.
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
  constexpr uint32_t slot_bytes() const { return (row_bytes + 7) / 8 * 8; }
  /// Word 0 and those of the slots.
  constexpr uint32_t words_bytes() const { return 8 + 8 * slots; }
  constexpr uint32_t slot_offset(uint32_t slot) const { return words_bytes() + slot * slot_bytes(); }
  constexpr uint32_t block_bytes() const { return (slot_offset(slots) + 63) / 64 * 64; }
  static constexpr uint32_t word_offset(uint32_t slot) { return 8 + 8 * slot; }
};

/// The slot that the next version goes to: what a client that died has left, else the oldest. It may be
/// written to whenever the header is locked.
uint32_t VictimSlot(std::span<const uint64_t> version_words, uint64_t newest);

/// What a snapshot sees of a block whose words were READ between two READs of its header.
struct VersionChoice {
  enum class Outcome : uint8_t {
    kVersion,  // `slot` holds it; a row that is deleted has a version too
    kNone,     // the row did not exist yet, or the block is free
    kTooOld,   // it was replaced
    kMoved,    // the block changed meanwhile: READ it again
  };
  Outcome outcome = Outcome::kNone;
  uint32_t slot = 0;
  VersionWord version;
};
VersionChoice ChooseVersion(RecordHeader before, std::span<const uint64_t> version_words, RecordHeader after,
                            uint64_t snapshot);

}  // namespace nam::storage
