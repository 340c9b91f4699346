#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "fabric/grants.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/index/numbered_blocks.h"

namespace nam::txn {

/// Maps unique keys to record numbers, in remote memory. The index stores only hashes of keys; records
/// contain their keys, so the caller compares.
///
///     segment   children │ bucket 0 │ bucket 1 │ … │ bucket 64      64 bytes each; of NumberedBlocks
///     bucket    8 words; an entry lies in its home bucket (0 … 63) or the next: ONE READ of 128 bytes
///     entry     frozen (1) │ fingerprint (23) │ record number + 1 (40)      0: empty
///     hash      fingerprint (23) │ – (2) │ home bucket (6) │ – (5) │ root segment (≤ 28)
///
/// Consecutive keys lie side by side: 16 of them share one segment and have consecutive home buckets, so
/// inserting an order and its lines costs one cache miss instead of four. An insert READs the buckets of such
/// keys at once:
///
///     home bucket of    a │ b │ c │ –        one READ of the group, from a's words on; each key's
///                       └───┘                two buckets are a part of it, until the group falls
///                           └───┘            apart: a claim is repeated, or a segment is split
///
/// Each of the first 2^root_bits segments is the root of a trie. A segment without room for a key is split by
/// the fingerprint bit of its level, the highest first:
///
///     open ── freeze every word by CAS ──▶ frozen ── WRITE two segments, CAS children from 0 ──▶ split
///
/// An entry keeps its place, bucket and word, in one of the two new segments. A client that must change a
/// frozen word splits the segment itself, since the splitter may be dead; the client that comes second with
/// `children` keeps its two segments for later. Readers never wait: a frozen segment is valid until
/// `children` is set, so a frozen word costs them one more READ. Clients remember the trie, and READ a split
/// segment only once.
///
/// All zeroes are an empty index. Round trips without contention: Lookup 1, Insert 2, Remove 2; for any
/// number of keys (512 at a time). One thread, whose batch it shares: calls execute the batch's requests
/// along with their own and keep its scratch memory, of which kScratchBytes must be left. An error of the
/// network breaks the channel; any other error leaves the index consistent.
class HashIndex {
 public:
  static constexpr int kRootBitsMax = 28;
  static constexpr size_t kClaimsMax = 512;
  static constexpr size_t kScratchBytes = 96 * 1024;
  static constexpr uint64_t kRecordMax = (uint64_t{1} << 40) - 2;
  /// The most entries that a key's two buckets hold. More than one with its fingerprint is rare.
  static constexpr size_t kCandidatesMax = 16;

  struct Candidates {
    Candidates() {}  // leaves the records uninitialized: only `count` of them mean anything
    std::array<uint64_t, kCandidatesMax> records;
    uint32_t count = 0;
    std::span<const uint64_t> view() const { return {records.data(), count}; }
  };
  struct Probe {
    uint64_t hash = 0;
    Candidates candidates;  // result: the key's record is among them, or does not exist
  };
  struct Claim {
    uint64_t hash = 0;
    uint64_t record = 0;
    /// Result: other entries that may have the same key. If two clients insert one key concurrently, at least
    /// one sees the other here. A client that finds its key in a rival's record withdraws by Remove.
    Candidates rivals;
  };
  struct Removal {
    uint64_t hash = 0;
    uint64_t record = 0;
    bool removed = false;  // result: there was such an entry
  };

  /// The hash of a key. Keeps keys together that count up their last byte (big-endian numbers), or their
  /// eighth last (little-endian words).
  static uint64_t HashOf(std::span<const std::byte> key);
  /// The root bits for a table that expects so many rows. A property of the index, kept in the catalog.
  static int RootBitsFor(uint64_t rows);
  /// The root bits whose segments fill about half of so many bytes.
  static int RootBitsThatFit(uint64_t extent_bytes);
  /// The bytes of one extent that holds all root segments.
  static uint64_t BytesOfRoots(int root_bits);
  /// The extents that hold all root segments.
  static uint32_t ExtentsOfRoots(int root_bits, uint64_t extent_bytes);
  /// `space` starts zeroed and belongs to the index alone. Create runs once, before any other use.
  HashIndex(storage::VerbBatch& batch, ExtentSpace space, int root_bits);
  absl::Status Create() { return blocks_.Create(); }
  ExtentSpace& space() { return blocks_.space(); }

  absl::Status Lookup(std::span<Probe> probes);
  /// Lookup that shares a round trip with the caller's other requests. At most kClaimsMax probes at a time,
  /// and no other call in between. Keeps the scratch memory that it takes.
  ///
  ///     AddLookup ─Execute─▶ LookedUp
  absl::Status AddLookup(std::span<const Probe> probes);
  /// True: the candidates are there. False: some are missing; call Lookup.
  bool LookedUp(std::span<Probe> probes);
  /// RESOURCE_EXHAUSTED: no memory, or too many keys with one hash. Some may have been inserted.
  absl::Status Insert(std::span<Claim> claims);
  /// Insert that shares round trips with the caller's other requests. One such insert at a time; Lookup and
  /// Remove in between are fine. Keeps the scratch memory that it takes. More than kClaimsMax claims take
  /// round trips of their own, and the first one executes the batch's requests.
  ///
  ///     AddSeek ─Execute─▶ Sought ─▶ AddClaims ─Execute─▶ FinishClaims
  absl::Status AddSeek(std::span<Claim> claims);
  /// True if both keys share a root segment: likely for consecutive keys, unlikely otherwise.
  bool SameRoot(uint64_t hash, uint64_t other) const { return ((hash ^ other) & root_mask_) == 0; }
  /// Prefetches what AddSeek will look at, where memory is in place.
  void FetchFor(uint64_t hash);
  /// Prefetches the entries that may be the key's, where memory is in place, and returns them with the grant
  /// of their memory; else nullptr.
  const std::byte* InPlace(uint64_t hash, const fabric::Grant*& grant);
  /// Looks once, like a Lookup. False: the entries are being moved. The candidates do not count if the grant
  /// is over after the look.
  static bool LookInPlace(const std::byte* in_place, uint64_t hash, Candidates& candidates);
  /// Fills `rivals` with the entries from before the first claim. False: only a Lookup can tell.
  bool Sought(std::span<Claim> claims);
  absl::Status AddClaims(std::span<Claim> claims);
  /// Repeats claims until all are in, mostly without another round trip.
  absl::Status FinishClaims(std::span<Claim> claims);
  /// A missing entry is no error.
  absl::Status Remove(std::span<Removal> removals);

 private:
  struct Node {             // of the trie, as known; kept small: every key meets some
    uint32_t segment = 0;   // a block's number
    uint32_t children = 0;  // in nodes_, this and the next; 0: none known
  };
  /// One key on its way through the rounds of an operation.
  struct Step {
    Step() {}  // without the zeroing of the implicit one
    uint64_t hash = 0;
    uint32_t item = 0;                    // the caller's item, by its place
    uint32_t node = 0;                    // in nodes_
    uint32_t level = 0;                   // of the node
    uint32_t word = 0;                    // index of the word with a CAS in flight; or kNoWord
    uint32_t read_words = 0;              // READ from its home bucket on; 0: an earlier READ brings them
    storage::Channel::Target buckets;     // since AddRead
    uint64_t* words = nullptr;            // scratch: the two buckets as last READ
    const std::byte* in_place = nullptr;  // the buckets, if they need no READ
    uint64_t* old = nullptr;              // scratch: the CAS's result
  };

  template <typename Item, typename Operation>
  absl::Status InPortions(std::span<Item> items, Operation operation);
  template <typename Item>
  void Begin(std::span<const Item> items, std::vector<Step>& steps);
  absl::Status LookupSome(std::span<Probe> probes);
  absl::Status InsertSome(std::span<Claim> claims);
  absl::Status AddSeekSome(std::span<const Claim> claims);
  bool SoughtSome(std::span<Claim> claims);
  absl::Status AddClaimsSome(std::span<const Claim> claims);
  absl::Status FinishClaimsSome(std::span<Claim> claims);
  absl::Status RemoveSome(std::span<Removal> removals);

  void Descend(Step& step) const;
  const std::byte* FindInPlace(uint64_t hash, const fabric::Grant*& grant);
  uint64_t PositionOf(const Step& step) const { return blocks_.PositionOf(nodes_[step.node].segment); }
  absl::Status AddRead(Step& step);
  absl::Status AddReads();
  void Group(std::span<Step> steps) const;
  void Ungroup(std::span<Step> steps);
  absl::Status AddGroupedReads();
  template <bool kForChange>
  static void Fetch(std::span<const Step> steps);
  /// After Execute: copies `words`, if in place. False: the memory may have been reused, so that the result
  /// of an insert or a removal does not matter.
  static bool CopyWords(Step& step);
  void AddSwap(Step& step, uint32_t word, uint64_t from, uint64_t to);
  absl::Status FollowChildren(std::span<Probe> probes);
  absl::Status MakeWay(Step& step);
  absl::Status Split(const Step& step);
  absl::Status Freeze(uint64_t position, uint64_t* segment);
  void Learn(uint32_t node, uint64_t children);

  storage::VerbBatch& batch_;
  NumberedBlocks blocks_;
  uint64_t root_mask_;
  std::vector<Node> nodes_;          // the roots first
  std::vector<Step> steps_;          // kept for their memory
  std::vector<Step> claims_;         // of an insert under way
  uint64_t* claim_words_ = nullptr;  // scratch: words of the claims, by item
  bool all_known_ = true;            // of more than kClaimsMax that were sought
};

}  // namespace nam::txn
