#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/plan_query.h"
#include "partitioner/loader.h"
#include "plan/print.h"
#include "sql/logical_binder.h"
#include "tests/cluster/in_process_cluster.h"
#include "tpch/generator.h"
#include "tpch/queries.h"

namespace nam::optimizer {
namespace {

using nam::testing::InProcessCluster;

constexpr double kScaleFactor = 0.1;
/// Physical plans by the id of their query: `== Q1` and the plan's lines. `./run expected` writes it anew.
constexpr char kPlans[] = "tests/optimizer/tpch_plans.txt";

class TpchTables final : public sql::TableSource {
 public:
  explicit TpchTables(catalog::Attachment& attachment) : catalog_(attachment.catalog()) {
    const tpch::Generator generator({.scale_factor = kScaleFactor});
    for (size_t table = 0; table < generator.tables().size(); ++table) Load(attachment, generator, table);
  }
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    return catalog_.GetTable(name);
  }
  std::vector<std::string> Names() override { return {}; }

 private:
  static void Load(catalog::Attachment& attachment, const tpch::Generator& generator, size_t table) {
    constexpr uint64_t kUnitsOfABatch = 20'000;
    const partitioner::TableSchema& schema = generator.tables()[table].schema;
    auto loader = partitioner::BeginLoad(attachment, schema, {});
    ASSERT_TRUE(loader.ok()) << loader.status();
    for (uint64_t done = 0; done < generator.Units(table); done += kUnitsOfABatch) {
      partitioner::ColumnBatch batch(schema.columns.size());
      generator.Fill(table, done, std::min(kUnitsOfABatch, generator.Units(table) - done), batch);
      ASSERT_TRUE((*loader)->Append(batch).ok());
    }
    const auto committed = (*loader)->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }

  catalog::Client& catalog_;
};

std::map<std::string, std::string> ReadPlans() {
  std::ifstream in(kPlans);
  std::map<std::string, std::string> plans;
  std::string id;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "== ")) {
      id = line.substr(3);
    } else {
      absl::StrAppend(&plans[id], line, "\n");
    }
  }
  return plans;
}

std::string PlanText(const std::string& text, sql::TableSource& tables) {
  auto tree = sql::BindLogical(text, tables);
  if (!tree.ok()) return tree.status().ToString();
  const auto planned = PlanQuery(*std::move(tree));
  if (!planned.ok()) return planned.status().ToString();
  const LoweredPlan& lowered = planned->lowered;
  const auto name = [&](uint32_t table, uint32_t column) {
    return lowered.tables[table]->columns(static_cast<int>(column)).name();
  };
  return absl::StrCat(absl::StrJoin(plan::Print(lowered.plan, name), "\n"), "\n");
}

TEST(GoldenTpchPlans, AtATenth) {
  InProcessCluster cluster({.memory_servers = 1, .compute_servers = 0, .memory_bytes = uint64_t{512} << 20});
  TpchTables tables(cluster.attachment());
  if (HasFailure()) return;
  std::map<std::string, std::string> golden = ReadPlans();
  std::ofstream anew;
  if (std::getenv("NAM_REGENERATE") != nullptr) anew.open(kPlans);
  for (const tpch::Query& query : tpch::Queries(kScaleFactor, std::nullopt)) {
    const std::string plan = PlanText(query.sql, tables);
    if (anew.is_open()) {
      anew << "== " << query.id << "\n" << plan;
    } else {
      EXPECT_EQ(plan, golden[query.id]) << query.id;
    }
  }
}

}  // namespace
}  // namespace nam::optimizer
