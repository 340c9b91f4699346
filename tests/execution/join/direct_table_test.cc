#include "execution/join/direct_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

namespace nam::execution {
namespace {

constexpr uint64_t kBudgetBytes = uint64_t{1} << 30;

std::vector<uint32_t> Partners(const DirectTable& table, int64_t key) {
  std::vector<uint32_t> rows;
  if (!table.InDomain(key)) return rows;
  for (uint32_t head = table.Head(key); head != 0; head = table.unique() ? 0 : table.Next(head - 1))
    rows.push_back(head - 1);
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A table over some parts of a domain, and keys that may lie in them.
struct Case {
  DirectTable::Options options;
  std::vector<int64_t> keys;  // of parts that are here

  bool IsHere(int64_t key) const {
    const int64_t part = key & int64_t{options.parts - 1};
    return options.here.empty() || std::ranges::count(options.here, static_cast<uint32_t>(part)) > 0;
  }
};

Case RandomCase(bool unique) {
  Case random;
  random.options.key_min = *rc::gen::inRange<int64_t>(-300, 300);
  random.options.key_max = random.options.key_min + *rc::gen::inRange<int64_t>(0, 500);
  random.options.unique = unique;
  random.options.parts = 1u << *rc::gen::inRange(0, 5);
  if (*rc::gen::arbitrary<bool>()) {
    const auto here = *rc::gen::container<std::set<uint32_t>>(rc::gen::inRange(0u, random.options.parts));
    random.options.here = {here.begin(), here.end()};
  }
  random.keys = *rc::gen::container<std::vector<int64_t>>(
      rc::gen::inRange<int64_t>(random.options.key_min, random.options.key_max + 1));
  std::erase_if(random.keys, [&](int64_t key) { return !random.IsHere(key); });
  random.options.rows = random.keys.size();
  return random;
}

TEST(DirectTable, ChainsLeadToWhatANaiveMapHas) {
  EXPECT_TRUE(rc::check("chained = map", [] {
    const Case given = RandomCase(false);
    MemoryBudget budget(kBudgetBytes);
    auto table = *DirectTable::Make(given.options, budget);
    RC_ASSERT(budget.used() == DirectTable::BytesNeeded(given.options));
    RC_ASSERT(table->SetRows(given.keys.size(), budget).ok());
    std::multimap<int64_t, uint32_t> naive;
    for (uint32_t row = 0; row < given.keys.size(); ++row) {
      RC_ASSERT(table->IsHere(given.keys[row]));
      table->Insert(given.keys[row], row);
      naive.emplace(given.keys[row], row);
    }
    bool twice = false;
    for (int64_t key = given.options.key_min - 3; key <= given.options.key_max + 3; ++key) {
      std::vector<uint32_t> expected;
      for (auto [it, end] = naive.equal_range(key); it != end; ++it) expected.push_back(it->second);
      twice |= expected.size() > 1;
      RC_ASSERT(Partners(*table, key) == expected);
      if (table->InDomain(key)) RC_ASSERT(table->IsHere(key) == given.IsHere(key));
    }
    RC_ASSERT(table->chained() == twice);
  }));
}

TEST(DirectTable, UniqueKeysHavePositionsOfTheirOwn) {
  EXPECT_TRUE(rc::check("unique = set", [] {
    Case given = RandomCase(true);
    given.options.payload_widths = {1, 8};
    MemoryBudget budget(kBudgetBytes);
    {
      auto table = *DirectTable::Make(given.options, budget);
      RC_ASSERT(budget.used() == DirectTable::BytesNeeded(given.options));
      std::set<int64_t> naive;
      for (int64_t key : given.keys) {
        RC_ASSERT(table->InsertUnique(key) == naive.insert(key).second);
        reinterpret_cast<int64_t*>(table->payload(1))[table->PositionOf(key)] = key;
      }
      std::set<uint32_t> positions;
      for (int64_t key = given.options.key_min; key <= given.options.key_max; ++key) {
        const uint32_t position = table->PositionOf(key);
        const std::vector<uint32_t> expected(naive.contains(key) ? 1 : 0, position);
        RC_ASSERT(Partners(*table, key) == expected);
        if (given.IsHere(key)) RC_ASSERT(positions.insert(position).second);
        if (naive.contains(key)) RC_ASSERT(reinterpret_cast<int64_t*>(table->payload(1))[position] == key);
      }
    }
    RC_ASSERT(budget.used() == 0u);
  }));
}

// A scan looks its own keys up by these bits, without the table: see code_select.h.
TEST(DirectTable, BitsOfAPartBeginWithAWord) {
  EXPECT_TRUE(rc::check("bits by part", [] {
    const Case given = RandomCase(true);
    MemoryBudget budget(kBudgetBytes);
    auto table = *DirectTable::Make(given.options, budget);
    for (int64_t key : given.keys) table->InsertUnique(key);
    for (int64_t key = given.options.key_min; key <= given.options.key_max; ++key) {
      const auto k = static_cast<uint64_t>(key - table->origin());
      const auto part = static_cast<uint32_t>(k & (given.options.parts - 1));
      RC_ASSERT(part == static_cast<uint32_t>(key & int64_t{given.options.parts - 1}));
      const uint64_t bit = k >> table->part_shift();
      const bool there = (table->present_of(part)[bit / 32] >> bit % 32 & 1) != 0;
      RC_ASSERT(there == (std::ranges::count(given.keys, key) > 0));
      if (!table->all_here()) continue;
      const uint64_t position = part * table->part_size() + bit;
      RC_ASSERT(there == ((table->present()[position / 32] >> position % 32 & 1) != 0));
    }
  }));
}

TEST(DirectTable, FitsByThePartsThatAreHere) {
  DirectTable::Options options{.rows = 100, .key_min = 1, .key_max = 100, .parts = 8};
  EXPECT_TRUE(DirectTable::Fits(options));
  options.key_max = INT64_MAX;
  EXPECT_FALSE(DirectTable::Fits(options));
  EXPECT_FALSE(DirectTable::Fits({.rows = 100})) << "keys are not known";
  EXPECT_FALSE(DirectTable::Fits({.rows = 100, .key_min = INT64_MIN, .key_max = INT64_MIN + 5}));
  // A table of 16 million keys of which a filter or the partitioning leaves a server one part in 16.
  options = {.rows = 1'000'000, .key_min = 1, .key_max = 16'000'000, .unique = true, .parts = 16};
  EXPECT_FALSE(DirectTable::Fits(options));
  options.here = {3};
  EXPECT_TRUE(DirectTable::Fits(options));
  // The part, and bits for one that stays empty.
  options.payload_widths = {4};
  EXPECT_LT(DirectTable::BytesNeeded(options), 1'000'000u * 4 + 300'000);
  // The limit of the domain holds even if there are few rows.
  EXPECT_TRUE(DirectTable::Fits({.rows = 1, .key_min = 0, .key_max = (1 << 17) - 1}));
  EXPECT_FALSE(DirectTable::Fits({.rows = 1, .key_min = 0, .key_max = 1 << 17}));
}

TEST(DirectTable, KnowsWhatWasInserted) {
  MemoryBudget budget(kBudgetBytes);
  auto table = *DirectTable::Make({.rows = 10, .key_min = -5, .key_max = 5, .unique = true}, budget);
  EXPECT_GT(table->least_key(), table->greatest_key());
  table->Inserted(2, 3, 2);
  table->Inserted(-1, 0, 1);
  EXPECT_EQ(table->least_key(), -1);
  EXPECT_EQ(table->greatest_key(), 3);
  EXPECT_EQ(table->inserted_rows(), 3u);
}

TEST(DirectTable, AsksTheBudget) {
  const DirectTable::Options options{
      .rows = 1000, .key_min = 0, .key_max = 999, .unique = true, .payload_widths = {8}};
  MemoryBudget budget(DirectTable::BytesNeeded(options) - 1);
  EXPECT_EQ(DirectTable::Make(options, budget).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(DirectTable, ThreadsInsertAtOnce) {
  constexpr int64_t kKeys = 40'000;
  MemoryBudget budget(kBudgetBytes);
  auto unique =
      *DirectTable::Make({.rows = kKeys, .key_min = 0, .key_max = kKeys - 1, .unique = true}, budget);
  auto chained = *DirectTable::Make({.rows = kKeys, .key_min = 0, .key_max = kKeys / 8}, budget);
  ASSERT_TRUE(chained->SetRows(kKeys, budget).ok());
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t key = t; key < kKeys; key += 4) {
        EXPECT_TRUE(unique->InsertUnique(key));
        chained->Insert(key / 8, static_cast<uint32_t>(key));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t key = 0; key < kKeys; ++key) EXPECT_NE(unique->Head(key), 0u);
  for (int64_t key = 0; key < kKeys / 8; ++key) {
    std::vector<uint32_t> expected;
    for (int64_t row = key * 8; row < key * 8 + 8; ++row) expected.push_back(static_cast<uint32_t>(row));
    EXPECT_EQ(Partners(*chained, key), expected);
  }
}

}  // namespace
}  // namespace nam::execution
