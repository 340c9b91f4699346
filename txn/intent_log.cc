#include "txn/intent_log.h"

#include <cstring>

#include "storage/checksum.h"

namespace nam::txn {

void EncodeLog(std::span<const LogEntry> entries, std::byte* to) {
  LogHeader header{.entries = entries.size()};
  std::memcpy(to + sizeof(header), entries.data(), entries.size_bytes());
  std::memcpy(to, &header, sizeof(header));
  const size_t skipped = sizeof(header.checksum);
  header.checksum = storage::Checksum({to + skipped, LogBytes(entries.size()) - skipped});
  std::memcpy(to, &header.checksum, skipped);
}

std::vector<LogEntry> DecodeLog(const std::byte* bytes) {
  LogHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.entries == 0 || header.entries > kLogEntriesMax) return {};
  const size_t skipped = sizeof(header.checksum);
  if (storage::Checksum({bytes + skipped, LogBytes(header.entries) - skipped}) != header.checksum) return {};
  std::vector<LogEntry> entries(header.entries);
  std::memcpy(entries.data(), bytes + sizeof(header), entries.size() * sizeof(LogEntry));
  return entries;
}

}  // namespace nam::txn
