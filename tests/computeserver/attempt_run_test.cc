#include "computeserver/attempt_run.h"

#include <gtest/gtest.h>

#include "execution/methods.h"
#include "execution/partition/open_scratch.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

/// A query for which the server has too little memory is retried with more; one that only lacks room because
/// of others is not.
TEST(OrCrowdedTest, MoreMemoryIsOnlyForWhatLacksIt) {
  execution::ServerMemory memory(100);
  ASSERT_TRUE(memory.Reserve(10));
  execution::MemoryGrant grant(memory, 10);
  const absl::Status over = absl::ResourceExhaustedError("over the budget");
  EXPECT_EQ(OrCrowded(over, grant, false, 0, 100).status(), over) << "nothing was refused";
  EXPECT_FALSE(grant.Reserve(101));
  const auto crowded = OrCrowded(over, grant, false, 0, 100);
  EXPECT_TRUE(crowded.ok() && crowded->crowded());
  EXPECT_EQ(SqlErrorOf(OrCrowded(over, grant, true, 0, 100).status()).value_or(SqlError{}).sqlstate, "53200");
  const absl::Status full = execution::ScratchError(absl::ResourceExhaustedError("scratch memory is full"));
  for (const bool whole : {false, true}) EXPECT_EQ(OrCrowded(full, grant, whole, 0, 100).status(), full);
}

/// A result's budget is at most the server's memory, so the server never refuses. The client must be told to
/// raise the setting that is the bound.
TEST(OrCrowdedTest, ASmallServerIsNotTheSettingsMatter) {
  execution::ServerMemory memory(100);
  ASSERT_TRUE(memory.Reserve(100));
  execution::MemoryGrant grant(memory, 100);
  const absl::Status over = UserError(sqlstate::kOutOfMemory, "raise nam.result_mib_max", -1);
  for (const bool whole : {false, true}) {
    EXPECT_EQ(OrCrowded(over, grant, whole, 0, 100).status(), over) << "all that was asked for was there";
    const absl::Status small = OrCrowded(over, grant, whole, 0, 101).status();
    EXPECT_EQ(SqlErrorOf(small).value_or(SqlError{}).sqlstate, "53200");
    EXPECT_NE(small.message().find("raise --memory of the compute servers"), absl::string_view::npos)
        << small;
  }
  absl::Status builds = over;
  builds.SetPayload(execution::kBuildSidesTooLarge, absl::Cord());
  EXPECT_EQ(OrCrowded(builds, grant, false, 0, 101).status(), builds) << "they may go by parts";
}

/// The query starts again by parts where that helps: build sides take most of the memory, or ask for it.
TEST(OrCrowdedTest, BuildSidesWithMostOfTheMemoryAreTooLarge) {
  execution::ServerMemory memory(100);
  ASSERT_TRUE(memory.Reserve(10));
  execution::MemoryGrant grant(memory, 10);
  EXPECT_FALSE(grant.Reserve(101));
  const auto too_large = [&](const absl::Status& status, bool whole, uint64_t build_bytes) {
    const absl::Status told = OrCrowded(status, grant, whole, build_bytes, 0).status();
    return told.GetPayload(execution::kBuildSidesTooLarge).has_value();
  };
  absl::Status over = absl::ResourceExhaustedError("over the budget");
  EXPECT_FALSE(too_large(over, true, 50));
  EXPECT_TRUE(too_large(over, true, 51));
  EXPECT_FALSE(too_large(over, false, 51)) << "it may be done with all memory";
  over.SetPayload(execution::kBuildSidesTooLarge, absl::Cord());
  EXPECT_TRUE(too_large(over, true, 0));
}

}  // namespace
}  // namespace nam::computeserver
