#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "txn/index/ordered_index.h"
#include "txn/index/ordered_window.h"

/// Unlinks empty leaves: the protocol is drawn in ordered_index.h.
namespace nam::txn {

using ordered_header::Locked;
using ordered_header::Unlocked;
using ordered_header::Version;

absl::Status OrderedIndex::Unlink(const OrderedEntry& within) {
  const Scratch scratch(*this);
  const OrderedShape& shape = options_.shape;
  NAM_ASSIGN_OR_RETURN(const Found parent, Descend(within, 1));
  const uint32_t after = parent.node.LowerBound(within.data());
  const uint32_t place = parent.node.Holds(after, within.data()) ? after : after - 1;
  if (place == 0 || place >= parent.node.count()) return absl::OkStatus();
  OrderedEntry separator;
  std::memcpy(separator.data(), parent.node.entry(place), shape.entry_bytes());
  const uint64_t numbers[] = {parent.node.child(place - 1), parent.node.child(place)};
  // Read's scratch memory holds one node at a time.
  std::vector<std::byte> bytes[2];
  Found found[2] = {{0, 0, OrderedNode(shape, nullptr)}, {0, 0, OrderedNode(shape, nullptr)}};
  for (int i = 0; i < 2; ++i) {
    NAM_ASSIGN_OR_RETURN(found[i], Read(numbers[i]));
    bytes[i].assign(found[i].node.data(), found[i].node.data() + found[i].node.used_bytes());
    found[i].node = OrderedNode(shape, bytes[i].data());
    if (ordered_header::IsLocked(found[i].header) || found[i].node.gone() || found[i].node.level() != 0)
      return absl::OkStatus();
  }
  const OrderedNode& leaf = found[1].node;
  if (leaf.count() > 0 || !leaf.bounded() || found[0].node.right() != numbers[1]) return absl::OkStatus();
  return UnlinkBehind(found[0], found[1], separator.data());
}

// Waits for nobody while it holds a lock.
absl::Status OrderedIndex::UnlinkBehind(const Found& left, const Found& leaf, std::byte* separator) {
  const Found* const nodes[] = {&left, &leaf};
  uint64_t* const old[] = {batch_.Word(), batch_.Word()};
  const auto swap = [&](int i, uint64_t from, uint64_t to) {
    return Swap(nodes[i]->number, from, to, old[i]);
  };
  const auto locked = [&](int i) { return Locked(options_.owner, Version(nodes[i]->header)); };
  for (int i = 0; i < 2; ++i) NAM_RETURN_IF_ERROR(swap(i, nodes[i]->header, locked(i)));
  NAM_RETURN_IF_ERROR(batch_.Execute());
  const bool got[] = {*old[0] == left.header, *old[1] == leaf.header};
  if (!got[0] || !got[1]) {
    for (int i = 0; i < 2; ++i) {
      if (got[i]) NAM_RETURN_IF_ERROR(swap(i, locked(i), nodes[i]->header));
    }
    return batch_.Execute();
  }
  for (int i = 1; i >= 0; --i) {
    OrderedNode next(options_.shape, batch_.Scratch(options_.shape.payload_bytes));
    next.Clear(0);
    next.SetRight(leaf.node.right(), leaf.node.high());
    if (i == 1) next.SetGone(left.number);
    for (uint32_t j = 0; j < nodes[i]->node.count(); ++j) next.Append(nodes[i]->node.entry(j));
    const uint64_t version = Version(nodes[i]->header) + 1;
    NAM_RETURN_IF_ERROR(AddWrite(nodes[i]->number, version, next));
    NAM_RETURN_IF_ERROR(swap(i, locked(i), Unlocked(version)));
    // The empty leaf gets no entry any more before the left one may.
    NAM_RETURN_IF_ERROR(batch_.Execute());
    if (*old[i] != locked(i)) return absl::AbortedError("other clients took this client's lock back");
  }
  Change change{.entry = separator};
  return Window(*this, 1, 1).Remove({&change, 1});
}

}  // namespace nam::txn
