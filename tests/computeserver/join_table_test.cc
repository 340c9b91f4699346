#include "computeserver/join_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>

namespace nam::computeserver {
namespace {

std::vector<uint32_t> Partners(const JoinTable& table, int64_t key) {
  std::vector<uint32_t> rows;
  if (!table.InDomain(key)) return rows;
  for (uint32_t head = table.Head(key); head != 0; head = table.Next(head - 1)) {
    if (table.KeyIs(head - 1, key)) rows.push_back(head - 1);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(JoinTable, FindsWhatANaiveMapFinds) {
  EXPECT_TRUE(rc::check("join table = map", [] {
    const int64_t spread = *rc::gen::element<int64_t>(1, 1000, 1'000'000'007);
    const auto keys = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(-50, 50));
    JoinTable::Options options{.rows = keys.size(), .parts = 1u << *rc::gen::inRange(0, 4)};
    std::multimap<int64_t, uint32_t> naive;
    for (size_t i = 0; i < keys.size(); ++i) naive.emplace(keys[i] * spread, static_cast<uint32_t>(i));
    if (!naive.empty()) {
      options.key_min = naive.begin()->first;
      options.key_max = naive.rbegin()->first;
      options.key_known = true;
    }
    JoinTable table(options);
    for (size_t i = 0; i < keys.size(); ++i) table.Insert(keys[i] * spread, static_cast<uint32_t>(i));
    for (int64_t key = -60; key < 60; ++key) {
      std::vector<uint32_t> expected;
      for (auto [it, end] = naive.equal_range(key * spread); it != end; ++it) expected.push_back(it->second);
      std::sort(expected.begin(), expected.end());
      RC_ASSERT(Partners(table, key * spread) == expected);
    }
  }));
}

TEST(JoinTable, DenseKeysAreAddressedDirectly) {
  EXPECT_TRUE(JoinTable({.rows = 100, .key_min = 1, .key_max = 100, .key_known = true, .parts = 8}).direct());
  EXPECT_FALSE(JoinTable({.rows = 100, .key_min = 1, .key_max = INT64_MAX, .key_known = true}).direct());
  EXPECT_FALSE(JoinTable({.rows = 100}).direct());
}

}  // namespace
}  // namespace nam::computeserver
