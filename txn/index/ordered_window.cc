#include "txn/index/ordered_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {

using ordered_header::IsLocked;
using ordered_header::Version;

// Errors leave numbers of blocks that nobody has seen to this client.
absl::Status OrderedIndex::Window::Run(std::span<Change> changes, Work work, const Visitor* visit) {
  changes_ = changes;
  work_ = work;
  visit_ = visit;
  ranges_.push_back({0, changes.size()});
  for (int idle = 0; idle < tries_;) {
    {
      const Scratch scratch(index_);
      progress_ = false;
      absl::Status status = Fill();
      if (status.ok() && parts_.empty()) return absl::OkStatus();
      if (status.ok()) status = ReadNodes();
      if (status.ok()) status = ChangeNodes();
      for (Part& part : parts_) GiveBack(part);
      NAM_RETURN_IF_ERROR(status);
      Drop();
    }
    idle = progress_ ? 0 : idle + 1;
    if (index_.go_on_ && !(parts_.empty() && ranges_.empty())) NAM_RETURN_IF_ERROR(index_.go_on_());
    // The parents of what it has split lead later rounds, and those of other clients, to the right node.
    if (level_ == 0 && index_.untold_.size() >= kNodesAtOnce) index_.TellParents();
  }
  return NodeContended();
}

// The scratch memory of one node: as READ, its next copy, and the pieces. Takes a quarter of what is left.
absl::Status OrderedIndex::Window::Fill() {
  const OrderedShape& shape = index_.options_.shape;
  const size_t node_bytes = shape.node_bytes() + (kPiecesMax + 1) * uint64_t{shape.payload_bytes} + 256;
  const size_t most = std::clamp<size_t>(index_.batch_.scratch_left() / 4 / node_bytes, 1, kNodesAtOnce);
  while (parts_.size() < most && !ranges_.empty()) {
    Range& next = ranges_.back();
    if (next.begin == next.end) {
      ranges_.pop_back();
      continue;
    }
    NAM_ASSIGN_OR_RETURN(Part part, Locate(next));
    next.begin = part.end;
    parts_.push_back(std::move(part));
  }
  active_ = std::min(parts_.size(), most);
  return absl::OkStatus();
}

/// The smallest entry of a look-up's key, or the entry itself.
const std::byte* OrderedIndex::Window::Wanted(size_t place) {
  const std::byte* const entry = changes_[place].entry;
  if (work_ != Work::kLookup) return entry;
  const size_t key_bytes = index_.options_.shape.key_bytes;
  std::memcpy(low_.data(), entry, key_bytes);
  std::memset(low_.data() + key_bytes, 0, sizeof(uint64_t));
  return low_.data();
}

/// The node that holds the first entries of the range, and how many of them, as far as its parent knows. A
/// root that this client has not READ yet is taken for the node itself; the READ tells.
absl::StatusOr<OrderedIndex::Window::Part> OrderedIndex::Window::Locate(Range range) {
  const OrderedShape& shape = index_.options_.shape;
  const size_t last = std::min(range.end, range.begin + kEntriesAtOnce);
  const auto whole = [&](uint64_t number) {
    Part part;
    part.number = number;
    part.begin = range.begin;
    part.end = last;
    return part;
  };
  uint64_t number = 0;
  for (int step = 0; step < kStepsMax; ++step) {
    const auto cached = index_.cache_.find(number);
    OrderedNode node(shape, nullptr);
    if (cached != index_.cache_.end() && OrderedNode(shape, cached->second.data()).level() > level_) {
      node = OrderedNode(shape, cached->second.data());
    } else if (number == 0 && cached == index_.cache_.end()) {
      return whole(0);
    } else {
      NAM_ASSIGN_OR_RETURN(const Found found, index_.Read(number));
      node = found.node;
    }
    if (node.level() < level_) return Damaged(number);
    const std::byte* const wanted = Wanted(range.begin);
    if (node.Beyond(wanted)) {
      index_.Missed(node);
      number = node.right();
      continue;
    }
    if (node.level() == level_) return whole(number);
    const uint32_t after = node.LowerBound(wanted);
    if (!node.Holds(after, wanted) && after == 0) return Damaged(number);
    const uint32_t child = node.Holds(after, wanted) ? after : after - 1;
    number = node.child(child);
    if (node.level() > level_ + 1) continue;
    const std::byte* const bound = child + 1 < node.count() ? node.entry(child + 1)
                                   : node.bounded()         ? node.high()
                                                            : nullptr;
    Part part = whole(number);
    for (part.end = range.begin + 1; part.end < last; ++part.end) {
      if (bound != nullptr && shape.Compare(Wanted(part.end), bound) >= 0) break;
    }
    return part;
  }
  return NodeContended();
}

absl::Status OrderedIndex::Window::ReadNodes() {
  storage::VerbBatch& batch = index_.batch_;
  const auto node_bytes = static_cast<uint32_t>(index_.options_.shape.node_bytes());
  for (Part& part : std::span(parts_).first(active_)) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at,
                         index_.blocks_.Resolve(index_.blocks_.PositionOf(part.number)));
    part.step = Step::kRead;
    part.taken = part.begin;
    for (uint64_t*& header : part.headers) header = batch.Word();
    part.old = batch.Word();
    part.read = batch.Scratch(node_bytes);
    batch.Read(at, reinterpret_cast<std::byte*>(part.headers[0]), sizeof(uint64_t));
    batch.Read(at, part.read, node_bytes);
    batch.Read(at, reinterpret_cast<std::byte*>(part.headers[1]), sizeof(uint64_t));
  }
  return batch.Execute();
}

absl::Status OrderedIndex::Window::ChangeNodes() {
  bool met_lock = false;
  for (Part& part : std::span(parts_).first(active_)) {
    NAM_RETURN_IF_ERROR(Examine(part));
    met_lock = met_lock || part.wait.header != 0;
  }
  NAM_RETURN_IF_ERROR(LockNodes());
  NAM_RETURN_IF_ERROR(WriteNodes());
  waits_ = progress_ || !met_lock ? 0 : waits_ + 1;
  if (waits_ > 0 && tries_ > 1) index_.PauseForLock(waits_);
  return absl::OkStatus();
}

// Prepares the node's next copy, visits what it holds, or finds out that the entries lie elsewhere.
absl::Status OrderedIndex::Window::Examine(Part& part) {
  const OrderedShape& shape = index_.options_.shape;
  const uint64_t header = HeaderOf(part), version = Version(header);
  if (Version(*part.headers[0]) != version) return absl::OkStatus();
  const OrderedNode node(shape,
                         part.read + ordered_header::kBytes + version % 2 * uint64_t{shape.payload_bytes});
  if (!node.Valid() || node.level() < level_) return Damaged(part.number);
  if (node.level() > level_) {  // the root has moved up
    index_.Cache({part.number, header, node});
    ranges_.push_back({part.begin, part.end});
    part.over = progress_ = true;
    return absl::OkStatus();
  }
  if (node.gone() && !part.by_right) {
    part.number = node.back();
    progress_ = true;
    return absl::OkStatus();
  }
  if (node.Beyond(Wanted(part.begin))) {
    if (part.gone != 0 && node.right() == part.gone)
      return IsLocked(header) ? Watch(part, header) : TakeOver(part, node);
    if (!node.gone()) index_.Missed(node);
    GoRight(part, node);
    return absl::OkStatus();
  }
  if (work_ == Work::kLookup) {
    if (node.gone()) index_.missed_.reset();
    Visit(part, node);
    return absl::OkStatus();
  }
  if (node.gone()) {  // left has not got its range yet
    index_.missed_.reset();
    part.gone_node.assign(node.data(), node.data() + node.used_bytes());
    part.gone = std::exchange(part.number, part.left);
    part.by_right = false;
    progress_ = true;
    return absl::OkStatus();
  }
  if (IsLocked(header)) return Watch(part, header);
  part.wait = {};
  if (work_ == Work::kInsert) return Merge(part, node);
  LeaveOut(part, node);
  return absl::OkStatus();
}

void OrderedIndex::Window::GoRight(Part& part, const OrderedNode& node) {
  part.left = std::exchange(part.number, node.right());
  part.by_right = progress_ = true;
}

// No entry is done by it.
absl::Status OrderedIndex::Window::TakeOver(Part& part, const OrderedNode& node) {
  const OrderedNode gone(index_.options_.shape, part.gone_node.data());
  OrderedNode next = NewPiece(level_, part.copy);
  next.SetRight(gone.right(), gone.bounded() ? gone.high() : nullptr);
  for (uint32_t i = 0; i < node.count(); ++i) next.Append(node.entry(i));
  part.step = Step::kLock;
  return absl::OkStatus();
}

// Separators that another client has left out are not worth waiting for.
absl::Status OrderedIndex::Window::Watch(Part& part, uint64_t header) {
  return tries_ > 1 ? index_.WatchLock(part.number, header, part.wait) : absl::OkStatus();
}

// The entries of a key may go on in the next node.
void OrderedIndex::Window::Visit(Part& part, const OrderedNode& node) {
  const OrderedShape& shape = index_.options_.shape;
  progress_ = true;
  while (part.begin < part.end && !node.Beyond(Wanted(part.begin))) {
    const std::byte* const key = changes_[part.begin].entry;
    uint32_t i = node.LowerBound(Wanted(part.begin));
    const auto same = [&](const std::byte* entry) { return std::memcmp(entry, key, shape.key_bytes) == 0; };
    for (; i < node.count() && same(node.entry(i)); ++i) (*visit_)(part.begin, shape.ValueOf(node.entry(i)));
    if (i == node.count() && node.bounded() && std::memcmp(node.high(), key, shape.key_bytes) <= 0) {
      GoRight(part, node);
      return;
    }
    ++part.begin;
  }
  if (part.begin < part.end) ranges_.push_back({part.begin, part.end});
  part.over = true;
}

OrderedNode OrderedIndex::Window::NewPiece(uint32_t level, std::byte*& at) {
  at = index_.batch_.Scratch(index_.options_.shape.payload_bytes);
  OrderedNode node(index_.options_.shape, at);
  node.Clear(level);
  return node;
}

void OrderedIndex::Window::LeaveOut(Part& part, const OrderedNode& node) {
  OrderedNode next = NewPiece(level_, part.copy);
  next.SetRight(node.right(), node.bounded() ? node.high() : nullptr);
  uint32_t i = 0;
  for (; part.taken < part.end && !node.Beyond(Wanted(part.taken)); ++part.taken) {
    Change& change = changes_[part.taken];
    const uint32_t at = node.LowerBound(change.entry);
    for (; i < at; ++i) next.Append(node.entry(i));
    // The first entry of an inner node stays: it stands for all before the second.
    change.fresh = node.Holds(at, change.entry) && (level_ == 0 || at > 0);
    if (change.fresh) i = at + 1;
  }
  for (; i < node.count(); ++i) next.Append(node.entry(i));
  NAM_CHECK(next.count() <= node.count());
  if (next.count() < node.count()) {
    part.step = Step::kLock;
  } else {
    Finish(part);
  }
}

// Entries that are there already stay as they are. Ascending inserts leave full nodes behind; others leave a
// quarter of each node free.
absl::Status OrderedIndex::Window::Merge(Part& part, const OrderedNode& node) {
  const OrderedShape& shape = index_.options_.shape;
  const uint32_t count = node.count(), capacity = node.capacity();
  const bool ascending =
      !node.bounded() && (count == 0 || shape.Compare(Wanted(part.begin), node.entry(count - 1)) > 0);
  const size_t most = kPiecesMax * (ascending ? capacity : capacity * 3 / 4);
  merged_.clear();
  uint32_t i = 0;
  bool any = false;
  while (part.taken < part.end && merged_.size() + (count - i) < most) {
    Change& change = changes_[part.taken];
    if (node.Beyond(change.entry)) break;
    while (i < count && shape.Compare(node.entry(i), change.entry) < 0) merged_.push_back(node.entry(i++));
    change.fresh = !node.Holds(i, change.entry);
    if (change.fresh) merged_.push_back(change.entry);
    any = any || change.fresh;
    ++part.taken;
  }
  while (i < count) merged_.push_back(node.entry(i++));
  if (!any) {
    Finish(part);
    return absl::OkStatus();
  }
  part.step = Step::kLock;
  if (merged_.size() > capacity) return Divide(part, node, ascending);
  OrderedNode next = NewPiece(level_, part.copy);
  next.SetRight(node.right(), node.bounded() ? node.high() : nullptr);
  for (const std::byte* const entry : merged_) next.Append(entry);
  return absl::OkStatus();
}

// The node keeps the first entries, and new nodes to its right take the rest. The root gets new nodes for all
// of them, and stays where it is. Takes memory before the lock: without memory the node stays as it is.
absl::Status OrderedIndex::Window::Divide(Part& part, const OrderedNode& node, bool ascending) {
  const OrderedShape& shape = index_.options_.shape;
  const size_t count = merged_.size(), full = node.capacity();
  const size_t share = ascending ? full : full * 3 / 4;
  const size_t pieces = std::max<size_t>(2, (count + share - 1) / share);
  const bool root = part.number == 0;
  const size_t more = std::min(kBlocksAtOnce, (changes_.size() - part.taken) / full);
  NAM_RETURN_IF_ERROR(index_.blocks_.Reserve(std::max(pieces - (root ? 0 : 1), more)));
  std::vector<OrderedNode> nodes;
  size_t at = 0;
  for (size_t piece = 0; piece < pieces; ++piece) {
    std::byte* bytes = nullptr;
    OrderedNode next = NewPiece(level_, bytes);
    const size_t even = count / pieces + (piece < count % pieces ? 1 : 0);
    for (size_t left = ascending ? std::min(full, count - at) : even; left > 0; --left)
      next.Append(merged_[at++]);
    nodes.push_back(next);
    if (piece == 0 && !root) {
      part.copy = bytes;
      continue;
    }
    part.pieces.push_back(bytes);
    NAM_ASSIGN_OR_RETURN(const uint64_t number, index_.blocks_.Allocate(1));
    part.numbers.push_back(number);
    if (piece == 0) continue;
    Separator& separator = part.separators.emplace_back(Separator{.level = level_ + 1});
    OrderedNode::Separate(shape, nodes[piece - 1], next, separator.entry.data());
    shape.SetChild(separator.entry.data(), number);
  }
  const auto number_of = [&](size_t piece) { return part.numbers[piece - (root ? 0 : 1)]; };
  for (size_t piece = 0; piece + 1 < pieces; ++piece)
    nodes[piece].SetRight(number_of(piece + 1), part.separators[piece].entry.data());
  nodes.back().SetRight(node.right(), node.bounded() ? node.high() : nullptr);
  if (!root) return absl::OkStatus();
  OrderedNode top = NewPiece(level_ + 1, part.copy);
  Separator first;  // smaller than all entries
  shape.SetChild(first.entry.data(), part.numbers[0]);
  top.Append(first.entry.data());
  for (const Separator& separator : part.separators) top.Append(separator.entry.data());
  return absl::OkStatus();
}

absl::Status OrderedIndex::Window::LockNodes() {
  for (Part& part : std::span(parts_).first(active_)) {
    if (part.step != Step::kLock) continue;
    const uint64_t header = HeaderOf(part);
    NAM_RETURN_IF_ERROR(index_.Swap(
        part.number, header, ordered_header::Locked(index_.options_.owner, Version(header)), part.old));
  }
  NAM_RETURN_IF_ERROR(index_.batch_.Execute());
  for (Part& part : std::span(parts_).first(active_)) {
    if (part.step == Step::kLock && *part.old == HeaderOf(part)) part.step = Step::kLocked;
  }
  return absl::OkStatus();
}

// A flip shares its queue pair with the WRITE of the copy, and so follows it. New nodes may lie on other
// servers than the header that leads to them.
absl::Status OrderedIndex::Window::WriteNodes() {
  bool any_split = false;
  for (Part& part : std::span(parts_).first(active_)) {
    if (part.step != Step::kLocked) continue;
    const OrderedShape& shape = index_.options_.shape;
    for (size_t i = 0; i < part.pieces.size(); ++i)
      NAM_RETURN_IF_ERROR(index_.AddWrite(part.numbers[i], 0, OrderedNode(shape, part.pieces[i])));
    NAM_RETURN_IF_ERROR(
        index_.AddWrite(part.number, Version(HeaderOf(part)) + 1, OrderedNode(shape, part.copy)));
    any_split = any_split || !part.pieces.empty();
  }
  NAM_RETURN_IF_ERROR(Flip(/*split=*/false));
  NAM_RETURN_IF_ERROR(index_.batch_.Execute());
  if (any_split) {
    NAM_RETURN_IF_ERROR(Flip(/*split=*/true));
    NAM_RETURN_IF_ERROR(index_.batch_.Execute());
  }
  absl::Status status;
  for (Part& part : std::span(parts_).first(active_)) {
    if (part.step != Step::kLocked) continue;
    if (*part.old == ordered_header::Locked(index_.options_.owner, Version(HeaderOf(part)))) {
      Finish(part);
    } else {
      status = absl::AbortedError("other clients took this client for dead, and took its lock back");
    }
  }
  return status;
}

absl::Status OrderedIndex::Window::Flip(bool split) {
  for (Part& part : std::span(parts_).first(active_)) {
    if (part.step != Step::kLocked || part.pieces.empty() == split) continue;
    const uint64_t version = Version(HeaderOf(part));
    NAM_RETURN_IF_ERROR(index_.Swap(part.number, ordered_header::Locked(index_.options_.owner, version),
                                    ordered_header::Unlocked(version + 1), part.old));
  }
  return absl::OkStatus();
}

// The entries up to `taken` are done. The next ones lie in one of the pieces, or right of the node.
void OrderedIndex::Window::Finish(Part& part) {
  for (size_t i = part.begin; i < part.taken; ++i) changes_[i].applied = changes_[i].fresh;
  progress_ = true;
  if (part.copy != nullptr && level_ + (part.number == 0 && !part.pieces.empty() ? 1 : 0) > 0)
    index_.Cache({part.number, 0, OrderedNode(index_.options_.shape, part.copy)});
  const bool emptied = work_ == Work::kRemove && level_ == 0 && part.number != 0 && part.taken > part.begin &&
                       OrderedNode(index_.options_.shape, part.copy).count() == 0;
  if (emptied && index_.emptied_.size() < kNodesAtOnce) {
    OrderedEntry& last = index_.emptied_.emplace_back();
    std::memcpy(last.data(), changes_[part.begin].entry, index_.options_.shape.entry_bytes());
  }
  const bool goes_on = part.taken < part.end && !part.pieces.empty();
  if (part.taken < part.end && !goes_on) ranges_.push_back({part.taken, part.end});
  uint64_t next = part.number;
  if (goes_on) {
    const auto holds = [&](const Separator& separator) {
      return index_.options_.shape.Compare(Wanted(part.taken), separator.entry.data()) >= 0;
    };
    const auto piece =
        static_cast<size_t>(std::partition_point(part.separators.begin(), part.separators.end(), holds) -
                            part.separators.begin());
    if (part.number == 0) next = part.numbers[piece];
    if (part.number != 0 && piece > 0) next = part.numbers[piece - 1];
  }
  // Told in their place: the root already leads to its pieces.
  if (part.number != 0) {
    for (Separator& separator : part.separators) index_.untold_.push_back(std::move(separator));
  }
  part.over = !goes_on;
  part.begin = part.taken;
  part.number = next;
  part.numbers.clear();  // they are nodes now
  part.step = Step::kRead;
}

// Nodes that were prepared in vain.
void OrderedIndex::Window::GiveBack(Part& part) {
  for (const uint64_t number : part.numbers) index_.blocks_.GiveBack(number);
  part.numbers.clear();
  part.pieces.clear();
  part.separators.clear();
  part.copy = nullptr;
}

void OrderedIndex::Window::Drop() {
  std::erase_if(parts_, [](const Part& part) { return part.over; });
}

}  // namespace nam::txn
