#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/join_input.h"
#include "bench/workload.h"

namespace nam::bench {

struct AggregateCase {
  uint64_t tuples = 0;
  uint64_t groups = 0;  // at most `tuples`
};

/// A table of values, grouped by keys and summed. Every group has the same number of tuples, or one more, in
/// random places. Keys are dense, from 1 to the number of groups as in the papers, or random 31-bit numbers.
class AggregateWorkload final : public Workload {
 public:
  struct Options {
    std::vector<AggregateCase> cases;
    bool dense = true;
    uint64_t seed = 1;
    int threads = 2;
  };
  explicit AggregateWorkload(const Options& options) : options_(options) {}

  size_t cases() const override { return options_.cases.size(); }
  std::string TitleOf(size_t index) const override;
  Json SettingsOf(size_t index) const override;
  uint64_t TuplesOf(size_t index) const override { return options_.cases[index].tuples; }
  std::string sql() const override;
  void Make(size_t index) override;
  std::vector<TupleTable> tables() const override;
  Rows Expected() const override;
  void Drop() override;

  const AggregateCase& at(size_t index) const { return options_.cases[index]; }

 private:
  const Options options_;
  size_t made_ = 0;  // the current case
  std::vector<JoinTuple> tuples_;
};

}  // namespace nam::bench
