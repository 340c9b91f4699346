#include "bench/query_work.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "dataset/tbl_writer.h"
#include "localcluster/state_directory.h"
#include "terminal/units.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {

absl::Status QueryWork::RunOn(catalog::Attachment& attachment) {
  fabric::Fabric& fabric = attachment.fabric();
  const auto generator = options_.benchmark->make_generator(
      {.scale_factor = options_.source.scale_factor, .seed = options_.source.seed});
  NAM_RETURN_IF_ERROR(LoadOurs(attachment));
  if (options_.duckdb != nullptr) NAM_RETURN_IF_ERROR(LoadDuckDb(fabric, *generator));
  if (options_.loop) NAM_RETURN_IF_ERROR(LoadLoop(fabric, *generator));
  if (fabric.capabilities().in_place) contenders_.push_back(QueryContender::kInPlace);
  contenders_.push_back(QueryContender::kCopy);
  if (options_.duckdb != nullptr) contenders_.push_back(QueryContender::kDuckDb);
  if (options_.loop) contenders_.push_back(QueryContender::kLoop);
  NAM_ASSIGN_OR_RETURN(const auto read_bound, ReadBound::Open(attachment, options_.threads));
  read_bound_ = read_bound.get();
  contenders_.push_back(QueryContender::kRead);

  NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
  run_.OnCancel([&] {
    session->Cancel();
    if (options_.duckdb != nullptr) options_.duckdb->Cancel();
  });
  absl::Status status = MeasureAll(*session);
  run_.OnCancel();
  run_.progress().Clear();
  return status;
}

void QueryWork::Say(const std::string& text) {
  run_.progress().Clear();
  if (run_.progress().shown()) std::fprintf(stderr, "%s\n", text.c_str());
}

dataset::WorkOptions QueryWork::WorkOptions(const std::string& doing) {
  return {.threads = options_.source.threads,
          .progress = run_.progress().For(doing),
          .cancelled = &run_.cancelled()};
}

absl::Status QueryWork::LoadOurs(catalog::Attachment& attachment) {
  partitioner::LoadOptions load{.replace = options_.replace, .threads = options_.source.threads};
  if (options_.block_bytes != 0) load.block_bytes = static_cast<uint32_t>(options_.block_bytes);
  NAM_ASSIGN_OR_RETURN(const auto loaded, LoadBenchmark(attachment, *options_.benchmark, options_.source,
                                                        load, run_.progress(), run_.cancelled()));
  const std::string& name = options_.benchmark->largest_table;
  const auto largest = std::find_if(loaded.begin(), loaded.end(),
                                    [&](const LoadedTable& table) { return table.name == name; });
  if (largest == loaded.end()) return absl::InternalError(absl::StrCat(name, " was not loaded"));
  load_rows_per_second_ = static_cast<double>(largest->rows) / std::max(largest->seconds, 1e-9);
  Say(absl::StrFormat("Loaded %s: %s rows in %.1f s, %s rows/s, generated on the way.", name,
                      FormatCount(largest->rows), largest->seconds,
                      FormatCount(static_cast<uint64_t>(load_rows_per_second_))));
  return absl::OkStatus();
}

absl::Status QueryWork::LoadDuckDb(fabric::Fabric& fabric, const dataset::Generator& generator) {
  std::vector<size_t> tables(generator.tables().size());
  std::iota(tables.begin(), tables.end(), size_t{0});
  const auto written = dataset::WriteTbl(fabric, generator, tables, options_.tbl_directory,
                                         {.work = WorkOptions("writing for DuckDB:")});
  if (!written.ok()) return written.status();
  run_.progress().Show("DuckDB loads the tables");
  run_.OnCancel([this] { options_.duckdb->Cancel(); });
  const auto seconds =
      LoadIntoDuckDb(*options_.duckdb, options_.tbl_directory, generator, options_.duckdb_sorted);
  run_.OnCancel();
  RemoveTree(options_.tbl_directory);
  if (!seconds.ok()) return seconds.status();
  duckdb_load_seconds_ = *seconds;
  Say(absl::StrFormat("DuckDB %s loaded the same rows from .tbl files in %.1f s.", options_.duckdb->version(),
                      *seconds));
  return absl::OkStatus();
}

absl::Status QueryWork::LoadLoop(fabric::Fabric& fabric, const dataset::Generator& generator) {
  NAM_ASSIGN_OR_RETURN(loop_, SsbLoop::Load(fabric, generator, WorkOptions("for the hand-written loop:")));
  return absl::OkStatus();
}

absl::Status QueryWork::MeasureAll(session::Session& session) {
  for (const BenchmarkQuery& query : options_.queries) {
    NAM_ASSIGN_OR_RETURN(QueryTimes times, Measure(session, query));
    times_.push_back(std::move(times));
  }
  return absl::OkStatus();
}

bool QueryWork::Same(const Rows& a, const Rows& b) const {
  const int digits = options_.benchmark->peer_digits;
  return digits == 0 ? SameRows(a, b) : SameRowsTo(digits, a, b);
}

absl::StatusOr<std::string> QueryWork::PlanOf(session::Session& session, const BenchmarkQuery& query) {
  const auto explained = session.Execute(absl::StrCat("EXPLAIN ", query.sql));
  if (!explained.ok()) return explained.status();
  std::string plan;
  for (const std::vector<Value>& line : explained->rows) absl::StrAppend(&plan, line[0].text, "\n");
  return plan;
}

absl::StatusOr<QueryTimes> QueryWork::Measure(session::Session& session, const BenchmarkQuery& query) {
  QueryTimes times{.id = query.id};
  Rows expected;  // the first contender's
  for (int round = 0; round <= options_.repeat; ++round) {
    const bool warm_up = round == 0;
    for (const QueryContender contender : contenders_) {
      if (contender == QueryContender::kLoop && !SsbLoop::Has(query.id)) continue;
      if (run_.cancelled()) return absl::CancelledError("interrupted");
      run_.progress().Show(
          absl::StrFormat("%s: %s, %d of %d", times.id, Name(contender), round, options_.repeat));
      NAM_ASSIGN_OR_RETURN(Turn turn, Take(session, query, contender));
      if (!warm_up) times.of(contender).push_back(turn.elapsed_ms);
      if (contender == QueryContender::kRead) continue;  // has no rows
      if (warm_up && contender == contenders_.front()) {
        times.rows = turn.rows.size();
        expected = std::move(turn.rows);
      } else if (!Same(turn.rows, expected) &&
                 std::find(times.wrong.begin(), times.wrong.end(), contender) == times.wrong.end()) {
        times.wrong.push_back(contender);
      }
    }
  }
  answers_.push_back(std::move(expected));
  NAM_ASSIGN_OR_RETURN(times.plan, PlanOf(session, query));
  return times;
}

absl::StatusOr<QueryWork::Turn> QueryWork::Take(session::Session& session, const BenchmarkQuery& query,
                                                QueryContender contender) {
  const std::string& sql = query.sql;
  if (contender == QueryContender::kLoop) {
    SsbLoop::Answer answer = loop_->Run(query.id, options_.threads);
    return Turn{std::move(answer.rows), answer.elapsed_ms};
  }
  if (contender == QueryContender::kRead) {
    NAM_ASSIGN_OR_RETURN(const double elapsed_ms, read_bound_->Run(copied_bytes_));
    return Turn{.elapsed_ms = elapsed_ms};
  }
  if (contender == QueryContender::kDuckDb) {
    NAM_ASSIGN_OR_RETURN(DuckDb::Answer answer, options_.duckdb->Query(sql));
    return Turn{std::move(answer.rows), answer.elapsed_ms};
  }
  const auto set = session.Execute(
      absl::StrCat("SET nam.in_place = ", contender == QueryContender::kInPlace ? "on" : "off"));
  if (!set.ok()) return set.status();
  auto result = session.Execute(sql);
  if (!result.ok()) {
    return absl::Status(result.status().code(), absl::StrCat(query.id, ": ", result.status().message()));
  }
  if (contender == QueryContender::kCopy) copied_bytes_ = result->work.bytes;
  return Turn{std::move(result->rows), result->elapsed_ms};
}

}  // namespace nam::bench
