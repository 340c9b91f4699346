#include "localcluster/server_slot.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam {
namespace {

const char* WhatIsLost(ServerSlot::Holds holds) {
  switch (holds) {
    case ServerSlot::Holds::kMemory:
      return ", and what it held is lost";
    case ServerSlot::Holds::kDataDirectory:
      return ", and what it held of record tables is lost";
    default:
      return "";
  }
}

const char* WhatIsThere(ServerSlot::Holds holds) {
  switch (holds) {
    case ServerSlot::Holds::kMemory:
      return ", which is empty";
    case ServerSlot::Holds::kDataDirectory:
      return ", which has its columnar tables";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerSlot>> ServerSlot::Start(ProcessOptions options,
                                                              const RestartPolicy& policy, Holds holds) {
  std::unique_ptr<ServerSlot> slot(new ServerSlot(std::move(options), policy, holds));
  NAM_RETURN_IF_ERROR(slot->Launch());
  return slot;
}

absl::Status ServerSlot::Launch() {
  NAM_ASSIGN_OR_RETURN(process_, Process::Start(options_));
  state_ = State::kStarting;
  wake_ = DeadlineAfterMs(policy_.ready_timeout_ms);
  return absl::OkStatus();
}

std::string ServerSlot::ReadyValue(const std::string& key) const {
  if (!process_->ready().has_value()) return {};
  const auto value = process_->ready()->values.find(key);
  return value == process_->ready()->values.end() ? std::string() : value->second;
}

void ServerSlot::ReplaceArgument(const std::string& argument) {
  const std::string key = argument.substr(0, argument.find('=') + 1);
  for (std::string& known : options_.arguments) {
    if (known.starts_with(key)) known = argument;
  }
}

/// `memory server 3`: by its id once it has one; until then the place's name.
std::string ServerSlot::Called() const {
  const std::string id = ReadyValue("id");
  return id.empty() ? name() : absl::StrCat(name().substr(0, name().find_last_of(' ')), " ", id);
}

int ServerSlot::wait_fd() const {
  switch (state_) {
    case State::kStarting:
      return process_->ready_fd();
    case State::kRunning:
      return process_->exit_fd();
    default:
      return -1;
  }
}

std::optional<std::string> ServerSlot::Tend() {
  switch (state_) {
    case State::kStarting: {
      Process* const one[] = {process_.get()};
      const absl::Status ready = AwaitReady(one, 0);  // takes pending output
      if (ready.ok()) return TakeReady();
      if (!absl::IsDeadlineExceeded(ready)) return Fail(std::string(ready.message()));
      if (!RealClock().Passed(wake_)) return std::nullopt;
      return Fail(absl::StrCat(name(), " did not get ready in time"));
    }
    case State::kRunning:
      if (process_->running()) return std::nullopt;
      if (RealClock().Passed(steady_)) failures_ = 0;
      former_ = Called();
      return Fail(absl::StrCat(former_, " ended with ", process_->Outcome(), WhatIsLost(holds_)));
    case State::kWaiting: {
      if (!RealClock().Passed(wake_)) return std::nullopt;
      const absl::Status launched = Launch();
      return launched.ok() ? std::nullopt : std::optional(Fail(std::string(launched.message())));
    }
    case State::kGivenUp:
      break;
  }
  return std::nullopt;
}

std::string ServerSlot::TakeReady() {
  state_ = State::kRunning;
  steady_ = DeadlineAfterMs(policy_.steady_ms);
  wake_ = Deadline::Never();
  if (former_.empty()) return absl::StrCat(Called(), " is ready");
  if (former_ == Called()) return absl::StrCat(former_, " is started again");
  return absl::StrCat(former_, " is replaced by ", Called(), WhatIsThere(holds_));
}

/// Ends the rest of the process, and schedules the next one.
std::string ServerSlot::Fail(const std::string& how) {
  process_->Signal(SIGKILL);
  process_->AwaitEnd(kKillWaitMs);
  ++failures_;
  if (policy_.failures_max > 0 && failures_ > policy_.failures_max) {
    state_ = State::kGivenUp;
    wake_ = Deadline::Never();
    return absl::StrFormat("%s; it has failed %d times in short order and is not started again", how,
                           failures_);
  }
  int64_t delay_ms = policy_.first_delay_ms;
  for (int i = 1; i < failures_ && delay_ms < policy_.delay_max_ms; ++i) delay_ms *= 2;
  delay_ms = std::min(delay_ms, policy_.delay_max_ms);
  state_ = State::kWaiting;
  wake_ = DeadlineAfterMs(delay_ms);
  return absl::StrFormat("%s; another is started in %.1f s", how, static_cast<double>(delay_ms) / 1000);
}

}  // namespace nam
