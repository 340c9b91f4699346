#include "catalog/record_tables.h"

#include <gtest/gtest.h>

#include "catalog/record_extents.h"

namespace nam::catalog {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(RecordExtents, AHashIndexHasSmallerOnes) {
  proto::RecordStorage record;
  const auto bytes_of = [&](uint64_t rows_bytes, proto::RecordPartKind kind) {
    record.set_extent_bytes(rows_bytes);
    return ExtentBytesOf(record, kind);
  };
  EXPECT_EQ(bytes_of(64 * kMiB, proto::RECORDS), 64 * kMiB);
  EXPECT_EQ(bytes_of(64 * kMiB, proto::ORDERED_INDEX), 64 * kMiB);
  EXPECT_EQ(bytes_of(64 * kMiB, proto::HASH_INDEX), 8 * kMiB);
  EXPECT_EQ(bytes_of(kMiB, proto::HASH_INDEX), kMiB / 4) << "or there would be one every few splits";
  EXPECT_EQ(bytes_of(4096, proto::HASH_INDEX), 4096u) << "never larger than the rows'";
}

TEST(RecordExtents, UsageCountsEachPartsOwn) {
  proto::Table table;
  proto::RecordStorage& record = *table.mutable_record();
  record.set_extent_bytes(64 * kMiB);
  const auto add = [&](proto::RecordPartKind kind, std::vector<uint32_t> servers) {
    proto::RecordPart& part = *record.add_parts();
    part.set_kind(kind);
    for (const uint32_t server : servers) part.add_extents()->set_server(server);
  };
  add(proto::RECORDS, {1, 2});
  add(proto::HASH_INDEX, {2, 3, 2});
  add(proto::ORDERED_INDEX, {3});
  CountUsage(table);
  ASSERT_EQ(table.usage_size(), 3);
  EXPECT_EQ(table.usage(0).bytes(), 64 * kMiB);
  EXPECT_EQ(table.usage(1).bytes(), 80 * kMiB);
  EXPECT_EQ(table.usage(1).blocks(), 3u);
  EXPECT_EQ(table.usage(2).bytes(), 72 * kMiB);
}

}  // namespace
}  // namespace nam::catalog
