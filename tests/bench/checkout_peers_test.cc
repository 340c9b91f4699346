#include <gtest/gtest.h>

#include "base/clock.h"
#include "bench/checkout_loop.h"
#include "bench/checkout_sqlite.h"
#include "fabric/fabric.h"

namespace nam::bench {
namespace {

TEST(CheckoutLoop, RunsOnSeveralThreadsWithAndWithoutPrefetch) {
  const auto fabric = fabric::Open({.kind = fabric::Kind::kShm});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  for (const bool prefetch : {false, true}) {
    for (const int threads : {1, 2}) {
      const CheckoutLoopOptions options = {
          .products = 1'000, .threads = threads, .run_us = 20'000, .prefetch_next = prefetch};
      const auto loop = CheckoutLoop::Load(**fabric, options);
      ASSERT_TRUE(loop.ok()) << loop.status();
      const double rate = (*loop)->Run();
      RecordProperty("transactions_per_s", std::to_string(rate));
      EXPECT_GT(rate, 1'000);
    }
  }
  EXPECT_FALSE(CheckoutLoop::Load(**fabric, {.threads = 0}).ok());
}

TEST(CheckoutSqlite, DoesTheWork) {
  for (const bool journal : {false, true}) {
    CheckoutSqliteOptions options = {.journal = journal};
    options.checkout.products = 1'000;
    options.checkout.restock_quantity = 1;
    const auto sqlite = CheckoutSqlite::Load(options);
    ASSERT_TRUE(sqlite.ok()) << sqlite.status();
    const auto rate = (*sqlite)->Run(RealClock(), 20'000);
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
}

}  // namespace
}  // namespace nam::bench
