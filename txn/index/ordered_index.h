#pragma once

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
  /// Who this client is in the locks of nodes: ordered_header::OwnerOf.
  uint32_t owner = 0;
  /// A lock that stands for so long is asked about …
  int64_t lock_patience_us = 20'000;
  /// … and after so long what waits for it fails with UNAVAILABLE.
  int64_t lock_timeout_us = 2'000'000;
  /// OK: `owner` is gone, and nothing that it has posted changes memory any more. Then the index takes its
  /// lock back; anybody may. Else the lock is waited for. May be empty.
  std::function<absl::Status(uint32_t owner)> confirm_gone;
  /// Of inner nodes kept by this client.
  size_t cached_nodes_max = 8192;
};

/// A B-link tree in remote memory: fixed-length keys in the order of memcmp, each with any number of values.
///
///     node 0, the root ──▶ inner nodes ──right──▶ …        a node is a block of NumberedBlocks, see
///                             └──▶ leaf ──right──▶ leaf …  ordered_node.h; right ends hold no bound
///
///     change a node   READ ─ CAS lock ─ WRITE the other copy, CAS the header: next version, unlocked
///     split           READ ─ CAS lock ─ WRITE the new right node and the other copy ─ CAS the header
///                     then insert the separator into the parent, likewise
///
/// A node splits to the right, so who comes by an old path goes right. Whoever had to do so looks whether the
/// parent knows, and tells it if not: the splitter may have died. The root splits into two new nodes and
/// stays where it is. Nodes are never merged nor freed.
///
/// Readers never wait: header, node, header in one round trip, again if the version has changed meanwhile.
/// Inner nodes are cached, so Lookup costs one round trip and Insert and Remove three, when nothing is in the
/// way.
///
/// All zeroes are an empty index. One thread, whose batch it shares: as HashIndex. A client's memory that
/// nobody has seen is lost when it dies: a node at a time, two for a root.
class OrderedIndex {
 public:
  /// `space` starts with zeroes and belongs to the index alone. Create it once, before anybody uses it.
  OrderedIndex(storage::VerbBatch& batch, ExtentSpace space, OrderedIndexOptions options);
  absl::Status Create() { return blocks_.Create(); }
  ExtentSpace& space() { return blocks_.space(); }

  /// False: the pair was there.
  absl::StatusOr<bool> Insert(std::span<const std::byte> key, uint64_t value);
  /// False: the pair was not there.
  absl::StatusOr<bool> Remove(std::span<const std::byte> key, uint64_t value);
  /// All values of the key, ascending.
  absl::Status Lookup(std::span<const std::byte> key, std::vector<uint64_t>& values);

  /// Where a scan has got to.
  class Cursor {
   public:
    bool done() const { return done_; }

   private:
    friend class OrderedIndex;
    OrderedEntry next_{}, last_{};
    uint64_t node_ = 0;  // holds next_, or one right of it does; 0: not known
    bool done_ = false;
  };
  struct Entries {
    std::vector<std::byte> keys;  // one behind the other
    std::vector<uint64_t> values;
  };
  /// Keys from `from` to `to`, both included.
  Cursor Range(std::span<const std::byte> from, std::span<const std::byte> to) const;
  /// Replaces `entries` by the next ones, at most `limit` and one leaf's: as they were together at one
  /// moment. There may be none although the scan goes on.
  absl::Status Next(Cursor& cursor, size_t limit, Entries& entries);

 private:
  struct Found {  // a node as just read; its payload lies in scratch memory until the next READ of a node
    uint64_t number = 0;
    uint64_t header = 0;
    OrderedNode node;
  };
  struct Separator {  // what a parent should know
    OrderedEntry entry;
    uint64_t child = 0;
    uint32_t level = 0;  // of the parent
    bool own = false;    // this client made the split: worth waiting for
  };
  struct Wait {
    uint64_t header = 0;
    int64_t since_ns = 0;
    int tries = 0;
  };
  class Scratch;

  absl::StatusOr<bool> InsertEntry(const OrderedEntry& entry);
  absl::StatusOr<bool> RemoveEntry(const OrderedEntry& entry);
  absl::Status ReadLeaf(Cursor& cursor, size_t limit, Entries& entries);

  absl::StatusOr<Found> Read(uint64_t number);
  absl::StatusOr<Found> Descend(const OrderedEntry& wanted, uint32_t level, uint64_t from = 0);
  void Cache(const Found& found);

  absl::StatusOr<bool> Lock(const Found& found);
  absl::Status AwaitLock(const Found& found, Wait& wait);
  absl::Status Swap(uint64_t number, uint64_t compare, uint64_t swap, uint64_t* old);
  absl::Status AddWrite(uint64_t number, uint64_t version, const OrderedNode& node);
  absl::Status AddUnlock(const Found& found);
  absl::Status Unlocked(const Found& found) const;

  absl::StatusOr<bool> Put(const Found& found, const OrderedEntry& entry, uint64_t child);
  absl::StatusOr<bool> Split(const Found& found, const OrderedEntry& entry, uint64_t child);
  absl::StatusOr<bool> SplitRoot(const Found& found, const OrderedEntry& entry, uint64_t child);
  void TellParents();
  absl::Status TellParent(const Separator& separator);

  storage::VerbBatch& batch_;
  const OrderedIndexOptions options_;
  NumberedBlocks blocks_;
  std::unordered_map<uint64_t, std::vector<std::byte>> cache_;
  std::vector<Separator> untold_;    // of own splits
  std::optional<Separator> missed_;  // where the last descent had to go right
  // Scratch memory of the operation under way.
  uint64_t* headers_[2] = {};
  uint64_t* old_ = nullptr;
  std::byte* read_ = nullptr;
  std::byte* written_[3] = {};
};

}  // namespace nam::txn
