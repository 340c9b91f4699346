#include "execution/aggregate/stored_groups.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/status_macros.h"
#include "execution/aggregate/charge_groups.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

PageHeader HeaderOf(std::span<const std::byte> page) {
  PageHeader header;
  std::memcpy(&header, page.data(), sizeof(header));
  return header;
}

/// Calls body(chunk) with the rows of a page, up to kChunkRows at a time.
template <typename Body>
absl::Status ForChunks(std::span<const std::byte> page, const RowLayout& layout,
                       std::vector<uint32_t>& places, Chunk& chunk, Body&& body) {
  for (size_t i = 0; i < layout.fields(); ++i) {
    chunk.columns()[i] = {.kind = Column::Kind::kField,
                          .width = layout.field(i).width,
                          .physical = layout.field(i).physical,
                          .base = page.data(),
                          .rows = places.data(),
                          .field = &layout.field(i)};
  }
  const uint32_t rows = HeaderOf(page).rows;
  for (uint32_t first = 0; first < rows; first += kChunkRows) {
    const uint32_t count = std::min(kChunkRows, rows - first);
    std::iota(places.begin(), places.begin() + count, first);
    chunk.SelectAll(count);
    NAM_RETURN_IF_ERROR(body(chunk));
  }
  return absl::OkStatus();
}

}  // namespace

StoredGroups::StoredGroups(AggregateSink& sink, MemoryBudget& budget)
    : plan_(sink.plan()),
      set_(sink.NewSet()),
      groups_(plan_.partial_schema().size(), 0),
      pairs_(2, 0),
      places_(kChunkRows),
      group_of_(budget) {
  NAM_CHECK(plan_.input() == AggregateInput::kGroups);
}

absl::Status StoredGroups::Add(TaskContext& context, std::span<const std::byte> stored, uint64_t attempt) {
  group_count_ = 0;
  while (!stored.empty()) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    NAM_ASSIGN_OR_RETURN(const std::span<const std::byte> page, plan_.partial_layout().TakePage(stored));
    NAM_RETURN_IF_ERROR(AddPage(context, page, attempt));
  }
  return absl::OkStatus();
}

absl::Status StoredGroups::AddPage(TaskContext& context, std::span<const std::byte> page, uint64_t attempt) {
  const uint32_t digest = HeaderOf(page).layout;
  for (size_t a = 0, distinct = 0; a < plan_.size(); ++a) {
    const GroupKeys* const pairs = plan_.aggregate(a).pairs.get();
    if (pairs == nullptr) continue;
    if (pairs->layout().digest() == digest) {
      NAM_RETURN_IF_ERROR(pairs->layout().CheckPage(page, attempt));
      return AddPairs(context, page, distinct);
    }
    ++distinct;
  }
  NAM_RETURN_IF_ERROR(plan_.partial_layout().CheckPage(page, attempt));
  return AddGroups(context, page);
}

absl::Status StoredGroups::AddGroups(TaskContext& context, std::span<const std::byte> page) {
  return ForChunks(page, plan_.partial_layout(), places_, groups_, [&](const Chunk& chunk) -> absl::Status {
    const uint32_t count = chunk.selection().count;
    context.Charge(count, plan::work_cost::kCombineGroupPs);
    NAM_RETURN_IF_ERROR(set_.Consume(chunk));
    ChargeGroups(context, plan_, set_, count);
    if (plan_.has_distinct()) {
      NAM_RETURN_IF_ERROR(group_of_.Grow(group_count_ + count));
      std::copy_n(set_.group_of(), count, group_of_.data() + group_count_);
    }
    group_count_ += count;
    groups_taken_ += count;
    return absl::OkStatus();
  });
}

absl::Status StoredGroups::AddPairs(TaskContext& context, std::span<const std::byte> page, size_t distinct) {
  DistinctValues& values = set_.distinct(distinct);
  return ForChunks(page, values.keys().layout(), places_, pairs_, [&](const Chunk& chunk) {
    context.Charge(chunk.selection().count, plan::work_cost::kCombineGroupPs);
    return values.ConsumePairs(chunk, group_of_.data(), group_count_);
  });
}

}  // namespace nam::execution
