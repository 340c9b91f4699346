#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/rsi/intent_log.h"
#include "txn/timestamps/client_slot.h"
#include "txn/transaction_state.h"

/// The place of clients' logs: segments of log extents, which are spread over all memory servers.
///
///     log extent   word of segment 0, 1, …  in the place of segment 0 │ segment 1 │ segment 2 │ …
///     word         used 1 │ client 15 │ 0 18 │ session 30     0: free
///
///     0 ──CAS──▶ a client's ──┬─ its slot names it (CAS): the first of its logs ──▶ stays, for the slot's
///                             │  next client
///                             └─ further ones of its session ──CAS──▶ 0 when the session ends, or by
///                                recovery
///
/// All zeroes: no client has written a log.
namespace nam::txn {

inline constexpr uint64_t kLogExtentBytes = uint64_t{1} << 20;
/// The words take the place of segment 0.
inline constexpr uint64_t kLogSegments = kLogExtentBytes / kLogSegmentBytes;
static_assert(kLogSegments * 8 <= kLogSegmentBytes);

class LogSegmentWord {
 public:
  constexpr explicit LogSegmentWord(uint64_t word) : word_(word) {}
  static constexpr LogSegmentWord Of(uint32_t client, uint32_t session) {
    return LogSegmentWord(uint64_t{1} << 63 | uint64_t{client} << 48 | session);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool used() const { return word_ >> 63 != 0; }
  constexpr uint32_t client() const { return static_cast<uint32_t>(word_ >> 48) & 0x7fff; }

 private:
  uint64_t word_;
};

/// The log extents, as one session sees them. Opened on first use: a session that only reads takes no keys
/// and no connections for them.
class LogSpace {
 public:
  /// `channel` outlives it.
  LogSpace(std::shared_ptr<ExtentSource> source, storage::Channel& channel)
      : source_(std::move(source)), channel_(channel) {}

  absl::StatusOr<ExtentSpace*> Open();
  /// Frees the segments of a dead client, except the one at `first` (0: all).
  absl::Status GiveBackOf(storage::VerbBatch& batch, uint32_t client, uint64_t first);

 private:
  const std::shared_ptr<ExtentSource> source_;
  storage::Channel& channel_;
  std::optional<ExtentSpace> extents_;
};

/// Writes one client's log. One thread, whose batch it shares.
///
///     Start ─▶ LogEncoder::Add … ─▶ AddWrites ─Execute─▶ the log counts
class ClientLog {
 public:
  /// All outlive it. `log`: a number drawn for the session.
  ClientLog(LogSpace& space, ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
            const ClientSlot& slot, uint64_t log)
      : space_(space), state_(state), geometry_(geometry), batch_(batch), slot_(slot), log_(log) {}

  /// Begins a log of `bytes` (the sum of LoggedBytes of the writes). Requires that the previous transaction's
  /// last flip has completed. Executes the batch if the client must take or free segments.
  /// RESOURCE_EXHAUSTED: no memory server has room for more segments.
  absl::StatusOr<LogEncoder> Start(uint64_t bytes);
  /// Replaces the client's log when the batch is executed.
  absl::Status AddWrites(LogEncoder& encoder);
  /// Frees all segments but the slot's when the session ends.
  absl::Status Release() { return Keep(1); }

 private:
  absl::Status Keep(size_t segments);
  absl::Status FindFirst();
  /// Adds so many segments to `taken`.
  absl::Status Allocate(size_t count, std::vector<uint64_t>& taken);
  absl::Status AllocateFrom(ExtentSpace& extents, uint64_t extent, size_t most, std::vector<uint64_t>& taken);
  LogSegmentWord OwnWord() const { return LogSegmentWord::Of(slot_.client, slot_.owner.session); }

  LogSpace& space_;
  ExtentSpace& state_;
  const StateGeometry geometry_;
  storage::VerbBatch& batch_;
  const ClientSlot& slot_;
  uint64_t log_;                     // number of the last log
  std::vector<uint64_t> positions_;  // the client's segments; the first is the slot's
  size_t segments_ = 0;              // segments of the log under way
};

}  // namespace nam::txn
