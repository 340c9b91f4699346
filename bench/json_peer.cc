#include "bench/json_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr int64_t kEndTimeoutMs = 2'000;
constexpr size_t kStderrLines = 8;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(error)));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool MakeNonblocking(int fd) {
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonPeer>> JsonPeer::Start(const JsonPeerOptions& options) {
  NAM_ASSIGN_OR_RETURN(Pipe to_peer, MakePipe());
  NAM_ASSIGN_OR_RETURN(Pipe from_peer, MakePipe());
  std::unique_ptr<JsonPeer> peer(new JsonPeer(options));
  peer->cancelled_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!peer->cancelled_.valid() || !MakeNonblocking(to_peer.write_end.get()) ||
      !MakeNonblocking(from_peer.read_end.get())) {
    return absl::InternalError("cannot prepare a pipe");
  }
  NAM_ASSIGN_OR_RETURN(peer->process_, Process::Start({.name = options.name,
                                                       .executable = options.executable,
                                                       .arguments = options.arguments,
                                                       .stderr_file = options.log_file,
                                                       .stdin_fd = to_peer.read_end.get(),
                                                       .stdout_fd = from_peer.write_end.get()}));
  peer->to_peer_ = std::move(to_peer.write_end);
  peer->from_peer_ = std::move(from_peer.read_end);
  return peer;
}

void JsonPeer::Cancel() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(cancelled_.get(), &one, sizeof one);
}

absl::StatusOr<JsonPeer::Json> JsonPeer::Call(const Json& request, int64_t timeout_ms) {
  const Deadline deadline = RealClock().After(timeout_ms * 1000);
  NAM_RETURN_IF_ERROR(Send(request.dump() + "\n", deadline));
  NAM_ASSIGN_OR_RETURN(const std::string line, ReceiveLine(deadline));
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto ok = answer.is_object() ? answer.find("ok") : answer.end();
  if (!answer.is_object() || ok == answer.end() || !ok->is_boolean()) {
    return absl::InternalError(
        absl::StrCat(options_.name, " answered something else than JSON: ", line.substr(0, 200)));
  }
  if (*ok) return answer;
  const auto error = answer.find("error");
  return absl::InternalError(absl::StrCat(
      options_.name, ": ",
      error != answer.end() && error->is_string() ? error->get<std::string>() : "refused without a reason"));
}

absl::Status JsonPeer::Await(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd waits[] = {{cancelled_.get(), POLLIN, 0}, {fd, events, 0}};
    const int64_t left_ms = (deadline.ns - RealClock().NowNs() + 999'999) / 1'000'000;
    const int ready = poll(waits, 2, static_cast<int>(std::clamp<int64_t>(left_ms, 0, 3'600'000)));
    if (ready > 0 && waits[0].revents != 0) return absl::CancelledError("interrupted");
    if (ready > 0) return absl::OkStatus();
    if (RealClock().Passed(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat(options_.name, " does not answer"));
    }
  }
}

absl::Status JsonPeer::Send(const std::string& line, Deadline deadline) {
  for (size_t sent = 0; sent < line.size();) {
    NAM_RETURN_IF_ERROR(Await(to_peer_.get(), POLLOUT, deadline));
    const ssize_t n = write(to_peer_.get(), line.data() + sent, line.size() - sent);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return Ended();
    sent += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonPeer::ReceiveLine(Deadline deadline) {
  size_t searched = 0;
  while (true) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    searched = received_.size();
    if (searched > kLineBytesMax) {
      return absl::ResourceExhaustedError(absl::StrCat(options_.name, " answers with too long a line"));
    }
    NAM_RETURN_IF_ERROR(Await(from_peer_.get(), POLLIN, deadline));
    char chunk[64 * 1024];
    const ssize_t n = read(from_peer_.get(), chunk, sizeof chunk);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return Ended();
    if (n > 0) received_.append(chunk, static_cast<size_t>(n));
  }
}

absl::Status JsonPeer::Ended() {
  process_->AwaitEnd(kEndTimeoutMs);
  const std::string outcome = process_->Outcome();
  std::string message =
      absl::StrCat(options_.name, " ended (", outcome.empty() ? "it closed its output" : outcome, ")");
  const std::string tail = LastLines(options_.log_file, 0, kStderrLines);
  if (!tail.empty()) absl::StrAppend(&message, "; it said:\n", tail);
  return absl::UnavailableError(message);
}

}  // namespace nam::bench
