#include "backup/quiet_moment.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::backup {
namespace {

constexpr int64_t kLookUs = 20'000;

}  // namespace

absl::StatusOr<QuietMoment> QuietMoment::Begin(catalog::Attachment& attachment, int64_t wait_us) {
  Clock& clock = attachment.fabric().clock();
  const Deadline deadline = clock.After(wait_us);
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> loads, attachment.catalog().BeginQuiet(attachment.member()));
  QuietMoment quiet(attachment);
  while (!loads.empty()) {
    if (clock.Passed(deadline)) {
      return absl::DeadlineExceededError(
          absl::StrFormat("loads into %s have not ended within %d s; nothing was backed up. Try again when "
                          "they have, or wait "
                          "longer (--wait=SECONDS)",
                          absl::StrJoin(loads, ", "), wait_us / 1'000'000));
    }
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    clock.SleepUntil(clock.After(kLookUs));
    NAM_ASSIGN_OR_RETURN(loads, attachment.catalog().BeginQuiet(attachment.member()));
  }
  return quiet;
}

QuietMoment::~QuietMoment() {
  End().IgnoreError();  // otherwise it ends with the lease
}

absl::Status QuietMoment::End() {
  catalog::Attachment* const attachment = std::exchange(attachment_, nullptr);
  if (attachment == nullptr) return absl::OkStatus();
  const Interruption none(nullptr);  // others wait for it
  const absl::Status ended = attachment->catalog().EndQuiet(attachment->member());
  if (!absl::IsNotFound(ended)) return ended;
  return absl::AbortedError(
      "the cluster did not stay quiet, since its catalog was started again, or this process stood still for "
      "longer than its lease; nothing was backed up, try again");
}

}  // namespace nam::backup
