#pragma once

#include <cstdint>

#include "execution/join/domain_table.h"
#include "execution/join/key_numbers.h"
#include "execution/join/probe_task.h"

namespace nam::execution {

/// Probes a table of a domain's keys: a key leads to its rows without a comparison.
class DomainProbe : public ProbeTask {
 public:
  DomainProbe(const BuildSide& build, const DomainTable& table, const ProbeOptions& options,
              UnmatchedRows* unmatched);

 private:
  bool Start(TaskContext& context, const Chunk& in, Candidates& candidates) override;
  uint32_t Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) override;
  void Advance(Candidates& candidates) override;
  void StartFromRows(const Column& column, uint32_t rows, Candidates& candidates);

  const ProbeOptions& options_;
  const DomainTable& table_;
  const Program& program_;
  KeyNumbers keys_;
  uint32_t at_[kChunkRows];
};

}  // namespace nam::execution
