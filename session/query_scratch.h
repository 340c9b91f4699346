#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "execution/partition/parted_groups.h"
#include "execution/sort/scratch_run.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"
#include "proto/pages.pb.h"

namespace nam::session {

/// A session's scratch memory: an allocation that compute servers write for one query at a time. Made for the
/// first query that may need it, kept until one has used it, and given back after that query; it ends with
/// the session's lease at the latest. A thread repeats the end of an allocation to a catalog that has not
/// heard it, or the memory would stay as long as the session. Waits end with CANCELLED soon after `cancel` is
/// set. One thread.
class QueryScratch {
 public:
  QueryScratch(catalog::Attachment& attachment, const std::atomic<bool>& cancel)
      : attachment_(attachment), cancel_(cancel), ends_(attachment.fabric().CreateEvent()) {}
  ~QueryScratch();
  QueryScratch(const QueryScratch&) = delete;
  QueryScratch& operator=(const QueryScratch&) = delete;

  /// Returns the allocation, for AttemptRequest::scratch. 0: there is none, or the session has no lease.
  uint64_t Open();
  /// The catalog's error that made the last Open return 0; OK if there was none.
  const absl::Status& why_none() const { return why_none_; }
  /// Notes that attempts may have written to it.
  void Use() { used_ = true; }
  /// Frees the attempt's unused pages on memory servers before the query's end; unreachable ones free them
  /// then. UNAVAILABLE: the catalog does not name the servers.
  absl::Status Drop(uint64_t attempt);
  /// Writes groups that an attempt of `pipeline` has kept, by parts; `pages` are theirs. Holds an eighth of
  /// `bytes_max` at most, or a page. Errors as of KeptGroups::Write.
  absl::StatusOr<proto::Directory> Write(const execution::KeptGroups& groups,
                                         std::span<const std::byte> pages, uint64_t attempt,
                                         uint32_t pipeline, uint64_t bytes_max);
  /// Leaves rows of so many bytes, or keys, to servers that read them in this query: a few in the message,
  /// the others in scratch memory, which is opened only then. `give` passes each to its function. 53200 if
  /// there is no room; 53… if there is no scratch memory.
  using AddRow = std::function<absl::Status(std::string_view row)>;
  absl::Status LeaveRows(uint32_t row_bytes, const std::function<absl::Status(const AddRow& add)>& give,
                         proto::RecordRows& out);
  /// For sorts of the session itself: opened when the first of them writes, or merges. Its threads may use it
  /// at once. This outlives it.
  execution::SortScratch ForSorts();
  /// Gives back what the query has used. Without `tell`, memory servers do that a little later by themselves:
  /// no call waits for an unreachable one.
  void EndQuery(bool tell);
  /// Drops it after its lease has ended.
  void Forget();

 private:
  class SortPlaces;
  /// False: the catalog has not heard it, and is told again.
  bool Abort(AllocationId allocation);
  /// Repeats until the catalog has heard of all.
  void TellAgain();

  catalog::Attachment& attachment_;
  const std::atomic<bool>& cancel_;
  const std::unique_ptr<fabric::Event> ends_;
  AllocationId allocation_;  // 0: none
  absl::Status why_none_;
  bool used_ = false;

  Mutex mutex_;  // of what the thread shares:
  std::vector<AllocationId> unheard_ ABSL_GUARDED_BY(mutex_);
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<fabric::Thread> thread_;  // used by the session's thread
};

/// Counts the rows of consecutive pages, by their headers: trusts these within the memory's bounds, since
/// readers of the rows check pages fully. DATA_LOSS if these are not pages.
absl::StatusOr<uint64_t> RowsOfPages(std::span<const std::byte> pages);

}  // namespace nam::session
