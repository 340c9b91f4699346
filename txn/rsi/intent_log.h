#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "txn/transaction_state.h"

/// The format of a client's log. It lists the locks that the client is about to take, and is complete before
/// the first. It lies in segments of log extents (txn/rsi/client_log.h).
///
///     log        entry 40 B │ row, padded to 8 │ entry │ row │ …        cut into pieces, one a segment
///     segment    header 48 B │ piece
///
///     header     checksum   of what follows it: the header's rest, and the piece
///                log        the log's number, the same in all its segments; another in the client's next log
///                next       position of the next segment; 0: the last
///                client 32 │ place in the log 32
///                bytes 32, of the piece │ 0
///                0
///
/// A client that died writing its log had locked nothing yet: a log counts only if all its segments are whole
/// and of the same log.
namespace nam::txn {

struct LogEntry {
  static constexpr uint64_t kInsert = uint64_t{1} << 63;
  static constexpr uint64_t kReclaim = uint64_t{1} << 62;
  static constexpr uint64_t kOnlyLock = uint64_t{1} << 61;
  uint64_t allocation = 0;  // the table's
  uint64_t record = 0;      // its number; kInsert: a new one, kReclaim: one that is to be free, kOnlyLock:
                            // one that stays as it is
  uint64_t header = 0;      // before the lock
  uint64_t key_hash = 0;    // of an inserted or reclaimed row
  uint64_t row_bytes = 0;   // the row after the entry; 0: none

  constexpr uint64_t number() const { return record & ~(kInsert | kReclaim | kOnlyLock); }
  constexpr bool insert() const { return (record & kInsert) != 0; }
  constexpr bool reclaim() const { return (record & kReclaim) != 0; }
  constexpr bool only_lock() const { return (record & kOnlyLock) != 0; }
};

struct LogSegmentHeader {
  uint64_t checksum = 0;
  uint64_t log = 0;
  uint64_t next = 0;
  uint32_t client = 0;
  uint32_t place = 0;
  uint32_t bytes = 0;
  uint32_t unused = 0;
  uint64_t padding = 0;
};
static_assert(sizeof(LogEntry) == 40 && sizeof(LogSegmentHeader) == 48);
inline constexpr uint32_t kLogSegmentBytes = 4'096;
inline constexpr size_t kLogPieceBytesMax = kLogSegmentBytes - sizeof(LogSegmentHeader);

/// The bytes of an entry with its row.
constexpr uint64_t LoggedBytes(uint64_t row_bytes) {
  return sizeof(LogEntry) + (row_bytes + 7) / 8 * 8;
}
/// The segments of a log of so many bytes; at least one.
constexpr size_t LogSegmentsOf(uint64_t bytes) {
  return bytes == 0 ? 1 : static_cast<size_t>((bytes + kLogPieceBytesMax - 1) / kLogPieceBytesMax);
}

/// Fills consecutive segments in memory.
class LogEncoder {
 public:
  /// `to`: kLogSegmentBytes for each segment of the log, aligned to 8.
  explicit LogEncoder(std::byte* to) : to_(to) {}
  /// `row` has entry.row_bytes.
  void Add(const LogEntry& entry, const std::byte* row) {
    if (bytes_ + sizeof entry <= kLogPieceBytesMax) [[likely]] {
      // Member by member, which reads no half of a word that was just stored.
      new (to_ + sizeof(LogSegmentHeader) + bytes_)
          LogEntry{entry.allocation, entry.record, entry.header, entry.key_hash, entry.row_bytes};
      bytes_ += sizeof entry;
    } else {
      AppendEntry(entry);
    }
    if (entry.row_bytes != 0) AddRow(row, entry.row_bytes);
  }
  /// Called once after the last Add. `positions`: the target of each segment.
  void Finish(uint64_t log, uint32_t client, std::span<const uint64_t> positions);
  /// After Finish: the segment's bytes to write.
  std::span<const std::byte> Segment(size_t place) const;

 private:
  void Append(const void* from, size_t bytes);
  void AppendEntry(LogEntry entry) { Append(&entry, sizeof entry); }
  void AddRow(const std::byte* row, uint64_t bytes);

  std::byte* const to_;
  size_t bytes_ = 0;  // of the log
};

/// Assembles a log from segments that were READ, in order.
class LogDecoder {
 public:
  explicit LogDecoder(uint32_t client) : client_(client) {}
  /// Decodes kLogSegmentBytes. Returns the next segment's position, 0 after the last, nullopt if this is not
  /// a log.
  std::optional<uint64_t> Decode(const std::byte* segment);

  struct Write {
    LogEntry entry;
    std::span<const std::byte> row;  // the decoder's
  };
  /// The writes, after the last segment. Empty if the bytes are not entries.
  std::vector<Write> Writes() const;

 private:
  const uint32_t client_;
  uint64_t log_ = 0;
  uint32_t places_ = 0;  // segments taken
  std::vector<std::byte> bytes_;
};

}  // namespace nam::txn
