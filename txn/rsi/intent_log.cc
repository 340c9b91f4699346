#include "txn/rsi/intent_log.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "storage/checksum.h"

namespace nam::txn {
namespace {

constexpr size_t kChecksumBytes = sizeof(LogSegmentHeader::checksum);

uint64_t ChecksumOf(const std::byte* segment, uint32_t piece_bytes) {
  return storage::Checksum(
      {segment + kChecksumBytes, sizeof(LogSegmentHeader) + piece_bytes - kChecksumBytes});
}

}  // namespace

void LogEncoder::Append(const void* from, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const size_t place = bytes_ / kLogPieceBytesMax, used = bytes_ % kLogPieceBytesMax;
    const size_t some = std::min(bytes, kLogPieceBytesMax - used);
    std::memcpy(to_ + place * kLogSegmentBytes + sizeof(LogSegmentHeader) + used, at, some);
    at += some;
    bytes -= some;
    bytes_ += some;
  }
}

void LogEncoder::AddRow(const std::byte* row, uint64_t bytes) {
  constexpr uint64_t kZeroes = 0;
  Append(row, bytes);
  Append(&kZeroes, LoggedBytes(bytes) - sizeof(LogEntry) - bytes);
}

void LogEncoder::Finish(uint64_t log, uint32_t client, std::span<const uint64_t> positions) {
  NAM_CHECK(positions.size() == LogSegmentsOf(bytes_), "a position for each segment");
  for (size_t place = 0; place < positions.size(); ++place) {
    std::byte* const segment = to_ + place * kLogSegmentBytes;
    LogSegmentHeader header{
        .log = log,
        .next = place + 1 == positions.size() ? 0 : positions[place + 1],
        .client = client,
        .place = static_cast<uint32_t>(place),
        .bytes = static_cast<uint32_t>(std::min(kLogPieceBytesMax, bytes_ - place * kLogPieceBytesMax))};
    std::memcpy(segment, &header, sizeof header);
    header.checksum = ChecksumOf(segment, header.bytes);
    std::memcpy(segment, &header.checksum, kChecksumBytes);
  }
}

std::span<const std::byte> LogEncoder::Segment(size_t place) const {
  const size_t before = place * kLogPieceBytesMax;
  NAM_CHECK(before <= bytes_);
  return {to_ + place * kLogSegmentBytes,
          sizeof(LogSegmentHeader) + std::min(kLogPieceBytesMax, bytes_ - before)};
}

std::optional<uint64_t> LogDecoder::Decode(const std::byte* segment) {
  LogSegmentHeader header;
  std::memcpy(&header, segment, sizeof header);
  if (header.bytes > kLogPieceBytesMax || header.client != client_ || header.place != places_)
    return std::nullopt;
  if (places_ > 0 && header.log != log_) return std::nullopt;
  if (ChecksumOf(segment, header.bytes) != header.checksum) return std::nullopt;
  log_ = header.log;
  ++places_;
  const std::byte* const piece = segment + sizeof header;
  bytes_.insert(bytes_.end(), piece, piece + header.bytes);
  return header.next;
}

std::vector<LogDecoder::Write> LogDecoder::Writes() const {
  std::vector<Write> writes;
  std::span<const std::byte> left(bytes_);
  while (!left.empty()) {
    Write write;
    if (left.size() < sizeof(LogEntry)) return {};
    std::memcpy(&write.entry, left.data(), sizeof(LogEntry));
    if (write.entry.row_bytes > left.size() || LoggedBytes(write.entry.row_bytes) > left.size()) return {};
    write.row = left.subspan(sizeof(LogEntry), write.entry.row_bytes);
    left = left.subspan(LoggedBytes(write.entry.row_bytes));
    writes.push_back(write);
  }
  return writes;
}

}  // namespace nam::txn
