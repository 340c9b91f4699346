#include "bench/checkout_peers.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "fabric/fabric.h"

namespace nam::bench {
namespace {

TEST(CheckoutLoop, BuysOnSeveralThreads) {
  const auto fabric = fabric::Open({.kind = fabric::Kind::kShm});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  for (const int threads : {1, 2}) {
    CheckoutLoopOptions options = {.threads = threads, .run_us = 200'000};
    options.checkout.products = 1'000;
    const auto loop = CheckoutLoop::Load(**fabric, options);
    ASSERT_TRUE(loop.ok()) << loop.status();
    for (int run = 0; run < 2; ++run) {  // the second finds rows that the first has left
      const CheckoutLoop::Outcome outcome = (*loop)->Run();
      EXPECT_GT(outcome.per_s, 10);
      // A single thread finds every row as it filled it, or as it was before.
      if (threads == 1) {
        EXPECT_EQ(outcome.torn_rows, 0u);
      }
    }
  }
  EXPECT_FALSE(CheckoutLoop::Load(**fabric, {.threads = 0}).ok());
}

TEST(CheckoutSqlite, DoesTheWork) {
  tpcw::CheckoutOptions checkout;
  checkout.products = 1'000;
  checkout.restock_quantity = 1;
  const auto sqlite = CheckoutSqlite::Load(checkout);
  ASSERT_TRUE(sqlite.ok()) << sqlite.status();
  const auto rate = (*sqlite)->Run(RealClock(), 200'000);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_GT(*rate, 10);
  const auto orders = (*sqlite)->Number("SELECT count(*) FROM orders");
  ASSERT_TRUE(orders.ok()) << orders.status();
  EXPECT_GT(*orders, 0);
  EXPECT_EQ(*(*sqlite)->Number("SELECT count(*) FROM order_lines"), 3 * *orders);
  EXPECT_EQ(*(*sqlite)->Number("SELECT sum(stock) FROM products") +
                *(*sqlite)->Number("SELECT sum(quantity) FROM order_lines"),
            1'000 * 1'000);
  EXPECT_EQ(*(*sqlite)->Number("SELECT min(length(rest)) FROM products"), 1'000);
}

}  // namespace
}  // namespace nam::bench
