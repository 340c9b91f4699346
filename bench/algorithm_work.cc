#include "bench/algorithm_work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {

absl::Status AlgorithmWork::RunOn(catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
  run_.OnCancel([&] {
    session->Cancel();
    if (options_.duckdb != nullptr) options_.duckdb->Cancel();
  });
  absl::Status status = Prepare(*session);
  for (size_t i = 0; status.ok() && i < workload_.cases(); ++i) status = RunCase(attachment, *session, i);
  run_.OnCancel();
  run_.progress().Clear();
  return status;
}

absl::Status AlgorithmWork::Prepare(session::Session& session) {
  for (const char* bound : {"nam.build_mib_max", "nam.result_mib_max"}) {
    const std::string raise = absl::StrCat("SET ", bound, " = ", options_.query_mib_max);
    NAM_RETURN_IF_ERROR(session.Execute(raise).status());
  }
  return options_.duckdb != nullptr ? options_.duckdb->Open() : absl::OkStatus();
}

absl::StatusOr<Json> AlgorithmWork::Explain(session::Session& session) const {
  for (const Algorithm& algorithm : options_.algorithms) {
    if (algorithm.name != options_.explained) continue;
    NAM_RETURN_IF_ERROR(Force(session, algorithm));
    NAM_ASSIGN_OR_RETURN(const session::ResultSet result,
                         session.Execute(absl::StrCat("EXPLAIN (FORMAT JSON) ", workload_.sql())));
    return Json::parse(result.rows.at(0).at(0).text, nullptr, false);
  }
  return Json();
}

absl::Status AlgorithmWork::RunCase(catalog::Attachment& attachment, session::Session& session,
                                    size_t index) {
  const std::string title = workload_.TitleOf(index);
  if (!run_.Proceed(absl::StrCat(title, ": making the tuples"))) return absl::CancelledError("interrupted");
  workload_.Make(index);
  NAM_RETURN_IF_ERROR(Load(attachment, title));
  NAM_ASSIGN_OR_RETURN(Json plan, Explain(session));
  const Rows expected = workload_.Expected();
  absl::StatusOr<std::vector<ContenderTimes>> times = TakeTurns(
      MakeContenders(session), [&](const Rows& rows) { return SameRows(rows, expected); },
      {.repeat = options_.repeat, .warm_up = options_.warm_up, .proceed = [&](const std::string& turn) {
         return run_.Proceed(absl::StrCat(title, ": ", turn));
       }});
  if (!times.ok())
    return absl::Status(times.status().code(), absl::StrCat(title, ": ", times.status().message()));
  for (const ContenderTimes& contender : *times) {
    if (!contender.refusal.empty())
      skipped_.push_back({absl::StrCat(contender.name, " of ", title), contender.refusal});
  }
  std::erase_if(*times, [](const ContenderTimes& contender) { return !contender.refusal.empty(); });
  cases_.push_back({.title = title,
                    .settings = workload_.SettingsOf(index),
                    .tuples = workload_.TuplesOf(index),
                    .contenders = *std::move(times),
                    .plan = std::move(plan)});
  NAM_RETURN_IF_ERROR(DropTables(session));
  workload_.Drop();
  return absl::OkStatus();
}

absl::Status AlgorithmWork::Load(catalog::Attachment& attachment, const std::string& title) {
  for (const TupleTable& table : workload_.tables()) {
    NAM_RETURN_IF_ERROR(LoadTuples(attachment, table,
                                   {.threads = options_.threads,
                                    .progress = run_.progress().For(absl::StrCat(title, ": loading")),
                                    .cancelled = &run_.cancelled()}));
    if (options_.duckdb == nullptr) continue;
    run_.progress().Show(absl::StrFormat("%s: DuckDB loads %s", title, table.name));
    const auto seconds = LoadTuples(*options_.duckdb, table, options_.directory, run_.cancelled());
    if (!seconds.ok()) return seconds.status();
  }
  return absl::OkStatus();
}

absl::Status AlgorithmWork::DropTables(session::Session& session) {
  for (const TupleTable& table : workload_.tables()) {
    const std::string drop = absl::StrCat("DROP TABLE ", table.name);
    NAM_RETURN_IF_ERROR(session.Execute(drop).status());
    if (options_.duckdb != nullptr) NAM_RETURN_IF_ERROR(options_.duckdb->Query(drop).status());
  }
  return absl::OkStatus();
}

std::vector<Contender> AlgorithmWork::MakeContenders(session::Session& session) {
  std::vector<Contender> contenders;
  for (const Algorithm& algorithm : options_.algorithms)
    contenders.push_back({algorithm.name, [&] { return Ask(session, algorithm); }});
  if (options_.duckdb != nullptr) contenders.push_back({"duckdb", [&] { return AskDuckDb(); }});
  return contenders;
}

absl::StatusOr<Turn> AlgorithmWork::Ask(session::Session& session, const Algorithm& algorithm) {
  NAM_RETURN_IF_ERROR(Force(session, algorithm));
  NAM_ASSIGN_OR_RETURN(session::ResultSet result, session.Execute(workload_.sql()));
  return Turn{std::move(result.rows), result.elapsed_ms};
}

absl::StatusOr<Turn> AlgorithmWork::AskDuckDb() {
  NAM_ASSIGN_OR_RETURN(DuckDb::Answer result, options_.duckdb->Query(workload_.sql()));
  return Turn{std::move(result.rows), result.elapsed_ms};
}

}  // namespace nam::bench
