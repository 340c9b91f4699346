#include "execution/scan/record_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "plan/table_schema.h"
#include "tests/base/seeds.h"
#include "tests/execution/expression/random_expression.h"
#include "tests/execution/scan/record_world.h"
#include "tests/txn/record_cluster.h"
#include "txn/rsi/session.h"
#include "txn/snapshot_scan.h"

namespace nam::execution {
namespace {

using ::testing::HasSubstr;

/// Every type, nullable but for the key, and not.
constexpr char kEvery[] =
    "create table every (s smallint, k int, i int, l bigint, d decimal(9,2), w decimal(38,3), day date, at "
    "timestamp, c char(3), v varchar(6), b boolean, name varchar(3), primary key (name, k)) "
    "with (storage = record)";
constexpr char kNever[] =
    "create table never (v varchar(4) not null, id bigint primary key, b boolean not null, s smallint not "
    "null, w decimal(25,0) not null, day date not null, at timestamp not null, d decimal(5,1) not null, c "
    "char(2) not null) with (storage = record)";

/// The rows that the scan should return of those that the transaction sees, or an error of one of its
/// filters.
absl::StatusOr<std::vector<TextRow>> NaiveRecordScan(const RecordTable& table, const RecordTable::Rows& rows,
                                                     const RecordScan::Options& options) {
  std::vector<TextRow> out;
  for (const auto& [key, row] : rows) {
    bool in_range = options.range_low.empty();
    for (size_t r = 0; r < options.range_low.size(); ++r)
      in_range |= options.range_low[r] <= key && key <= options.range_high[r];
    if (!in_range) continue;
    const std::vector<Value> values = table.layout().Decode(Bytes(row));
    const auto value_of = [&](const plan::Expr& column) {
      return values[options.select.columns[static_cast<size_t>(column.column.column)]];
    };
    bool passes = true;
    for (size_t f = 0; passes && f < options.select.filters.size(); ++f) {
      const absl::StatusOr<Value> truth = plan::Evaluate(options.select.filters[f], value_of);
      if (!truth.ok()) return truth.status();
      passes = !truth->null && truth->number != 0;
    }
    if (!passes) continue;
    TextRow& text = out.emplace_back();
    for (const uint32_t slot : options.select.outputs)
      text.push_back(TextOf(values[options.select.columns[slot]]));
  }
  std::sort(out.begin(), out.end());
  return out;
}

class RecordScanTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  RecordScanTest() : cluster_({.kind = GetParam()}) {}

  std::unique_ptr<txn::Session> OpenSession() { return *txn::OpenRsiSession(clients_, {}); }

  txn::RecordCluster cluster_;
  txn::RecordCluster::Member clients_{cluster_, cluster_.client(), 1};
  txn::RecordCluster::Member server_{cluster_, cluster_.client(), 2};  // has no client slot
};

INSTANTIATE_TEST_SUITE_P(Fabrics, RecordScanTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kSim),
                         [](const auto& info) { return info.param == fabric::Kind::kShm ? "shm" : "sim"; });

/// Random columns, outputs, filters and ranges.
RecordScan::Options RandomScan(std::mt19937_64& random, const RecordTable& table,
                               txn::RecordCluster::Member& server, uint64_t snapshot) {
  const auto count = static_cast<uint32_t>(table.meta()->columns_size());
  std::vector<uint32_t> columns;
  for (uint32_t c = 0; c < count; ++c) {
    if (random() % 3 != 0) columns.push_back(c);
  }
  if (columns.empty()) columns.push_back(static_cast<uint32_t>(random() % count));
  RecordScan::Options options = table.ScanOf(server, snapshot, columns);
  std::erase_if(options.select.outputs, [&](uint32_t) { return random() % 4 == 0; });
  if (random() % 4 == 0) options.select.outputs.push_back(static_cast<uint32_t>(random() % columns.size()));
  std::vector<testing::RandomSlot> slots;
  for (const plan::Slot& slot : options.select.schema) slots.push_back({slot, {}});
  testing::RandomExpression expressions(random, slots);
  for (uint64_t f = random() % 4; f > 0; --f) {
    options.select.filters.push_back(
        random() % 4 == 0 ? expressions.Bool(2)
                          : expressions.About(static_cast<uint32_t>(random() % columns.size()), 1));
  }
  const auto key = [&] { return table.RandomRow(random).substr(0, table.layout().key_bytes()); };
  for (uint64_t r = random() % 2 == 0 ? 0 : 1 + random() % 5; r > 0; --r) {
    std::string low = key(), high = key();
    if (random() % 4 != 0 && high < low) std::swap(low, high);
    if (!table.rows().empty() && random() % 3 == 0) {
      const auto some = table.rows().lower_bound(low);
      if (some != table.rows().end()) low = high = some->first;
    }
    options.range_low.push_back(low);
    options.range_high.push_back(high);
  }
  options.window_max = uint64_t{1} << random() % 12;
  return options;
}

/// Two tables; a transaction with writes of its own, beside which others commit. NAM_SEED=N runs one again.
TEST_P(RecordScanTest, GivesTheRowsThatANaiveScanGives) {
  const uint64_t first = FromEnvironment("NAM_SEED", std::random_device()());
  std::mt19937_64 random(first);
  RecordTable tables[] = {RecordTable(cluster_, kEvery, 3), RecordTable(cluster_, kNever, 2)};
  const auto owner = OpenSession(), other = OpenSession();
  for (RecordTable& table : tables) table.Fill(*other, random, 1'200 + random() % 1'500);
  int right = 0, errors = 0, too_old = 0;
  size_t rows_seen = 0;
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(::testing::Message() << "NAM_SEED=" << first << ", round " << round);
    ASSERT_TRUE(owner->Begin().ok());
    RecordTable::Rows seen[] = {tables[0].rows(), tables[1].rows()};
    for (int t = 0; t < 2; ++t) {
      if (random() % 3 != 0) tables[t].Change(*owner, random, random() % 200, seen[t]);
    }
    for (RecordTable& table : tables) table.ChangeAndCommit(*other, random, random() % 30);
    for (int t = 0; t < 2; ++t) {
      const RecordTable& table = tables[t];
      RecordScan::Options options = RandomScan(random, table, server_, owner->snapshot());
      AddWrites(*owner, table.meta()->name(), options);
      const auto expected = NaiveRecordScan(table, seen[t], options);
      auto pieces = table.Pieces(server_, 1 + static_cast<uint32_t>(random() % 6), options.own_rows.size());
      std::shuffle(pieces.begin(), pieces.end(), random);
      PieceQueue queue(pieces);
      const auto scan = RecordScan::Make(options, queue);
      ASSERT_TRUE(scan.ok()) << scan.status();
      RecordScanner scanner(cluster_, server_, 2, uint64_t{32 << 10} << random() % 6);
      const auto rows = scanner.Run(**scan);
      if (!rows.ok() && txn::AbortReasonOf(rows.status()) == txn::AbortReason::kSnapshotTooOld) {
        ++too_old;  // a row was changed twice meanwhile
        continue;
      }
      ASSERT_EQ(rows.ok(), expected.ok()) << rows.status() << expected.status();
      if (!rows.ok()) {
        ++errors;  // of whichever row comes first
        continue;
      }
      ASSERT_EQ(*rows, *expected);
      ++right;
      rows_seen += rows->size();
      const ScanTotals totals = (*scan)->totals();
      std::set<uint32_t> begun;
      for (const auto& of_task : totals.begun) begun.insert(of_task.begin(), of_task.end());
      EXPECT_EQ(begun.size(), pieces.size());
      EXPECT_GE(totals.rows_in, rows->size());
    }
    owner->Abort();
  }
  EXPECT_GT(right, 25);
  EXPECT_GT(rows_seen, 3'000u);
  RecordProperty("right", right);
  RecordProperty("errors", errors);
  RecordProperty("too_old", too_old);
}

/// The result of a session's own scan.
TEST_P(RecordScanTest, SeesWhatItsTransactionSees) {
  std::mt19937_64 random(7);
  RecordTable table(cluster_, kEvery);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 2'100);
  ASSERT_TRUE(owner->Begin().ok());
  RecordTable::Rows seen = table.rows();
  table.Change(*owner, random, 400, seen);
  RecordTable::Rows scanned;
  ASSERT_TRUE(owner
                  ->Scan(*owner->OpenTable("every"),
                         [&](std::span<const std::byte> row) {
                           const std::string text(reinterpret_cast<const char*>(row.data()), row.size());
                           return scanned.emplace(text.substr(0, table.layout().key_bytes()), text).second;
                         })
                  .ok());
  EXPECT_EQ(scanned, seen);
  RecordScan::Options options = table.ScanOf(server_, owner->snapshot(), {0, 1, 5, 8, 11});
  AddWrites(*owner, "every", options);
  PieceQueue queue(table.Pieces(server_, 2, options.own_rows.size()));
  const auto scan = *RecordScan::Make(options, queue);
  const auto rows = RecordScanner(cluster_, server_, 2).Run(*scan);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, *NaiveRecordScan(table, seen, options));
  EXPECT_EQ(scan->totals().rows_in, 2'100 + options.own_rows.size());
}

/// The rows are more than a chunk, in two pieces, one of which belongs to another server.
TEST_P(RecordScanTest, ManyOwnRows) {
  std::mt19937_64 random(3);
  RecordTable table(cluster_, kEvery);
  RecordScan::Options options = table.ScanOf(server_, 1, {1, 4, 5, 9, 10, 11});
  RecordTable::Rows rows;
  for (int i = 0; i < 4'000; ++i) {
    options.own_rows.push_back(table.RandomRow(random));
    const std::string& row = options.own_rows.back();
    if (i >= 500) rows[row.substr(0, table.layout().key_bytes())] = row;
  }
  for (const bool hidden : {false, true}) {
    if (hidden) {
      for (const auto& [key, row] : rows) options.hidden_keys.push_back(key);  // of stored rows
    }
    PieceQueue queue({{partitioner::kOwnRows, 500, 1'400}, {partitioner::kOwnRows, 1'900, 2'100}, {0, 0, 2}});
    const auto scan = *RecordScan::Make(options, queue);
    const auto scanned = RecordScanner(cluster_, server_, 2).Run(*scan);
    ASSERT_TRUE(scanned.ok()) << scanned.status();
    EXPECT_EQ(scanned->size(), 3'500u);
    if (rows.size() == 3'500u) {
      EXPECT_EQ(*scanned, *NaiveRecordScan(table, rows, options));
    }
  }
}

TEST_P(RecordScanTest, TooOld) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession(), other = OpenSession();
  table.Fill(*other, random, 1'100);
  ASSERT_TRUE(owner->Begin().ok());
  const std::string row = table.rows().begin()->second;
  const auto run = [&] {
    PieceQueue queue(table.Pieces(server_, 2));
    const auto scan = *RecordScan::Make(table.ScanOf(server_, owner->snapshot(), {1}), queue);
    return RecordScanner(cluster_, server_, 2).Run(*scan).status();
  };
  EXPECT_TRUE(run().ok());
  table.Replace(*other, row);
  EXPECT_TRUE(run().ok());
  table.Replace(*other, row);
  EXPECT_EQ(txn::AbortReasonOf(run()), txn::AbortReason::kSnapshotTooOld) << run();
}

TEST_P(RecordScanTest, IsCancelled) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 1'500);
  ASSERT_TRUE(owner->Begin().ok());
  RecordScan::Options options = table.ScanOf(server_, owner->snapshot(), {0});
  options.window_max = 100;
  PieceQueue queue(table.Pieces(server_, 1));
  const auto scan = *RecordScan::Make(options, queue);
  RecordScanner scanner(cluster_, server_, 2);
  const auto rows = scanner.Run(*scan, [&](const Chunk&) {
    scanner.cancel() = true;
    return true;
  });
  EXPECT_TRUE(absl::IsCancelled(rows.status())) << rows.status();
}

TEST_P(RecordScanTest, StopsWhenNoMoreIsWanted) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 3'000);
  ASSERT_TRUE(owner->Begin().ok());
  PieceQueue queue(table.Pieces(server_, 2));
  const auto scan = *RecordScan::Make(table.ScanOf(server_, owner->snapshot(), {0, 1}), queue);
  const auto rows = RecordScanner(cluster_, server_, 2).Run(*scan, [](const Chunk&) { return false; });
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_LT(rows->size(), 2'100u);
  EXPECT_EQ(scan->totals().rows_in, rows->size()) << "reported when they were stopped";
}

TEST_P(RecordScanTest, AFilterThatFailsFailsTheScan) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 1'100);
  ASSERT_TRUE(owner->Begin().ok());
  const uint32_t columns[] = {1, 3};
  RecordScan::Options options = table.ScanOf(server_, owner->snapshot(), {columns, columns + 2});
  const auto read = [&](uint32_t slot) {
    plan::Expr column;
    column.op = plan::Op::kColumn;
    column.type = options.select.schema[slot].type;
    column.column = {0, static_cast<int>(slot)};
    return column;
  };
  options.select.filters.push_back(
      Compare(plan::Op::kGreater,
              Node(plan::Op::kDivide, Type::Integer(),
                   {read(1), Node(plan::Op::kSubtract, Type::Integer(), {read(0), read(0)})}),
              0));
  PieceQueue queue(table.Pieces(server_, 2));
  const auto scan = *RecordScan::Make(options, queue);
  EXPECT_THAT(RecordScanner(cluster_, server_, 2).Run(*scan).status().message(), HasSubstr("zero"));
}

/// The number of bytes of a row does not depend on the values of its numbers.
TEST_P(RecordScanTest, NumbersThatTheirColumnCannotHold) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 40);
  for (const uint32_t column : {4u, 5u, 6u, 7u}) {
    std::string row = table.rows().begin()->second;
    const auto& field = table.layout().field(column);
    std::string bad = row;
    bad.replace(field.offset, field.bytes, std::string(field.bytes, '\xff'));
    table.Replace(*owner, bad);
    ASSERT_TRUE(owner->Begin().ok());
    const auto run = [&](uint32_t scanned) {
      PieceQueue queue(table.Pieces(server_, 2));
      const auto scan = *RecordScan::Make(table.ScanOf(server_, owner->snapshot(), {scanned}), queue);
      return RecordScanner(cluster_, server_, 1).Run(*scan).status();
    };
    EXPECT_EQ(run(column).code(), absl::StatusCode::kDataLoss) << "column " << column;
    EXPECT_TRUE(run(1).ok());
    owner->Abort();
    table.Replace(*owner, row);
  }
}

/// A number whose scale differs from row to row is a word, and few words are numbers.
TEST_P(RecordScanTest, WordsThatAreNoNumbers) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_,
                    "create table words (id int primary key, x numeric, y numeric not null) with (storage = "
                    "record)");
  const auto owner = OpenSession();
  table.Fill(*owner, random, 40);
  const auto present = std::find_if(table.rows().begin(), table.rows().end(), [&](const auto& row) {
    return !table.layout().field(1).IsNull(Bytes(row.second).data());
  });
  ASSERT_NE(present, table.rows().end());
  const std::string row = present->second;
  for (const uint32_t column : {1u, 2u}) {
    const auto& field = table.layout().field(column);
    std::string bad = row;
    bad.replace(field.offset, field.bytes, std::string(field.bytes, '\xff'));
    table.Replace(*owner, bad);
    ASSERT_TRUE(owner->Begin().ok());
    const auto run = [&](uint32_t scanned) {
      PieceQueue queue(table.Pieces(server_, 2));
      const auto scan = *RecordScan::Make(table.ScanOf(server_, owner->snapshot(), {scanned}), queue);
      return RecordScanner(cluster_, server_, 1).Run(*scan).status();
    };
    EXPECT_EQ(run(column).code(), absl::StatusCode::kDataLoss) << "column " << column;
    EXPECT_TRUE(run(3 - column).ok());
    owner->Abort();
    table.Replace(*owner, row);
  }
}

TEST_P(RecordScanTest, AsksForMemory) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kEvery);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 10);
  ASSERT_TRUE(owner->Begin().ok());
  PieceQueue queue(table.Pieces(server_, 2));
  const auto scan = *RecordScan::Make(table.ScanOf(server_, owner->snapshot(), {4, 5}), queue);
  RecordScanner scanner(cluster_, server_, 1, 1 << 20, 20'000);
  EXPECT_TRUE(absl::IsResourceExhausted(scanner.Run(*scan).status()));
}

TEST_P(RecordScanTest, ADroppedTableAndALostServer) {
  std::mt19937_64 random(1);
  RecordTable table(cluster_, kNever);
  const auto owner = OpenSession();
  table.Fill(*owner, random, 3'000);
  ASSERT_TRUE(owner->Begin().ok());
  const RecordScan::Options options = table.ScanOf(server_, owner->snapshot(), {0});
  const auto pieces = table.Pieces(server_, 2);
  cluster_.KillServer(2, /*buried=*/true);
  PieceQueue queue(pieces);
  const auto scan = *RecordScan::Make(options, queue);
  EXPECT_TRUE(absl::IsUnavailable(RecordScanner(cluster_, server_, 2).Run(*scan).status()));
}

TEST_P(RecordScanTest, RefusesWhatDoesNotFitTheTable) {
  RecordTable table(cluster_, kNever);
  const RecordScan::Options good = table.ScanOf(server_, 1, {1, 3});
  const auto make = [&](const std::function<void(RecordScan::Options&)>& change,
                        std::vector<partitioner::Piece> pieces = {}) {
    RecordScan::Options options = good;
    change(options);
    PieceQueue queue(std::move(pieces));
    return RecordScan::Make(std::move(options), queue).status();
  };
  const auto nothing = [](RecordScan::Options&) {};
  EXPECT_TRUE(make(nothing).ok());
  EXPECT_TRUE(make(nothing, table.Pieces(server_, 1)).ok());
  const auto chunks = static_cast<uint32_t>(txn::LayoutOf(good.records).chunks);
  EXPECT_TRUE(absl::IsInvalidArgument(make(nothing, {partitioner::Piece{0, 0, chunks + 1}})));
  EXPECT_TRUE(absl::IsInvalidArgument(make(nothing, {partitioner::Piece{0, 1, UINT32_MAX}})));
  EXPECT_TRUE(absl::IsInvalidArgument(make(nothing, {partitioner::Piece{partitioner::kOwnRows, 0, 1}})));
  const auto own_only = [](RecordScan::Options& o) { o.own_rows_only = true; };
  EXPECT_TRUE(make(own_only).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(make(own_only, {partitioner::Piece{0, 0, 1}})));
  using Options = RecordScan::Options;
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.columns = {3, 1}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.columns = {1, 1}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.columns = {1, 9}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.schema.pop_back(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.schema[0].nullable = true; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.select.outputs = {2}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.range_low = {std::string(8, 'a')}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) {
    o.range_low = {std::string(8, 'a')};
    o.range_high = {std::string(9, 'a')};
  })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.hidden_keys = {"short"}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) { o.own_rows = {"short"}; })));
  EXPECT_TRUE(absl::IsFailedPrecondition(make([](Options& o) { o.records.allocation = AllocationId(7); })));
  EXPECT_TRUE(absl::IsInvalidArgument(make([](Options& o) {
    auto table = std::make_shared<proto::Table>(*o.table);
    table->clear_record();
    o.table = table;
  })));
}

}  // namespace
}  // namespace nam::execution
