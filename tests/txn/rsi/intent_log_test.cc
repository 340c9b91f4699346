#include "txn/rsi/intent_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace nam::txn {
namespace {

constexpr uint32_t kClient = 7;

/// Segments of a log, as they lie in memory servers at positions 1000, 1001, …
using Segments = std::vector<std::byte>;

struct Written {
  LogEntry entry;
  std::vector<std::byte> row;
};

std::vector<Written> SomeWrites(size_t count, size_t row_bytes) {
  std::vector<Written> writes(count);
  for (size_t i = 0; i < count; ++i) {
    writes[i].entry = {.allocation = 1,
                       .record = i | (i % 2 == 0 ? LogEntry::kInsert : 0),
                       .header = 3 + i,
                       .key_hash = 4,
                       .row_bytes = row_bytes};
    writes[i].row.assign(row_bytes, static_cast<std::byte>(i + 1));
  }
  return writes;
}

Segments Encode(const std::vector<Written>& writes, uint64_t log) {
  uint64_t bytes = 0;
  for (const Written& write : writes) bytes += LoggedBytes(write.row.size());
  Segments segments(LogSegmentsOf(bytes) * kLogSegmentBytes);
  std::vector<uint64_t> positions(LogSegmentsOf(bytes));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = 1'000 + i;
  LogEncoder encoder(segments.data());
  for (const Written& write : writes) encoder.Add(write.entry, write.row.data());
  encoder.Finish(log, kClient, positions);
  return segments;
}

/// Reads them as recovery does; rows of writes are copies.
std::vector<Written> Decode(const Segments& segments, uint32_t client = kClient) {
  LogDecoder decoder(client);
  uint64_t position = 1'000;
  while (position != 0) {
    const size_t at = (position - 1'000) * kLogSegmentBytes;
    if (at >= segments.size()) return {};
    const std::optional<uint64_t> next = decoder.Decode(segments.data() + at);
    if (!next.has_value()) return {};
    position = *next;
  }
  std::vector<Written> writes;
  for (const LogDecoder::Write& write : decoder.Writes()) {
    writes.push_back({write.entry, {write.row.begin(), write.row.end()}});
  }
  return writes;
}

TEST(IntentLog, GivesBackWhatWasWritten) {
  for (const size_t row_bytes : {0, 1, 8, 60, 1'024, 10'000}) {
    for (const size_t count : {1, 2, 101, 102, 511}) {
      const std::vector<Written> writes = SomeWrites(count, row_bytes);
      const std::vector<Written> decoded = Decode(Encode(writes, 5));
      ASSERT_EQ(decoded.size(), count) << row_bytes;
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(decoded[i].entry.insert(), i % 2 == 0);
        EXPECT_EQ(decoded[i].entry.number(), i);
        EXPECT_EQ(decoded[i].entry.header, 3 + i);
        EXPECT_EQ(decoded[i].row, writes[i].row);
      }
    }
  }
}

TEST(IntentLog, FillsItsSegments) {
  EXPECT_EQ(LogSegmentsOf(0), 1u);
  EXPECT_EQ(LogSegmentsOf(kLogPieceBytesMax), 1u);
  EXPECT_EQ(LogSegmentsOf(kLogPieceBytesMax + 1), 2u);
  EXPECT_EQ(Encode(SomeWrites(101, 0), 5).size(), kLogSegmentBytes);
  EXPECT_EQ(Encode(SomeWrites(102, 0), 5).size(), 2 * kLogSegmentBytes);
}

/// A client that died while it wrote its log had locked nothing: the half that exists must not be undone.
TEST(IntentLog, OneThatWasNotWrittenToItsEndIsNone) {
  const Segments before = Encode(SomeWrites(3, 16), 5);
  std::vector<Written> other = SomeWrites(3, 16);
  for (Written& write : other) write.entry.header += 100;
  const Segments after = Encode(other, 6);
  const size_t bytes = sizeof(LogSegmentHeader) + 3 * LoggedBytes(16);
  for (size_t cut = 8; cut < bytes; cut += 8) {
    if (std::equal(after.begin() + static_cast<ptrdiff_t>(cut), after.end(),
                   before.begin() + static_cast<ptrdiff_t>(cut))) {
      continue;  // no byte that differs is missing
    }
    Segments torn = before;
    std::copy_n(after.begin(), cut, torn.begin());
    EXPECT_TRUE(Decode(torn).empty()) << cut;
  }
  EXPECT_TRUE(Decode(Segments(kLogSegmentBytes)).empty());
}

/// Every segment is complete, but they belong to two logs.
TEST(IntentLog, SegmentsOfTwoLogsAreNone) {
  const Segments before = Encode(SomeWrites(300, 0), 5), after = Encode(SomeWrites(300, 0), 6);
  ASSERT_EQ(before.size(), 3 * kLogSegmentBytes);
  for (size_t written = 1; written < 3; ++written) {
    for (const bool first : {false, true}) {
      Segments mixed = before;
      const size_t from = first ? 0 : 3 - written;
      std::copy_n(after.begin() + static_cast<ptrdiff_t>(from * kLogSegmentBytes), written * kLogSegmentBytes,
                  mixed.begin() + static_cast<ptrdiff_t>(from * kLogSegmentBytes));
      EXPECT_TRUE(Decode(mixed).empty()) << written << first;
    }
  }
}

TEST(IntentLog, OfAnotherClientOrFromItsMiddleIsNone) {
  const Segments log = Encode(SomeWrites(300, 0), 5);
  EXPECT_EQ(Decode(log).size(), 300u);
  EXPECT_TRUE(Decode(log, kClient + 1).empty());
  EXPECT_TRUE(Decode(Segments(log.begin() + kLogSegmentBytes, log.end())).empty());
}

}  // namespace
}  // namespace nam::txn
