#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "execution/join/key_numbers.h"
#include "execution/join/probe_task.h"

namespace nam::execution {

/// Probes a hash table: the hash of all keys leads to a chain, whose rows' keys are compared.
class HashProbe : public ProbeTask {
 public:
  HashProbe(const RowBuild& build, const ProbeOptions& options, UnmatchedRows* unmatched);

 private:
  bool Start(TaskContext& context, const Chunk& in, Candidates& candidates) override;
  uint32_t Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) override;
  void Advance(Candidates& candidates) override;
  bool EvaluateKey(TaskContext& context, const Chunk& in, size_t key, Selection& tuples);
  void DropNulls(const Vector& vector, Selection& tuples);

  const HashTable& table_;
  const RowTable& rows_;
  const RowKeys& row_keys_;
  const Program& program_;
  Frame frame_;
  std::vector<std::unique_ptr<KeyNumbers>> texts_;  // for keys that are entries; nullptr for others
  std::vector<ProbeKey> keys_;                      // of the current input chunk
  // By position, for keys that are not vectors of numbers.
  std::vector<std::unique_ptr<int64_t[]>> numbers_;
  uint32_t tuples_[kChunkRows];  // those without a NULL key
  uint64_t hashes_[kChunkRows];
};

}  // namespace nam::execution
