#include "tpch/refresh_generator.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/dataset/rows.h"
#include "tests/tpch/rows.h"

namespace nam::tpch {
namespace {

using dataset::GeneratedText;
using dataset::Lines;

std::set<int64_t> FirstColumn(const dataset::Generator& generator, size_t table) {
  std::set<int64_t> keys;
  for (const std::string& line : Lines(GeneratedText(generator, table))) keys.insert(std::stoll(line));
  return keys;
}

TEST(RefreshGeneratorTest, ThreeFilesAPairAsDbgenNamesThem) {
  const auto generator = RefreshGenerator::Make({.scale_factor = 0.01}, 2);
  ASSERT_TRUE(generator.ok()) << generator.status();
  std::vector<std::string> names;
  for (const dataset::Table& table : (*generator)->tables()) names.push_back(table.file_names[0]);
  EXPECT_EQ(names, (std::vector<std::string>{"orders.tbl.u1", "lineitem.tbl.u1", "delete.1", "orders.tbl.u2",
                                             "lineitem.tbl.u2", "delete.2"}));
  for (size_t table = 0; table < names.size(); ++table) {
    EXPECT_EQ(Lines(GeneratedText(**generator, table)).size(), (*generator)->Rows(table));
    if (table % 3 != 1) {
      EXPECT_EQ((*generator)->Rows(table), 15u);
    }
  }
}

TEST(RefreshGeneratorTest, KeysAreNewOnesOrThereAndComeOnce) {
  const Generator base({.scale_factor = 0.01});
  const Rows orders(base, kOrders);
  const std::set<int64_t> there(orders.numbers("o_orderkey").begin(), orders.numbers("o_orderkey").end());
  const auto generator = RefreshGenerator::Make(base.options(), 20);
  ASSERT_TRUE(generator.ok()) << generator.status();
  std::set<int64_t> inserted, deleted;
  for (size_t table = 0; table < 60; table += 3) {
    const std::set<int64_t> of_orders = FirstColumn(**generator, table);
    EXPECT_EQ(FirstColumn(**generator, table + 1), of_orders);
    for (const int64_t key : of_orders)
      EXPECT_TRUE(!there.contains(key) && inserted.insert(key).second) << key;
    for (const int64_t key : FirstColumn(**generator, table + 2))
      EXPECT_TRUE(there.contains(key) && deleted.insert(key).second) << key;
  }
  EXPECT_EQ(inserted.size(), 300u);
  EXPECT_EQ(deleted.size(), 300u);
}

TEST(RefreshGeneratorTest, ThereAreAThousandPairs) {
  EXPECT_TRUE(RefreshGenerator::Make({.scale_factor = 1}, 1'000).ok());
  for (const uint64_t pairs : {0, 1'001})
    EXPECT_EQ(RefreshGenerator::Make({.scale_factor = 1}, pairs).status().code(),
              absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nam::tpch
