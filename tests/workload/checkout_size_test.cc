#include "workload/checkout_size.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "localcluster/memory_room.h"

namespace nam {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

CheckoutRunOptions DefaultRun() {
  CheckoutRunOptions run;
  run.tables.expected_orders = 2'000'000;
  return run;
}

uint64_t BytesOf(const CheckoutRunOptions& run, uint64_t orders) {
  return run.checkout.products * BytesPerProduct(run.checkout, 1) + orders * BytesPerOrder(run.checkout, 1);
}

// The defaults of `nam up` on such a host suffice for the defaults of `nam checkout`.
TEST(CheckoutSizeTest, DefaultsFitEachOther) {
  const struct {
    uint64_t host_gib, products_min, orders_min;
  } kHosts[] = {
      {1, 20'000, 50'000}, {4, 100'000, 200'000}, {16, 500'000, 1'000'000}, {64, 1'000'000, 1'000'000}};
  for (const auto& [host_gib, products_min, orders_min] : kHosts) {
    const uint64_t free_bytes = 2 * DefaultMemory(2, {{kHostMemory, host_gib * kGiB, host_gib * kGiB}});
    const auto run = FitCheckout(DefaultRun(), 0, free_bytes);
    ASSERT_TRUE(run.ok()) << host_gib << " GiB: " << run.status();
    EXPECT_LE(BytesOf(*run, run->driver.transactions), free_bytes) << host_gib << " GiB";
    EXPECT_LE(run->tables.expected_orders, run->driver.transactions);
    EXPECT_GE(run->checkout.products, products_min) << host_gib << " GiB";
    EXPECT_GE(run->driver.transactions, orders_min) << host_gib << " GiB";
  }
}

TEST(CheckoutSizeTest, WhatWasAskedForIsDoneOrRefused) {
  CheckoutRunOptions wanted = DefaultRun();
  wanted.driver.transactions = 5'000;
  const auto run = FitCheckout(wanted, 10'000, kGiB);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->checkout.products, 10'000u);
  EXPECT_EQ(run->driver.transactions, 5'000u);
  const auto refused = FitCheckout(wanted, 2'000'000, kGiB);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (const char* piece : {"2,000,000 products", "1 GiB free", "--products", "nam up --memory"})
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(piece));
  wanted.driver.transactions = 10'000'000;
  EXPECT_EQ(FitCheckout(wanted, 10'000, kGiB).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FitCheckout(DefaultRun(), 0, 1'000).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace nam
