#include "bench/calibration.h"

#include <gtest/gtest.h>

#include "tests/cluster/in_process_cluster.h"

namespace nam::bench {
namespace {

using catalog::FabricConstants;

class CalibrationTest : public ::testing::TestWithParam<fabric::Kind> {};

TEST_P(CalibrationTest, MeasuresTheRunningClusterAndLeavesNothingBehind) {
  testing::InProcessCluster cluster({.fabric = GetParam(), .compute_servers = 1});
  catalog::Attachment& attachment = cluster.attachment();
  const uint64_t used = cluster.UsedBytes();
  int steps = 0;
  const auto measured =
      MeasureFabricConstants(attachment, {}, {.rounds = 1, .proceed = [&](const std::string&) {
                                                ++steps;
                                                return true;
                                              }});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_GE(steps, 8);
  const FabricConstants defaults;
  for (const auto constant :
       {&FabricConstants::read_byte_ps, &FabricConstants::write_2k_byte_ps,
        &FabricConstants::write_64k_byte_ps, &FabricConstants::send_byte_ps, &FabricConstants::socket_byte_ps,
        &FabricConstants::memory_byte_ps, &FabricConstants::memory_access_ps, &FabricConstants::call_ps,
        &FabricConstants::slab_ps})
    EXPECT_NE((*measured).*constant, defaults.*constant) << "is not measured";
  EXPECT_LE(measured->l2_access_ps, measured->memory_access_ps);
  EXPECT_LE(cluster.AwaitUsedBytes(used), used) << "scratch memory is left behind";

  ASSERT_EQ(
      attachment.catalog().Calibrate(catalog::ToProto(std::string(fabric::KindName(GetParam())), *measured)),
      absl::OkStatus());
  const auto of_cluster = attachment.catalog().GetCluster();
  ASSERT_TRUE(of_cluster.ok()) << of_cluster.status();
  EXPECT_EQ(catalog::FromProto(of_cluster->constants()).value_or(defaults), *measured);
  EXPECT_EQ(attachment.catalog().Calibrate(catalog::ToProto("verbs", *measured)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(CalibrationTest, EndsWhereItIsTold) {
  testing::InProcessCluster cluster({.fabric = GetParam(), .compute_servers = 0});
  const uint64_t used = cluster.UsedBytes();
  int steps = 0;
  const auto measured = MeasureFabricConstants(
      cluster.attachment(), {}, {.rounds = 1, .proceed = [&](const std::string&) { return ++steps < 3; }});
  EXPECT_EQ(measured.status().code(), absl::StatusCode::kCancelled);
  EXPECT_LE(cluster.AwaitUsedBytes(used), used);
}

/// Fits by real queries, whose tables are dropped afterwards.
TEST(RowCalibrationTest, FitsTheModelToTheClustersQueries) {
  testing::InProcessCluster cluster({.compute_servers = 2});
  catalog::Attachment& attachment = cluster.attachment();
  const auto fitted = FitRowConstants(attachment, {}, {.rounds = 1, .rows = 30'000});
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  const FabricConstants defaults;
  for (const auto constant :
       {&FabricConstants::stage_ps, &FabricConstants::probe_row_ps, &FabricConstants::build_row_ps,
        &FabricConstants::direct_probe_row_ps, &FabricConstants::direct_build_row_ps,
        &FabricConstants::part_ps, &FabricConstants::partition_row_ps, &FabricConstants::group_row_ps})
    EXPECT_NE((*fitted).*constant, defaults.*constant) << "is not fitted";
  EXPECT_TRUE(catalog::FromProto(catalog::ToProto("shm", *fitted)).ok());
  const auto tables = attachment.catalog().ListTables();
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_TRUE(tables->empty());
}

TEST(RowCalibrationTest, AConstantIsWhatMakesTheEstimateRight) {
  FabricConstants constants;
  const catalog::FabricConstant probe{"probe_row_ps", &FabricConstants::probe_row_ps, 10, 1e6};
  const auto estimate = [](const FabricConstants& of) { return 3 + 2 * of.probe_row_ps + of.stage_ps; };
  const double actual = 3 + 2 * 12'345 + constants.stage_ps;
  EXPECT_NEAR(FittedConstant(constants, probe, actual, estimate), 12'345, 0.1);
  EXPECT_EQ(FittedConstant(constants, probe, 0, estimate), 10) << "not below its range";
  EXPECT_EQ(FittedConstant(constants, probe, 1e12, estimate), 1e6);
  EXPECT_EQ(FittedConstant(constants, probe, 1e12, [](const FabricConstants&) { return 7.0; }),
            constants.probe_row_ps);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, CalibrationTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& kind) { return std::string(fabric::KindName(kind.param)); });

}  // namespace
}  // namespace nam::bench
