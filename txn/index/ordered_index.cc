#include "txn/index/ordered_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

/// Bounds one descent: levels, and nodes passed to the right.
constexpr int kStepsMax = 10'000;
/// Each round but the last loses to another client that progressed.
constexpr int kNodeRoundsMax = 10'000;
constexpr int kRepairsMax = 8;
/// Looks at a lock before the first pause.
constexpr int kEagerTries = 4;
constexpr int64_t kSleepUsMax = 500;

absl::Status NodeContended() {
  return absl::AbortedError(
      absl::StrFormat("a node of the index kept changing for %d rounds", kNodeRoundsMax));
}
absl::Status Damaged(uint64_t number) {
  return absl::DataLossError(absl::StrFormat("node %d of an ordered index is malformed", number));
}

}  // namespace

using ordered_header::IsLocked;
using ordered_header::Version;

/// The scratch memory of one operation.
class OrderedIndex::Scratch {
 public:
  explicit Scratch(OrderedIndex& index) : batch_(index.batch_), kept_(batch_.scratch_used()) {
    for (uint64_t*& header : index.headers_) header = Word();
    index.old_ = Word();
    index.read_ = batch_.Scratch(index.options_.shape.node_bytes());
    for (std::byte*& written : index.written_) written = batch_.Scratch(index.options_.shape.payload_bytes);
  }
  ~Scratch() {
    if (batch_.idle()) batch_.Reset(kept_);
  }

 private:
  uint64_t* Word() { return batch_.Word(); }
  storage::VerbBatch& batch_;
  const size_t kept_;
};

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
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  const Scratch scratch(*this);
  NAM_ASSIGN_OR_RETURN(const bool inserted, InsertEntry(options_.shape.Compose(key, value)));
  TellParents();
  return inserted;
}

absl::StatusOr<bool> OrderedIndex::InsertEntry(const OrderedEntry& entry) {
  Wait wait;
  for (int round = 0; round < kNodeRoundsMax; ++round) {
    NAM_ASSIGN_OR_RETURN(const Found found, Descend(entry, 0));
    if (found.node.Holds(found.node.LowerBound(entry), entry)) return false;
    if (IsLocked(found.header)) {
      NAM_RETURN_IF_ERROR(AwaitLock(found, wait));
      continue;
    }
    NAM_ASSIGN_OR_RETURN(const bool done, Put(found, entry, 0));
    if (done) return true;
  }
  return NodeContended();
}

absl::StatusOr<bool> OrderedIndex::Remove(std::span<const std::byte> key, uint64_t value) {
  if (batch_.channel().broken()) return absl::FailedPreconditionError("the channel is broken");
  const Scratch scratch(*this);
  NAM_ASSIGN_OR_RETURN(const bool removed, RemoveEntry(options_.shape.Compose(key, value)));
  TellParents();
  return removed;
}

absl::StatusOr<bool> OrderedIndex::RemoveEntry(const OrderedEntry& entry) {
  Wait wait;
  for (int round = 0; round < kNodeRoundsMax; ++round) {
    NAM_ASSIGN_OR_RETURN(const Found found, Descend(entry, 0));
    const uint32_t at = found.node.LowerBound(entry);
    if (!found.node.Holds(at, entry)) return false;
    if (IsLocked(found.header)) {
      NAM_RETURN_IF_ERROR(AwaitLock(found, wait));
      continue;
    }
    NAM_ASSIGN_OR_RETURN(const bool locked, Lock(found));
    if (!locked) continue;
    OrderedNode next(options_.shape, written_[0]);
    next.CopyFrom(found.node);
    next.Erase(at);
    NAM_RETURN_IF_ERROR(AddWrite(found.number, Version(found.header) + 1, next));
    NAM_RETURN_IF_ERROR(AddUnlock(found));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    NAM_RETURN_IF_ERROR(Unlocked(found));
    return true;
  }
  return NodeContended();
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
  uint32_t i = leaf.LowerBound(cursor.next_);
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

/// Reads the node of `level` whose range holds `wanted`. `from`: a node of that level to start from instead
/// of the root, not right of the target.
absl::StatusOr<OrderedIndex::Found> OrderedIndex::Descend(const OrderedEntry& wanted, uint32_t level,
                                                          uint64_t from) {
  uint64_t number = from;
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
    if (node.Beyond(wanted)) {
      if (from == 0) {
        missed_ = {.child = node.right(), .level = node.level() + 1};
        std::memcpy(missed_->entry.data(), node.high(), options_.shape.entry_bytes());
      }
      number = node.right();
      continue;
    }
    if (node.level() == level) return found;
    const uint32_t after = node.LowerBound(wanted);
    if (!node.Holds(after, wanted) && after == 0) return Damaged(number);
    number = node.child(node.Holds(after, wanted) ? after : after - 1);
  }
  return NodeContended();
}

absl::Status OrderedIndex::Swap(uint64_t number, uint64_t compare, uint64_t swap, uint64_t* old) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, blocks_.Resolve(blocks_.PositionOf(number)));
  batch_.CompareAndSwap(at, compare, swap, old);
  return absl::OkStatus();
}

/// True: the node is as found, and only this client changes it now.
absl::StatusOr<bool> OrderedIndex::Lock(const Found& found) {
  NAM_RETURN_IF_ERROR(
      Swap(found.number, found.header, ordered_header::Locked(options_.owner, Version(found.header)), old_));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return *old_ == found.header;
}

/// Writes into the copy that is current at `version`.
absl::Status OrderedIndex::AddWrite(uint64_t number, uint64_t version, const OrderedNode& node) {
  const uint64_t copy = ordered_header::kBytes + version % 2 * options_.shape.payload_bytes;
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target to, blocks_.Resolve(blocks_.PositionOf(number) + copy));
  batch_.Write(node.data(), static_cast<uint32_t>(node.used_bytes()), to);
  return absl::OkStatus();
}

/// Makes the other copy current. Shares a queue pair with that copy's WRITE, and so follows it.
absl::Status OrderedIndex::AddUnlock(const Found& found) {
  const uint64_t version = Version(found.header);
  return Swap(found.number, ordered_header::Locked(options_.owner, version),
              ordered_header::Unlocked(version + 1), old_);
}
absl::Status OrderedIndex::Unlocked(const Found& found) const {
  if (*old_ == ordered_header::Locked(options_.owner, Version(found.header))) return absl::OkStatus();
  return absl::AbortedError("other clients took this client for dead, and took its lock back");
}

absl::Status OrderedIndex::AwaitLock(const Found& found, Wait& wait) {
  Clock& clock = batch_.channel().fabric().clock();
  const int64_t now_ns = clock.NowNs();
  if (found.header != wait.header) wait = {.header = found.header, .since_ns = now_ns};
  const int64_t waited_us = (now_ns - wait.since_ns) / 1000;
  if (waited_us >= options_.lock_patience_us) {
    const uint32_t owner = ordered_header::Owner(found.header);
    const absl::Status gone = options_.confirm_gone ? options_.confirm_gone(owner)
                                                    : absl::UnavailableError("whether it lives is unknown");
    if (gone.ok()) {
      // The first client wins; either way the node is no longer locked like this.
      NAM_RETURN_IF_ERROR(
          Swap(found.number, found.header, ordered_header::Unlocked(Version(found.header) + 2), old_));
      return batch_.Execute();
    }
    if (waited_us >= options_.lock_timeout_us) {
      return absl::UnavailableError(absl::StrFormat("client %d holds a node of the index for %d ms: %s",
                                                    ordered_header::ClientOf(owner), waited_us / 1000,
                                                    std::string(gone.message())));
    }
  }
  if (++wait.tries > kEagerTries) {
    clock.SleepUntil(clock.After(std::min(kSleepUsMax, int64_t{1} << std::min(wait.tries, 20))));
  }
  return absl::OkStatus();
}

/// False: another client was first, and nothing has happened.
absl::StatusOr<bool> OrderedIndex::Put(const Found& found, const OrderedEntry& entry, uint64_t child) {
  if (!found.node.HasRoom()) {
    return found.number == 0 ? SplitRoot(found, entry, child) : Split(found, entry, child);
  }
  NAM_ASSIGN_OR_RETURN(const bool locked, Lock(found));
  if (!locked) return false;
  OrderedNode next(options_.shape, written_[0]);
  next.CopyFrom(found.node);
  next.Insert(next.LowerBound(entry), entry, child);
  NAM_RETURN_IF_ERROR(AddWrite(found.number, Version(found.header) + 1, next));
  NAM_RETURN_IF_ERROR(AddUnlock(found));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(Unlocked(found));
  return true;
}

absl::StatusOr<bool> OrderedIndex::Split(const Found& found, const OrderedEntry& entry, uint64_t child) {
  // Takes memory before the lock: without memory the node stays as it is.
  NAM_ASSIGN_OR_RETURN(const uint64_t right, blocks_.Allocate(1));
  NAM_ASSIGN_OR_RETURN(const bool locked, Lock(found));
  if (!locked) {
    blocks_.GiveBack(right);
    return false;
  }
  OrderedNode lower(options_.shape, written_[0]);
  OrderedNode upper(options_.shape, written_[1]);
  const OrderedEntry separator = found.node.Split(found.node.LowerBound(entry), entry, child, lower, upper);
  lower.SetRight(right, separator.data());
  upper.SetRight(found.node.right(), found.node.bounded() ? found.node.high() : nullptr);
  NAM_RETURN_IF_ERROR(AddWrite(right, 0, upper));
  NAM_RETURN_IF_ERROR(AddWrite(found.number, Version(found.header) + 1, lower));
  // The right node may lie on another server than the header that leads to it.
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(AddUnlock(found));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(Unlocked(found));
  untold_.push_back({.entry = separator, .child = right, .level = upper.level() + 1, .own = true});
  return true;
}

absl::StatusOr<bool> OrderedIndex::SplitRoot(const Found& found, const OrderedEntry& entry, uint64_t child) {
  NAM_ASSIGN_OR_RETURN(const uint64_t left, blocks_.Allocate(1));
  absl::StatusOr<uint64_t> right = blocks_.Allocate(1);
  absl::StatusOr<bool> locked = right.ok() ? Lock(found) : right.status();
  if (!locked.ok() || !*locked) {
    blocks_.GiveBack(left);
    if (right.ok()) blocks_.GiveBack(*right);
    return locked;
  }
  OrderedNode lower(options_.shape, written_[0]);
  OrderedNode upper(options_.shape, written_[1]);
  OrderedNode root(options_.shape, written_[2]);
  const OrderedEntry separator = found.node.Split(found.node.LowerBound(entry), entry, child, lower, upper);
  lower.SetRight(*right, separator.data());
  upper.SetRight(0, nullptr);
  root.Clear(found.node.level() + 1);
  root.Insert(0, OrderedEntry{}, left);
  root.Insert(1, separator, *right);
  NAM_RETURN_IF_ERROR(AddWrite(left, 0, lower));
  NAM_RETURN_IF_ERROR(AddWrite(*right, 0, upper));
  NAM_RETURN_IF_ERROR(AddWrite(0, Version(found.header) + 1, root));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(AddUnlock(found));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_RETURN_IF_ERROR(Unlocked(found));
  return true;
}

/// Inserts the separators of own splits, and of those that a descent has missed; that may make new ones.
/// Errors do not fail the operation: a node is found without its separator, and the next client that misses
/// it tells the parent.
void OrderedIndex::TellParents() {
  for (int repairs = 0; !untold_.empty() || (missed_ && repairs < kRepairsMax); ++repairs) {
    Separator separator;
    if (!untold_.empty()) {
      separator = untold_.back();
      untold_.pop_back();
    } else {
      separator = *std::exchange(missed_, std::nullopt);
    }
    if (!TellParent(separator).ok()) untold_.clear();
  }
  missed_.reset();
}

absl::Status OrderedIndex::TellParent(const Separator& separator) {
  Wait wait;
  for (int round = 0; round < kNodeRoundsMax; ++round) {
    NAM_ASSIGN_OR_RETURN(const Found found, Descend(separator.entry, separator.level));
    if (found.node.Holds(found.node.LowerBound(separator.entry), separator.entry)) return absl::OkStatus();
    if (IsLocked(found.header)) {
      if (!separator.own) return absl::OkStatus();
      NAM_RETURN_IF_ERROR(AwaitLock(found, wait));
      continue;
    }
    NAM_ASSIGN_OR_RETURN(const bool done, Put(found, separator.entry, separator.child));
    if (done || !separator.own) return absl::OkStatus();
  }
  return NodeContended();
}

}  // namespace nam::txn
