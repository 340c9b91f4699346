#include <algorithm>

#include "base/status_macros.h"
#include "bench/algorithm_command.h"
#include "bench/algorithm_report.h"
#include "bench/commands.h"
#include "bench/tuple_table.h"

namespace nam::bench {
namespace {

constexpr uint64_t kTuplesMax = uint64_t{1} << 30;  // keys of S that are not in R must be SQL integers, too
constexpr int kSimulatedThreads = 8;                // per server, as in figure 8a
constexpr uint64_t kTupleBytes = 8;

/// R ⋈ S by each algorithm and DuckDB, in turn.
class JoinBench final : public AlgorithmCommand {
 public:
  JoinBench()
      : AlgorithmCommand("join", "a join of two large relations by each algorithm, and by a peer",
                         JoinAlgorithms(), {"rrj", "rdma_ghj", "ghj", "ghj_bloom"}, kSimulatedThreads) {}

  std::vector<Option> Options() override {
    return WithAlgorithms(
        {{"--tuples", &tuples_, "total per relation: 16M,64M (16M, in sim 64M)"},
         {"--selectivity", &selectivity_,
          "matches for each tuple of S: 0.25,0.5,1 (1, in sim 0.25,0.5,0.75,1)"},
         Option::Within("--zipf", &zipf_, 0, 1.25, "skew of S's keys, 0 to 1.25 (0,1, in sim 0)")});
  }

 private:
  absl::Status MakeCases() override {
    if (tuples_.empty()) tuples_ = {simulated() ? CountLabel(kFigure8Tuples) : "16M"};
    if (selectivity_.empty())
      selectivity_ = simulated() ? std::vector<double>{0.25, 0.5, 0.75, 1} : std::vector<double>{1};
    if (zipf_.empty()) zipf_ = simulated() ? std::vector<double>{0} : std::vector<double>{0, 1};
    for (const double selectivity : selectivity_) {
      if (!(selectivity > 0 && selectivity <= 1))
        return absl::InvalidArgumentError("--selectivity is above 0, and 1 at most");
    }
    NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, ParseCounts("--tuples", tuples_, kTuplesMax));
    config_ = {{"tuples", sizes}};
    need_ = NeedOf(*std::max_element(sizes.begin(), sizes.end()));
    RemarkOnSizes(sizes);
    for (const uint64_t tuples : sizes) {
      for (const double selectivity : selectivity_) {
        for (const double zipf : zipf_)
          cases_.push_back(CaseOf(JoinCase{tuples, selectivity, zipf}, seed(), host_threads()));
      }
    }
    return absl::OkStatus();
  }
  MemoryNeed NeedOf(uint64_t tuples) const {
    constexpr uint64_t kDuckDbBytes = 28;  // the tables, and one hash table over R
    MemoryNeed need = JoinNeed(tuples);
    if (has_peer()) need.peer_bytes = 2 * tuples * kDuckDbBytes;
    return need;
  }
  Json Summarize(const std::vector<CaseFigures>& figures) const override {
    return simulated() ? Figure8aSummary(figures) : JoinSummary(figures);
  }

  // Empty: the defaults of the help text; in sim those of the redesign paper's figure 8a.
  std::vector<std::string> tuples_;  // per relation
  std::vector<double> selectivity_, zipf_;
};

}  // namespace

MemoryNeed JoinNeed(uint64_t tuples) {
  constexpr uint64_t kScratchBytes = 32;  // 12 sufficed; slabs of 64 MiB are rarely full
  constexpr uint64_t kQueryBytes = 16;    // hash tables of whole build sides, in each server
  const uint64_t both = 2 * tuples;
  return {.table_bytes = both * kTupleBytes * 9 / 4,
          .scratch_bytes = both * kScratchBytes,
          .query_bytes = both * kQueryBytes,
          .own_bytes = both * kTupleBytes};
}

std::unique_ptr<Command> JoinCommand() {
  return std::make_unique<JoinBench>();
}

}  // namespace nam::bench
