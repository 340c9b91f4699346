#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/commands.h"
#include "bench/query_command.h"
#include "bench/query_report.h"
#include "bench/query_work.h"
#include "partitioner/loader.h"
#include "storage/block.h"
#include "terminal/units.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {
namespace {

constexpr QueryContender kOurs[] = {QueryContender::kInPlace, QueryContender::kCopy};

/// The measurements of one size, over all rounds.
struct SizeTimes {
  uint64_t block_bytes = 0;
  std::vector<QueryTimes> queries;
  std::vector<double> load_rows_per_s;

  std::optional<double> GeomeanMs(QueryContender contender) const {
    std::vector<double> medians;
    for (const QueryTimes& query : queries) {
      if (const auto median = query.median_ms(contender)) medians.push_back(*median);
    }
    return GeometricMean(medians);
  }
};

class BlockSizeBench final : public QueryClusterCommand {
 public:
  BlockSizeBench()
      : QueryClusterCommand(SsbBenchmark(), "blocks",
                            "the Star Schema Benchmark over blocks of several sizes") {}

  std::vector<Option> Options() override {
    return WithCluster(
        {{"--sizes", &sizes_, "only these: 16KiB to 1MiB"},
         {"--rounds", &rounds_, "rounds, in which all sizes take turns", {{1, 1'000}}},
         {"--repeat", &repeat_, "runs of each query per round, after a warm-up", {{1, 1'000}}}});
  }
  absl::Status Check() override {
    for (const std::string& text : sizes_) {
      NAM_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
      if (bytes == 0 || bytes > storage::kMaxBlockBytes)
        return absl::InvalidArgumentError(
            absl::StrCat("--sizes are 1 to ", storage::kMaxBlockBytes, " bytes"));
      times_.push_back({.block_bytes = bytes});
    }
    return CheckCluster(/*parameters_seed=*/0);
  }

  absl::StatusOr<Report> Measure(Run& run) override {
    const auto measure = [&](catalog::Attachment& attachment, const ClusterOptions&) -> absl::Status {
      for (int round = 0; round < rounds_; ++round) {
        for (SizeTimes& times : times_) NAM_RETURN_IF_ERROR(Take(run, attachment, times));
      }
      return absl::OkStatus();
    };
    // A table is replaced only once the new one is complete.
    NAM_RETURN_IF_ERROR(run.InCluster(ClusterFor(2 * TableMemory()), measure));
    Report report{.remarks = "Geometric means of the queries' medians, in milliseconds.\n",
                  .correct = same_rows_};
    for (const SizeTimes& size : times_) report.rows.push_back(RowOf(size));
    const uint64_t usual = partitioner::LoadOptions().block_bytes;
    report.summary = {{"default_block_bytes", usual}, {"same_rows", same_rows_}};
    for (const QueryContender contender : kOurs)
      SetIf(report.summary, absl::StrCat(Name(contender), "_best_over_default"), BestOver(usual, contender));
    return report;
  }

 private:
  absl::Status Take(Run& run, catalog::Attachment& attachment, SizeTimes& times) {
    QueryWork turn(run, {.benchmark = &benchmark_,
                         .source = source_,
                         .queries = queries_,
                         .repeat = repeat_,
                         .block_bytes = times.block_bytes,
                         .replace = true,
                         .loop = false});
    NAM_RETURN_IF_ERROR(turn.RunOn(attachment));
    times.load_rows_per_s.push_back(turn.load_rows_per_second());
    if (times.queries.empty()) times.queries.resize(turn.times().size());
    if (answers_.empty()) answers_ = turn.answers();
    for (size_t q = 0; q < turn.times().size(); ++q) {
      Add(turn.times()[q], times.queries[q]);
      same_rows_ = same_rows_ && SameRows(turn.answers()[q], answers_[q]);
    }
    return absl::OkStatus();
  }

  void Add(const QueryTimes& turn, QueryTimes& all) {
    same_rows_ = same_rows_ && turn.wrong.empty();
    all.id = turn.id;
    for (size_t c = 0; c < turn.times_ms.size(); ++c)
      all.times_ms[c].insert(all.times_ms[c].end(), turn.times_ms[c].begin(), turn.times_ms[c].end());
  }

  static Json RowOf(const SizeTimes& size) {
    Json row{{"block_bytes", size.block_bytes},
             {"load_rows_per_s", std::llround(Median(size.load_rows_per_s))}};
    for (const QueryContender contender : kOurs)
      SetIf(row, absl::StrCat(Name(contender), "_ms_geomean"), size.GeomeanMs(contender));
    for (const QueryTimes& query : size.queries) {
      for (const QueryContender contender : kOurs)
        SetIf(row["queries"][query.id], absl::StrCat(Name(contender), "_ms"), query.median_ms(contender));
    }
    return row;
  }

  /// How much slower the size is than the best one; empty if it was not measured.
  std::optional<double> BestOver(uint64_t block_bytes, QueryContender contender) const {
    std::optional<double> best, own;
    for (const SizeTimes& size : times_) {
      const auto ms = size.GeomeanMs(contender);
      if (!ms.has_value()) continue;
      if (!best.has_value() || *ms < *best) best = ms;
      if (size.block_bytes == block_bytes) own = ms;
    }
    return RatioOf(best, own);
  }

  std::vector<std::string> sizes_ = {"16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "1MiB"};
  int rounds_ = 3;  // in which all sizes take turns
  int repeat_ = 3;  // runs of each query per round
  std::vector<SizeTimes> times_;
  std::vector<QueryWork::Rows> answers_;  // by query, from the first turn
  bool same_rows_ = true;
};

}  // namespace

std::unique_ptr<Command> BlocksCommand() {
  return std::make_unique<BlockSizeBench>();
}

}  // namespace nam::bench
