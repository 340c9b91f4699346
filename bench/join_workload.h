#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/join_input.h"
#include "bench/workload.h"

namespace nam::bench {

struct JoinCase {
  uint64_t tuples = 0;  // per relation
  double selectivity = 1;
  double zipf = 0;
  uint64_t s_tuples = 0;  // 0: as many as R

  uint64_t TuplesOfS() const { return s_tuples == 0 ? tuples : s_tuples; }
};

/// R ⋈ S on their keys (bench/join_input.h), counted and summed.
class JoinWorkload : public Workload {
 public:
  struct Options {
    std::vector<JoinCase> cases;
    uint64_t seed = 1;
    int threads = 2;
  };
  explicit JoinWorkload(const Options& options) : options_(options) {}

  size_t cases() const override { return options_.cases.size(); }
  std::string TitleOf(size_t index) const override;
  Json SettingsOf(size_t index) const override;
  uint64_t TuplesOf(size_t index) const override { return at(index).tuples + at(index).TuplesOfS(); }
  std::string sql() const override;
  void Make(size_t index) override;
  std::vector<TupleTable> tables() const override;
  Rows Expected() const override;
  void Drop() override;

  const JoinCase& at(size_t index) const { return options_.cases[index]; }

 private:
  const Options options_;
  JoinInput input_;
};

}  // namespace nam::bench
