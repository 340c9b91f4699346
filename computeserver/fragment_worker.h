#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "computeserver/filter.h"
#include "computeserver/fragment.h"
#include "computeserver/row_selector.h"

namespace nam::computeserver {

/// One thread of a fragment, with everything it writes to: its view of the columns, compiled filters and
/// keys, one batch per level of the pipeline, and its sink.
class FragmentWorker {
 public:
  explicit FragmentWorker(Fragment& fragment);
  /// The whole work of the thread, in both phases.
  absl::Status Run();
  Sink& sink() { return *sink_; }
  const std::vector<uint32_t>& claimed() const { return claimed_; }
  uint32_t claims_made() const { return claims_made_; }

 private:
  absl::Status Build(storage::Channel& channel, size_t join);
  absl::Status BuildFromMulticast(storage::Channel& channel, uint32_t part);
  absl::Status ReceiveBuilds(storage::MulticastStream& stream, std::vector<Fragment::PipelineTotals>& totals);
  absl::Status BuildBlock(size_t join, const storage::BlockView& block, Fragment::PipelineTotals& totals);
  absl::Status Insert(size_t join, uint64_t first_row);
  absl::Status InsertUnique(size_t join, const storage::BlockView& block);
  /// Until all threads that matter have come as far.
  absl::Status Await(fabric::Event& event);
  absl::Status AwaitBuilt();
  /// The next chain of the pipeline's table; of the driving one it is claimed from all servers.
  std::optional<storage::ChainStart> NextChain(size_t pipeline);
  /// Its position.
  storage::ChainStart ChainOf(int table, const partitioner::Piece& piece) const;
  std::optional<uint32_t> ClaimPiece();
  uint64_t PiecesToClaim();
  KeyLookup LookupOf(size_t join) const;
  absl::Status Stream(
      storage::Channel& channel, size_t pipeline, int table,
      const std::function<absl::Status(const storage::BlockView&, Fragment::PipelineTotals&)>& body);
  /// False if the block's zones say that no row passes.
  bool TakeBlock(int table, const storage::BlockView& block, Fragment::PipelineTotals& totals);
  absl::Status ProbeBlock(const storage::BlockView& block, Fragment::PipelineTotals& totals);
  /// Tuples of the rows in `batch` with their partners by driving keys; Push for those that pass.
  absl::Status PushDriving(Batch& batch);
  void SetSources(int table, const storage::BlockView& block);
  RowSelector& selector(int table) { return *selectors_[static_cast<size_t>(table)]; }
  /// The selected rows of the block go through the filters that are not on codes.
  absl::Status Filtered(int table, Batch& batch);
  uint32_t SelectedRows(int table, uint32_t* rows);
  absl::Status Push(size_t level, Batch& batch);
  absl::Status Probe(size_t join, const Batch& batch);
  absl::Status ProbeColumn(size_t join, const Batch& batch);
  absl::Status ProbeKeys(size_t join, const Batch& batch, const int64_t* keys, const uint8_t* valid);
  absl::Status KeysOf(VectorExpression& expression, const Batch& batch);
  absl::Status Emit(size_t join, const Batch& batch, uint32_t count);
  /// Reports computation to the fabric's clock, in whole nanoseconds.
  void Charge(uint64_t rows, int64_t row_ps);

  struct Join {
    std::unique_ptr<VectorExpression> probe_key;  // unless it is a plain column
    std::unique_ptr<VectorExpression> build_key;
    std::vector<std::unique_ptr<Filter>> residuals;
  };

  Fragment& fragment_;
  const QueryShape& shape_;
  ColumnSpace columns_;
  std::vector<std::vector<std::unique_ptr<Filter>>> filters_;  // per table; those on codes first
  std::vector<std::unique_ptr<RowSelector>> selectors_;        // per table; the driving one's after the build
  std::vector<Join> joins_;
  std::vector<Batch> levels_;
  Batch build_batch_;
  std::unique_ptr<Sink> sink_;
  std::optional<ChannelPool::Lease> claims_channel_;  // with a counter
  std::optional<storage::WorkClaims> claims_;
  uint64_t claim_next_ = 0, claim_end_ = 0;  // claimed and not begun: positions in the shape's pieces
  uint32_t claims_made_ = 0;
  uint64_t claims_left_ = 0;         // of so many pieces that were left one was claimed
  int64_t claimed_ns_ = 0;           // when
  std::vector<uint32_t> claimed_;    // begun
  std::vector<uint32_t> selected_;   // scratch: rows of a block
  std::vector<uint32_t> positions_;  // scratch: of the tuples that found a partner
  std::vector<uint32_t> partners_;   // scratch: rows of the build side
  std::vector<int64_t> keys_;        // scratch
  std::vector<uint8_t> valid_;       // scratch: key is not NULL
  uint64_t pushed_rows_ = 0;
  Clock& clock_;
  int64_t uncharged_ps_ = 0;
};

}  // namespace nam::computeserver
