#include "simulation/examiner.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nam::simulation {
namespace {

constexpr size_t kFailuresMax = 10;
constexpr int64_t kFreedUsMax = 30'000'000;

bool Mentions(const absl::Status& status, const char* word) {
  return std::string(status.message()).find(word) != std::string::npos;
}

}  // namespace

void Examiner::Fail(const std::string& what) {
  if (result_.failures.size() >= kFailuresMax) return;  // the first ones suffice
  result_.failures.push_back(
      absl::StrFormat("at %.3f ms: %s", static_cast<double>(cluster_.world().NowNs()) / 1e6, what));
}

void Examiner::CheckClean(const std::string& what, const absl::Status& status,
                          const Circumstances& circumstances) {
  ++result_.errors[absl::StatusCodeToString(status.code())];
  bool clean = circumstances.killed;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      clean = clean || Mentions(status, "server") || Mentions(status, "catalog") ||
              Mentions(status, "longer than its lease");
      break;
    case absl::StatusCode::kResourceExhausted:  // for memory, when all its servers are gone
      clean = clean || Mentions(status, "there is no memory server");
      break;
    case absl::StatusCode::kCancelled:
      clean = circumstances.cancelled;
      break;
    case absl::StatusCode::kNotFound:  // the membership has ended, or never existed
    case absl::StatusCode::kFailedPrecondition:
      clean = clean || Mentions(status, "member") || Mentions(status, "is gone") ||
              Mentions(status, "lease has ended");
      break;
    case absl::StatusCode::kInvalidArgument:  // a table that has lost blocks
      clean = Mentions(status, "has lost") && Mentions(status, "which is gone");
      break;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
      clean = circumstances.replaced;
      break;
    default:
      clean = false;
  }
  if (!clean) Fail(absl::StrCat(what, ": not a clean error: ", status.ToString()));
}

void Examiner::CheckDuration(const std::string& what, int64_t took_ns) {
  if (took_ns > kStatementNsMax) Fail(absl::StrCat(what, " took ", took_ns / 1'000'000, " ms"));
}

std::unique_ptr<Client> Examiner::NewClient(const std::string& host) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) Pause(kAttemptPauseUs);
    auto client = cluster_.NewClient(host);
    if (client.ok()) return *std::move(client);
    CheckClean("attach", client.status(), {});
  }
  Fail(host + " cannot attach to the cluster");
  return nullptr;
}

void Examiner::Pause(int64_t us) {
  Clock& clock = cluster_.world().clock();
  clock.SleepUntil(clock.After(us));
}

void Examiner::AwaitFreed(uint64_t bytes) {
  for (int64_t waited_us = 0; cluster_.UsedBytes() > bytes; waited_us += kAttemptPauseUs) {
    if (waited_us > kFreedUsMax) return Fail(absl::StrCat("memory was never freed: ", cluster_.Holdings()));
    Pause(kAttemptPauseUs);
  }
}

}  // namespace nam::simulation
