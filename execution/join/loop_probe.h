#pragma once

#include <cstdint>

#include "execution/join/probe_task.h"

namespace nam::execution {

/// Probes a build side without keys: each row of it is a candidate for each tuple, and conditions decide. A
/// round pairs one row of the build side with all tuples that still look for partners.
class LoopProbe : public ProbeTask {
 public:
  LoopProbe(const RowBuild& build, const ProbeOptions& options, UnmatchedRows* unmatched);

 private:
  bool Start(TaskContext& context, const Chunk& in, Candidates& candidates) override;
  uint32_t Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) override;
  void Advance(Candidates& candidates) override;
  /// The first row from this page on; kNullRow: none.
  uint32_t FirstFrom(uint32_t page) const;
  uint32_t After(uint32_t row) const;

  const RowTable& rows_;
};

}  // namespace nam::execution
