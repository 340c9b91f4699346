#include "execution/rows/row_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "types/value.h"

namespace nam::execution {
namespace {

const plan::Schema kPairs = {{Type::Integer(), false, {0, 1 << 30, true}},
                             {Type::Integer(), true, {0, 1 << 30, true}}};
constexpr uint32_t kTablePageBytes = 64 << 10;

RowLayout Pairs(uint32_t page_bytes = kTablePageBytes) {
  auto layout = RowLayout::Of(kPairs, page_bytes);
  EXPECT_TRUE(layout.ok());
  return *std::move(layout);
}

std::unique_ptr<RowTable> Make(MemoryBudget& budget, uint64_t pages_max,
                               uint32_t page_bytes = kTablePageBytes) {
  auto table = RowTable::Make(Pairs(page_bytes), budget, pages_max);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

TEST(RowTable, GivesPagesWithoutRowsOneAfterTheOther) {
  MemoryBudget budget(10 * kTablePageBytes);
  const auto table = Make(budget, 100);
  EXPECT_EQ(table->pages(), 0U);
  for (uint32_t i = 0; i < 10; ++i) {
    const auto page = table->NewPage();
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(*page, i);
    EXPECT_EQ(table->page(i), table->page(0) + i * kTablePageBytes);
    EXPECT_EQ(table->page_rows(i), 0U);
    EXPECT_EQ(reinterpret_cast<const PageHeader*>(table->page(i))->layout, table->layout().digest());
    std::memset(table->page(i) + kPageHeaderBytes, 0xab, kTablePageBytes - kPageHeaderBytes);
  }
  EXPECT_EQ(table->pages(), 10U);
  EXPECT_EQ(table->rows(), 0U);
}

TEST(RowTable, TakesFromTheBudgetWhatItUsesAndGivesItBack) {
  MemoryBudget budget(3 * kTablePageBytes + 1);
  {
    const auto first = Make(budget, 100);
    const auto second = Make(budget, 100);
    EXPECT_EQ(budget.used(), 0U) << "addresses are no memory";
    ASSERT_TRUE(first->NewPage().ok());
    ASSERT_TRUE(second->NewPage().ok());
    ASSERT_TRUE(first->NewPage().ok());
    EXPECT_EQ(budget.used(), 3U * kTablePageBytes);
    EXPECT_TRUE(absl::IsResourceExhausted(second->NewPage().status()));
    EXPECT_EQ(second->pages(), 1U);
    EXPECT_EQ(budget.used(), 3U * kTablePageBytes) << "a refusal takes nothing";
  }
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.most(), 3U * kTablePageBytes);
}

TEST(RowTable, HasNoMorePagesThanItWasMadeFor) {
  MemoryBudget budget(uint64_t{1} << 40);
  const auto table = Make(budget, 2);
  ASSERT_TRUE(table->NewPage().ok());
  ASSERT_TRUE(table->NewPage().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table->NewPage().status()));
  EXPECT_EQ(budget.used(), 2U * kTablePageBytes);
}

/// As many pages as possible, several times at once: 256 partitions of two threads.
TEST(RowTable, ReservesAddressesWithoutMemory) {
  MemoryBudget budget(uint64_t{1} << 30);
  std::vector<std::unique_ptr<RowTable>> tables;
  for (int i = 0; i < 512; ++i) {
    tables.push_back(Make(budget, UINT64_MAX));
    ASSERT_TRUE(tables.back()->NewPage().ok());
    tables.back()->page(0)[kTablePageBytes - 1] = std::byte{1};
  }
  EXPECT_EQ(budget.used(), 512U * kTablePageBytes);
}

TEST(RowTable, GivesMemoryToPagesInAnyNumber) {
  // The table needs more than is made writable at once, in pages that do not divide it evenly into the last
  // step.
  MemoryBudget budget(uint64_t{1} << 30);
  const auto table = Make(budget, 333, 16 << 10);
  for (uint32_t i = 0; i < 333; ++i) {
    ASSERT_TRUE(table->NewPage().ok());
    std::memset(table->page(i) + kPageHeaderBytes, 1, (16 << 10) - kPageHeaderBytes);
  }
  EXPECT_FALSE(table->NewPage().ok());
}

TEST(RowTable, FindsRowsByTheirNumbers) {
  MemoryBudget budget(uint64_t{1} << 30);
  const auto table = Make(budget, 10);
  const RowLayout& layout = table->layout();
  for (uint32_t page = 0; page < 3; ++page) ASSERT_TRUE(table->NewPage().ok());
  std::vector<uint32_t> numbers;
  for (const uint32_t page : {0U, 1U, 2U}) {
    for (const uint32_t place : {0U, 1U, 77U, layout.rows_max() - 1}) {
      const uint32_t number = page << layout.rows_shift() | place;
      std::byte* row = table->page(page) + kPageHeaderBytes + place * layout.stride();
      EXPECT_EQ(table->row(number), row);
      EXPECT_EQ(layout.field(0).RowOf(table->page(0), number), row);
      EXPECT_EQ(layout.field(0).PageOf(table->page(0), number), table->page(page));
      std::memcpy(row + layout.field(0).offset, &number, sizeof(number));
      std::memset(row + layout.nulls_offset(), 0, 1);
      numbers.push_back(number);
    }
    reinterpret_cast<PageHeader*>(table->page(page))->rows = layout.rows_max() - page;
  }
  EXPECT_EQ(table->rows(), 3U * layout.rows_max() - 3);
  const Column column = table->ColumnOf(0, numbers.data());
  EXPECT_EQ(column.kind, Column::Kind::kField);
  EXPECT_EQ(column.width, 4);
  EXPECT_EQ(column.physical, Physical::kInt64);
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    const std::byte* row = column.field->RowOf(column.base, column.IndexOf(i));
    EXPECT_EQ(column.field->Stored<uint32_t>(row), numbers[i]);
  }
}

TEST(RowTable, ThreadsTakePagesAtOnce) {
  constexpr int kThreads = 8;
  constexpr uint32_t kPages = 400, kBudgeted = 300;
  MemoryBudget budget(uint64_t{kBudgeted} * (16 << 10));
  const auto table = Make(budget, kPages, 16 << 10);
  std::vector<std::vector<uint32_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (true) {
        const auto page = table->NewPage();
        if (!page.ok()) return;
        taken[t].push_back(*page);
        reinterpret_cast<PageHeader*>(table->page(*page))->rows = static_cast<uint32_t>(t) + 1;
        std::memset(table->page(*page) + kPageHeaderBytes, t, (16 << 10) - kPageHeaderBytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint32_t> all;
  uint64_t rows = 0;
  for (int t = 0; t < kThreads; ++t) {
    for (const uint32_t page : taken[t]) {
      EXPECT_TRUE(all.insert(page).second) << "a page has one writer";
      EXPECT_EQ(table->page_rows(page), static_cast<uint32_t>(t) + 1);
      EXPECT_EQ(std::to_integer<int>(table->page(page)[(16 << 10) - 1]), t);
      rows += static_cast<uint32_t>(t) + 1;
    }
  }
  EXPECT_EQ(all.size(), kBudgeted);
  EXPECT_EQ(*all.rbegin(), kBudgeted - 1);
  EXPECT_EQ(table->rows(), rows);
}

}  // namespace
}  // namespace nam::execution
