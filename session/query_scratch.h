#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "execution/sort/scratch_run.h"
#include "fabric/fabric.h"
#include "proto/pages.pb.h"

namespace nam::session {

/// A session's scratch memory: an allocation that compute servers write to for one query at a time. Made for
/// the first query that may need it, kept until one has used it, and given back behind that query; it ends
/// with the session's lease in any case. A catalog that does not hear that it is over is told again, on a
/// thread of its own, or the memory would stay as long as the session. What waits ends with CANCELLED soon
/// after `cancel` is set. One thread.
class QueryScratch {
 public:
  QueryScratch(catalog::Attachment& attachment, const std::atomic<bool>& cancel)
      : attachment_(attachment), cancel_(cancel), ends_(attachment.fabric().CreateEvent()) {}
  ~QueryScratch();
  QueryScratch(const QueryScratch&) = delete;
  QueryScratch& operator=(const QueryScratch&) = delete;

  /// The allocation, for AttemptRequest::scratch. 0: none can be had, the session has no lease.
  uint64_t Open();
  /// Why the last Open had none, where it was asked for: the catalog's error.
  const absl::Status& why_none() const { return why_none_; }
  /// Attempts may have written to it.
  void Use() { used_ = true; }
  /// Nobody will read what the attempt has written: memory servers free it before the query's end, those that
  /// cannot be reached then. UNAVAILABLE: the catalog does not say which servers there are.
  absl::Status Drop(uint64_t attempt);
  /// Writes pages that an attempt has left elsewhere, one behind the other in `pages`, as rows of any part.
  /// 53200 if scratch memory is full; DATA_LOSS if these are no pages.
  absl::StatusOr<proto::Directory> Write(std::span<const std::byte> pages, uint64_t attempt,
                                         uint32_t pipeline);
  /// For sorts of the session itself: it is opened when the first of them writes, or merges. This outlives
  /// it.
  execution::SortScratch ForSorts();
  /// Gives back what the query has used. Untold, memory servers do that a little later by themselves: nobody
  /// waits for one that may be out of reach.
  void EndQuery(bool tell);
  /// The lease that it lived on is over, and so is it.
  void Forget();

 private:
  /// False: the catalog has not heard of it, and is told again.
  bool Abort(AllocationId allocation);
  /// Until it has heard of all.
  void TellAgain();

  catalog::Attachment& attachment_;
  const std::atomic<bool>& cancel_;
  const std::unique_ptr<fabric::Event> ends_;
  AllocationId allocation_;  // none: 0
  absl::Status why_none_;
  bool used_ = false;

  std::mutex mutex_;  // guards what the thread shares:
  std::vector<AllocationId> unheard_;
  bool telling_ = false;
  std::unique_ptr<fabric::Thread> thread_;  // of the session's thread
};

/// Rows of pages that lie one behind the other, by their headers. DATA_LOSS if these are no pages.
absl::StatusOr<uint64_t> RowsOfPages(std::span<const std::byte> pages);

}  // namespace nam::session
