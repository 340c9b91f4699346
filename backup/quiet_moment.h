#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"

namespace nam::backup {

/// As long as it lives no load begins, and no table is made, changed or dropped: what the catalog says of
/// tables stays as it is, but for record tables that grow. Ends with this, or with the lease of this process.
class QuietMoment {
 public:
  /// Returns once the loads that were under way have ended. DEADLINE_EXCEEDED names those that have not
  /// within `wait_us`; FAILED_PRECONDITION: another backup is under way.
  static absl::StatusOr<QuietMoment> Begin(catalog::Attachment& attachment, int64_t wait_us);
  QuietMoment(QuietMoment&& other) noexcept : attachment_(other.attachment_) { other.attachment_ = nullptr; }
  QuietMoment& operator=(QuietMoment&&) = delete;
  ~QuietMoment();

  /// OK: it has lasted until now. ABORTED: it has not, as when the catalog was started again.
  absl::Status End();

 private:
  explicit QuietMoment(catalog::Attachment& attachment) : attachment_(&attachment) {}

  catalog::Attachment* attachment_;  // nullptr: it is over
};

}  // namespace nam::backup
