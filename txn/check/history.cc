#include "txn/check/history.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/unique_fd.h"

namespace nam::txn {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
struct ChunkHeader {
  char name[8] = {'n', 'a', 'm', '-', 'h', 'i', 's', 't'};
  uint64_t format = 3;
  uint64_t bytes = 0;
  uint64_t loaded_until = 0;
};
constexpr size_t kChunkHeaderBytes = sizeof(ChunkHeader);
constexpr size_t kLengthBytes = 4;
constexpr size_t kChecksumOffset = kLengthBytes;
constexpr size_t kCommitOffset = kChecksumOffset + 4;
constexpr size_t kOutcomeOffset = kCommitOffset + 8;
constexpr size_t kBodyOffset = kOutcomeOffset + 1;

constexpr int kKeyBits = 56;
constexpr uint64_t kKeyMask = (uint64_t{1} << kKeyBits) - 1;
constexpr uint8_t kHashed = 0x80;    // in the table's byte: the key is a hash
constexpr uint8_t kKindBits = 0x13;  // in the tag: two, and one for kLock
constexpr uint8_t kVersionTold = 0x04;
constexpr uint8_t kVersionAbove = 0x08;  // told, and above the snapshot by a distance

constexpr uint8_t TagOf(OperationKind kind) {
  const auto bits = static_cast<uint8_t>(kind);
  return static_cast<uint8_t>((bits & 3) | (bits & 4) << 2);
}
constexpr OperationKind KindOf(uint8_t tag) {
  tag &= kKindBits;
  return static_cast<OperationKind>((tag & 3) | tag >> 2);
}

uint64_t Zigzag(uint64_t difference) {
  return difference << 1 ^ (difference >> 63 ? ~uint64_t{0} : 0);
}
uint64_t Unzigzag(uint64_t coded) {
  return coded >> 1 ^ (coded & 1 ? ~uint64_t{0} : 0);
}

void PutVarint(std::vector<std::byte>& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

uint64_t ReadVarint(const std::byte*& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint64_t>(*at++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Covers a transaction in a chunk, `bytes` with its length, except the fields that are decided in place.
uint32_t ChecksumOf(const std::byte* transaction, size_t bytes) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(transaction + kBodyOffset, bytes - kBodyOffset, bytes));
}

/// Where the first damaged transaction begins; the chunk's size if there is none. After the last one there
/// may be bytes of another, whose process died before it wrote their length.
size_t WholeBytes(std::span<const std::byte> chunk) {
  size_t at = 0;
  while (chunk.size() - at >= kBodyOffset && Load<uint32_t>(chunk.data() + at) != 0) {
    const std::byte* const transaction = chunk.data() + at;
    const size_t bytes = kLengthBytes + size_t{Load<uint32_t>(transaction)};
    if (bytes <= kBodyOffset || bytes > chunk.size() - at) return at;
    if (ChecksumOf(transaction, bytes) != Load<uint32_t>(transaction + kChecksumOffset)) return at;
    if (transaction[kOutcomeOffset] > static_cast<std::byte>(Outcome::kAborted)) return at;
    at += bytes;
  }
  return chunk.size();
}

absl::Status SystemError(const std::string& what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("history file: ", what));
}

}  // namespace

uint64_t RecordId(uint8_t table, uint64_t key) {
  NAM_CHECK(table < kHashed, "histories tell 128 tables apart");
  if (key <= kKeyMask) return uint64_t{table} << kKeyBits | key;
  return uint64_t(table | kHashed) << kKeyBits | (XXH3_64bits(&key, sizeof key) & kKeyMask);
}

uint64_t RecordId(uint8_t table, std::span<const std::byte> key) {
  if (key.size() == sizeof(uint64_t)) return RecordId(table, Load<uint64_t>(key.data()));
  NAM_CHECK(table < kHashed, "histories tell 128 tables apart");
  return uint64_t(table | kHashed) << kKeyBits | (XXH3_64bits(key.data(), key.size()) & kKeyMask);
}

std::unique_ptr<SessionHistory> SessionHistory::InMemory() {
  return std::unique_ptr<SessionHistory>(new SessionHistory(-1, 0));
}

absl::StatusOr<std::unique_ptr<SessionHistory>> SessionHistory::InFile(const std::string& path,
                                                                       uint64_t loaded_until) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return SystemError(path, errno);
  return std::unique_ptr<SessionHistory>(new SessionHistory(fd.release(), loaded_until));
}

absl::StatusOr<std::unique_ptr<SessionHistory>> SessionHistory::Load(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts;
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return SystemError(path, errno);
  if (!S_ISREG(facts.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  const auto file_bytes = static_cast<size_t>(facts.st_size);
  std::unique_ptr<SessionHistory> history(new SessionHistory(fd.release(), 0));
  for (bool used = true; used && history->file_bytes_ < file_bytes;) {
    if (absl::Status loaded = history->LoadChunk(path, file_bytes - history->file_bytes_, &used);
        !loaded.ok())
      return loaded;
  }
  return history;
}

// Loads the file's next chunk; `left` bytes remain. Not used: its process ended before it used the chunk.
absl::Status SessionHistory::LoadChunk(const std::string& path, size_t left, bool* used) {
  const auto at = static_cast<off_t>(file_bytes_);
  ChunkHeader header;
  const ChunkHeader expected;
  header.bytes = 0;
  const ssize_t got = ::pread(fd_, &header, sizeof header, at);
  if (got < 0) return SystemError(path, errno);
  const bool first = file_bytes_ == 0;
  const auto cut = [&] {
    return absl::DataLossError(absl::StrCat("history file: ", path, " is cut off or damaged at byte ", at));
  };
  const bool whole = static_cast<size_t>(got) == sizeof header;
  if (whole && header.bytes == 0 && header.format == 0) {
    *used = false;
    return absl::OkStatus();
  }
  const bool named = got >= 8 && std::memcmp(header.name, expected.name, sizeof header.name) == 0;
  if (first && !named) return absl::InvalidArgumentError(absl::StrCat(path, " is no history"));
  if (first && whole && header.format != expected.format) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a history of format ", header.format,
                                                   "; this program reads format ", expected.format));
  }
  if (!whole || !named || header.format != expected.format || header.bytes == 0 ||
      header.bytes % kChunkBytes != 0 || header.bytes > left) {
    return cut();
  }
  void* const mapped = ::mmap(nullptr, header.bytes, PROT_READ, MAP_SHARED, fd_, at);
  if (mapped == MAP_FAILED) return SystemError(path, errno);
  chunks_.emplace_back(static_cast<std::byte*>(mapped), header.bytes);
  const std::span<const std::byte> content(chunks_.back().subspan(kChunkHeaderBytes));
  if (const size_t intact = WholeBytes(content); intact < content.size()) {
    return absl::DataLossError(absl::StrCat("history file: ", path, " is damaged at byte ",
                                            file_bytes_ + kChunkHeaderBytes + intact));
  }
  if (first) loaded_until_ = header.loaded_until;
  file_bytes_ += header.bytes;
  used_ = header.bytes;
  return absl::OkStatus();
}

SessionHistory::~SessionHistory() {
  for (const auto chunk : chunks_) ::munmap(chunk.data(), chunk.size());
  if (fd_ >= 0) ::close(fd_);
}

absl::Status SessionHistory::Grow(size_t bytes) {
  const size_t chunk_bytes = (bytes + kChunkHeaderBytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  // Reserves the space, so that a full disk is an error here and not a signal at the first touch.
  if (const int error = fd_ < 0 ? 0
                                : ::posix_fallocate(fd_, static_cast<off_t>(file_bytes_),
                                                    static_cast<off_t>(chunk_bytes))) {
    return SystemError("grow", error);
  }
  const int flags = fd_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const mapped = ::mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, flags, fd_,
                              fd_ < 0 ? 0 : static_cast<off_t>(file_bytes_));
  if (mapped == MAP_FAILED) return SystemError("map", errno);
  chunks_.emplace_back(static_cast<std::byte*>(mapped), chunk_bytes);
  file_bytes_ += chunk_bytes;
  const ChunkHeader header{.bytes = chunk_bytes, .loaded_until = loaded_until_};
  std::memcpy(mapped, &header, sizeof header);
  used_ = kChunkHeaderBytes;
  return absl::OkStatus();
}

std::byte* SessionHistory::Append(size_t bytes) {
  if (chunks_.empty() || bytes > chunks_.back().size() - used_) {
    if (!Grow(bytes).ok()) return nullptr;
  }
  return chunks_.back().data() + std::exchange(used_, used_ + bytes);
}

std::vector<std::span<const std::byte>> SessionHistory::chunks() const {
  std::vector<std::span<const std::byte>> chunks;
  for (const auto chunk : chunks_) chunks.emplace_back(chunk.subspan(kChunkHeaderBytes));
  return chunks;
}

size_t SessionHistory::bytes() const {
  size_t bytes = 0;
  for (const auto chunk : chunks_) bytes += chunk.size();
  return bytes;
}

void HistoryRecorder::Begin(uint64_t snapshot) {
  End(Outcome::kAborted, 0);  // differences go on from it
  open_ = true;
  committing_ = false;
  encoded_.assign(kBodyOffset, std::byte{0});
  place_ = nullptr;
  snapshot_ = snapshot;
  PutVarint(encoded_, snapshot);
}

void HistoryRecorder::PutOperation(const Operation& operation) {
  NAM_CHECK(!committing_, "an operation of a transaction that is committing");
  const bool read = operation.kind == OperationKind::kRead;
  const bool told = read && operation.version != kVersionNotTold;
  const bool above = told && operation.version > snapshot_;
  encoded_.push_back(static_cast<std::byte>(TagOf(operation.kind) | (told ? kVersionTold : 0) |
                                            (above ? kVersionAbove : 0)));
  const auto table = static_cast<uint8_t>(operation.record >> kKeyBits);
  encoded_.push_back(static_cast<std::byte>(table));
  const uint64_t key = operation.record & kKeyMask;
  PutVarint(encoded_, Zigzag(key - std::exchange(last_key_[table], key)));
  uint64_t& last_value = last_value_[IsWrite(operation.kind) ? 1 : 0];
  PutVarint(encoded_, Zigzag(operation.value - std::exchange(last_value, operation.value)));
  if (told) PutVarint(encoded_, above ? operation.version - snapshot_ : snapshot_ - operation.version);
}

void HistoryRecorder::Read(uint64_t record, uint64_t value, uint64_t version) {
  PutOperation({OperationKind::kRead, record, value, version});
}

void HistoryRecorder::Write(OperationKind kind, uint64_t record, uint64_t value) {
  PutOperation({kind, record, value});
}

void HistoryRecorder::Lock(uint64_t record, uint64_t value) {
  PutOperation({OperationKind::kLock, record, value});
}

void HistoryRecorder::Append(Outcome outcome, uint64_t commit) {
  place_ = history_.Append(encoded_.size());
  if (place_ == nullptr) {
    complete_ = false;
    return;
  }
  const auto length = static_cast<uint32_t>(encoded_.size() - kLengthBytes);
  const uint32_t checksum = ChecksumOf(encoded_.data(), encoded_.size());
  std::memcpy(encoded_.data() + kChecksumOffset, &checksum, sizeof checksum);
  std::memcpy(encoded_.data() + kCommitOffset, &commit, sizeof commit);
  encoded_[kOutcomeOffset] = static_cast<std::byte>(outcome);
  // Writes the length last: if the process dies before, the transaction is not recorded.
  std::memcpy(place_ + kLengthBytes, encoded_.data() + kLengthBytes, length);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(place_, &length, sizeof length);
}

void HistoryRecorder::Committing(uint64_t commit) {
  NAM_CHECK(open_ && !committing_);
  committing_ = true;
  Append(Outcome::kUnknown, commit);
}

void HistoryRecorder::End(Outcome outcome, uint64_t commit) {
  if (!open_) return;
  NAM_CHECK(!committing_ || outcome == Outcome::kAborted, "a commit has its outcome");
  open_ = false;
  if (!committing_) Append(outcome, commit);
}

void HistoryRecorder::RecordOutcome(Outcome outcome, uint64_t commit) {
  NAM_CHECK(open_ && committing_);
  open_ = false;
  if (place_ == nullptr) return;  // it could not be written
  std::memcpy(place_ + kCommitOffset, &commit, sizeof commit);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place_[kOutcomeOffset] = static_cast<std::byte>(outcome);
}

void HistoryRecorder::Record(const TransactionRecord& transaction) {
  Begin(transaction.snapshot);
  for (const Operation& operation : transaction.operations) PutOperation(operation);
  End(transaction.outcome, transaction.commit);
}

bool HistoryReader::Seek(size_t bytes) {
  for (; chunk_ < chunks_.size(); ++chunk_, at_ = 0) {
    if (chunks_[chunk_].size() - at_ < bytes) continue;
    if (Load<uint32_t>(chunks_[chunk_].data() + at_) != 0) return true;
  }
  return false;
}

bool HistoryReader::Next(TransactionRecord& transaction) {
  if (!Seek(kBodyOffset)) return false;
  const std::byte* const start = chunks_[chunk_].data() + at_;
  const size_t bytes = kLengthBytes + Load<uint32_t>(start);
  NAM_CHECK(bytes <= chunks_[chunk_].size() - at_, "a history that is no history");
  at_ += bytes;
  transaction.commit = Load<uint64_t>(start + kCommitOffset);
  transaction.outcome = static_cast<Outcome>(start[kOutcomeOffset]);
  transaction.operations.clear();
  const std::byte* at = start + kBodyOffset;
  transaction.snapshot = ReadVarint(at);
  while (at < start + bytes) {
    Operation& operation = transaction.operations.emplace_back();
    const auto tag = static_cast<uint8_t>(*at++);
    operation.kind = KindOf(tag);
    const auto table = static_cast<uint8_t>(*at++);
    const uint64_t key = last_key_[table] += Unzigzag(ReadVarint(at));
    operation.record = uint64_t{table} << kKeyBits | (key & kKeyMask);
    operation.value = last_value_[IsWrite(operation.kind) ? 1 : 0] += Unzigzag(ReadVarint(at));
    if ((tag & kVersionTold) == 0) continue;
    const uint64_t distance = ReadVarint(at);
    operation.version = transaction.snapshot + ((tag & kVersionAbove) != 0 ? distance : -distance);
  }
  return true;
}

}  // namespace nam::txn
