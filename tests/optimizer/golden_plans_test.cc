#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/plan_query.h"
#include "partitioner/loader.h"
#include "plan/flow.h"
#include "sql/logical_binder.h"
#include "ssb/generator.h"
#include "ssb/queries.h"
#include "ssb/schema.h"
#include "tests/cluster/in_process_cluster.h"

namespace nam::optimizer {
namespace {

using nam::testing::InProcessCluster;

class CatalogTables final : public sql::TableSource {
 public:
  explicit CatalogTables(catalog::Client& catalog) : catalog_(catalog) {}
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    return catalog_.GetTable(name);
  }
  std::vector<std::string> Names() override { return {}; }

 private:
  catalog::Client& catalog_;
};

void LoadSsb(catalog::Attachment& attachment) {
  const ssb::Generator generator({.scale_factor = 0.1});
  for (const ssb::Table table : ssb::kAllTables) {
    const partitioner::TableSchema schema = ssb::Schema(table, 8);
    partitioner::ColumnBatch batch(schema.columns.size());
    generator.Fill(table, 0, generator.Units(table), batch);
    auto loader = partitioner::BeginLoad(attachment, schema, {});
    ASSERT_TRUE(loader.ok()) << loader.status();
    ASSERT_TRUE((*loader)->Append(batch).ok());
    const auto committed = (*loader)->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
}

/// `lineorder 0.13 > part 0.04 = 3,140 > …`: the streamed table, then each build side with its estimated
/// share of rows and the rows that are left.
std::string Show(const LoweredPlan& lowered) {
  const plan::PhysicalPlan& plan = lowered.plan;
  const plan::Pipeline& claimed = plan.pipelines[plan.stages[0].claimed];
  const auto name = [&](const plan::Pipeline& pipeline) {
    return lowered.tables[plan::ScanOf(pipeline)->table]->name();
  };
  std::string text = absl::StrFormat("%s %.3g", name(claimed), claimed.estimates[0].selectivity);
  for (size_t s = 0; s < claimed.steps.size(); ++s) {
    const auto* probe = std::get_if<plan::ProbeStep>(&claimed.steps[s]);
    if (probe == nullptr) continue;
    const plan::Pipeline& build = plan.pipelines[probe->build];
    absl::StrAppend(&text, absl::StrFormat(" > %s %.2g = %.0f", name(build), build.estimates[0].selectivity,
                                           claimed.estimates[s + 1].rows));
  }
  return text;
}

std::string StarText(const std::string& text, sql::TableSource& tables) {
  auto tree = sql::BindLogical(text, tables);
  EXPECT_TRUE(tree.ok()) << tree.status();
  if (!tree.ok()) return "";
  const auto plan = PlanQuery(*std::move(tree));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? Show(plan->lowered) : "";
}

TEST(GoldenPlans, OfSsbsQueriesAtATenth) {
  const std::map<std::string, std::string> golden = {
      {"Q1.1", "lineorder 0.131 > date 0.14 = 11231"},
      {"Q1.2", "lineorder 0.0545 > date 0.012 = 390"},
      {"Q1.3", "lineorder 0.0545 > date 0.0027 = 88"},
      {"Q2.1", "lineorder 1 > part 0.04 = 24023 > supplier 0.2 = 4805 > date 1 = 4805"},
      {"Q2.2", "lineorder 1 > part 0.0073 = 4379 > supplier 0.2 = 876 > date 1 = 876"},
      {"Q2.3", "lineorder 1 > part 0.001 = 601 > supplier 0.2 = 120 > date 1 = 120"},
      {"Q3.1", "lineorder 1 > customer 0.2 = 120114 > supplier 0.2 = 24023 > date 0.86 = 20591"},
      {"Q3.2", "lineorder 1 > customer 0.04 = 24023 > supplier 0.04 = 961 > date 0.86 = 824"},
      {"Q3.3", "lineorder 1 > customer 0.008 = 4795 > supplier 0.013 = 64 > date 0.86 = 55"},
      {"Q3.4", "lineorder 1 > customer 0.008 = 4795 > date 0.012 = 57 > supplier 0.013 = 1"},
      {"Q4.1",
       "lineorder 1 > customer 0.2 = 120114 > supplier 0.2 = 24023 > part 0.36 = 8648 > date 1 = 8648"},
      {"Q4.2",
       "lineorder 1 > customer 0.2 = 120114 > supplier 0.2 = 24023 > date 0.27 = 6373 > part 0.36 = 2294"},
      {"Q4.3", "lineorder 1 > supplier 0.04 = 24023 > part 0.04 = 961 > customer 0.2 = 192 > date 0.27 = 51"},
  };
  InProcessCluster cluster({.memory_servers = 1, .compute_servers = 0});
  LoadSsb(cluster.attachment());
  if (HasFatalFailure()) return;
  CatalogTables tables(cluster.attachment().catalog());
  for (const ssb::Query& query : ssb::Queries()) {
    const std::string plan = StarText(std::string(query.sql), tables);
    EXPECT_EQ(plan, golden.at(std::string(query.id))) << query.id;
    EXPECT_EQ(plan, StarText(std::string(query.sql), tables)) << query.id << ", again";
  }
}

}  // namespace
}  // namespace nam::optimizer
