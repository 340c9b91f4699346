#include "execution/join/domain_probe.h"

#include <algorithm>

#include "execution/row_field.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Appends the tuple at `position` of its chunk, if its key is at `at`.
inline void AppendAt(const DomainTable& table, uint32_t at, uint32_t position, uint32_t& count,
                     Candidates& candidates) {
  const uint32_t head = table.Head(at);
  candidates.positions[count] = position;
  candidates.rows[count] = head - 1;
  count += head != 0;
}

}  // namespace

DomainProbe::DomainProbe(const BuildSide& build, const DomainTable& table, const ProbeOptions& options,
                         UnmatchedRows* unmatched)
    : ProbeTask(build, options, unmatched),
      options_(options),
      table_(table),
      program_(*options.keys),
      keys_(program_, 0, nullptr) {}

bool DomainProbe::Start(TaskContext& context, const Chunk& in, Candidates& candidates) {
  const Selection tuples = in.selection();
  context.Charge(tuples.count, plan::work_cost::kProbeRowPs);
  const std::optional<uint32_t> slot = program_.slot_of(0);
  if (slot.has_value() && null_keys() == nullptr) {
    const Column& column = in.column(*slot);
    if (column.kind == Column::Kind::kField && !column.field->nullable() && tuples.positions == nullptr &&
        options_.rows_ascend) {
      StartFromRows(column, tuples.count, candidates);
      return true;
    }
  }
  const std::optional<uint32_t> keys = keys_.Evaluate(in, tuples, null_keys());
  if (!keys.has_value()) {
    context.Fail(keys_.error());
    return false;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < *keys; ++i) {
    const uint32_t at = table_.PositionOf(table_.domain().NumberOf(keys_.numbers()[i]));
    AppendAt(table_, at, keys_.positions()[i], count, candidates);
  }
  candidates.count = count;
  return true;
}

/// The common case: consecutive rows at rest, as they came from a part.
void DomainProbe::StartFromRows(const Column& column, uint32_t rows, Candidates& candidates) {
  const RowField& key = *column.field;
  const std::byte* const row = key.RowOf(column.base, column.IndexOf(0));
  table_.PositionsOf(key, row, rows, at_);
  if (!options_.keys_in_domain) {
    WithStored(key.width, [&](auto zero) {
      const uint64_t first = table_.domain().NumberOf(key.base), size = table_.domain().size();
      for (uint32_t i = 0; i < rows; ++i) {
        const auto stored = key.Stored<decltype(zero)>(row + size_t{i} * key.stride);
        if (first + static_cast<uint64_t>(stored) >= size) at_[i] = table_.nowhere();
      }
    });
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < rows; ++i) AppendAt(table_, at_[i], i, count, candidates);
  candidates.count = count;
}

uint32_t DomainProbe::Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) {
  std::copy_n(candidates.positions, candidates.count, positions);
  std::copy_n(candidates.rows, candidates.count, rows);
  return candidates.count;
}

void DomainProbe::Advance(Candidates& candidates) {
  uint32_t count = 0;
  for (uint32_t i = 0; table_.chained() && i < candidates.count; ++i) {
    const uint32_t next = table_.Next(candidates.rows[i]);
    candidates.positions[count] = candidates.positions[i];
    candidates.rows[count] = next - 1;
    count += next != 0;
  }
  candidates.count = count;
}

}  // namespace nam::execution
