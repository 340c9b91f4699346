#include "txn/rsi/write_set.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace nam::txn {
namespace {

struct Row {
  uint64_t key = 0;
  uint64_t value = 0;
};

std::span<const std::byte> KeyOf(const uint64_t& key) {
  return std::as_bytes(std::span(&key, 1));
}

/// Few different hashes, so that keys meet.
uint64_t HashOf(uint64_t key) {
  return key % 97;
}

/// A write set beside a map that is copied at each mark.
class Compared {
 public:
  explicit Compared(uint64_t seed) : random_(seed) {}

  void Step() {
    const uint32_t table = random_() % 2;
    const uint64_t key = random_() % 150;
    switch (random_() % 80) {
      case 0:
        marks_.emplace_back(set_.Mark(), expected_);
        break;
      case 1:
        if (marks_.empty()) break;
        marks_.resize(1 + random_() % marks_.size());
        set_.RollBackTo(marks_.back().first);
        expected_ = marks_.back().second;
        break;
      default:
        Write(table, key);
    }
    Check(table, key);
  }
  void CheckAll() {
    ASSERT_EQ(set_.size(), expected_.size());
    for (uint32_t table : {0u, 1u}) {
      for (uint64_t key = 0; key < 150; ++key) Check(table, key);
    }
  }
  /// Numbers the writes as a commit does.
  void CheckRecords() {
    uint64_t record = 0;
    for (PendingWrite& write : set_) write.record = 1'000 + ++record / 2;  // in both tables, perhaps
    set_.DropWithdrawn();
    for (const PendingWrite& write : set_) {
      const PendingWrite* const found = set_.OfRecord(write.table, write.record);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->table, write.table);
      EXPECT_EQ(found->record, write.record);
    }
    EXPECT_EQ(set_.OfRecord(0, 5), nullptr);
    set_.Clear();
    EXPECT_EQ(set_.bytes(), 0u);
  }

 private:
  using Key = std::pair<uint32_t, uint64_t>;
  struct Expected {
    uint64_t value = 0;
    PendingWrite::Kind kind = PendingWrite::Kind::kInsert;
    bool withdrawn = false;
  };

  void Write(uint32_t table, uint64_t key) {
    const uint64_t value = random_();
    PendingWrite* write = set_.Find(table, HashOf(key), KeyOf(key));
    Expected& expected = expected_[{table, key}];
    if (write == nullptr) {
      Row& row = *rows_.emplace_back(std::make_unique<Row>(Row{key, value}));
      const auto kind = random_() % 2 == 0 ? PendingWrite::Kind::kInsert : PendingWrite::Kind::kUpdate;
      set_.Add(kind, table, HashOf(key), reinterpret_cast<std::byte*>(&row)).fresh =
          kind == PendingWrite::Kind::kInsert;
      expected = {value, kind, false};
      return;
    }
    set_.NoteChange(*write, sizeof(Row));
    write->withdrawn = expected.withdrawn = random_() % 2 == 0;
    write->kind = expected.kind = PendingWrite::Kind::kDelete;
    std::memcpy(write->row + sizeof(key), &value, sizeof(value));
    expected.value = value;
  }
  void Check(uint32_t table, uint64_t key) {
    const PendingWrite* const write = set_.Find(table, HashOf(key), KeyOf(key));
    const auto expected = expected_.find({table, key});
    ASSERT_EQ(write != nullptr, expected != expected_.end()) << table << " " << key;
    if (write == nullptr) return;
    Row row;
    std::memcpy(&row, write->row, sizeof(row));
    EXPECT_EQ(row.key, key);
    EXPECT_EQ(row.value, expected->second.value);
    EXPECT_EQ(write->kind, expected->second.kind);
    EXPECT_EQ(write->withdrawn, expected->second.withdrawn);
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Row>> rows_;
  WriteSet set_;
  std::map<Key, Expected> expected_;
  std::vector<std::pair<size_t, std::map<Key, Expected>>> marks_;
};

TEST(WriteSetTest, IsWhatAMapWouldBe) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Compared compared(seed);
    // Below and above the size that has a table.
    const int steps = seed % 3 == 0 ? 40 : 1'500;
    for (int i = 0; i < steps; ++i) compared.Step();
    compared.CheckAll();
    compared.CheckRecords();
    if (::testing::Test::HasFailure()) return;
  }
}

/// Memory for the index entries of a write is reserved once, when it first gives its row keys.
TEST(WriteSetTest, IndexEntriesOfAWriteAreReservedOnce) {
  WriteSet set;
  std::vector<Row> rows(4);
  const auto add = [&](size_t i, PendingWrite::Kind kind) {
    return &set.Add(kind, 0, i, reinterpret_cast<std::byte*>(&rows[i]));
  };
  set.ReserveEntries(*add(0, PendingWrite::Kind::kInsert), 64);
  set.ReserveEntries(*add(1, PendingWrite::Kind::kDelete), 64);
  EXPECT_EQ(set.entry_bytes(), 64u);
  const size_t mark = set.Mark();
  set[1].kind = PendingWrite::Kind::kUpdate;
  set.ReserveEntries(set[1], 64);
  set.ReserveEntries(set[1], 64);
  set.ReserveEntries(*add(2, PendingWrite::Kind::kUpdate), 64);
  EXPECT_EQ(set.entry_bytes(), 192u);
  set.RollBackTo(mark);
  EXPECT_EQ(set.entry_bytes(), 128u) << "a write that stays may have entries again";
  set.Clear();
  EXPECT_EQ(set.entry_bytes(), 0u);
}

TEST(MetRowsTest, AreFoundAndStayWhenTheyMove) {
  MetRows met;
  std::vector<Row> rows(500);
  for (uint64_t key = 0; key < rows.size(); ++key) {
    rows[key] = {key, key * 3};
    met.Add({.table = static_cast<uint32_t>(key % 2),
             .key = KeyOf(rows[key].key),
             .hash = HashOf(key),
             .row = reinterpret_cast<const std::byte*>(&rows[key])});
  }
  met.MoveToArena(100, [](uint32_t) { return sizeof(Row); });
  for (uint64_t key = 100; key < rows.size(); ++key) rows[key].value = 0;
  for (uint64_t key = 0; key < rows.size(); ++key) {
    const SoughtRow* const found = met.Find(static_cast<uint32_t>(key % 2), HashOf(key), KeyOf(key));
    ASSERT_NE(found, nullptr) << key;
    Row row;
    std::memcpy(&row, found->row, sizeof(row));
    EXPECT_EQ(row.value, key * 3);
    EXPECT_EQ(met.Find(static_cast<uint32_t>(1 - key % 2), HashOf(key), KeyOf(key)), nullptr);
  }
  met.Clear();
  EXPECT_EQ(met.bytes(), 0u);
  EXPECT_EQ(met.Find(0, HashOf(0), KeyOf(rows[0].key)), nullptr);
}

}  // namespace
}  // namespace nam::txn
