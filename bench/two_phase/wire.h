#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

/// The messages of two-phase commit, between clients, the coordinator (the paper's transaction manager) and
/// the participants (its resource managers, one per partition of the rows). One host's byte order.
///
/// A connection is a stream of frames. A frame is its length and one message:
///
///     length (4) │ head (32) │ body
///
///     client ─▶ participant   kRead      id, snapshot, count        count × { table (2), key }
///            ◀─               kRows      id, count                  count × { RowState (1), row if found }
///     client ─▶ coordinator   kAsk       id, timestamp = at least
///            ◀─               kSnapshot  id, snapshot
///     client ─▶ coordinator   kCommit    id, snapshot, count,       count × { participant (2), bytes (4),
///                                        flag: answer when visible            writes }
///            ◀─               kOutcome   id, flag = Outcome, timestamp, snapshot
///     coord. ─▶ participant   kPrepare   id, snapshot, timestamp    writes; with a timestamp: commit at once
///            ◀─               kVote      id, flag = Outcome
///     coord. ─▶ participant   kDecide    id, timestamp, or 0 to abort (unanswered)
///            ◀─               kDone      id
///
///     writes: any number of { table (2), WriteKind (1), row, or the key alone to delete }
///
/// `id` is the sender's: its request's, or the coordinator's transaction's. A receiver of a malformed message
/// closes the connection.
namespace nam::bench::two_phase {

inline constexpr uint32_t kFrameBytesMax = 16u << 20;

enum class MessageType : uint8_t {
  kRead = 1,
  kRows,
  kAsk,
  kSnapshot,
  kCommit,
  kOutcome,
  kPrepare,
  kVote,
  kDecide,
  kDone,
};

/// The outcome of a commit, or one participant's vote.
enum class Outcome : uint8_t {
  kYes,
  kWriteWrite,
  kTooOld,
  kUniqueKey,
  kUnavailable,  // a participant is gone
};
inline constexpr size_t kOutcomes = 5;

enum class WriteKind : uint8_t { kInsert, kUpdate, kDelete };
inline constexpr size_t kWriteKinds = 3;

/// A bit set.
enum RowState : uint8_t {
  kNothing = 0,
  kFound = 1,
  kRowTooOld = 2,  // the version that the snapshot sees is gone
  kNewer = 4,      // another transaction has changed it since, or is about to
};

struct MessageHead {
  MessageType type{};
  uint8_t flag = 0;
  uint16_t reserved = 0;
  uint32_t count = 0;
  uint64_t id = 0;
  uint64_t snapshot = 0;
  uint64_t timestamp = 0;
};
static_assert(sizeof(MessageHead) == 32 && std::is_trivially_copyable_v<MessageHead>);

/// Appends one frame to a connection's output; it is whole when the writer is destroyed.
class FrameWriter {
 public:
  FrameWriter(std::vector<std::byte>& output, const MessageHead& head)
      : output_(output), begin_(output.size()) {
    Put(uint32_t{0});
    Put(head);
  }
  ~FrameWriter() {
    const auto bytes = static_cast<uint32_t>(output_.size() - begin_ - sizeof(uint32_t));
    std::memcpy(output_.data() + begin_, &bytes, sizeof(bytes));
  }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  template <typename T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  void PutBytes(std::span<const std::byte> bytes) {
    output_.insert(output_.end(), bytes.begin(), bytes.end());
  }

 private:
  std::vector<std::byte>& output_;
  const size_t begin_;
};

/// Decodes a message, never past its end.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  template <typename T>
  bool Read(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<const std::byte> bytes;
    if (!ReadBytes(sizeof(T), &bytes)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return true;
  }
  bool ReadBytes(size_t count, std::span<const std::byte>* bytes) {
    if (count > left_.size()) return false;
    *bytes = left_.first(count);
    left_ = left_.subspan(count);
    return true;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace nam::bench::two_phase
