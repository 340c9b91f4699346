#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"

namespace nam::backup {

/// Keeps the catalog quiet during its lifetime: no load begins, and no table is made, changed or dropped.
/// Only record tables may grow. The quiet also ends with this process's lease.
class QuietMoment {
 public:
  /// Returns once the loads that were under way have ended. DEADLINE_EXCEEDED names those that have not
  /// within `wait_us`; FAILED_PRECONDITION: another backup is under way.
  static absl::StatusOr<QuietMoment> Begin(catalog::Attachment& attachment, int64_t wait_us);
  QuietMoment(QuietMoment&& other) noexcept : attachment_(other.attachment_) { other.attachment_ = nullptr; }
  QuietMoment& operator=(QuietMoment&&) = delete;
  ~QuietMoment();

  /// Ends the quiet. ABORTED if it did not last until now, for example because the catalog restarted.
  absl::Status End();

 private:
  explicit QuietMoment(catalog::Attachment& attachment) : attachment_(&attachment) {}

  catalog::Attachment* attachment_;  // nullptr: it is over
};

}  // namespace nam::backup
