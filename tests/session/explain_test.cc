#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalog/fabric_constants.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

using Json = nlohmann::json;

/// `f` and `g` are record tables; `big` and `dim` are columnar.
class ExplainTest : public ::testing::Test {
 protected:
  static constexpr int kRecords = 2'500, kBig = 40'000, kDim = 500;

  ExplainTest() : cluster_({.compute_servers = 2}) {
    for (const char* const name : {"f", "g"}) {
      Run(absl::StrCat("create table ", name, " (id int primary key, v int) with (storage = record)"));
      for (int from = 1; from <= kRecords; from += 250) {
        Run(absl::StrCat("insert into ", name, " select n, n % 10 from generate_series(", from, ", ",
                         from + 249, ") as s(n)"));
      }
    }
    SmallTable big{
        {"big", {{"id", Type::Integer()}, {"d", Type::Integer()}, {"x", Type::Integer()}}, {{"id", 16}}, ""},
        {}};
    for (int i = 0; i < kBig; ++i) {
      big.rows.push_back(
          {Value::Integer(i), Value::Integer(i % kDim), Value::Integer(int64_t{i} * 7919 % kBig)});
    }
    EXPECT_TRUE(Load(cluster_.attachment(), big, {.block_bytes = 8192}).ok());
    SmallTable dim{{"dim", {{"d", Type::Integer()}, {"kind", Type::Integer()}}, {{"d", 4}}, ""}, {}};
    for (int i = 0; i < kDim; ++i) dim.rows.push_back({Value::Integer(i), Value::Integer(i % 5)});
    EXPECT_TRUE(Load(cluster_.attachment(), dim, {.block_bytes = 2048}).ok());
  }

  TextRows Run(const std::string& statement) {
    const auto result = cluster_.session().Execute(statement);
    EXPECT_TRUE(result.ok()) << statement << "\n" << result.status();
    return result.ok() ? ToText(*result) : TextRows();
  }
  /// The lines as they are shown, none too wide; the result has continued lines joined.
  std::string Explain(const std::string& statement) {
    std::string text;
    for (const auto& row : Run(statement)) {
      EXPECT_LE(row[0].size(), 100u) << row[0];
      text += row[0] + "\n";
    }
    // Operators are indented by 5 columns, facts about servers by 6, continued lines by more.
    return std::regex_replace(text, std::regex("\n {7,}"), " ");
  }
  Json ExplainJson(const std::string& statement) {
    const TextRows rows = Run(statement);
    EXPECT_EQ(rows.size(), 1u) << statement;
    return rows.size() == 1 ? Json::parse(rows[0][0]).at(0) : Json();
  }
  InProcessCluster cluster_;
};

TEST_F(ExplainTest, JoinsOfRecordTables) {
  const std::string joins[] = {
      "select f.id from f, g where f.id = g.id",
      "select f.v, count(*) from f left join g on f.id = g.v group by f.v order by 1",
      "select count(*) from f right join g on f.id = g.v",
      "select f.id from f, dim where f.v = dim.d",
      "select dim.kind from dim, f where f.v = dim.d",
      "select count(*) from big, f where big.d = f.id",
      "select count(*) from f, big where big.d = f.id and f.v = 3",
      "select count(*) from f left join big on big.d = f.id",
      "select count(*) from big left join f on big.d = f.id",
      "select count(*) from f, g, big, dim where big.id = f.id and big.d = dim.d and g.id = f.id",
  };
  for (const std::string& join : joins) {
    SCOPED_TRACE(join);
    EXPECT_TRUE(absl::StrContains(Explain("explain " + join), "cost ")) << Explain("explain " + join);
    EXPECT_TRUE(absl::StrContains(Explain("explain analyze " + join), "Result: "));
    EXPECT_TRUE(ExplainJson("explain (format json) " + join).contains("stages"));
    const Json analyzed = ExplainJson("explain (analyze, format json) " + join);
    EXPECT_EQ(analyzed.at("result").at("rows"), Run(join).size());
  }
  const std::string pieces = Explain("explain analyze select f.id from f, g where f.id = g.id");
  EXPECT_TRUE(std::regex_search(pieces, std::regex("rows \\([0-9.]+ %\\), [0-9]+ pieces?, "))) << pieces;
}

/// Both sides may be NULL, and NULL meets NULL: an equality in the condition would be looked at for all
/// pairs.
TEST_F(ExplainTest, OuterValuesThatMayBeNullAreKeys) {
  const std::string query =
      "select count(*) from f where v not in (select max(g.v) from g where g.id <= f.v + 1 group by g.v % 2)";
  Run("insert into f values (3000, null)");
  const std::string text = Explain("explain " + query);
  EXPECT_TRUE(std::regex_search(text, std::regex("probe[^\n]* on CASE WHEN"))) << text;
  EXPECT_FALSE(absl::StrContains(text, " OR ")) << text;
  EXPECT_EQ(Run(query), (TextRows{{"251"}}));
}

/// Source, steps and sink of every pipeline, on servers and in the session.
TEST_F(ExplainTest, EveryOperatorSaysWhatWasExpectedAndWhatCame) {
  const std::string queries[] = {
      "select kind, sum(x + 1), avg(x), count(distinct x % 3) from big, dim where big.d = dim.d group by "
      "kind "
      "order by 2 desc limit 3",
      "select count(*) from (select x, count(*) c from big group by x) q where c > 0",
      "select id, rank() over (partition by d order by x) from big where id < 3000 order by 1",
      "select d from big where x < 100 union select kind from dim order by 1",
      "select kind, count(*) from big left join dim on big.x = dim.d and big.id > 5 group by kind",
      "select f.v, max(g.v) from f, g where f.id = g.id group by f.v",
      "select count(*) from big where d in (select d from dim where kind = 2)",
      "select d, id from big order by x desc limit 10",
  };
  const std::regex operator_line("\n(  P[0-9]+ | {5}(?!of |by |scan of))[a-z][^\n]*");
  const std::regex figures(
      " ~[0-9]+ \\(actual [0-9,]+( to [0-9,]+)?( of [0-9,]+)?( on each server)?\\), cost "
      "[0-9.e+-]+ ms");
  for (const std::string& query : queries) {
    SCOPED_TRACE(query);
    const std::string text = Explain("explain analyze " + query);
    int operators = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), operator_line), end; it != end; ++it) {
      ++operators;
      EXPECT_TRUE(std::regex_search(it->str(), figures)) << it->str() << "\n" << text;
    }
    EXPECT_GE(operators, 6) << text;
    EXPECT_FALSE(std::regex_search(text, std::regex("#[0-9]"))) << text;
    EXPECT_FALSE(absl::StrContains(text, "(NULL)")) << text;
    const Json document = ExplainJson("explain (analyze, format json) " + query);
    for (const Json& stage : document.at("stages")) {
      for (const Json& pipeline : stage.at("pipelines")) {
        std::vector<Json> nodes = {pipeline.at("source"), pipeline.at("sink")};
        for (const Json& step : pipeline.at("steps")) nodes.push_back(step);
        for (const Json& node : nodes) {
          EXPECT_TRUE(node.contains("rows") && node.contains("estimated_rows")) << node;
          EXPECT_TRUE(node.at("estimated_ms").is_number()) << node;
        }
      }
    }
  }
}

TEST_F(ExplainTest, RowsOfBuildSidesAreOneServers) {
  const std::string text = Explain(
      "explain analyze select sum(x), kind from big, dim where big.x = dim.d "
      "group by kind");
  EXPECT_TRUE(std::regex_search(text, std::regex("P0 scan dim [^\n]*~500 \\(actual 500 on each server\\)")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("build [^\n]*~500 \\(actual 500 on each server\\)")))
      << text;
  // The scan's own look-up is the probe: it takes the rows whose key exists.
  EXPECT_TRUE(absl::StrContains(text, "(actual 500 of 40,000)")) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("P1 scan big [^\n]*~40000 \\(actual 40,000\\)"))) << text;
  EXPECT_TRUE(absl::StrContains(text, "aggregate final sum(x) by kind")) << text;
}

/// The scan takes the rows that a filter leaves, then those whose keys exist. A filter that is no test of
/// codes follows the look-ups.
TEST_F(ExplainTest, ScansCountWhatTheirConditionsLeave) {
  const std::string query = "select count(*) from big, dim where big.d = dim.d and dim.kind = 1 and ";
  const auto probe_of = [](const std::string& text) {
    const size_t at = text.find("probe P0");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  const std::string codes = Explain("explain analyze " + query + "big.x < 10000");
  EXPECT_TRUE(std::regex_search(codes, std::regex("P1 scan big [^\n]*\\(actual 10,000\\)"))) << codes;
  EXPECT_TRUE(absl::StrContains(probe_of(codes), "(actual 2,000 of 10,000)")) << codes;
  const std::string general = Explain("explain analyze " + query + "big.x * big.id % 4 = 1");
  EXPECT_TRUE(absl::StrContains(probe_of(general), "(actual 8,000 of 40,000)")) << general;
  // Look-ups that drop more than the conditions come first, once the scan knows it: some rows are tested by
  // the ones, some by the others, and both lines count those that both have left.
  const std::string weak = Explain("explain analyze " + query + "big.x < 39000");
  std::smatch found;
  const std::string probe = probe_of(weak);
  ASSERT_TRUE(std::regex_search(probe, found, std::regex("\\(actual ([0-9,]+) of "))) << weak;
  const std::string left = found[1];
  EXPECT_TRUE(
      std::regex_search(weak, std::regex("P1 scan big [^\n]*\\(actual " + left + " with its look-ups\\)")))
      << weak;
}

/// For each join and each grouping of servers: the algorithm, the reason, and the estimated times of the
/// others.
TEST_F(ExplainTest, AlgorithmsAndWhatOthersWouldCost) {
  const std::string query = "select big.d, count(*) from big, dim where big.d = dim.d group by big.d";
  const std::string small = Explain("explain " + query);
  EXPECT_TRUE(std::regex_search(
      small, std::regex("Join with P0: pipelined, the cheapest: estimated [0-9.e+-]+ ms; rrj [0-9.e+-]+ ms, "
                        "rdma_ghj [0-9.e+-]+ ms, ghj [0-9.e+-]+ ms, ghj_bloom [0-9.e+-]+ ms\n")))
      << small;
  EXPECT_TRUE(std::regex_search(
      small, std::regex("Groups of P1: dist, since groups are few: estimated [0-9.e+-]+ ms; rdma ")))
      << small;
  Run("set nam.join = 'rrj'");
  Run("set nam.aggregate = 'rdma'");
  const std::string forced = Explain("explain analyze " + query);
  EXPECT_TRUE(std::regex_search(
      forced,
      std::regex("Join with P0: rrj, forced by nam.join: estimated [0-9.e+-]+ ms, actual [0-9.e+-]+ ms; "
                 "pipelined [0-9.e+-]+ ms, rdma_ghj [0-9.e+-]+ ms, ghj [0-9.e+-]+ ms, "
                 "ghj_bloom [0-9.e+-]+ ms\n")))
      << forced;
  EXPECT_TRUE(std::regex_search(
      forced,
      std::regex("Groups of P[0-9]: rdma, forced by nam.aggregate: estimated [0-9.e+-]+ ms, actual ")))
      << forced;
  const Json json = ExplainJson("explain (analyze, format json) " + query);
  const Json& join = json.at("joins").at(0);
  EXPECT_EQ(join.at("algorithm"), "rrj");
  EXPECT_EQ(join.at("why"), "forced by nam.join");
  EXPECT_GT(join.at("actual_ms"), 0);
  EXPECT_GT(join.at("estimated_ms").at("pipelined"), 0);
  EXPECT_GT(join.at("estimated_ms").at("rdma_ghj"), 0);
  EXPECT_EQ(json.at("groups").at(0).at("algorithm"), "rdma");
  EXPECT_GT(json.at("groups").at(0).at("estimated_ms").at("dist"), 0);

  const std::string crossed = Explain("explain select count(*) from big left join dim on big.d < dim.d");
  EXPECT_NE(crossed.find("pipelined, the only one possible: estimated"), std::string::npos) << crossed;
  Run("set nam.join = 'ghj'");
  const std::string streamed = Explain("explain analyze " + query);
  EXPECT_TRUE(
      std::regex_search(streamed, std::regex("Join with P[0-9]: ghj, forced by nam.join: estimated ")))
      << streamed;
  EXPECT_TRUE(std::regex_search(streamed, std::regex("P[0-9] receive by exchange 0 => d ~"))) << streamed;
  const Json sent = ExplainJson("explain (analyze, format json) " + query);
  EXPECT_GT(sent.at("joins").at(0).at("actual_ms"), 0) << sent;
  uint64_t sent_bytes = 0, received_bytes = 0;
  for (const Json& pipeline : sent.at("stages").at(0).at("pipelines")) {
    for (const Json& server : pipeline.at("servers")) {
      sent_bytes += server.value("exchange_bytes_sent", uint64_t{0});
      received_bytes += server.value("exchange_bytes_received", uint64_t{0});
      const bool received = pipeline.at("source").at("text").get<std::string>().starts_with("receive");
      EXPECT_TRUE(!received || server.at("total_ms") > 0) << server;
    }
  }
  EXPECT_GT(sent_bytes, 0u);
  EXPECT_EQ(sent_bytes, received_bytes);
  Run("set nam.join = 'ghj_bloom'");
  const std::string reduced = Explain("explain analyze " + query);
  EXPECT_TRUE(
      std::regex_search(reduced, std::regex("Join with P[0-9]: ghj_bloom, forced by nam.join: estimated ")))
      << reduced;
  EXPECT_NE(reduced.find("what the Bloom filters of P"), std::string::npos) << reduced;
}

/// The method that nam.join asks for is not possible everywhere: then the plan states the reason.
TEST_F(ExplainTest, WhyAForcedJoinIsNotUsed) {
  const std::string left = "explain select count(*) from big left join dim on big.d = dim.d";
  Run("set nam.join = 'ghj'");
  EXPECT_TRUE(std::regex_search(
      Explain(left), std::regex("ghj, forced by nam.join: [^\n]*; ghj_bloom has no rows\\s+to drop")))
      << Explain(left);
  const auto says = [&](const std::string& query, const std::string& why) {
    const Json joins = ExplainJson("explain (format json) " + query).at("joins");
    ASSERT_FALSE(joins.empty()) << query;
    EXPECT_EQ(joins[0].at("why"), why) << query;
    EXPECT_FALSE(joins[0].at("algorithm") == "ghj") << query;
  };
  says("select count(*) from f, g where f.id = g.id", "the cheapest, as ghj joins columnar tables alone");
  says("select count(*) from big, (select distinct kind from dim) k where big.d = k.kind",
       "the only one possible, as a side comes to the session");
  Run("set nam.join = 'ghj_bloom'");
  EXPECT_TRUE(std::regex_search(
      Explain(left), std::regex("ghj, instead of ghj_bloom, which has no rows to drop: estimated ")))
      << Explain(left);
  says("select count(*) from f, g where f.id = g.id",
       "the cheapest, as ghj_bloom joins columnar tables alone");
}

/// A statement that was planned before is planned again with the current constants.
TEST_F(ExplainTest, ConstantsOfTheCatalogMakeThePlan) {
  const std::string query = "select count(*) from big a, big b where a.x = b.x";
  const auto algorithm = [&] {
    return ExplainJson("explain (format json) " + query).at("joins").at(0).at("algorithm").get<std::string>();
  };
  const TextRows expected = Run(query);
  EXPECT_EQ(algorithm(), "pipelined");
  catalog::FabricConstants constants;
  constants.stage_ps = constants.call_ps = constants.slab_ps = constants.part_ps = 1e3;
  constants.build_row_ps = constants.direct_build_row_ps = 1e6;
  ASSERT_EQ(cluster_.attachment().catalog().Calibrate(catalog::ToProto("shm", constants)), absl::OkStatus());
  EXPECT_EQ(Run(query), expected);
  EXPECT_NE(algorithm(), "pipelined");
}

TEST_F(ExplainTest, AnAggregateWithoutKeysIsOneRow) {
  const std::string text =
      Explain("explain analyze select count(*), sum(c) from (select d, count(*) c from big group by d) q");
  EXPECT_TRUE(std::regex_search(text, std::regex("aggregate whole [^\n]*~1 \\(actual 1\\)"))) << text;
}

TEST_F(ExplainTest, ChangesAndPreparedStatements) {
  EXPECT_EQ(Run("explain insert into f values (9000, 1), (9001, 2)"),
            (TextRows{{"Insert into f 2 of VALUES"}}));
  const std::string insert = Explain("explain insert into f select id + 10000, v from g where v = 3");
  EXPECT_TRUE(absl::StartsWith(insert, "Insert into f from the query below\n")) << insert;
  EXPECT_TRUE(absl::StrContains(insert, "v = 3")) << insert;
  const std::string update = Explain("explain update f set v = g.v from g where f.id = g.id");
  EXPECT_TRUE(absl::StartsWith(update, "Update f by the query below\n")) << update;
  EXPECT_TRUE(absl::StrContains(update, "probe")) << update;
  const Json json = ExplainJson("explain (format json) delete from f using g where f.id = g.id");
  EXPECT_EQ(json.at("change").at("kind"), "Delete");
  EXPECT_TRUE(json.contains("stages"));
  EXPECT_EQ(ExplainJson("explain (format json) delete from f where id = 3").at("change").at("table"), "f");
  EXPECT_EQ(Run("select count(*) from f"), (TextRows{{absl::StrCat(kRecords)}})) << "nothing has run";

  Run("prepare q (int) as select count(*) from f where v = $1");
  EXPECT_TRUE(absl::StrContains(Explain("explain execute q(4)"), "v = 4"));
  EXPECT_TRUE(absl::StrContains(Explain("explain analyze execute q(4)"), "Result: 1 row "));
  Run("prepare d (int) as delete from f where id = $1");
  EXPECT_TRUE(absl::StrContains(Explain("explain execute d(7)"), "Delete f by key (id), 1 row at most"));
  const auto none = cluster_.session().Execute("explain execute nothing(7)");
  EXPECT_EQ(SqlErrorOf(none.status()).value_or(SqlError{}).sqlstate, "26000");
  const auto fewer = cluster_.session().Execute("explain execute q");
  EXPECT_EQ(SqlErrorOf(fewer.status()).value_or(SqlError{}).sqlstate, "42601");
}

TEST_F(ExplainTest, AnalyzeMakesTheChange) {
  const std::string deleted = Explain("explain analyze delete from f where id <= 100");
  EXPECT_TRUE(std::regex_search(deleted, std::regex("Changed: DELETE 100 in [0-9.]+ ms"))) << deleted;
  EXPECT_EQ(Run("select count(*) from f"), (TextRows{{absl::StrCat(kRecords - 100)}}));
  const std::string inserted =
      Explain("explain analyze insert into f select id, v from g where id <= 100 and id > 10");
  EXPECT_TRUE(absl::StrContains(inserted, "Result: 90 rows")) << inserted;
  EXPECT_TRUE(absl::StrContains(inserted, "Changed: INSERT 0 90")) << inserted;
  Run("begin");
  const Json updated =
      ExplainJson("explain (analyze, format json) update f set v = 77 from g where f.id = g.id and g.v = 1");
  // All rows except the one of id 1.
  EXPECT_EQ(updated.at("change").at("command"), "UPDATE 249");
  EXPECT_EQ(Run("select count(*) from f where v = 77"), (TextRows{{"249"}}));
  EXPECT_EQ(updated.at("result").at("rows"),
            updated.at("stages").empty() ? Json() : updated["result"]["rows"]);
  Run("rollback");
  EXPECT_EQ(Run("select count(*) from f where v = 77"), (TextRows{{"0"}})) << "it was of the transaction";
}

TEST_F(ExplainTest, TheSessionTellsThatItFinishes) {
  const auto session = cluster_.NewSession();
  std::vector<session::QueryProgress> told;
  session->OnProgress([&](const session::QueryProgress& progress) {
    if (!progress.table.empty() || told.size() == 3) return;  // the end takes as long as it takes
    told.push_back(progress);
    if (told.size() == 3) session->Cancel();
  });
  // The session numbers rows itself, and so it makes their 1.6 billion pairs.
  const std::string numbered = "(select x, row_number() over (order by x) r from big) ";
  const auto result = session->Execute(
      absl::StrCat("select count(*) from ", numbered, "a, ", numbered, "b where a.r + b.x < b.r - a.x - 5"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled) << result.status();
  ASSERT_EQ(told.size(), 3u);
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].rows, 0u);
    EXPECT_GE(told[i].elapsed_ms, 300);
    EXPECT_GE(told[i].rows_done, i == 0 ? static_cast<uint64_t>(kBig) : told[i - 1].rows_done);
  }
  session->OnProgress([](const session::QueryProgress& progress) {
    EXPECT_GE(progress.elapsed_ms, 300) << "short queries tell nothing";
  });
  EXPECT_TRUE(session->Execute("select count(*) from dim").ok());
}

}  // namespace
}  // namespace nam::testing
