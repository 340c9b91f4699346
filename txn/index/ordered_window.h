#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "txn/index/ordered_index.h"

namespace nam::txn {

/// The scratch memory of one operation, or of one round.
class OrderedIndex::Scratch {
 public:
  explicit Scratch(OrderedIndex& index) : batch_(index.batch_), kept_(batch_.scratch_used()) {
    for (uint64_t*& header : index.headers_) header = batch_.Word();
    index.old_ = batch_.Word();
    index.read_ = batch_.Scratch(index.options_.shape.node_bytes());
  }
  ~Scratch() {
    if (batch_.idle()) batch_.Reset(kept_);
  }

 private:
  storage::VerbBatch& batch_;
  const size_t kept_;
};

/// Changes or looks up many sorted entries of one level of an ordered index. It has up to kNodesAtOnce nodes
/// in work, and takes each round trip for all of them:
///
///     locate   the nodes that hold the next entries, by cached inner nodes
///     READ     header, node, header of each
///     merge    the node's entries with the new ones; if they do not fit, into up to kPiecesMax nodes
///     lock     by CAS, all that change
///     WRITE    new right nodes, the other copies ─▶ CAS of the headers: next version, unlocked
///
/// It holds several locks, but only for the rounds between its CAS and its flip, and waits for no other
/// client meanwhile: a node whose lock it does not get is READ again in the next round. So two windows cannot
/// wait for each other. A client that dies leaves as many locked nodes, each of them whole.
class OrderedIndex::Window {
 public:
  /// `tries`: rounds in a row without progress before it gives up.
  Window(OrderedIndex& index, uint32_t level, int tries) : index_(index), level_(level), tries_(tries) {}

  absl::Status Insert(std::span<Change> changes) { return Run(changes, Work::kInsert, nullptr); }
  absl::Status Remove(std::span<Change> changes) { return Run(changes, Work::kRemove, nullptr); }
  /// `wanted` is sorted, and is not changed.
  absl::Status Lookup(std::span<Change> wanted, const Visitor& visit) {
    return Run(wanted, Work::kLookup, &visit);
  }

 private:
  static constexpr size_t kNodesAtOnce = 16;
  static constexpr uint32_t kPiecesMax = 4;
  static constexpr size_t kEntriesAtOnce = 1'024;
  static constexpr size_t kBlocksAtOnce = kNodesAtOnce * kPiecesMax;

  enum class Work : uint8_t { kInsert, kRemove, kLookup };
  enum class Step : uint8_t {
    kRead,    // READ its node (again)
    kLock,    // the new copy is ready
    kLocked,  // nobody else changes the node
  };
  /// Consecutive entries that lie in one node.
  struct Part {
    uint64_t number = 0;  // the node's
    size_t begin = 0, end = 0;
    Wait wait;
    bool by_right = false;  // a right link led to the node
    uint64_t left = 0;      // from this one
    uint64_t gone = 0;      // the node right of it is gone, and its range is to be taken over; 0: none
    std::vector<std::byte> gone_node;  // that one

    // Of one round; pointers lead into scratch memory.
    Step step = Step::kRead;
    bool over = false;                  // nothing is left to do
    size_t taken = 0;                   // entries up to here are in the new copy
    uint64_t* headers[2] = {};          // as READ before and after the node
    uint64_t* old = nullptr;            // result of a CAS
    std::byte* read = nullptr;          // the node
    std::byte* copy = nullptr;          // the node's next copy
    std::vector<std::byte*> pieces;     // new nodes, if it is split
    std::vector<uint64_t> numbers;      // theirs
    std::vector<Separator> separators;  // in front of them; a root's first piece has none
  };
  struct Range {
    size_t begin = 0, end = 0;
  };

  absl::Status Run(std::span<Change> changes, Work work, const Visitor* visit);
  absl::Status Fill();
  absl::StatusOr<Part> Locate(Range range);
  const std::byte* Wanted(size_t place);
  absl::Status ReadNodes();
  absl::Status Examine(Part& part);
  absl::Status Watch(Part& part, uint64_t header);
  void GoRight(Part& part, const OrderedNode& node);
  absl::Status TakeOver(Part& part, const OrderedNode& node);
  void Visit(Part& part, const OrderedNode& node);
  absl::Status Merge(Part& part, const OrderedNode& node);
  void LeaveOut(Part& part, const OrderedNode& node);
  absl::Status Divide(Part& part, const OrderedNode& node, bool ascending);
  OrderedNode NewPiece(uint32_t level, std::byte*& at);
  absl::Status ChangeNodes();
  absl::Status LockNodes();
  absl::Status WriteNodes();
  absl::Status Flip(bool split);
  void Finish(Part& part);
  void GiveBack(Part& part);
  void Drop();

  uint64_t HeaderOf(const Part& part) const { return *part.headers[1]; }

  OrderedIndex& index_;
  const uint32_t level_;
  const int tries_;
  std::span<Change> changes_;
  Work work_ = Work::kInsert;
  const Visitor* visit_ = nullptr;
  std::vector<Range> ranges_;  // to be located, the next at the end
  std::vector<Part> parts_;
  size_t active_ = 0;      // of parts_, in this round
  bool progress_ = false;  // of this round
  int waits_ = 0;          // rounds in a row that met only locks
  std::vector<const std::byte*> merged_;
  OrderedEntry low_;  // Wanted's, of a look-up
};

}  // namespace nam::txn
