#include "txn/intent_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace nam::txn {
namespace {

TEST(IntentLog, GivesBackWhatWasWritten) {
  std::vector<std::byte> bytes(kLogBytes);
  const std::vector<LogEntry> entries = {
      {.allocation = 1, .record = 2 | LogEntry::kInsert, .header = 3, .key_hash = 4},
      {.allocation = 5, .record = 6, .header = 7, .key_hash = 0}};
  EncodeLog(entries, bytes.data());
  const std::vector<LogEntry> decoded = DecodeLog(bytes.data());
  ASSERT_EQ(decoded.size(), 2u);
  EXPECT_TRUE(decoded[0].insert());
  EXPECT_EQ(decoded[0].number(), 2u);
  EXPECT_EQ(decoded[1].allocation, 5u);
  EXPECT_EQ(decoded[1].header, 7u);
}

/// A client that died while it wrote its log had locked nothing: the half of it that is there is not to be
/// undone.
TEST(IntentLog, OneThatWasNotWrittenToItsEndIsNone) {
  std::vector<std::byte> bytes(kLogBytes);
  const std::vector<LogEntry> before(3, LogEntry{.allocation = 1, .record = 2, .header = 3, .key_hash = 4});
  const std::vector<LogEntry> after(3, LogEntry{.allocation = 1, .record = 9, .header = 8, .key_hash = 7});
  std::vector<std::byte> written(kLogBytes);
  EncodeLog(after, written.data());
  for (size_t cut = 8; cut < LogBytes(after.size()); cut += 8) {
    EncodeLog(before, bytes.data());
    if (std::equal(written.begin() + static_cast<ptrdiff_t>(cut),
                   written.begin() + static_cast<ptrdiff_t>(LogBytes(after.size())),
                   bytes.begin() + static_cast<ptrdiff_t>(cut))) {
      continue;  // nothing that differs is missing
    }
    std::copy_n(written.begin(), cut, bytes.begin());
    EXPECT_TRUE(DecodeLog(bytes.data()).empty()) << cut;
  }
  EXPECT_TRUE(DecodeLog(std::vector<std::byte>(kLogBytes).data()).empty());
}

}  // namespace
}  // namespace nam::txn
