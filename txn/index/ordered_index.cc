#include "txn/index/ordered_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "txn/index/ordered_window.h"

namespace nam::txn {
namespace {

constexpr int kRepairsMax = 8;
/// Looks at a lock before the first pause.
constexpr int kEagerTries = 4;
constexpr int64_t kSleepUsMax = 500;

}  // namespace

using ordered_header::Version;

absl::Status OrderedIndex::NodeContended() {
  return absl::AbortedError(
      absl::StrFormat("a node of the index kept changing for %d rounds", kNodeRoundsMax));
}

absl::Status OrderedIndex::Damaged(uint64_t number) {
  return absl::DataLossError(absl::StrFormat("node %d of an ordered index is malformed", number));
}

OrderedIndex::OrderedIndex(storage::VerbBatch& batch, ExtentSpace space, OrderedIndexOptions options)
    : batch_(batch),
      options_(std::move(options)),
      blocks_(batch, std::move(space), options_.shape.node_bytes(), 1) {
  const OrderedShape& shape = options_.shape;
  NAM_CHECK(shape.key_bytes > 0 && shape.key_bytes <= kOrderedKeyBytesMax);
  // An inner node holds four entries, so that both halves of a split have one.
  NAM_CHECK(shape.payload_bytes % 64 == 0 && shape.payload_bytes >= 6 * (shape.entry_bytes() + 8) + 16);
  NAM_CHECK(options_.owner < uint32_t{1} << 31);
}

absl::StatusOr<bool> OrderedIndex::Insert(std::span<const std::byte> key, uint64_t value) {
  const OrderedEntry entry = options_.shape.Compose(key, value);
  Change change{.entry = entry.data()};
  NAM_RETURN_IF_ERROR(Insert({&change, 1}));
  return change.applied;
}

absl::StatusOr<bool> OrderedIndex::Remove(std::span<const std::byte> key, uint64_t value) {
  const OrderedEntry entry = options_.shape.Compose(key, value);
  Change change{.entry = entry.data()};
  NAM_RETURN_IF_ERROR(Remove({&change, 1}));
  return change.applied;
}

absl::Status OrderedIndex::Insert(std::span<Change> changes) {
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  NAM_RETURN_IF_ERROR(Window(*this, 0, kNodeRoundsMax).Insert(changes));
  TellParents();
  return absl::OkStatus();
}

absl::Status OrderedIndex::Remove(std::span<Change> changes) {
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  emptied_.clear();
  NAM_RETURN_IF_ERROR(Window(*this, 0, kNodeRoundsMax).Remove(changes));
  // An empty leaf that stays costs a READ of each scan that passes.
  for (const OrderedEntry& entry : std::exchange(emptied_, {})) Unlink(entry).IgnoreError();
  TellParents();
  return absl::OkStatus();
}

absl::Status OrderedIndex::Lookup(std::span<Change> wanted, const Visitor& visit) {
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  NAM_RETURN_IF_ERROR(Window(*this, 0, kNodeRoundsMax).Lookup(wanted, visit));
  TellParents();
  return absl::OkStatus();
}

absl::Status OrderedIndex::Lookup(std::span<const std::byte> key, std::vector<uint64_t>& values) {
  values.clear();
  Entries entries;
  for (Cursor cursor = Range(key, key); !cursor.done();) {
    NAM_RETURN_IF_ERROR(Next(cursor, SIZE_MAX, entries));
    values.insert(values.end(), entries.values.begin(), entries.values.end());
  }
  return absl::OkStatus();
}

OrderedIndex::Cursor OrderedIndex::Range(std::span<const std::byte> from,
                                         std::span<const std::byte> to) const {
  Cursor cursor;
  cursor.next_ = options_.shape.Compose(from, 0);
  cursor.last_ = options_.shape.Compose(to, ~uint64_t{0});
  cursor.done_ = options_.shape.Compare(cursor.next_.data(), cursor.last_.data()) > 0;
  return cursor;
}

OrderedIndex::Cursor OrderedIndex::ValuesOf(std::span<const std::byte> key, uint64_t first,
                                            uint64_t last) const {
  Cursor cursor;
  cursor.next_ = options_.shape.Compose(key, first);
  cursor.last_ = options_.shape.Compose(key, last);
  cursor.done_ = first > last;
  return cursor;
}

absl::Status OrderedIndex::Next(Cursor& cursor, size_t limit, Entries& entries) {
  entries.keys.clear();
  entries.values.clear();
  if (cursor.done_ || limit == 0) return absl::OkStatus();
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  const Scratch scratch(*this);
  NAM_RETURN_IF_ERROR(ReadLeaf(cursor, limit, entries));
  TellParents();
  return absl::OkStatus();
}

absl::Status OrderedIndex::ReadLeaf(Cursor& cursor, size_t limit, Entries& entries) {
  const OrderedShape& shape = options_.shape;
  NAM_ASSIGN_OR_RETURN(const Found found, Descend(cursor.next_, 0, cursor.node_));
  const OrderedNode& leaf = found.node;
  uint32_t i = leaf.LowerBound(cursor.next_.data());
  for (; i < leaf.count() && entries.values.size() < limit; ++i) {
    const std::byte* const entry = leaf.entry(i);
    if (shape.Compare(entry, cursor.last_.data()) > 0) break;
    entries.keys.insert(entries.keys.end(), entry, entry + shape.key_bytes);
    entries.values.push_back(shape.ValueOf(entry));
  }
  if (i < leaf.count()) {
    cursor.done_ = shape.Compare(leaf.entry(i), cursor.last_.data()) > 0;
    std::memcpy(cursor.next_.data(), leaf.entry(i), shape.entry_bytes());
    cursor.node_ = found.number;
  } else {
    cursor.done_ = !leaf.bounded() || shape.Compare(leaf.high(), cursor.last_.data()) > 0;
    std::memcpy(cursor.next_.data(), leaf.high(), shape.entry_bytes());
    cursor.node_ = leaf.right();
  }
  // The root may stop being a leaf.
  if (found.number == 0) cursor.node_ = 0;
  return absl::OkStatus();
}

/// Reads a whole node: while the version stands still, no client writes to the current copy.
absl::StatusOr<OrderedIndex::Found> OrderedIndex::Read(uint64_t number) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, blocks_.Resolve(blocks_.PositionOf(number)));
  const OrderedShape& shape = options_.shape;
  for (int round = 0; round < kNodeRoundsMax; ++round) {
    batch_.Read(at, reinterpret_cast<std::byte*>(headers_[0]), sizeof(uint64_t));
    batch_.Read(at, read_, static_cast<uint32_t>(shape.node_bytes()));
    batch_.Read(at, reinterpret_cast<std::byte*>(headers_[1]), sizeof(uint64_t));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    const uint64_t version = Version(*headers_[0]);
    if (Version(*headers_[1]) != version) continue;
    std::byte* const payload = read_ + ordered_header::kBytes + version % 2 * shape.payload_bytes;
    const Found found{number, *headers_[1], OrderedNode(shape, payload)};
    if (!found.node.Valid()) return Damaged(number);
    if (found.node.level() > 0) Cache(found);
    return found;
  }
  return NodeContended();
}

void OrderedIndex::Cache(const Found& found) {
  if (cache_.size() >= options_.cached_nodes_max) cache_.clear();
  cache_[found.number].assign(found.node.data(), found.node.data() + found.node.used_bytes());
}

void OrderedIndex::Missed(const OrderedNode& node) {
  missed_ = {.level = node.level() + 1};
  std::memcpy(missed_->entry.data(), node.high(), options_.shape.entry_bytes());
  options_.shape.SetChild(missed_->entry.data(), node.right());
}

/// Reads the node of `level` whose range holds `wanted`. `from`: a node of that level to start from instead
/// of the root, not right of the target.
absl::StatusOr<OrderedIndex::Found> OrderedIndex::Descend(const OrderedEntry& wanted, uint32_t level,
                                                          uint64_t from) {
  uint64_t number = from;
  bool by_right = false;
  for (int step = 0; step < kStepsMax; ++step) {
    Found found{number, 0, OrderedNode(options_.shape, nullptr)};
    const auto cached = cache_.find(number);
    // A cached root may have moved to a higher level; all others keep theirs.
    if (cached != cache_.end() && OrderedNode(options_.shape, cached->second.data()).level() > level) {
      found.node = OrderedNode(options_.shape, cached->second.data());
    } else {
      NAM_ASSIGN_OR_RETURN(found, Read(number));
    }
    const OrderedNode& node = found.node;
    if (node.level() < level) return Damaged(number);
    if (node.gone()) {
      missed_.reset();
      if (!by_right) {
        number = node.back();
        continue;
      }
    }
    if (node.Beyond(wanted.data())) {
      if (from == 0) Missed(node);
      by_right = true;
      number = node.right();
      continue;
    }
    if (node.level() == level) return found;
    const uint32_t after = node.LowerBound(wanted.data());
    const bool held = node.Holds(after, wanted.data());
    if (!held && after == 0) return Damaged(number);
    number = node.child(held ? after : after - 1);
    by_right = false;
  }
  return NodeContended();
}

absl::Status OrderedIndex::Swap(uint64_t number, uint64_t compare, uint64_t swap, uint64_t* old) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, blocks_.Resolve(blocks_.PositionOf(number)));
  batch_.CompareAndSwap(at, compare, swap, old);
  return absl::OkStatus();
}

/// Writes into the copy that is current at `version`.
absl::Status OrderedIndex::AddWrite(uint64_t number, uint64_t version, const OrderedNode& node) {
  const uint64_t copy = ordered_header::kBytes + version % 2 * options_.shape.payload_bytes;
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target to, blocks_.Resolve(blocks_.PositionOf(number) + copy));
  batch_.Write(node.data(), static_cast<uint32_t>(node.used_bytes()), to);
  return absl::OkStatus();
}

absl::Status OrderedIndex::WatchLock(uint64_t number, uint64_t header, Wait& wait) {
  const int64_t now_ns = batch_.channel().fabric().clock().NowNs();
  if (header != wait.header) wait = {.header = header, .since_ns = now_ns};
  const int64_t waited_us = (now_ns - wait.since_ns) / 1000;
  if (waited_us < options_.lock_patience_us) return absl::OkStatus();
  const uint32_t owner = ordered_header::Owner(header);
  const absl::Status gone = options_.confirm_gone ? options_.confirm_gone(owner)
                                                  : absl::UnavailableError("whether it lives is unknown");
  if (gone.ok()) {
    // The first client wins; either way the node is no longer locked like this.
    NAM_RETURN_IF_ERROR(Swap(number, header, ordered_header::Unlocked(Version(header) + 2), old_));
    return batch_.Execute();
  }
  if (waited_us < options_.lock_timeout_us) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat("client %d holds a node of the index for %d ms: %s",
                                                ordered_header::ClientOf(owner), waited_us / 1000,
                                                std::string(gone.message())));
}

void OrderedIndex::PauseForLock(int tries) {
  if (tries <= kEagerTries) return;
  Clock& clock = batch_.channel().fabric().clock();
  clock.SleepUntil(clock.After(std::min(kSleepUsMax, int64_t{1} << std::min(tries, 20))));
}

/// Inserts the separators of own splits, and of those that a descent has missed; that may make new ones.
/// Errors do not fail the operation: a node is found without its separator, and the next client that misses
/// it tells the parent. Only own splits are worth waiting for.
void OrderedIndex::TellParents() {
  for (int repairs = 0; !untold_.empty() || (missed_ && repairs < kRepairsMax); ++repairs) {
    std::vector<Separator> told;
    if (untold_.empty()) {
      told.push_back(*std::exchange(missed_, std::nullopt));
      TellLevel(told, 1).IgnoreError();
      continue;
    }
    const uint32_t level = untold_.front().level;
    const auto rest = std::stable_partition(
        untold_.begin(), untold_.end(), [&](const Separator& separator) { return separator.level != level; });
    told.assign(rest, untold_.end());
    untold_.erase(rest, untold_.end());
    if (!TellLevel(told, kNodeRoundsMax).ok()) untold_.clear();
  }
  missed_.reset();
}

absl::Status OrderedIndex::TellLevel(std::vector<Separator>& separators, int tries) {
  std::sort(separators.begin(), separators.end(), [&](const Separator& a, const Separator& b) {
    return options_.shape.Compare(a.entry.data(), b.entry.data()) < 0;
  });
  std::vector<Change> changes;
  for (const Separator& separator : separators) changes.push_back({.entry = separator.entry.data()});
  return Window(*this, separators[0].level, tries).Insert(changes);
}

}  // namespace nam::txn
