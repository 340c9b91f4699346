#include "partitioner/loader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/interruption.h"
#include "partitioner/appended_table.h"
#include "partitioner/partition_function.h"
#include "partitioner/placement.h"
#include "partitioner/table_metadata.h"
#include "storage/block_stream.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

using nam::testing::InProcessCluster;
using nam::testing::SmallTable;

Value PlainValue(const storage::BlockView& block, uint32_t column, uint32_t row, const Type& type) {
  Value value = Value::Null(type);
  if (FormOf(type) == Form::kText) {
    value.null = block.texts(column).IsNull(row);
    value.text = std::string(block.texts(column)[row]);
    return value;
  }
  const storage::NumberPage numbers(block.page(column));
  value.null = numbers.IsNull(row);
  value.number = numbers[row];
  return value;
}

/// All rows of a table as they lie in the memory servers, by partition and in order, decoded.
std::map<uint32_t, std::vector<std::vector<Value>>> ReadBack(catalog::Attachment& attachment,
                                                             const proto::Table& table) {
  auto channel = *storage::Channel::Open(attachment.fabric(), attachment, {});
  std::vector<uint32_t> columns;
  std::vector<std::shared_ptr<const storage::Dictionary>> dictionaries;
  for (int c = 0; c < table.columns_size(); ++c) {
    columns.push_back(static_cast<uint32_t>(c));
    const proto::Encoding& encoding = table.columns(c).encoding();
    dictionaries.push_back(encoding.has_dictionary() ? *ReadDictionary(*channel, encoding.dictionary())
                                                     : nullptr);
  }
  uint32_t next = 0;
  storage::BlockStream stream(*channel, StreamTableOf(table, columns), {.window = 3},
                              [&]() -> std::optional<storage::ChainStart> {
                                return next < static_cast<uint32_t>(table.partitions_size())
                                           ? std::optional(ChainStartOf(table, next++))
                                           : std::nullopt;
                              });
  std::map<uint32_t, std::vector<std::vector<Value>>> rows;
  storage::BlockView block;
  while (true) {
    const auto more = stream.Next(block);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return rows;
    for (uint32_t r = 0; r < block.rows(); ++r) {
      auto& row = rows[block.partition()].emplace_back();
      for (uint32_t c = 0; c < columns.size(); ++c) {
        const proto::Column& column = table.columns(static_cast<int>(c));
        if (column.encoding().plain()) {
          row.push_back(PlainValue(block, c, r, ColumnTypeOf(column.type())));
          continue;
        }
        uint64_t code = 0;
        std::memcpy(&code, block.page(c) + size_t{r} * block.width(c), block.width(c));
        Value value = Value::Null(ColumnTypeOf(column.type()));
        if (!column.nullable() || code != 0) {
          value.null = false;
          const int64_t number = column.encoding().base() + static_cast<int64_t>(code);
          if (dictionaries[c]) {
            value.text = std::string((*dictionaries[c])[static_cast<size_t>(number)]);
          } else {
            value.number = number;
          }
        }
        row.push_back(std::move(value));
      }
    }
  }
}

std::vector<std::vector<std::string>> Texts(const std::vector<std::vector<Value>>& rows) {
  std::vector<std::vector<std::string>> texts;
  for (const auto& row : rows) {
    auto& text = texts.emplace_back();
    for (const Value& value : row) text.push_back(value.ToString());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST(Loader, RowsLieInTheOrderOfTheirBatchesPlaces) {
  InProcessCluster cluster({.memory_servers = 2, .compute_servers = 0});
  const TableSchema schema{.name = "t",
                           .columns = {{"n", Type::Integer(), true}, {"s", Type::String(12), true}}};
  auto loader = *BeginLoad(cluster.attachment(), schema, {.block_bytes = 4096});
  constexpr int kRows = 700;
  for (const uint64_t place : {2, 0, 3, 1}) {
    ColumnBatch batch(2);
    for (int i = 0; i < kRows; ++i) {
      batch.column(0).Push(Form::kNumber, static_cast<int>(place) * kRows + i, {});
      batch.column(1).Push(Form::kText, 0, place % 2 == 0 ? "even" : "odd");
    }
    batch.set_rows(kRows);
    batch.set_place(place);
    ASSERT_TRUE(loader->Append(batch).ok());
  }
  const auto table = loader->Commit();
  ASSERT_TRUE(table.ok()) << table.status();
  int64_t next = 0;
  for (const auto& [partition, rows] : ReadBack(cluster.attachment(), *table)) {
    for (const std::vector<Value>& row : rows) EXPECT_EQ(row[0].number, next++);
  }
  EXPECT_EQ(next, 4 * kRows);
}

TEST(Loader, EveryRowLiesOnceInItsPartitionAndInOrder) {
  InProcessCluster cluster({.memory_servers = 3, .compute_servers = 0});
  EXPECT_TRUE(rc::check("load = rows", [&] {
    const uint32_t parts_k = *rc::gen::inRange(1, 5), parts_s = *rc::gen::inRange(1, 4);
    SmallTable table{{"t",
                      {{"k", Type::Integer(), true},
                       {"s", Type::String(12), true},
                       {"n", Type::Decimal(2)},
                       {"w", Type::Integer()}},
                      {{"k", parts_k}, {"s", parts_s}},
                      "n"},
                     {}};
    const auto seeds = *rc::gen::container<std::vector<uint32_t>>(rc::gen::arbitrary<uint32_t>());
    for (uint32_t seed : seeds) {
      table.rows.push_back(
          {seed % 7 == 0 ? Value::Null(Type::Integer()) : Value::Integer(static_cast<int64_t>(seed) - 50),
           seed % 5 == 0 ? Value::Null(Type::String()) : Value::String("s" + std::to_string(seed % 13)),
           Value::Decimal(seed % 1000, 2), Value::Integer(static_cast<int64_t>(seed) << (seed % 31))});
    }
    const LoadOptions options{
        .block_bytes = 1024, .pointer_group = 2 + *rc::gen::inRange(0u, 4u), .replace = true};
    RC_ASSERT(nam::testing::Load(cluster.attachment(), table, options).ok());
    const auto meta = *cluster.attachment().catalog().GetTable("t");
    RC_ASSERT(meta->rows() == table.rows.size());
    std::vector<std::vector<Value>> all;
    for (const auto& [partition, rows] : ReadBack(cluster.attachment(), *meta)) {
      RC_ASSERT(meta->partitions(static_cast<int>(partition)).rows() == rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const uint32_t part_k =
            rows[i][0].null ? 0 : PartitionOfInteger(static_cast<int64_t>(rows[i][0].number), parts_k);
        const uint32_t part_s = rows[i][1].null ? 0 : PartitionOfString(rows[i][1].text, parts_s);
        RC_ASSERT(partition == part_k * parts_s + part_s);
        if (i > 0) RC_ASSERT(rows[i - 1][2].number <= rows[i][2].number);
        all.push_back(rows[i]);
      }
    }
    RC_ASSERT(Texts(all) == Texts(table.rows));
  }));
}

TEST(Loader, ManyDifferentTextsLieAsTheyAre) {
  InProcessCluster cluster({.memory_servers = 2, .compute_servers = 0});
  // The first of them are numbered before they turn out to be many.
  constexpr int kRows = 90'000;
  SmallTable table{{"t",
                    {{"k", Type::Integer()},
                     {"many", Type::String(), true},
                     {"few", Type::String()},
                     {"wide", {.kind = TypeKind::kDecimal, .scale = 2, .precision = 38}, true}},
                    {{"k", 3}},
                    "many"},
                   {}};
  for (int i = 0; i < kRows; ++i) {
    Value wide = Value::Decimal(static_cast<__int128>(i) * i * i * i * 1'000'003 * (i % 2 == 0 ? 1 : -1), 2);
    if (i % 11 == 0) wide = Value::Null(Type::Decimal(2));
    table.rows.push_back({Value::Integer(i),
                          i % 7 == 0
                              ? Value::Null(Type::String())
                              : Value::String(i % 13 == 0 ? "" : "text " + std::to_string(i * 7919 % kRows)),
                          Value::String("s" + std::to_string(i % 13)), std::move(wide)});
  }
  ASSERT_TRUE(nam::testing::Load(cluster.attachment(), table, {.block_bytes = 4096}).ok());
  const auto meta = *cluster.attachment().catalog().GetTable("t");
  EXPECT_TRUE(meta->columns(1).encoding().plain());
  EXPECT_FALSE(meta->columns(2).encoding().plain());
  EXPECT_TRUE(meta->columns(3).encoding().plain());
  EXPECT_NEAR(static_cast<double>(meta->columns(1).distinct()), kRows * 6 / 7 * 12 / 13, kRows / 20);
  EXPECT_EQ(meta->columns(1).nulls(), (kRows + 6) / 7);
  EXPECT_GT(meta->columns(1).text_histogram_size(), 2);
  std::vector<std::vector<Value>> all;
  for (const auto& [partition, rows] : ReadBack(cluster.attachment(), *meta)) {
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(static_cast<uint32_t>(rows[i][0].number % 3), partition);
      EXPECT_LE(i == 0 ? "" : rows[i - 1][1].text, rows[i][1].text);
      all.push_back(rows[i]);
    }
  }
  EXPECT_EQ(Texts(all), Texts(table.rows));
}

/// The table that an append was bound to may be gone, and its name belong to another one.
TEST(Loader, AnAppendIsToTheTableThatIsKnown) {
  InProcessCluster cluster({.memory_servers = 1, .compute_servers = 0});
  const SmallTable table{{"t", {{"k", Type::Integer()}}, {}}, {{Value::Integer(7)}}};
  ASSERT_TRUE(nam::testing::Load(cluster.attachment(), table, {}).ok());
  const uint64_t creation = (*cluster.attachment().catalog().GetTable("t"))->creation();
  EXPECT_FALSE(
      nam::testing::Load(cluster.attachment(), table, {.append = true, .appends_to = creation + 1}).ok());
  EXPECT_EQ((*cluster.attachment().catalog().GetTable("t"))->rows(), 1u);
  EXPECT_TRUE(nam::testing::Load(cluster.attachment(), table, {.append = true, .appends_to = creation}).ok());
  EXPECT_EQ((*cluster.attachment().catalog().GetTable("t"))->rows(), 2u);
}

proto::Table GroupOf(AllocationId allocation) {
  proto::Table group;
  group.set_name("t");
  group.set_allocation(allocation.value());
  group.set_rows(1);
  group.set_block_bytes(64 << 10);
  group.set_pointer_group(32);
  proto::Column& column = *group.add_columns();
  column.set_name("k");
  *column.mutable_type() = ToProto(Type::Integer());
  group.add_partitions();
  return group;
}

/// The groups of servers are refused before disks take them, and VACUUM would not find the table.
TEST(Loader, TooManyGroupsAreRefusedBeforeTheyAreSealed) {
  InProcessCluster cluster({.memory_servers = 1, .compute_servers = 0});
  const SmallTable table{{"t", {{"k", Type::Integer()}}, {}}, {{Value::Integer(7)}}};
  for (const bool append : {false, true}) {
    EXPECT_TRUE(!append || nam::testing::Load(cluster.attachment(), table, {}).ok());
    const auto loader = BeginLoad(cluster.attachment(), table.schema, {.append = append});
    ASSERT_TRUE(loader.ok()) << loader.status();
    const AllocationId allocation = *(*loader)->BeginExtraAllocation();
    const std::vector<proto::Table> groups(kGroupsMax + 1, GroupOf(allocation));
    (*loader)->Take(allocation, {groups, {{MemoryServerId(999), 1}}});
    const auto committed = (*loader)->Commit();
    const auto error = SqlErrorOf(committed.status());
    ASSERT_TRUE(error.has_value()) << committed.status();
    EXPECT_EQ(error->sqlstate, "54000");
    EXPECT_EQ(error->hint, "SET nam.server_writes = off makes one group");
  }
  EXPECT_EQ((*cluster.attachment().catalog().GetTable("t"))->rows(), 1u);
}

TEST(Loader, WhatIsCancelledLeavesNothing) {
  InProcessCluster cluster({.memory_servers = 2, .compute_servers = 0});
  std::atomic<bool> cancel = false;
  const TableSchema schema{"t", {{"k", Type::Integer()}}, {{"k", 4}}, ""};
  auto loader = BeginLoad(cluster.attachment(), schema, {.cancel = &cancel});
  ASSERT_TRUE(loader.ok()) << loader.status();
  ColumnBatch batch(1);
  batch.set_rows(2);
  batch.column(0).numbers = {1, 2};
  ASSERT_TRUE((*loader)->Append(batch).ok());
  cancel = true;
  EXPECT_EQ((*loader)->Commit().status().code(), absl::StatusCode::kCancelled);
  loader->reset();
  EXPECT_FALSE(cluster.attachment().catalog().GetTable("t").ok());
  EXPECT_EQ(cluster.AwaitUsedBytes(0), 0u);
  const AllocationId allocation =
      *cluster.attachment().catalog().BeginLoad(cluster.attachment().member(), "t", /*replace=*/false);
  EXPECT_EQ(SealAll(cluster.attachment(), {{MemoryServerId(999), allocation, 1}}, &cancel).code(),
            absl::StatusCode::kCancelled)
      << "no server is asked";
}

TEST(Loader, AnInterruptionLeavesNoLoadThatABackupWaitsFor) {
  InProcessCluster cluster({.memory_servers = 1, .compute_servers = 0});
  catalog::Attachment& attachment = cluster.attachment();
  auto loader = BeginLoad(attachment, {"t", {{"k", Type::Integer()}}, {}}, {});
  ASSERT_TRUE(loader.ok()) << loader.status();
  const std::atomic<bool> interrupted = true;
  {
    const Interruption interruption(&interrupted);
    const auto aborted = (*loader)->BeginExtraAllocation(), left = (*loader)->BeginExtraAllocation();
    EXPECT_TRUE(aborted.ok()) << aborted.status() << ": the catalog may have begun it all the same";
    EXPECT_TRUE(left.ok()) << left.status();
    (*loader)->AbortExtraAllocation(aborted.value_or(AllocationId()));
    loader->reset();
  }
  const auto waited_for = attachment.catalog().BeginQuiet(attachment.member());
  ASSERT_TRUE(waited_for.ok()) << waited_for.status();
  EXPECT_EQ(waited_for->size(), 0u);
}

TEST(Loader, BlocksAreSpreadEvenly) {
  InProcessCluster cluster({.memory_servers = 3, .compute_servers = 0});
  SmallTable table{{"t", {{"k", Type::Integer()}}, {{"k", 4}}, ""}, {}};
  for (int i = 0; i < 50'000; ++i) table.rows.push_back({Value::Integer(i)});
  ASSERT_TRUE(nam::testing::Load(cluster.attachment(), table, {.block_bytes = 1024}).ok());
  const auto meta = *cluster.attachment().catalog().GetTable("t");
  ASSERT_EQ(meta->usage_size(), 3);
  for (const auto& usage : meta->usage())
    EXPECT_NEAR(static_cast<double>(usage.blocks()), static_cast<double>(meta->usage(0).blocks()), 1);
}

TEST(Loader, RefusesWhatDoesNotFitTheSchema) {
  InProcessCluster cluster({.compute_servers = 0});
  auto& attachment = cluster.attachment();
  const TableSchema narrow{"t", {{"k", Type::Integer()}, {"s", Type::String(3)}}, {}, ""};
  EXPECT_EQ(BeginLoad(attachment, {"t", {}, {}, ""}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginLoad(attachment, {"t", narrow.columns, {{"x", 8}}, ""}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginLoad(attachment, narrow, {.block_bytes = 100}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto loader = BeginLoad(attachment, narrow, {});
  ASSERT_TRUE(loader.ok());
  ColumnBatch batch(2);
  batch.set_rows(1);
  batch.column(0).numbers = {1};
  batch.column(1).strings = {"four"};
  const absl::Status status = (*loader)->Append(batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  batch.column(1).strings = {"étés"};
  EXPECT_FALSE((*loader)->Append(batch).ok());
  batch.column(1).strings = {"été"};  // three characters in five bytes
  EXPECT_TRUE((*loader)->Append(batch).ok());
  batch.column(0).nulls = {1};
  EXPECT_EQ((*loader)->Append(batch).code(), absl::StatusCode::kInvalidArgument);
  loader->reset();
  EXPECT_EQ(cluster.AwaitUsedBytes(0), 0u);
  EXPECT_FALSE(attachment.catalog().GetTable("t").ok());
}

}  // namespace
}  // namespace nam::partitioner
