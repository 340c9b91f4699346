#include "session/loaded_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "types/wire.h"

namespace nam::session {
namespace {

/// Notes what becomes of the allocations.
class NotedLoader final : public partitioner::TableLoader {
 public:
  absl::Status Append(const partitioner::ColumnBatch&) override { return absl::OkStatus(); }
  absl::StatusOr<AllocationId> BeginExtraAllocation() override { return AllocationId(++begun_); }
  void Take(AllocationId allocation, partitioner::WrittenGroups) override { taken.push_back(allocation); }
  void AbortExtraAllocation(AllocationId allocation) override { ended.push_back(allocation); }
  void DropTaken() override {}
  absl::StatusOr<proto::Table> Commit() override { return proto::Table(); }
  absl::StatusOr<proto::Table> WriteOnly() override { return proto::Table(); }

  std::vector<AllocationId> taken, ended;

 private:
  uint64_t begun_ = 0;
};

/// Their allocations would last as long as the statement, which may have very many.
TEST(LoadedRows, AttemptsThatWroteNothingEndAtOnce) {
  proto::Table table;
  *table.add_columns()->mutable_type() = ToProto(Type::Integer());
  NotedLoader loader;
  LoadedRows rows(table, {0}, loader, {});
  const uint64_t first = *rows.BeginAttempt(), second = *rows.BeginAttempt();
  proto::AttemptReply nothing, group;
  group.add_groups()->set_allocation(second);
  ASSERT_TRUE(rows.Take(first, nothing).ok());
  ASSERT_TRUE(rows.Take(second, group).ok());
  EXPECT_EQ(loader.ended, std::vector{AllocationId(first)});
  EXPECT_EQ(loader.taken, std::vector{AllocationId(second)});
}

}  // namespace
}  // namespace nam::session
