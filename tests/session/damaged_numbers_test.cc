#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/table_metadata.h"
#include "storage/block_sink.h"
#include "storage/block_stream.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

/// Writes the word in place of the first number of a column without codes, in a block of one chain, with
/// checksums that match.
void ReplaceWord(InProcessCluster& cluster, const std::string& name, uint32_t column, __int128 word) {
  catalog::Attachment& attachment = cluster.attachment();
  const auto table = *attachment.catalog().GetTable(name);
  std::vector<uint32_t> columns(static_cast<size_t>(table->columns_size()));
  std::iota(columns.begin(), columns.end(), 0);
  uint32_t number = 0;
  while (table->partitions(static_cast<int>(number)).blocks() == 0) ++number;
  const storage::ChainStart chain = partitioner::ChainStartOf(*table, number);
  const storage::StreamTable of = partitioner::StreamTableOf(*table, columns);
  const storage::BlockLayout layout(of.widths, chain.block_rows,
                                    storage::PointerSlots(chain.blocks, of.pointer_group), chain.text_bytes);
  const auto channel = *storage::Channel::Open(attachment.fabric(), attachment, {});
  std::vector<std::byte> bytes(layout.bytes());
  storage::BlockWriter writer(layout, bytes.data());
  {
    bool given = false;
    storage::BlockStream stream(*channel, of, {}, [&]() -> std::optional<storage::ChainStart> {
      return std::exchange(given, true) ? std::nullopt : std::optional(chain);
    });
    storage::BlockView block;
    ASSERT_TRUE(*stream.Next(block));
    ASSERT_EQ(chain.blocks, 1u);
    for (const uint32_t c : columns) std::memcpy(writer.page(c), block.page(c), layout.page_bytes(c));
    storage::NumberPage::Write(word, false, 0, writer.page(column));
    writer.Seal(of.allocation, chain.partition, 0, block.rows(), {});
  }
  const auto to = storage::RemotePtr<void>::FromRaw(chain.head[0]);
  const auto grant = *attachment.OpenAllocation(to.server(), AllocationId(of.allocation));
  storage::BlockSink sink(*channel, *storage::UseOf(grant), layout.bytes());
  std::memcpy(*sink.Acquire(), bytes.data(), bytes.size());
  ASSERT_TRUE(sink.Write(to, layout.bytes()).ok());
  ASSERT_TRUE(sink.Flush().ok());
}

TEST(DamagedNumbersTest, AWordThatIsNoNumberIsNoZero) {
  InProcessCluster cluster({.fabric = fabric::Kind::kShm, .memory_servers = 2, .compute_servers = 2});
  const auto run = [&](const std::string& sql) {
    const auto result = cluster.session().Execute(sql);
    if (!result.ok()) return SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate;
    return result->rows.empty() ? result->command : result->rows[0][0].ToString();
  };
  ASSERT_EQ(run("create table w (id int, x numeric, y numeric not null) with (storage = columnar)"),
            "CREATE TABLE");
  ASSERT_EQ(run("insert into w values (1, 1.50, 2.25), (2, null, 0.1)"), "INSERT 0 2");
  ASSERT_EQ(run("select sum(x) + sum(y) from w"), "3.85");
  for (const uint32_t column : {1u, 2u}) {
    ReplaceWord(cluster, "w", column, __int128{1} << 126);
    const std::string name = column == 1 ? "x" : "y";
    EXPECT_EQ(run("select sum(" + name + ") from w"), "XX001");
    EXPECT_EQ(run("select id from w where " + name + " > 0"), "XX001");
    EXPECT_EQ(run("select sum(id) from w"), "3");
  }
}

}  // namespace
}  // namespace nam::testing
