#pragma once

#include <cstdint>

#include "execution/join/key_numbers.h"
#include "execution/join/probe_task.h"

namespace nam::execution {

/// Probes a direct table: a key leads to its rows without a comparison.
class DirectProbe : public ProbeTask {
 public:
  DirectProbe(const BuildSide& build, const DirectTable& table, const TextKeys* texts,
              const ProbeOptions& options, UnmatchedRows* unmatched);

 private:
  bool Start(TaskContext& context, const Chunk& in, Candidates& candidates) override;
  uint32_t Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) override;
  void Advance(Candidates& candidates) override;
  void StartFromNumbers(uint32_t keys, Candidates& candidates) const;
  void StartFromCodes(const Column& column, Selection tuples, Candidates& candidates) const;

  const DirectTable& table_;
  const Program& program_;
  const bool text_;
  KeyNumbers keys_;
};

}  // namespace nam::execution
