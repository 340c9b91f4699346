#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

/// The state that a cluster's transactions share, in one extent of one memory server. All zeroes is a valid
/// start.
///
///     0          leased: the last timestamp that was given out  FETCH_ADD
///     64         leased: a timestamp, bitvector: a row, up to
///                which all are done                             CAS, upwards; may lag
///     128        horizon: no snapshot below it is taken         CAS, upwards
///     192        bitvector: the highest row in use              CAS, upwards
///     256        bitvector: the highest lane that was used      CAS, upwards
///     512        how often indexes were made or dropped         FETCH_ADD
///     576        the highest client slot that was ever used     CAS, upwards
///     4096       16,384 client slots, 64 bytes each; client 0 is none
///     then       4 MiB for the timestamps, of one kind:
///                leased: the ring, 524,288 entries of 8 bytes   CAS
///                bitvector: 120 rows of 512 bits                FETCH_ADD by the lane's client
///                           at 8,192: a word for each lane      CAS
///
/// Clients' logs lie elsewhere (txn/rsi/client_log.h). docs/design/transactions.md.
namespace nam::txn {

/// The source of commit timestamps, chosen when the state is made.
enum class TimestampKind : uint8_t { kLeased, kBitVector };

/// The first thing that a client READs to take a snapshot.
struct StateHead {
  uint64_t next = 0;
  uint64_t padding1[7] = {};
  uint64_t watermark = 0;
  uint64_t padding2[7] = {};
  uint64_t horizon = 0;
  uint64_t padding3[7] = {};
  uint64_t top = 0;
  uint64_t padding4[7] = {};
  uint64_t lanes = 0;
};
inline constexpr uint64_t kNextOffset = offsetof(StateHead, next);
inline constexpr uint64_t kWatermarkOffset = offsetof(StateHead, watermark);
inline constexpr uint64_t kHorizonOffset = offsetof(StateHead, horizon);
inline constexpr uint64_t kTopOffset = offsetof(StateHead, top);
inline constexpr uint64_t kLanesOffset = offsetof(StateHead, lanes);
static_assert(kWatermarkOffset == 64 && kHorizonOffset == 128 && kTopOffset == 192 && kLanesOffset == 256 &&
              sizeof(StateHead) == 264);
inline constexpr uint64_t kIndexChangesOffset = 512;
inline constexpr uint64_t kSlotsUsedOffset = 576;
inline constexpr uint64_t kClientsOffset = 4'096;
inline constexpr uint32_t kClientSlotBytes = 64;
/// Client ids have 15 bits everywhere. The bit vector has lanes only for the first clients.
inline constexpr uint32_t kClientSlots = 16'384;
/// The timestamps that may be given out while one claim holds snapshots back: 524,288 during the longest
/// patience, 2.56 s (SlotWord), are about 205,000 commits a second; faster clients wait. Twice as many would
/// make the state too large for regions of 8 MiB.
inline constexpr uint64_t kRingEntries = uint64_t{1} << 19;
inline constexpr uint64_t kBitRows = 120;
inline constexpr uint64_t kBitLanes = 512;
inline constexpr uint64_t kBitRowBytes = kBitLanes / 8;
inline constexpr uint64_t kLaneWordsOffset = 8'192;  // from the bits' start
static_assert(kBitRows * kBitRowBytes <= kLaneWordsOffset &&
              kLaneWordsOffset + kBitLanes * 8 <= kRingEntries * 8);

/// The ring's entry of timestamp t is the word at t mod kRingEntries:
///
///     done 1 │ client 15 │ timestamp 48      claimed by a client; then done, without the client
///
/// An unclaimed entry still holds t - kRingEntries. It changes by CAS only, so a client that is held up may
/// finish the work: an unclaimed entry becomes done, so that a late claim fails; a claimed one becomes done
/// once the client's slot has decided (SlotWord).
class RingEntry {
 public:
  constexpr explicit RingEntry(uint64_t word) : word_(word) {}
  static constexpr RingEntry Claimed(uint32_t client, uint64_t timestamp) {
    return RingEntry(uint64_t{client} << 48 | timestamp);
  }
  static constexpr RingEntry Done(uint64_t timestamp) { return RingEntry(uint64_t{1} << 63 | timestamp); }
  /// The entry's value before `timestamp` is claimed. There is no timestamp 0.
  static constexpr RingEntry Before(uint64_t timestamp) {
    return timestamp <= kRingEntries ? RingEntry(0) : Done(timestamp - kRingEntries);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool done() const { return word_ >> 63 != 0; }
  constexpr uint32_t client() const { return static_cast<uint32_t>(word_ >> 48) & 0x7fff; }
  constexpr uint64_t timestamp() const { return word_ & ((uint64_t{1} << 48) - 1); }
  constexpr bool operator==(const RingEntry&) const = default;

 private:
  uint64_t word_;
};

/// `bitvector`: timestamp t is lane t mod 512 (the client) of row t / 512; rows begin with 1. A row's bits
/// lie at (row - 1) mod 120. The value that says `done` alternates each time around, so that bits are never
/// cleared: what is done for a row is not done for the next row in its place.
struct BitRow {
  static constexpr uint64_t Of(uint64_t timestamp) { return timestamp / kBitLanes; }
  static constexpr uint64_t TimestampOf(uint64_t row, uint32_t lane) { return row * kBitLanes + lane; }
  static constexpr uint64_t Place(uint64_t row) { return (row - 1) % kBitRows; }
  static constexpr bool DoneValue(uint64_t row) { return (row - 1) / kBitRows % 2 == 0; }
};
/// Timestamps have 48 bits.
inline constexpr uint64_t kBitRowMax = (uint64_t{1} << 39) - 1;

/// A lane's word.
///
///     present 1 │ 0 15 │ row 48        the last row that its client has claimed, or given up
///
/// Readers ignore an absent lane's bits. Its client claims a row by CAS, so no lane with a claim is made
/// absent.
class LaneWord {
 public:
  constexpr explicit LaneWord(uint64_t word) : word_(word) {}
  static constexpr LaneWord Present(uint64_t row) { return LaneWord(uint64_t{1} << 63 | row); }
  static constexpr LaneWord Absent(uint64_t row) { return LaneWord(row); }
  constexpr uint64_t word() const { return word_; }
  constexpr bool present() const { return word_ >> 63 != 0; }
  constexpr uint64_t row() const { return word_ & ((uint64_t{1} << 48) - 1); }

 private:
  uint64_t word_;
};

/// A client slot's words.
///
///     0   owner: member 32 │ session 30 │ state 2; CAS
///     8   a timestamp not above the snapshot that it uses, 0: none; FETCH_ADD by the owner
///     16  the recovering client: session 32 │ client 32, 0: none; CAS
///     24  the position in the log extents where the log of its clients begins; 0: none; CAS
///     32  the fate of its transaction: SlotWord; CAS
enum class SlotState : uint32_t {
  kFree = 0,
  kUsed = 1,
  kRecovered = 2,
  kLost = 3,  // its member lives, and says that nothing of this client's takes effect any more
};
struct SlotOwner {
  static constexpr uint32_t kSessionMax = (uint32_t{1} << 30) - 1;
  uint32_t member = 0;
  SlotState state = SlotState::kFree;
  uint32_t session = 0;  // random: distinguishes the slot's users, if one member has several
  static constexpr SlotOwner FromWord(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<SlotState>(word & 3),
            static_cast<uint32_t>(word) >> 2};
  }
  constexpr uint64_t word() const {
    return uint64_t{member} << 32 | uint64_t{session} << 2 | static_cast<uint32_t>(state);
  }
  /// The slot is in use, or needs recovery.
  constexpr bool held() const { return state == SlotState::kUsed || state == SlotState::kLost; }
};
struct SlotRecoverer {
  uint32_t session = 0;
  uint32_t client = 0;
  static constexpr SlotRecoverer FromWord(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
  }
  constexpr uint64_t word() const { return uint64_t{session} << 32 | client; }
};
inline constexpr uint64_t kSlotOwnerOffset = 0;
inline constexpr uint64_t kSlotSnapshotOffset = 8;
inline constexpr uint64_t kSlotRecovererOffset = 16;
inline constexpr uint64_t kSlotLogOffset = 24;
inline constexpr uint64_t kSlotWordOffset = 32;

/// Decides a transaction. A client has one at a time.
///
///     state 2 │ patience 4 │ moves 10 │ timestamp 48       0: the slot has had none
///
///     over ──CAS──▶ claimed(T) ──CAS, the client──▶ committing(T) ──CAS──▶ claimed(T'), the client's next
///      │               ▲ │ └──CAS, any client that it holds up for longer than its patience──▶ skipped(T)
///      │               │ └──CAS, the client gives up──▶ over(T) ◀──CAS, the client has rolled back──┘
///      └──CAS──▶ preparing: it writes, and has no timestamp yet; a word of its own for skipped(0)
///
///  - claimed → committing is the commit point. All that the commit writes has completed before it.
///  - committing leaves T only when every header is flipped and T's ring entry is done, all of it completed:
///    a reader may not see a header that is locked for T by a client whose slot has left T.
///  - skipped leaves T only when all is taken back.
///  - preparing hides no commit, and no other client changes it. Recovery takes back what it has written.
///  - The slot says claimed(T) before the ring's entry does, so a client that sees the entry can skip it.
///  - claimed(T) ──CAS, the client──▶ claimed(T) with one move more, while it goes on with a long commit.
///    It is skipped only if its word stands still for its patience. preparing moves in the same way, for
///    those who wait for it to change an index.
enum class SlotFate : uint32_t { kOver = 0, kClaimed = 1, kCommitting = 2, kSkipped = 3 };
class SlotWord {
 public:
  constexpr SlotWord() = default;
  constexpr explicit SlotWord(uint64_t word) : word_(word) {}
  static constexpr SlotWord Claimed(uint64_t timestamp, uint32_t patience) {
    return SlotWord(Of(SlotFate::kClaimed) | uint64_t{patience} << 58 | timestamp);
  }
  /// The word of a client that writes before it has a timestamp.
  static constexpr SlotWord Preparing() { return SlotWord(Of(SlotFate::kSkipped)); }
  constexpr bool preparing() const { return fate() == SlotFate::kSkipped && timestamp() == 0; }
  /// The word after a claim is decided.
  constexpr SlotWord Become(SlotFate fate) const {
    return SlotWord((word_ & ~(uint64_t{3} << 62)) | Of(fate));
  }
  /// The word of a claim whose client goes on.
  constexpr SlotWord Moved() const {
    constexpr uint64_t kMoves = uint64_t{1023} << 48;
    return SlotWord((word_ & ~kMoves) | ((word_ + (uint64_t{1} << 48)) & kMoves));
  }
  constexpr uint64_t word() const { return word_; }
  constexpr SlotFate fate() const { return static_cast<SlotFate>(word_ >> 62); }
  constexpr uint64_t timestamp() const { return word_ & ((uint64_t{1} << 48) - 1); }
  constexpr bool committing(uint64_t timestamp) const {
    return fate() == SlotFate::kCommitting && this->timestamp() == timestamp;
  }
  /// How long other clients wait before they skip it.
  constexpr int64_t patience_us() const { return kPatienceUs << (word_ >> 58 & 15); }
  static constexpr int64_t kPatienceUs = 10'000;  // some time slices of a busy machine
  static constexpr int64_t kMoveUs = kPatienceUs / 4;
  static constexpr uint32_t kPatienceMax = 8;  // 2.56 s, about a lease
  constexpr bool operator==(const SlotWord&) const = default;

 private:
  static constexpr uint64_t Of(SlotFate fate) { return static_cast<uint64_t>(fate) << 62; }
  uint64_t word_ = 0;
};

/// A slot as it is READ.
struct SlotWords {
  uint64_t owner = 0;
  uint64_t snapshot = 0;
  uint64_t recoverer = 0;
  uint64_t log = 0;
  uint64_t word = 0;
  uint64_t unused[3] = {};
};
static_assert(sizeof(SlotWords) == kClientSlotBytes &&
              offsetof(SlotWords, recoverer) == kSlotRecovererOffset &&
              offsetof(SlotWords, word) == kSlotWordOffset);

/// The layout of the state.
class StateGeometry {
 public:
  constexpr explicit StateGeometry(TimestampKind kind)
      : clients_max_(kind == TimestampKind::kBitVector ? kBitLanes - 1 : kClientSlots - 1) {}
  /// Clients are 1 … clients_max().
  constexpr uint32_t clients_max() const { return clients_max_; }
  static constexpr uint64_t slot(uint32_t client) {
    return kClientsOffset + uint64_t{client} * kClientSlotBytes;
  }
  static constexpr uint64_t ring() { return slot(kClientSlots); }
  static constexpr uint64_t entry(uint64_t timestamp) { return ring() + timestamp % kRingEntries * 8; }
  static constexpr uint64_t bit_row(uint64_t row) { return ring() + BitRow::Place(row) * kBitRowBytes; }
  static constexpr uint64_t lane(uint32_t client) { return ring() + kLaneWordsOffset + uint64_t{client} * 8; }

 private:
  uint32_t clients_max_;
};
inline constexpr uint64_t kStateBytes = uint64_t{8} << 20;
static_assert(kClientSlots <= 1u << 15);
static_assert(StateGeometry::ring() + kRingEntries * 8 <= kStateBytes);

}  // namespace nam::txn
