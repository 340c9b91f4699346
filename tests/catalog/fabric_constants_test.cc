#include "catalog/fabric_constants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace nam::catalog {
namespace {

TEST(FabricConstants, AreTheSameAgain) {
  FabricConstants constants;
  double value = 20'000;
  for (const FabricConstant& constant : FabricConstantTable()) constants.*constant.field = value += 1;
  const proto::FabricConstants stored = ToProto("tcp", constants);
  EXPECT_EQ(stored.fabric(), "tcp");
  const auto again = FromProto(stored);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, constants);
}

TEST(FabricConstants, WhatIsNotNamedHasItsDefault) {
  proto::FabricConstants one;
  proto::FabricConstant& constant = *one.add_constants();
  constant.set_name("read_byte_ps");
  constant.set_value(123);
  FabricConstants expected;
  expected.read_byte_ps = 123;
  EXPECT_EQ(FromProto(one).value_or(FabricConstants()), expected);
  EXPECT_EQ(FromProto({}).value_or(expected), FabricConstants());
}

TEST(FabricConstants, HaveNamesOfTheirOwnAndDefaultsInRange) {
  std::set<std::string> names;
  const FabricConstants defaults;
  for (const FabricConstant& constant : FabricConstantTable()) {
    EXPECT_TRUE(names.insert(constant.name).second) << constant.name;
    EXPECT_GT(constant.least, 0) << constant.name;
    EXPECT_GE(defaults.*constant.field, constant.least) << constant.name;
    EXPECT_LE(defaults.*constant.field, constant.most) << constant.name;
  }
  EXPECT_EQ(names.size() * sizeof(double), sizeof(FabricConstants)) << "one is not in the table";
}

TEST(FabricConstants, WhatIsNoMeasurementIsRefused) {
  for (const FabricConstant& constant : FabricConstantTable()) {
    for (const double value :
         {0.0, -1.0, constant.least / 2, constant.most * 2, std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), std::nan(""),
          std::numeric_limits<double>::denorm_min()}) {
      FabricConstants bad;
      bad.*constant.field = value;
      EXPECT_EQ(FromProto(ToProto("shm", bad)).status().code(), absl::StatusCode::kInvalidArgument)
          << constant.name << " " << value;
    }
  }
  proto::FabricConstants twice = ToProto("shm", {});
  *twice.add_constants() = twice.constants(0);
  EXPECT_EQ(FromProto(twice).status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& name :
       {std::string(), std::string("read_byte_p"), std::string("READ_BYTE_PS"), std::string(1 << 20, 'x')}) {
    proto::FabricConstants unknown;
    unknown.add_constants()->set_name(name);
    unknown.mutable_constants(0)->set_value(1000);
    const absl::Status status = FromProto(unknown).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 1000u) << "what a stranger sends is not sent back";
  }
}

}  // namespace
}  // namespace nam::catalog
