#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "bench/algorithm_command.h"
#include "bench/algorithm_report.h"
#include "bench/commands.h"
#include "bench/tuple_table.h"

namespace nam::bench {
namespace {

constexpr uint64_t kTuplesMax = uint64_t{1} << 30;  // keys of S that are not in R must be SQL integers, too
constexpr uint64_t kTupleBytes = 8;
constexpr int kJoinThreads = 8, kAggregateThreads = 10;  // per server in sim, as in figures 8a and 8b

/// R ⋈ S by each algorithm and DuckDB, in turn.
class JoinBench final : public AlgorithmCommand {
 public:
  JoinBench()
      : AlgorithmCommand("join", "a join of two large relations by each algorithm, and by a peer",
                         JoinAlgorithms(), {"rrj", "rdma_ghj", "ghj", "ghj_bloom"}, kJoinThreads) {}

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

/// Groups one table with each algorithm and DuckDB in turn.
class AggregateBench final : public AlgorithmCommand {
 public:
  AggregateBench()
      : AlgorithmCommand("aggregate", "groups of a large relation by each algorithm, and by a peer",
                         AggregateAlgorithms(), {"rdma", "dist"}, kAggregateThreads) {}

  std::vector<Option> Options() override {
    return WithAlgorithms({{"--tuples", &tuples_, "tuples of the table (128M, in sim 64M)"},
                           {"--groups", &groups_, "distinct groups (1,1K,1M,16M,64M)"},
                           Option::OneOf("--keys", &keys_, {"dense", "spread"},
                                         "dense: 1 to the number of groups; or spread over 31 bits")});
  }

 private:
  absl::Status MakeCases() override {
    if (tuples_.empty()) tuples_ = {simulated() ? CountLabel(kFigure8Tuples) : "128M"};
    NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, ParseCounts("--tuples", tuples_, kTuplesMax));
    NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ParseCounts("--groups", groups_, kTuplesMax));
    config_ = {{"tuples", sizes}, {"groups", numbers}};
    uint64_t most_groups = 0;
    for (const uint64_t tuples : sizes) most_groups = std::max(most_groups, AddCases(tuples, numbers));
    if (cases_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--groups=", CountLabel(numbers[0]),
                                                     " are more than --tuples=", CountLabel(sizes[0])));
    }
    RemarkOnSizes(sizes);
    need_ = NeedOf(*std::max_element(sizes.begin(), sizes.end()), most_groups);
    return absl::OkStatus();
  }

  /// A remark lists the numbers of groups that are greater than that of the tuples. Returns the greatest of
  /// the others, or 0.
  uint64_t AddCases(uint64_t tuples, const std::vector<uint64_t>& numbers) {
    uint64_t most_groups = 0;
    std::vector<std::string> skipped;
    for (const uint64_t groups : numbers) {
      if (groups <= tuples) {
        cases_.push_back(CaseOf(AggregateCase{tuples, groups, keys_ == "dense"}, seed(), host_threads()));
        most_groups = std::max(most_groups, groups);
      } else {
        skipped.push_back(CountLabel(groups));
      }
    }
    if (skipped.empty()) return most_groups;
    remarks_.push_back(absl::StrCat("Skipped: ", absl::StrJoin(skipped, ", "),
                                    " groups, which are more than ", CountLabel(tuples), " tuples."));
    return most_groups;
  }

  MemoryNeed NeedOf(uint64_t tuples, uint64_t groups) const {
    constexpr uint64_t kScratchBytes = 48;  // a state per tuple at worst: 40 sufficed, 32 did not
    constexpr uint64_t kQueryBytes = 16;
    constexpr uint64_t kDuckDbGroupBytes = 72;
    // Tables of this many cases exist at a time: memory is freed within a second of DROP TABLE, and a virtual
    // case takes less.
    const uint64_t tables = simulated() ? 5 : 2;
    return {.table_bytes = tuples * kTupleBytes * 9 / 8 * tables,
            .scratch_bytes = tuples * kScratchBytes,
            .query_bytes = groups * kQueryBytes,
            .own_bytes = tuples * kTupleBytes * 2,  // loading holds them twice
            .peer_bytes = has_peer() ? tuples * kTupleBytes + groups * kDuckDbGroupBytes : 0};
  }
  Json Summarize(const std::vector<CaseFigures>& figures) const override {
    return simulated() ? Figure8bSummary(figures) : AggregateSummary(figures);
  }

  std::vector<std::string> tuples_;  // empty: 128M; in sim those of the redesign paper's figure 8b
  std::vector<std::string> groups_ = {"1", "1K", "1M", "16M", "64M"};
  std::string keys_ = "dense";
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

std::unique_ptr<Command> AggregateCommand() {
  return std::make_unique<AggregateBench>();
}

}  // namespace nam::bench
