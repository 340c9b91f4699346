#include "tpch/small_tables.h"

#include <algorithm>

#include "dataset/counter_random.h"
#include "dataset/vocabulary.h"
#include "tpch/text_pool.h"

namespace nam::tpch {
namespace {

constexpr uint64_t kRegionKey = 1, kNationKey = 2;  // for their random words
constexpr uint32_t kCommentLengthMin = 31, kRegionCommentLengthMax = 115, kNationCommentLengthMax = 114;

}  // namespace

void FillRegion(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) {
  for (uint64_t row = first; row < first + count; ++row) {
    batch.column(0).numbers.push_back(static_cast<int64_t>(row));
    batch.column(1).strings.push_back(dataset::Regions()[row]);
    batch.column(2).strings.push_back(
        PoolText(dataset::RowRandom(kRegionKey, row).Word(0), kCommentLengthMin, kRegionCommentLengthMax));
  }
  batch.set_rows(count);
}

void FillNation(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch) {
  const auto regions = dataset::Regions();
  for (uint64_t row = first; row < first + count; ++row) {
    const dataset::Nation& nation = dataset::Nations()[row];
    batch.column(0).numbers.push_back(static_cast<int64_t>(row));
    batch.column(1).strings.push_back(nation.name);
    batch.column(2).numbers.push_back(std::find(regions.begin(), regions.end(), nation.region) -
                                      regions.begin());
    batch.column(3).strings.push_back(
        PoolText(dataset::RowRandom(kNationKey, row).Word(0), kCommentLengthMin, kNationCommentLengthMax));
  }
  batch.set_rows(count);
}

}  // namespace nam::tpch
