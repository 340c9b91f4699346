// Bloom filters of the keys of all members, as the threads of servers exchange them.
#include "execution/exchange/key_filters.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "tests/execution/exchange/members.h"
#include "types/hash.h"

namespace nam::execution {
namespace {

constexpr uint32_t kFilterMessageBytes = 2048;

EndpointOptions FilterExchangeOptions(uint32_t members) {
  return {.exchanges = {RepartitionAmong(members)}, .message_bytes = kFilterMessageBytes, .credits = 2};
}

/// A member's own filter and those that it receives.
struct OneMember {
  explicit OneMember(uint32_t self, uint32_t members, uint64_t keys)
      : filters({.exchange = 0, .self = self, .members = members}, budget) {
    auto made = BloomFilter::Make(BloomFilter::BytesFor(keys, 0.1), budget);
    EXPECT_TRUE(made.ok()) << made.status();
    own = std::make_unique<BloomFilter>(*std::move(made));
    filters.SetOwn(*own);
  }
  absl::Status Ship(Members& members, uint32_t self) {
    TaskContext context(members.fabric(self).clock(), budget, members.cancel(), {.exchange = &members[self]});
    absl::Status status = filters.Ship(context, members[self]);
    while (status.ok() && !members[self].Idle()) status = members[self].Poll(true, members.cancel());
    return status;
  }

  MemoryBudget budget{uint64_t{16} << 20};
  std::unique_ptr<BloomFilter> own;
  KeyFilters filters;
};

class KeyFiltersTest : public testing::TestWithParam<Subject> {};

/// Filters of no key, of a few keys, and of so many that a filter takes many messages.
TEST_P(KeyFiltersTest, KeysOfAllMembersAreKeptAndFewOthers) {
  for (const uint32_t count : {1u, 2u, 4u}) {
    SCOPED_TRACE(count);
    std::vector<std::vector<uint64_t>> keys(count), others(count);
    std::vector<uint64_t> all, strange;
    for (int64_t k = 0; k < 60'000; ++k) {
      const uint64_t hash = HashNumber(k);
      const uint32_t owner = ExchangePart(hash, count);
      const bool has = owner == 1 ? keys[owner].size() < 10 : owner != 2;
      if (has && k % 2 == 0) keys[owner].push_back(hash);
      (has && k % 2 == 0 ? all : strange).push_back(hash);
    }
    Members members(GetParam(), count, FilterExchangeOptions(count));
    members.Connect();
    std::vector<std::unique_ptr<OneMember>> ends;
    for (uint32_t m = 0; m < count; ++m) {
      ends.push_back(std::make_unique<OneMember>(m, count, keys[m].size()));
      for (const uint64_t hash : keys[m]) ends[m]->own->Add(hash);
    }
    members.OnAll([&](uint32_t self) {
      const absl::Status shipped = ends[self]->Ship(members, self);
      EXPECT_TRUE(shipped.ok()) << shipped;
    });
    for (uint32_t m = 0; m < count; ++m) {
      SCOPED_TRACE(m);
      ASSERT_OK(ends[m]->filters.Complete(members[m]));
      std::vector<uint32_t> kept(all.size());
      std::vector<uint32_t> every(all.size());
      std::iota(every.begin(), every.end(), 0);
      kept.resize(ends[m]->filters.Keep(all.data(), static_cast<uint32_t>(all.size()), kept.data()));
      EXPECT_EQ(kept, every) << "no key is lost";
      std::vector<uint32_t> wrong(strange.size());
      const uint32_t errors =
          ends[m]->filters.Keep(strange.data(), static_cast<uint32_t>(strange.size()), wrong.data());
      EXPECT_LT(errors, strange.size() * 12 / 100);
    }
  }
}

/// Member 1 sends these payloads to member 0, then its last message.
absl::Status OfDishonest(const Subject& subject, const std::vector<std::vector<uint64_t>>& payloads) {
  Members members(subject, 2, FilterExchangeOptions(2));
  members.Connect();
  OneMember honest(0, 2, 100);
  absl::Status status;
  members.OnAll([&](uint32_t self) {
    if (self == 0) {
      status = honest.Ship(members, self);
      if (status.ok()) status = honest.filters.Complete(members[self]);
      members.Cancel();
      return;
    }
    Endpoint& endpoint = members[self];
    for (size_t i = 0; i <= payloads.size(); ++i) {
      const bool last = i == payloads.size();
      for (const uint32_t to : {0u, 1u}) {
        if (to == 1 && !last) continue;
        const auto buffer = endpoint.GetFree(0, to);
        ASSERT_TRUE(buffer.has_value());
        const uint32_t bytes = last ? 0 : static_cast<uint32_t>(8 * payloads[i].size());
        if (bytes > 0) std::memcpy(buffer->payload.data(), payloads[i].data(), bytes);
        const auto sent = endpoint.Send(*buffer, {.payload_bytes = bytes, .rows = 0, .last = last});
        ASSERT_TRUE(sent.ok() && *sent) << sent.status();
      }
    }
    // The other member may have gone.
    while (endpoint.Poll(true, members.cancel()).ok()) {
      while (const auto message = endpoint.GetData(0, 1)) (void)endpoint.Release(*message);
    }
  });
  return status;
}

TEST_P(KeyFiltersTest, WhatIsNoWholeFilterIsRefusedByItsSendersName) {
  for (const auto& payloads : std::vector<std::vector<std::vector<uint64_t>>>{
           {},                                  // none at all
           {{32, 0}},                           // nothing of it
           {{64, 0, 1, 2, 3, 4}},               // half of it
           {{0, 0, 1, 2, 3, 4}},                // of no size
           {{36, 0, 1, 2, 3, 4}},               // no words
           {{32, 32, 1, 2, 3, 4}},              // behind its end
           {{uint64_t{1} << 63, 32, 1, 2, 3}},  // of a size that no member has
       }) {
    const absl::Status status = OfDishonest(GetParam(), payloads);
    ASSERT_FALSE(status.ok());
    if (absl::IsResourceExhausted(status)) continue;
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), Members::Name(1))) << status;
    EXPECT_TRUE(status.GetPayload(kExchangeMemberLost).has_value());
  }
  ASSERT_OK(OfDishonest(GetParam(), {{32, 0, 1, 2, 3, 4}}));
}

INSTANTIATE_TEST_SUITE_P(, KeyFiltersTest,
                         testing::Values(Subject{.fabric = fabric::Kind::kSim},
                                         Subject{.fabric = fabric::Kind::kShm}),
                         NameOf);

}  // namespace
}  // namespace nam::execution
