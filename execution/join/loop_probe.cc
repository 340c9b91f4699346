#include "execution/join/loop_probe.h"

#include <algorithm>

#include "plan/work_cost.h"

namespace nam::execution {

LoopProbe::LoopProbe(const RowBuild& build, const ProbeOptions& options, UnmatchedRows* unmatched)
    : ProbeTask(build, options, unmatched), rows_(build.rows()) {}

uint32_t LoopProbe::FirstFrom(uint32_t page) const {
  while (page < rows_.pages() && rows_.page_rows(page) == 0) ++page;
  return page < rows_.pages() ? page << rows_.layout().rows_shift() : kNullRow;
}

uint32_t LoopProbe::After(uint32_t row) const {
  const uint32_t shift = rows_.layout().rows_shift();
  const uint32_t page = row >> shift, place = row & ((1u << shift) - 1);
  return place + 1 < rows_.page_rows(page) ? row + 1 : FirstFrom(page + 1);
}

bool LoopProbe::Start(TaskContext& context, const Chunk& in, Candidates& candidates) {
  const Selection tuples = in.selection();
  context.Charge(tuples.count, plan::work_cost::kProbeRowPs);
  const uint32_t first = FirstFrom(0);
  candidates.count = first == kNullRow ? 0 : tuples.count;
  for (uint32_t i = 0; i < candidates.count; ++i) {
    candidates.positions[i] = tuples[i];
    candidates.rows[i] = first;
  }
  return true;
}

uint32_t LoopProbe::Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) {
  std::copy_n(candidates.positions, candidates.count, positions);
  std::copy_n(candidates.rows, candidates.count, rows);
  return candidates.count;
}

/// All candidates are at one row.
void LoopProbe::Advance(Candidates& candidates) {
  if (candidates.count == 0) return;
  const uint32_t next = After(candidates.rows[0]);
  if (next == kNullRow) candidates.count = 0;
  std::fill_n(candidates.rows, candidates.count, next);
}

}  // namespace nam::execution
