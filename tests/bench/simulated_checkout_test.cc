#include "bench/simulated_checkout.h"

#include <gtest/gtest.h>

namespace nam::bench {
namespace {

SimulatedCheckoutOptions Small() {
  SimulatedCheckoutOptions options;
  options.checkout.products = 5'000;
  options.checkout.product_bytes = 256;
  options.expected_orders = 2'000;
  options.measured_us = 1'000;
  return options;
}

using Open = absl::StatusOr<std::unique_ptr<SimulatedCheckout>> (*)(const SimulatedCheckoutOptions&);

std::vector<SimulatedRates> RunAll(Open open, const SimulatedCheckoutOptions& options,
                                   const std::vector<uint32_t>& clients) {
  std::vector<SimulatedRates> all;
  const auto checkout = open(options);
  EXPECT_TRUE(checkout.ok()) << checkout.status();
  if (!checkout.ok()) return all;
  for (const uint32_t count : clients) {
    const auto rates = (*checkout)->Run(count);
    EXPECT_TRUE(rates.ok()) << rates.status();
    all.push_back(rates.value_or(SimulatedRates{}));
  }
  const auto invariants = (*checkout)->Check();
  EXPECT_TRUE(invariants.ok()) << invariants.status();
  if (invariants.ok()) {
    EXPECT_TRUE(invariants->ok()) << invariants->ToString();
    EXPECT_GT(invariants->orders, 0u);
  }
  return all;
}

TEST(SimulatedCheckout, RsiGrowsWithItsClientsAndIsTheSameEveryTime) {
  const auto rates = RunAll(&SimulatedCheckout::Rsi, Small(), {1, 4});
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_GT(rates[1].committed_per_s, 3 * rates[0].committed_per_s);
  EXPECT_GT(rates[0].p50_us, 5);  // some round trips of 2 us
  // At least three rows of products are read and written.
  EXPECT_GT(rates[0].bytes_per_commit, 6 * 256);
  EXPECT_GT(rates[1].busiest.fraction, rates[0].busiest.fraction);
  // The state server's card is observed beside those of row servers, and its busiest word has a name.
  ASSERT_EQ(rates[1].cards.size(), 3u + 1 + 4);
  const CardUse& state = rates[1].cards[3];
  EXPECT_EQ(state.card.role, CardRole::kState);
  EXPECT_EQ(state.word_name, "the timestamp counter");
  EXPECT_GT(state.word, 0.9 * rates[1].committed_per_s * Small().nic.atomic_ns / 1e9);
  const auto again = RunAll(&SimulatedCheckout::Rsi, Small(), {1, 4});
  EXPECT_EQ(again[1].committed_per_s, rates[1].committed_per_s);
}

TEST(SimulatedCheckout, ManyClientsOpenAtOnce) {
  SimulatedCheckoutOptions options = Small();
  options.checkout.products = 20'000;
  options.measured_us = 400;
  const auto rates = RunAll(&SimulatedCheckout::Rsi, options, {96});
  ASSERT_EQ(rates.size(), 1u);
  ASSERT_EQ(rates[0].clients, 96u) << "more than look at the same vacancies";
  const CardUse& state = rates[0].cards[3];
  EXPECT_EQ(state.word_name, "the timestamp counter");
}

TEST(SimulatedCheckout, ASlowMessageMakesTwoPhaseCommitSlow) {
  SimulatedCheckoutOptions options = Small();
  options.measured_us = 8'000;
  options.message.message_cpu_ns = 200;
  const auto fast = RunAll(&SimulatedCheckout::TwoPhase, options, {8});
  options.message = {.message_cpu_ns = 6'000, .latency_ns = 20'000, .port_bytes_per_us = 3'500};
  const auto slow = RunAll(&SimulatedCheckout::TwoPhase, options, {8});
  ASSERT_EQ(fast.size(), 1u);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_GT(fast[0].committed_per_s, 5 * slow[0].committed_per_s);
  // A transaction takes at least eight successive messages.
  EXPECT_GT(slow[0].p50_us, 8 * 20);
}

}  // namespace
}  // namespace nam::bench
