#include "txn/index/hash_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ranges>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "storage/checksum.h"

namespace nam::txn {
namespace {

constexpr int kFingerprintBits = 23;
constexpr int kRecordBits = 40;
constexpr int kBucketShift = 33;
constexpr uint64_t kFrozen = uint64_t{1} << 63;
constexpr uint64_t kRecordMask = (uint64_t{1} << kRecordBits) - 1;
constexpr int kBucketBits = 6;
constexpr size_t kBuckets = size_t{1} << kBucketBits;
constexpr size_t kBucketWords = 8;
constexpr size_t kBucketBytes = kBucketWords * sizeof(uint64_t);
constexpr size_t kWordsRead = 2 * kBucketWords;
constexpr size_t kHeaderWords = 8;
constexpr size_t kSegmentWords = kHeaderWords + (kBuckets + 1) * kBucketWords;
constexpr size_t kSegmentBytes = kSegmentWords * sizeof(uint64_t);
static_assert(kSegmentBytes == 4224);
static_assert(1 + kFingerprintBits + kRecordBits == 64);
static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kNoWord = UINT32_MAX;
/// Beyond this level a split no longer tells keys apart.
constexpr uint32_t kLevelsMax = 20;
/// Segments are half full when all expected rows exist: then splits and overflowing buckets are rare.
constexpr uint64_t kRowsPerRoot = 256;
/// Keys processed together; bounds scratch memory.
constexpr size_t kPortion = HashIndex::kClaimsMax;
/// Each round but the last loses to another client that progressed, or descends a level of the trie.
constexpr int kBucketRoundsMax = 1000;

/// The entry without its frozen bit.
uint64_t EntryOf(uint64_t hash, uint64_t record) {
  return hash >> (64 - kFingerprintBits) << kRecordBits | (record + 1);
}
uint64_t RecordOf(uint64_t word) {
  return (word & kRecordMask) - 1;
}
uint64_t HashBit(uint64_t hash, uint32_t level) {
  return hash >> (63 - level) & 1;
}
uint64_t EntryBit(uint64_t word, uint32_t level) {
  return word >> (kRecordBits + kFingerprintBits - 1 - level) & 1;
}
uint64_t HomeBucketOf(uint64_t hash) {
  return (hash >> kBucketShift) % kBuckets;
}
uint64_t OffsetOf(uint64_t hash) {
  return kHeaderWords * sizeof(uint64_t) + HomeBucketOf(hash) * kBucketBytes;
}

bool AnyFrozen(const uint64_t* words) {
  uint64_t all = 0;
  for (size_t i = 0; i < kWordsRead; ++i) all |= words[i];
  return (all & kFrozen) != 0;
}
uint32_t Find(const uint64_t* words, uint64_t wanted) {
  const uint64_t* const found = std::find(words, words + kWordsRead, wanted);
  return found == words + kWordsRead ? kNoWord : static_cast<uint32_t>(found - words);
}
/// Collects all entries with the fingerprint, except the one at `own`.
void Collect(const uint64_t* words, uint64_t hash, uint32_t own, HashIndex::Candidates& to) {
  // Compares the upper halves, which hold the fingerprint, of four words at once. Matches are rare and
  // unpredictable, so there is no branch for each.
  using Four = uint32_t __attribute__((vector_size(16)));
  constexpr auto kMask = static_cast<uint32_t>(~(kFrozen | kRecordMask) >> 32);
  const uint32_t wanted = static_cast<uint32_t>(EntryOf(hash, 0) >> 32) & kMask;
  Four bits = {1, 2, 4, 8}, all = {};
  for (uint32_t i = 0; i < kWordsRead; i += 4, bits <<= 4) {
    Four low, high;
    std::memcpy(&low, words + i, sizeof(low));
    std::memcpy(&high, words + i + 2, sizeof(high));
    const Four upper = __builtin_shufflevector(low, high, 1, 3, 5, 7);
    all |= reinterpret_cast<Four>((upper & kMask) == wanted) & bits;
  }
  uint32_t found = all[0] | all[1] | all[2] | all[3];
  if (own != kNoWord) found &= ~(1u << own);
  to.count = 0;
  for (; found != 0; found &= found - 1) {
    const uint64_t word = words[std::countr_zero(found)];
    if ((word & kRecordMask) != 0) to.records[to.count++] = RecordOf(word);  // else empty
  }
}

absl::Status HashIndexContended() {
  return absl::AbortedError(absl::StrFormat("the hash index kept changing for %d rounds", kBucketRoundsMax));
}

}  // namespace

uint64_t HashIndex::HashOf(std::span<const std::byte> key) {
  constexpr uint64_t kCounted = 15, kCountedLast = kCounted << 56;
  constexpr uint64_t kPlaceBits = (uint64_t{1} << (kBucketShift + kBucketBits)) - 1;
  uint64_t word = 0, group = 0, counted = 0;
  if (key.size() >= sizeof(word)) {
    const size_t head_bytes = key.size() - sizeof(word);
    std::memcpy(&word, key.data() + head_bytes, sizeof(word));
    counted = (word ^ word >> 56) & kCounted;
    group = word & ~(kCounted | kCountedLast);
    if (head_bytes > 0) {
      const uint64_t head = storage::Checksum(key.first(head_bytes));
      word ^= head;
      group ^= head;
    }
  } else {
    for (const std::byte byte : key) word = word << 8 | static_cast<uint64_t>(byte);
    counted = word & kCounted;
    group = word & ~kCounted;
  }
  const uint64_t place = MixBits(group) + (counted << kBucketShift);
  return (MixBits(word) & ~kPlaceBits) | (place & kPlaceBits);
}

int HashIndex::RootBitsFor(uint64_t rows) {
  return std::min(kRootBitsMax,
                  static_cast<int>(std::bit_width((std::max<uint64_t>(rows, 1) - 1) / kRowsPerRoot)));
}

int HashIndex::RootBitsThatFit(uint64_t extent_bytes) {
  const uint64_t segments = (extent_bytes - NumberedBlocks::kExtentHeaderBytes) / kSegmentBytes;
  NAM_CHECK(segments >= 2, "an extent of an index has room for two segments");
  return std::min(kRootBitsMax, static_cast<int>(std::bit_width(segments)) - 1);
}

uint64_t HashIndex::BytesOfRoots(int root_bits) {
  return NumberedBlocks::kExtentHeaderBytes + (kSegmentBytes << root_bits);
}

uint32_t HashIndex::ExtentsOfRoots(int root_bits, uint64_t extent_bytes) {
  const uint64_t per_extent = (extent_bytes - NumberedBlocks::kExtentHeaderBytes) / kSegmentBytes;
  NAM_CHECK(per_extent > 0, "an extent of an index has room for a segment");
  return static_cast<uint32_t>(((uint64_t{1} << root_bits) + per_extent - 1) / per_extent);
}

HashIndex::HashIndex(storage::VerbBatch& batch, ExtentSpace space, int root_bits)
    : batch_(batch),
      blocks_(batch, std::move(space), kSegmentBytes, uint64_t{1} << root_bits),
      root_mask_((uint64_t{1} << root_bits) - 1) {
  NAM_CHECK(root_bits >= 0 && root_bits <= kRootBitsMax);
  nodes_.resize(root_mask_ + 1);
  for (uint32_t root = 0; root <= root_mask_; ++root) nodes_[root].segment = root;
}

absl::Status HashIndex::Lookup(std::span<Probe> probes) {
  return InPortions(probes, [this](std::span<Probe> some) { return LookupSome(some); });
}
absl::Status HashIndex::Insert(std::span<Claim> claims) {
  return InPortions(claims, [this](std::span<Claim> some) { return InsertSome(some); });
}
absl::Status HashIndex::Remove(std::span<Removal> removals) {
  return InPortions(removals, [this](std::span<Removal> some) { return RemoveSome(some); });
}

template <typename Item, typename Operation>
absl::Status HashIndex::InPortions(std::span<Item> items, Operation operation) {
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  const size_t kept = batch_.scratch_used();
  while (!items.empty()) {
    const size_t count = std::min(items.size(), kPortion);
    const absl::Status status = operation(items.first(count));
    if (batch_.idle()) batch_.Reset(kept);
    if (!status.ok()) return status;
    items = items.subspan(count);
  }
  return absl::OkStatus();
}

template <typename Item>
void HashIndex::Begin(std::span<const Item> items, std::vector<Step>& steps) {
  auto* const words =
      reinterpret_cast<uint64_t*>(batch_.Scratch(items.size() * kWordsRead * sizeof(uint64_t)));
  auto* const old = reinterpret_cast<uint64_t*>(batch_.Scratch(items.size() * sizeof(uint64_t)));
  steps.clear();
  for (uint32_t i = 0; i < items.size(); ++i) {
    Step& step = steps.emplace_back();
    step.hash = items[i].hash;
    step.item = i;
    step.node = static_cast<uint32_t>(items[i].hash & root_mask_);
    step.word = kNoWord;
    step.read_words = kWordsRead;
    step.words = words + i * kWordsRead;
    step.old = old + i;
    Descend(step);
  }
}

/// Descends to the last known segment for the key.
void HashIndex::Descend(Step& step) const {
  for (uint32_t children; (children = nodes_[step.node].children) != 0; ++step.level) {
    step.node = children + static_cast<uint32_t>(HashBit(step.hash, step.level));
  }
}

absl::Status HashIndex::AddRead(Step& step) {
  NAM_ASSIGN_OR_RETURN(step.buckets, blocks_.Resolve(PositionOf(step) + OffsetOf(step.hash)));
  const auto bytes = static_cast<uint32_t>(step.read_words * sizeof(uint64_t));
  step.in_place = batch_.InPlace(step.buckets, bytes);  // until the step moves on
  if (step.in_place == nullptr) batch_.Read(step.buckets, reinterpret_cast<std::byte*>(step.words), bytes);
  return absl::OkStatus();
}

bool HashIndex::CopyWords(Step& step) {
  if (step.in_place == nullptr) return true;
  storage::VerbBatch::Copy(step.in_place, step.words, step.read_words * sizeof(uint64_t));
  return storage::VerbBatch::Current(step.buckets);
}

// Groups neighbours in order and in buckets. The group's READ then fits into the words of its steps, and
// Ungroup moves each step's words upwards without overwriting others.
void HashIndex::Group(std::span<Step> steps) const {
  Step* leader = nullptr;
  for (Step& step : steps) {
    const uint64_t home = HomeBucketOf(step.hash);
    const uint64_t first = leader == nullptr ? 0 : HomeBucketOf(leader->hash);
    if (leader == nullptr || step.node != leader->node || home < first ||
        home - first > 2 * (step.item - leader->item)) {
      leader = &step;
      continue;
    }
    step.words = leader->words + (home - first) * kBucketWords;
    step.read_words = 0;
    leader->read_words = std::max<uint32_t>(leader->read_words, (home - first) * kBucketWords + kWordsRead);
  }
}

void HashIndex::Ungroup(std::span<Step> steps) {
  for (Step& step : std::views::reverse(steps)) {
    uint64_t* const own = claim_words_ + step.item * kWordsRead;
    std::memmove(own, step.words, kWordsRead * sizeof(uint64_t));
    step.words = own;
    step.read_words = kWordsRead;
  }
}

absl::Status HashIndex::AddGroupedReads() {
  const Step* leader = nullptr;
  for (Step& step : claims_) {
    if (step.read_words > 0) leader = &step;
    if (step.in_place != nullptr) continue;
    if (leader == &step) {
      NAM_RETURN_IF_ERROR(AddRead(step));
      continue;
    }
    const auto behind = static_cast<uint64_t>(step.words - leader->words) * sizeof(uint64_t);
    step.buckets = leader->buckets;
    step.buckets.address.offset += behind;
    step.in_place = leader->in_place == nullptr ? nullptr : leader->in_place + behind;
  }
  return absl::OkStatus();
}

template <bool kForChange>
void HashIndex::Fetch(std::span<const Step> steps) {
  for (const Step& step : steps)
    storage::VerbBatch::Fetch<kForChange>(step.in_place, step.read_words * sizeof(uint64_t));
}

/// The READ that follows tells the result, and other clients' changes.
void HashIndex::AddSwap(Step& step, uint32_t word, uint64_t from, uint64_t to) {
  storage::Channel::Target at = step.buckets;
  at.address.offset += word * sizeof(uint64_t);
  batch_.CompareAndSwap(at, from, to, step.old);
  step.word = word;
}

absl::Status HashIndex::LookupSome(std::span<Probe> probes) {
  NAM_RETURN_IF_ERROR(AddLookup(probes));
  for (int round = 0; round < kBucketRoundsMax; ++round) {
    NAM_RETURN_IF_ERROR(batch_.Execute());
    if (LookedUp(probes)) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(FollowChildren(probes));
    if (steps_.empty()) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(AddReads());
  }
  return HashIndexContended();
}

absl::Status HashIndex::AddLookup(std::span<const Probe> probes) {
  NAM_CHECK(probes.size() <= kPortion);
  Begin<Probe>(probes, steps_);
  return AddReads();
}

absl::Status HashIndex::AddReads() {
  for (Step& step : steps_) NAM_RETURN_IF_ERROR(AddRead(step));
  Fetch<false>(steps_);
  return absl::OkStatus();
}

/// Afterwards steps_ holds the frozen segments, and copies of memory that may have been reused.
bool HashIndex::LookedUp(std::span<Probe> probes) {
  size_t left = 0;
  for (Step& step : steps_) {
    const bool current = CopyWords(step);
    Collect(step.words, step.hash, kNoWord, probes[step.item].candidates);
    if (AnyFrozen(step.words) || !current) steps_[left++] = step;
  }
  steps_.resize(left);
  return left == 0;
}

/// Follows `children` of frozen segments. A READ of a segment without children was valid.
absl::Status HashIndex::FollowChildren(std::span<Probe> probes) {
  for (const Step& step : steps_) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, blocks_.Resolve(PositionOf(step)));
    batch_.Read(target, reinterpret_cast<std::byte*>(step.old), sizeof(uint64_t));
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  size_t left = 0;
  for (Step step : steps_) {
    if (*step.old == 0) continue;
    Learn(step.node, *step.old);
    Descend(step);
    probes[step.item].candidates.count = 0;
    steps_[left++] = step;
  }
  steps_.resize(left);
  return absl::OkStatus();
}

absl::Status HashIndex::InsertSome(std::span<Claim> claims) {
  NAM_RETURN_IF_ERROR(AddSeekSome(claims));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  SoughtSome(claims);
  NAM_RETURN_IF_ERROR(AddClaimsSome(claims));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return FinishClaimsSome(claims);
}

absl::Status HashIndex::AddSeek(std::span<Claim> claims) {
  if (claims.size() <= kClaimsMax) return AddSeekSome(claims);
  all_known_ = true;
  return InPortions(claims, [this](std::span<Claim> some) {
    NAM_RETURN_IF_ERROR(AddSeekSome(some));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    all_known_ = SoughtSome(some) && all_known_;
    return absl::OkStatus();
  });
}

bool HashIndex::Sought(std::span<Claim> claims) {
  return claims.size() <= kClaimsMax ? SoughtSome(claims) : all_known_;
}

absl::Status HashIndex::AddClaims(std::span<Claim> claims) {
  if (claims.size() <= kClaimsMax) return AddClaimsSome(claims);
  for (Claim& claim : claims) claim.rivals = {};  // sought again
  return Insert(claims);
}

absl::Status HashIndex::FinishClaims(std::span<Claim> claims) {
  return claims.size() <= kClaimsMax ? FinishClaimsSome(claims) : absl::OkStatus();
}

absl::Status HashIndex::AddSeekSome(std::span<const Claim> claims) {
  NAM_CHECK(claims.size() <= kClaimsMax);
  Begin<Claim>(claims, claims_);
  claim_words_ = claims_.empty() ? nullptr : claims_.front().words;
  for (const Claim& claim : claims) NAM_CHECK(claim.record <= kRecordMax);
  Group(claims_);
  NAM_RETURN_IF_ERROR(AddGroupedReads());
  Fetch<true>(claims_);
  return absl::OkStatus();
}

const std::byte* HashIndex::FindInPlace(uint64_t hash, const fabric::Grant*& grant) {
  Step step;
  step.hash = hash;
  step.node = static_cast<uint32_t>(hash & root_mask_);
  Descend(step);
  const absl::StatusOr<storage::Channel::Target> target = blocks_.Resolve(PositionOf(step) + OffsetOf(hash));
  if (!target.ok()) return nullptr;  // the READ that follows tells why
  grant = target->grant;
  return batch_.InPlace(*target, kWordsRead * sizeof(uint64_t));
}

void HashIndex::FetchFor(uint64_t hash) {
  const fabric::Grant* grant = nullptr;
  storage::VerbBatch::Fetch<true>(FindInPlace(hash, grant), kWordsRead * sizeof(uint64_t));
}

const std::byte* HashIndex::InPlace(uint64_t hash, const fabric::Grant*& grant) {
  const std::byte* const in_place = FindInPlace(hash, grant);
  storage::VerbBatch::Fetch<false>(in_place, kWordsRead * sizeof(uint64_t));
  return in_place;
}

bool HashIndex::LookInPlace(const std::byte* in_place, uint64_t hash, Candidates& candidates) {
  uint64_t words[kWordsRead];
  storage::VerbBatch::Copy(in_place, words, sizeof words);
  Collect(words, hash, kNoWord, candidates);
  return !AnyFrozen(words);
}

bool HashIndex::SoughtSome(std::span<Claim> claims) {
  bool known = true;
  for (Step& step : claims_) {
    known = CopyWords(step) && known;
    Collect(step.words, step.hash, kNoWord, claims[step.item].rivals);
    known = known && !AnyFrozen(step.words);
  }
  return known;
}

absl::Status HashIndex::AddClaimsSome(std::span<const Claim> claims) {
  bool all_fit = true;
  for (Step& step : claims_) {
    step.word = AnyFrozen(step.words) ? kNoWord : Find(step.words, 0);
    all_fit = all_fit && step.word != kNoWord;
    // Another step of its group that sees this word takes the next.
    if (step.word != kNoWord) step.words[step.word] = EntryOf(step.hash, claims[step.item].record);
  }
  // Makes all splits before the first request: a split executes the batch.
  if (!all_fit) {
    Ungroup(claims_);
    for (Step& step : claims_) {
      if (step.word == kNoWord) NAM_RETURN_IF_ERROR(MakeWay(step));
    }
  }
  for (Step& step : claims_) {
    if (step.word != kNoWord) AddSwap(step, step.word, 0, EntryOf(step.hash, claims[step.item].record));
  }
  return AddGroupedReads();
}

absl::Status HashIndex::FinishClaimsSome(std::span<Claim> claims) {
  for (int round = 0; round < kBucketRoundsMax; ++round) {
    size_t left = 0;
    for (Step& step : claims_) {
      CopyWords(step);
      // If the claim was frozen afterwards, the splitter has copied it, or will.
      if (step.word != kNoWord && *step.old == 0) {
        Collect(step.words, step.hash, step.word, claims[step.item].rivals);
        continue;
      }
      step.word = kNoWord;
      claims_[left++] = step;
    }
    claims_.resize(left);
    if (left == 0) return absl::OkStatus();
    Ungroup(claims_);
    NAM_RETURN_IF_ERROR(AddClaimsSome(claims));
    NAM_RETURN_IF_ERROR(batch_.Execute());
  }
  return HashIndexContended();
}

absl::Status HashIndex::RemoveSome(std::span<Removal> removals) {
  Begin<Removal>(removals, steps_);
  for (Step& step : steps_) {
    removals[step.item].removed = false;
    NAM_RETURN_IF_ERROR(AddRead(step));
  }
  for (int round = 0; round < kBucketRoundsMax; ++round) {
    NAM_RETURN_IF_ERROR(batch_.Execute());
    size_t left = 0;
    for (Step step : steps_) {
      CopyWords(step);
      const uint64_t entry = EntryOf(step.hash, removals[step.item].record);
      if (step.word != kNoWord && *step.old == entry) removals[step.item].removed = true;
      // Repeats until none is left: a claim that was repeated after an error may be there twice.
      step.word = Find(step.words, entry);
      if (step.word != kNoWord || AnyFrozen(step.words)) steps_[left++] = step;
    }
    steps_.resize(left);
    if (left == 0) return absl::OkStatus();
    for (Step& step : steps_) {
      if (!AnyFrozen(step.words)) continue;
      step.word = kNoWord;
      NAM_RETURN_IF_ERROR(MakeWay(step));
    }
    for (Step& step : steps_) {
      if (step.word != kNoWord) AddSwap(step, step.word, step.words[step.word], 0);
      if (step.in_place == nullptr) NAM_RETURN_IF_ERROR(AddRead(step));
    }
  }
  return HashIndexContended();
}

/// On return the step's segment has been split, and the step continues below it.
absl::Status HashIndex::MakeWay(Step& step) {
  if (nodes_[step.node].children == 0) NAM_RETURN_IF_ERROR(Split(step));
  Descend(step);
  step.in_place = nullptr;
  return absl::OkStatus();
}

absl::Status HashIndex::Split(const Step& step) {
  const uint32_t node = step.node, level = step.level;
  const uint64_t position = PositionOf(step);
  const size_t kept = batch_.scratch_used();
  auto* const segment = reinterpret_cast<uint64_t*>(batch_.Scratch(kSegmentBytes));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, blocks_.Resolve(position));
  batch_.Read(at, reinterpret_cast<std::byte*>(segment), kSegmentBytes);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  if (segment[0] != 0) {
    batch_.Reset(kept);
    Learn(node, segment[0]);
    return absl::OkStatus();
  }
  if (level >= kLevelsMax) return absl::ResourceExhaustedError("too many keys have nearly the same hash");
  // Takes memory before freezing: without memory the segment stays as it is.
  NAM_ASSIGN_OR_RETURN(const uint64_t children, blocks_.Allocate(2));
  NAM_RETURN_IF_ERROR(Freeze(position, segment));
  for (uint64_t side = 0; side < 2; ++side) {
    auto* const child = reinterpret_cast<uint64_t*>(batch_.Scratch(kSegmentBytes));
    std::memset(child, 0, kSegmentBytes);
    for (size_t i = kHeaderWords; i < kSegmentWords; ++i) {
      const uint64_t entry = segment[i] & ~kFrozen;
      if (entry != 0 && EntryBit(entry, level) == side) child[i] = entry;
    }
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target to,
                         blocks_.Resolve(blocks_.PositionOf(children + side)));
    batch_.Write(reinterpret_cast<const std::byte*>(child), kSegmentBytes, to);
  }
  // They may lie on other servers than the word that publishes them.
  NAM_RETURN_IF_ERROR(batch_.Execute());
  batch_.CompareAndSwap(at, 0, children, segment);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const uint64_t first = segment[0];
  batch_.Reset(kept);
  if (first != 0) blocks_.GiveBack(children);
  Learn(node, first != 0 ? first : children);
  return absl::OkStatus();
}

/// `segment` has been READ; afterwards it is the segment's final content.
absl::Status HashIndex::Freeze(uint64_t position, uint64_t* segment) {
  const size_t kept = batch_.scratch_used();
  auto* const old = reinterpret_cast<uint64_t*>(batch_.Scratch(kSegmentBytes));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, blocks_.Resolve(position));
  for (int round = 0; round < kBucketRoundsMax; ++round) {
    bool all = true;
    for (size_t i = kHeaderWords; i < kSegmentWords; ++i) {
      if ((segment[i] & kFrozen) != 0) continue;
      storage::Channel::Target word = at;
      word.address.offset += i * sizeof(uint64_t);
      batch_.CompareAndSwap(word, segment[i], segment[i] | kFrozen, &old[i]);
      all = false;
    }
    if (all) {
      batch_.Reset(kept);
      return absl::OkStatus();
    }
    NAM_RETURN_IF_ERROR(batch_.Execute());
    for (size_t i = kHeaderWords; i < kSegmentWords; ++i) {
      if ((segment[i] & kFrozen) != 0) continue;
      // Another client's change came first, perhaps another splitter's: then it is frozen.
      segment[i] = old[i] == segment[i] ? segment[i] | kFrozen : old[i];
    }
  }
  return HashIndexContended();
}

void HashIndex::Learn(uint32_t node, uint64_t children) {
  if (nodes_[node].children != 0) return;
  NAM_CHECK(children < UINT32_MAX);
  nodes_[node].children = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({.segment = static_cast<uint32_t>(children)});
  nodes_.push_back({.segment = static_cast<uint32_t>(children + 1)});
}

}  // namespace nam::txn
