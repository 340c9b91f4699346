#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/index/numbered_blocks.h"
#include "txn/index/ordered_node.h"

namespace nam::txn {

struct OrderedIndexOptions {
  OrderedShape shape;
  /// Names this client in the locks of nodes: ordered_header::OwnerOf.
  uint32_t owner = 0;
  /// The index checks on a lock's owner after this time …
  int64_t lock_patience_us = 20'000;
  /// … and waiters fail with UNAVAILABLE after this one.
  int64_t lock_timeout_us = 2'000'000;
  /// OK: `owner` is gone, and nothing that it posted changes memory any more. Then any client may take back
  /// its lock. Otherwise the index waits for the lock. May be empty.
  std::function<absl::Status(uint32_t owner)> confirm_gone;
  /// Inner nodes that this client caches.
  size_t cached_nodes_max = 8192;
};

/// A B-link tree in remote memory: maps fixed-length keys, in memcmp order, to any number of values each.
///
///     node 0, the root ──▶ inner nodes ──right──▶ …        a node is a block of NumberedBlocks, see
///                             └──▶ leaf ──right──▶ leaf …  ordered_node.h; right ends hold no bound
///
///     change a node   READ ─ CAS lock ─ WRITE the other copy, CAS the header: next version, unlocked
///     split           READ ─ CAS lock ─ WRITE the new right nodes and the other copy ─ CAS the header
///                     then insert the separators into the parent, likewise
///
/// A node splits to the right, so a reader with an old path goes right. It then checks whether the parent
/// knows the right node, and tells it if not: the splitter may have died. The root splits into new nodes and
/// stays where it is.
///
/// A leaf that has become empty gives its range to its left neighbour, if both have one parent:
///
///     left [a, b) ──▶ empty [b, c) ──▶ right      lock both by CAS, or give back the one
///     left [a, b) ──▶ gone, back ──────▶ right    flip the empty leaf: back leads to left
///     left [a, c) ─────────────────────▶ right    flip left; take the separator out of the parent
///
/// A client that a parent leads to a gone leaf goes back, and then right as usual. If a right link leads it
/// there, left has not got the range yet: a reader takes the leaf for what it is, empty; a writer first gives
/// the range to left, since the client that began may be dead. The memory of a gone leaf stays as it is, so
/// that old paths and cached parents lead somewhere for ever: it is not used again before the index is
/// dropped. Inner nodes, and the first leaf of a parent, stay.
///
/// Readers never wait: they READ header, node, header in one round trip, and again if the version has changed
/// meanwhile. Inner nodes are cached, so without contention Lookup costs one round trip, and Insert and
/// Remove three. Many sorted entries share them (ordered_window.h): those of one node, and those of several
/// nodes.
///
/// All zeroes are an empty index. One thread, whose batch it shares, as in HashIndex. A client that ends
/// loses the nodes that it has taken and no other client has seen: some of its last window, 64 at most.
class OrderedIndex {
 public:
  /// `space` starts zeroed and belongs to the index alone. Create runs once, before any other use.
  OrderedIndex(storage::VerbBatch& batch, ExtentSpace space, OrderedIndexOptions options);
  absl::Status Create() { return blocks_.Create(); }
  ExtentSpace& space() { return blocks_.space(); }

  /// An entry that is to be added or removed.
  struct Change {
    const std::byte* entry = nullptr;  // the caller's: key and value as OrderedShape::Compose writes them
    bool applied = false;              // result: the index has changed
    bool fresh = false;                // the index's
    bool any_null = false;             // the caller's
  };
  const OrderedShape& shape() const { return options_.shape; }
  /// Called between rounds of many entries, when nothing is in flight; its error ends the operation.
  void SetGoOn(std::function<absl::Status()> go_on) { go_on_ = std::move(go_on); }

  /// Adds or removes many entries, sorted, each once. After an error `applied` tells which are done.
  absl::Status Insert(std::span<Change> changes);
  absl::Status Remove(std::span<Change> changes);
  /// Called with the place of a key among those wanted, and the value of an entry with this key.
  using Visitor = std::function<void(size_t place, uint64_t value)>;
  /// Visits all entries with the keys of `wanted`, which is sorted and has each key once: those of a key in
  /// their order, the keys in any.
  absl::Status Lookup(std::span<Change> wanted, const Visitor& visit);

  /// False if the pair existed.
  absl::StatusOr<bool> Insert(std::span<const std::byte> key, uint64_t value);
  /// False if the pair did not exist.
  absl::StatusOr<bool> Remove(std::span<const std::byte> key, uint64_t value);
  /// All values of the key, ascending.
  absl::Status Lookup(std::span<const std::byte> key, std::vector<uint64_t>& values);

  /// The position of a scan.
  class Cursor {
   public:
    bool done() const { return done_; }

   private:
    friend class OrderedIndex;
    OrderedEntry next_{}, last_{};
    uint64_t node_ = 0;  // holds next_, or a node right of it does; 0: unknown
    bool done_ = false;
  };
  struct Entries {
    std::vector<std::byte> keys;  // one after the other
    std::vector<uint64_t> values;
  };
  /// Scans the keys from `from` to `to`, both included.
  Cursor Range(std::span<const std::byte> from, std::span<const std::byte> to) const;
  /// Scans the values of a key from `first` to `last`, both included.
  Cursor ValuesOf(std::span<const std::byte> key, uint64_t first, uint64_t last) const;
  /// Replaces `entries` with the next ones, at most `limit`, all from one leaf at one moment. May return none
  /// before the scan is over.
  absl::Status Next(Cursor& cursor, size_t limit, Entries& entries);

 private:
  struct Found {  // a node as just read; its payload lies in scratch memory until the next READ of a node
    uint64_t number = 0;
    uint64_t header = 0;
    OrderedNode node;
  };
  struct Separator {  // a separator that a parent should hold
    std::array<std::byte, sizeof(OrderedEntry) + sizeof(uint64_t)> entry = {};  // and the child's number
    uint32_t level = 0;                                                         // of the parent
  };
  struct Wait {
    uint64_t header = 0;  // 0: it was not locked
    int64_t since_ns = 0;
  };
  class Scratch;
  class Window;

  /// Bounds one descent: levels, and nodes passed to the right.
  static constexpr int kStepsMax = 10'000;
  /// Each round but the last loses to another client that progressed.
  static constexpr int kNodeRoundsMax = 10'000;
  static absl::Status NodeContended();
  static absl::Status Damaged(uint64_t number);

  absl::Status ReadLeaf(Cursor& cursor, size_t limit, Entries& entries);

  absl::StatusOr<Found> Read(uint64_t number);
  absl::StatusOr<Found> Descend(const OrderedEntry& wanted, uint32_t level, uint64_t from = 0);
  void Cache(const Found& found);
  /// Notes that a parent did not lead to the node right of this one.
  void Missed(const OrderedNode& node);

  /// Notes how long a node has been locked, and takes back the lock if its owner is gone.
  absl::Status WatchLock(uint64_t number, uint64_t header, Wait& wait);
  void PauseForLock(int tries);
  absl::Status Swap(uint64_t number, uint64_t compare, uint64_t swap, uint64_t* old);
  absl::Status AddWrite(uint64_t number, uint64_t version, const OrderedNode& node);

  /// Unlinks the leaf that holds the range of an entry, if it is empty and nobody is in the way.
  absl::Status Unlink(const OrderedEntry& within);
  absl::Status UnlinkBehind(const Found& left, const Found& leaf, std::byte* separator);
  void TellParents();
  absl::Status TellLevel(std::vector<Separator>& separators, int tries);

  storage::VerbBatch& batch_;
  const OrderedIndexOptions options_;
  NumberedBlocks blocks_;
  std::unordered_map<uint64_t, std::vector<std::byte>> cache_;
  std::vector<Separator> untold_;      // of own splits
  std::vector<OrderedEntry> emptied_;  // entries that were the last of their leaves
  std::optional<Separator> missed_;    // where the last descent had to go right
  std::function<absl::Status()> go_on_;
  // Scratch memory of the current operation.
  uint64_t* headers_[2] = {};
  uint64_t* old_ = nullptr;
  std::byte* read_ = nullptr;
};

}  // namespace nam::txn
