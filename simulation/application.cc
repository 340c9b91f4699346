#include "simulation/application.h"

#include "absl/strings/str_cat.h"

namespace nam::simulation {
namespace {

constexpr int64_t kAuditPauseUs = 1'000;

}  // namespace

txn::HistoryRecorder& Application::NewRecorder() {
  const uint32_t number = sessions();
  histories_.push_back(txn::SessionHistory::InMemory());
  recorders_.push_back(std::make_unique<txn::HistoryRecorder>(number, *histories_.back()));
  return *recorders_.back();
}

absl::Status Application::UntilDone(Clock& clock, const std::string& otherwise,
                                    const std::function<absl::Status()>& transaction) {
  const Deadline deadline = clock.After(kAuditUs);
  while (true) {
    const absl::Status done = transaction();
    const bool again = txn::AbortReasonOf(done).has_value() || absl::IsUnavailable(done);
    if (done.ok() || !again) return done;
    if (clock.Passed(deadline)) {
      Wrong(absl::StrCat("though all is mended, ", otherwise, ": ", done.ToString()));
      return absl::OkStatus();
    }
    clock.SleepUntil(clock.After(kAuditPauseUs));
  }
}

std::vector<const txn::SessionHistory*> Application::histories() const {
  std::vector<const txn::SessionHistory*> histories;
  for (const auto& history : histories_) histories.push_back(history.get());
  return histories;
}

}  // namespace nam::simulation
