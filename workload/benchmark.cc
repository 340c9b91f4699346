#include "workload/benchmark.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ssb/generator.h"
#include "ssb/queries.h"
#include "ssb/schema.h"
#include "tpch/generator.h"
#include "tpch/queries.h"
#include "tpch/refresh_generator.h"
#include "tpch/schema.h"
#include "workload/sqlite_dialect.h"

namespace nam {
namespace {

template <typename Generator>
std::unique_ptr<dataset::Generator> MakeGenerator(const dataset::GeneratorOptions& options) {
  return std::make_unique<Generator>(options);
}

std::vector<BenchmarkQuery> SsbQueries(const QueryParameters&) {
  std::vector<BenchmarkQuery> queries;
  for (const ssb::Query& query : ssb::Queries())
    queries.push_back({.id = std::string(query.id), .sql = std::string(query.sql)});
  return queries;
}

std::vector<BenchmarkQuery> TpchQueries(const QueryParameters& parameters) {
  std::vector<BenchmarkQuery> queries;
  for (tpch::Query& query : tpch::Queries(parameters.scale_factor, parameters.seed))
    queries.push_back({.id = std::move(query.id), .sql = std::move(query.sql)});
  return queries;
}

absl::StatusOr<std::unique_ptr<dataset::Generator>> MakeTpchRefresh(const dataset::GeneratorOptions& options,
                                                                    uint64_t refreshes) {
  return tpch::RefreshGenerator::Make(options, refreshes);
}

// SQLite adds 53-bit numbers one by one, which loses some digits over millions of them.
constexpr int kTpchSqliteDigits = 9;

std::string Unchanged(const std::string& sql) {
  return sql;
}

}  // namespace

const Benchmark& SsbBenchmark() {
  static const Benchmark& benchmark =
      *new Benchmark{.name = "ssb",
                     .title = "the Star Schema Benchmark",
                     .largest_table = "lineorder",
                     .bytes_per_scale_factor = 700.0 * (1 << 20),
                     .query_names = "Q1.1 to Q1.3, Q2.1 to Q2.3, Q3.1 to Q3.4, Q4.1 to Q4.3",
                     .tables = &ssb::Tables,
                     .make_generator = &MakeGenerator<ssb::Generator>,
                     .queries = &SsbQueries,
                     .sqlite_sql = &Unchanged,
                     .sqlite_keys = {{"customer", "c_custkey"},
                                     {"supplier", "s_suppkey"},
                                     {"part", "p_partkey"},
                                     {"date", "d_datekey"}}};
  return benchmark;
}

const Benchmark& TpchBenchmark() {
  static const Benchmark& benchmark = *new Benchmark{.name = "tpch",
                                                     .title = "TPC-H",
                                                     .largest_table = "lineitem",
                                                     .bytes_per_scale_factor = 1400.0 * (1 << 20),
                                                     .query_names = "Q1 to Q22",
                                                     .tables = &tpch::Tables,
                                                     .make_generator = &MakeGenerator<tpch::Generator>,
                                                     .make_refresh = &MakeTpchRefresh,
                                                     .queries = &TpchQueries,
                                                     .sqlite_sql = &SqliteText,
                                                     .sqlite_keys = {{"region", "r_regionkey"},
                                                                     {"nation", "n_nationkey"},
                                                                     {"supplier", "s_suppkey"},
                                                                     {"customer", "c_custkey"},
                                                                     {"part", "p_partkey"},
                                                                     {"orders", "o_orderkey"}},
                                                     .sqlite_indexes = {{"partsupp", "ps_partkey"},
                                                                        {"partsupp", "ps_suppkey"},
                                                                        {"orders", "o_custkey"},
                                                                        {"lineitem", "l_orderkey"},
                                                                        {"lineitem", "l_partkey"}},
                                                     .peer_digits = 13,
                                                     .sqlite_digits = kTpchSqliteDigits};
  return benchmark;
}

absl::StatusOr<std::vector<BenchmarkQuery>> SelectQueries(const Benchmark& benchmark,
                                                          const std::vector<std::string>& names,
                                                          const QueryParameters& parameters) {
  const std::vector<BenchmarkQuery> all = benchmark.queries(parameters);
  if (names.empty()) return all;
  std::vector<BenchmarkQuery> queries;
  for (const std::string& name : names) {
    const std::string wanted = absl::AsciiStrToUpper(name);
    const auto found = std::find_if(all.begin(), all.end(), [&](const BenchmarkQuery& query) {
      return query.id == wanted || query.id == "Q" + wanted;
    });
    if (found == all.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no query ", name, "; they are ", benchmark.query_names));
    }
    queries.push_back(*found);
  }
  return queries;
}

}  // namespace nam
