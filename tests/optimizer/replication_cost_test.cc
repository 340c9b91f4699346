#include "optimizer/replication_cost.h"

#include <gtest/gtest.h>

namespace nam::optimizer {
namespace {

/// Rows of 8 bytes travel in whole datagrams.
ReplicatedSides Sides(double rows, int senders, int servers) {
  return {.rows = rows,
          .bytes = rows * 8,
          .datagrams = rows * 8 / 4096,
          .senders = senders,
          .servers = servers,
          .threads = 10};
}

TEST(ReplicationCosts, WhatIsSmallIsRead) {
  const ReplicationCosts costs = CostsOf(Sides(10'000, 8, 16));
  EXPECT_LT(costs.read_ms, costs.multicast_ms);
}

TEST(ReplicationCosts, ReadIsAsGoodWhileTheSendersCardsCarryIt) {
  const ReplicationCosts costs = CostsOf(Sides(10e6, 8, 8));
  EXPECT_LE(costs.read_ms, costs.multicast_ms);
}

TEST(ReplicationCosts, ManyServersShareFewSendersOnlyByRead) {
  const ReplicationCosts few = CostsOf(Sides(10e6, 8, 16)), many = CostsOf(Sides(10e6, 8, 64));
  EXPECT_GT(few.read_ms, few.multicast_ms);
  EXPECT_GT(many.read_ms, 3.9 * few.read_ms);
  EXPECT_EQ(many.multicast_ms, few.multicast_ms);
}

}  // namespace
}  // namespace nam::optimizer
