#include "bench/algorithm_work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "workload/sqlite_oracle.h"

namespace nam::bench {

const std::vector<Algorithm>& JoinAlgorithms() {
  static constexpr char kJoin[] = "nam.\"join\"";  // quoted, because JOIN is a keyword
  static constexpr char kExchange[] = "nam.exchange";
  static const std::vector<Algorithm> algorithms = {
      {"rrj", {{kJoin, "rrj"}}},
      {"rdma_ghj", {{kJoin, "rdma_ghj"}}},
      {"ghj", {{kJoin, "ghj"}, {kExchange, "sockets"}}},
      {"ghj_bloom", {{kJoin, "ghj_bloom"}, {kExchange, "sockets"}}},
      {"ghj_fabric", {{kJoin, "ghj"}, {kExchange, "fabric"}}},
      {"ghj_bloom_fabric", {{kJoin, "ghj_bloom"}, {kExchange, "fabric"}}},
      {"pipelined", {{kJoin, "pipelined"}}},
      {"auto", {{kJoin, "auto"}}},
  };
  return algorithms;
}

const std::vector<Algorithm>& AggregateAlgorithms() {
  static constexpr char kAggregate[] = "nam.aggregate";
  static const std::vector<Algorithm> algorithms = {
      {"rdma", {{kAggregate, "rdma"}}},
      {"dist", {{kAggregate, "dist"}}},
      {"auto", {{kAggregate, "auto"}}},
  };
  return algorithms;
}

std::vector<std::string> NamesOf(const std::vector<Algorithm>& algorithms) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.push_back(algorithm.name);
  return names;
}

std::vector<Algorithm> Named(const std::vector<Algorithm>& algorithms,
                             const std::vector<std::string>& names) {
  std::vector<Algorithm> named;
  for (const std::string& name : names) {
    const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                    [&](const Algorithm& algorithm) { return algorithm.name == name; });
    NAM_CHECK(found != algorithms.end());
    named.push_back(*found);
  }
  return named;
}

absl::Status Force(session::Session& session, const Algorithm& algorithm) {
  for (const auto& [setting, value] : algorithm.settings)
    NAM_RETURN_IF_ERROR(session.Execute(absl::StrCat("SET ", setting, " = '", value, "'")).status());
  return absl::OkStatus();
}

absl::Status AlgorithmWork::RunOn(catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const auto session, session::Session::Open(attachment));
  run_.OnCancel([&] {
    session->Cancel();
    if (options_.duckdb != nullptr) options_.duckdb->Cancel();
  });
  absl::Status status = Prepare(*session);
  for (const AlgorithmCase& each : cases_) {
    if (status.ok()) status = RunCase(attachment, *session, each);
  }
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

absl::StatusOr<Json> AlgorithmWork::Explain(session::Session& session, const std::string& sql) const {
  for (const Algorithm& algorithm : options_.algorithms) {
    if (algorithm.name != options_.explained) continue;
    NAM_RETURN_IF_ERROR(Force(session, algorithm));
    NAM_ASSIGN_OR_RETURN(const session::ResultSet result,
                         session.Execute(absl::StrCat("EXPLAIN (FORMAT JSON) ", sql)));
    return Json::parse(result.rows.at(0).at(0).text, nullptr, false);
  }
  return Json();
}

absl::Status AlgorithmWork::RunCase(catalog::Attachment& attachment, session::Session& session,
                                    const AlgorithmCase& of) {
  if (!run_.Proceed(absl::StrCat(of.title, ": making the tuples")))
    return absl::CancelledError("interrupted");
  const CaseData data = of.make();
  for (const TupleTable& table : data.tables) NAM_RETURN_IF_ERROR(Load(attachment, of.title, table));
  NAM_ASSIGN_OR_RETURN(Json plan, Explain(session, of.sql));
  absl::StatusOr<std::vector<ContenderTimes>> times = TakeTurns(
      MakeContenders(session, of.sql), [&](const Rows& rows) { return SameRows(rows, data.expected); },
      {.repeat = options_.repeat, .warm_up = options_.warm_up, .proceed = [&](const std::string& turn) {
         return run_.Proceed(absl::StrCat(of.title, ": ", turn));
       }});
  if (!times.ok())
    return absl::Status(times.status().code(), absl::StrCat(of.title, ": ", times.status().message()));
  for (const ContenderTimes& contender : *times) {
    if (!contender.refusal.empty())
      skipped_.push_back({absl::StrCat(contender.name, " of ", of.title), contender.refusal});
  }
  std::erase_if(*times, [](const ContenderTimes& contender) { return !contender.refusal.empty(); });
  figures_.push_back({.title = of.title,
                      .settings = of.settings,
                      .tuples = of.tuples,
                      .contenders = *std::move(times),
                      .plan = std::move(plan)});
  for (const TupleTable& table : data.tables) NAM_RETURN_IF_ERROR(Drop(session, table));
  return absl::OkStatus();
}

absl::Status AlgorithmWork::Load(catalog::Attachment& attachment, const std::string& title,
                                 const TupleTable& table) {
  NAM_RETURN_IF_ERROR(LoadTuples(attachment, table,
                                 {.threads = options_.threads,
                                  .progress = run_.progress().For(absl::StrCat(title, ": loading")),
                                  .cancelled = &run_.cancelled()}));
  if (options_.duckdb == nullptr) return absl::OkStatus();
  run_.progress().Show(absl::StrFormat("%s: DuckDB loads %s", title, table.name));
  return LoadTuples(*options_.duckdb, table, options_.directory, run_.cancelled()).status();
}

absl::Status AlgorithmWork::Drop(session::Session& session, const TupleTable& table) {
  const std::string drop = absl::StrCat("DROP TABLE ", table.name);
  NAM_RETURN_IF_ERROR(session.Execute(drop).status());
  return options_.duckdb != nullptr ? options_.duckdb->Query(drop).status() : absl::OkStatus();
}

std::vector<Contender> AlgorithmWork::MakeContenders(session::Session& session, const std::string& sql) {
  std::vector<Contender> contenders;
  for (const Algorithm& algorithm : options_.algorithms) {
    contenders.push_back({algorithm.name, [&]() -> absl::StatusOr<Turn> {
                            NAM_RETURN_IF_ERROR(Force(session, algorithm));
                            NAM_ASSIGN_OR_RETURN(session::ResultSet result, session.Execute(sql));
                            return Turn{std::move(result.rows), result.elapsed_ms};
                          }});
  }
  if (options_.duckdb == nullptr) return contenders;
  contenders.push_back({"duckdb", [&]() -> absl::StatusOr<Turn> {
                          NAM_ASSIGN_OR_RETURN(DuckDb::Answer result, options_.duckdb->Query(sql));
                          return Turn{std::move(result.rows), result.elapsed_ms};
                        }});
  return contenders;
}

}  // namespace nam::bench
