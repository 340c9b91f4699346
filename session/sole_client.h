#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"

namespace nam::session {

/// Makes this process the cluster's only client, for a save that no commit may follow:
///
///     catalog: memberships of other clients end, new ones are refused ─▶ every memory server fences them
///                                                                        └▶ SaveRecords ─▶ Confirm ─▶ the
///                                                                        end
///
/// A fenced client changes nothing any more, so each of its commits is either decided, and part of every
/// later snapshot, or never happens. Ends with this object or with this process's lease: then the other
/// clients join again by themselves. Compute servers stay; they do not write record tables.
class SoleClient {
 public:
  /// UNAVAILABLE: a memory server does not answer. FAILED_PRECONDITION: another process is stopping the
  /// cluster.
  static absl::StatusOr<SoleClient> Begin(catalog::Attachment& attachment);
  SoleClient(SoleClient&& other) noexcept : attachment_(std::exchange(other.attachment_, nullptr)) {}
  SoleClient& operator=(SoleClient&&) = delete;
  ~SoleClient();

  /// ABORTED: others have been clients since, because the catalog was restarted. They are ended again.
  absl::Status Confirm();
  /// The cluster has ended: nothing is left to open again.
  void Forget() { attachment_ = nullptr; }

 private:
  explicit SoleClient(catalog::Attachment& attachment) : attachment_(&attachment) {}
  /// Returns whether there were others.
  absl::StatusOr<bool> EndOthers();

  catalog::Attachment* attachment_;
};

}  // namespace nam::session
