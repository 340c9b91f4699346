#include "cli/scale_requests.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/errno_error.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace nam::cli {
namespace {

using nlohmann::json;

constexpr int kBacklog = 8;
constexpr size_t kLineBytesMax = 64 * 1024;
constexpr int64_t kRequestTimeoutMs = 1'000;
constexpr char kSocket[] = "control";

/// The socket's address, whatever the directory's path is by now, and however long.
sockaddr_un AddressIn(const StateDirectory& directory) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory.fd(), kSocket);
  return address;
}

/// Only our user can enter the directory; this check is cheap.
bool IsThisUser(int peer) {
  ucred credentials = {};
  socklen_t bytes = sizeof credentials;
  return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 && credentials.uid == geteuid();
}

/// Reads a line without its newline. UNAVAILABLE at the end of the stream, DEADLINE_EXCEEDED, CANCELLED.
absl::StatusOr<std::string> ReadRequestLine(int fd, Deadline deadline, int interrupt_fd) {
  std::string line;
  while (line.size() < kLineBytesMax) {
    pollfd waits[] = {{fd, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
    const int64_t left_ms = (deadline.ns - RealClock().NowNs() + 999'999) / 1'000'000;
    const int ready = poll(waits, 2, static_cast<int>(std::clamp<int64_t>(left_ms, 0, 3'600'000)));
    if (ready < 0 && errno != EINTR) return ErrnoError("poll");
    if (ready > 0 && waits[1].revents != 0) return absl::CancelledError("interrupted");
    if (ready <= 0 && RealClock().Passed(deadline)) return absl::DeadlineExceededError("no line in time");
    if (ready <= 0 || waits[0].revents == 0) continue;
    char chunk[4096];
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("the connection was closed");
    line.append(chunk, static_cast<size_t>(n));
    if (const size_t end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
  }
  return absl::InternalError("a line without an end");
}

/// A peer that does not listen any more has given up waiting.
void WriteLine(int fd, const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t ignored = send(fd, line.data(), line.size(), MSG_NOSIGNAL);
}

/// nullopt: it is another request.
std::optional<EndRequest> ParseEnd(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("end") || message["end"] != "saved") return std::nullopt;
  for (const char* number : {"number", "closed_by"}) {
    if (!message.contains(number) || !message[number].is_number_unsigned()) return std::nullopt;
  }
  return EndRequest{.saved_records = message["number"].get<uint64_t>(),
                    .closed_by = message["closed_by"].get<uint32_t>()};
}

/// True if the peer waits for no reply any more.
bool HasGone(int peer) {
  pollfd wait{peer, POLLRDHUP, 0};
  return poll(&wait, 1, 0) > 0;
}

json ToJson(const absl::Status& error) {
  return {{"code", static_cast<int>(error.code())}, {"error", std::string(error.message())}};
}

/// The error in a reply, if it is one.
absl::Status ErrorIn(const json& message) {
  if (!message.is_object() || !message.contains("error") || !message["error"].is_string() ||
      !message.contains("code") || !message["code"].is_number_integer() || message["code"].get<int>() == 0) {
    return absl::OkStatus();
  }
  return absl::Status(static_cast<absl::StatusCode>(message["code"].get<int>()),
                      message["error"].get<std::string>());
}

std::optional<ScaleRequest> ParseRequest(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("scale") || !message["scale"].is_string() ||
      !message.contains("compute") || !message["compute"].is_number_integer()) {
    return std::nullopt;
  }
  const auto direction = message["scale"].get<std::string>();
  if (direction != "out" && direction != "in") return std::nullopt;
  return ScaleRequest{direction == "out", message["compute"].get<int>()};
}

absl::StatusOr<ScaleReply> ParseReply(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  NAM_RETURN_IF_ERROR(ErrorIn(message));
  ScaleReply reply;
  if (!message.is_object() || !message.contains("changed") || !message["changed"].is_array() ||
      !message.contains("compute") || !message["compute"].is_number_integer() ||
      !message.contains("memory") || !message["memory"].is_number_integer()) {
    return absl::InternalError("the cluster's supervisor is of another version of nam");
  }
  for (const json& id : message["changed"]) {
    if (id.is_string()) reply.changed.push_back(id.get<std::string>());
  }
  reply.compute_servers = message["compute"].get<int>();
  reply.memory_servers = message["memory"].get<int>();
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScaleListener>> ScaleListener::Listen(const StateDirectory& directory) {
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return ErrnoError("socket");
  const sockaddr_un address = AddressIn(directory);
  unlink(address.sun_path);
  // Before it has a name, so that it never exists with another mode.
  if (fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    return ErrnoError(absl::StrCat("cannot listen on ", directory.path(), "/", kSocket));
  }
  return std::unique_ptr<ScaleListener>(new ScaleListener(std::move(listener)));
}

void ScaleListener::Serve(const RequestHandlers& handlers) {
  const UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer.valid() || !IsThisUser(peer.get())) return;  // the peer has gone
  const auto line = ReadRequestLine(peer.get(), RealClock().After(kRequestTimeoutMs * 1000), -1);
  if (!line.ok()) return;
  if (const std::optional<EndRequest> end = ParseEnd(*line); end.has_value()) {
    if (HasGone(peer.get())) return;
    const absl::Status ending = handlers.end(*end);
    WriteLine(peer.get(), ending.ok() ? json{{"ending", true}} : ToJson(ending));
    return;
  }
  const std::optional<ScaleRequest> request = ParseRequest(*line);
  const absl::StatusOr<ScaleReply> reply =
      request ? handlers.scale(*request)
              : absl::InvalidArgumentError("the cluster's supervisor is of another version of nam");
  if (reply.ok()) {
    WriteLine(peer.get(), {{"changed", reply->changed},
                           {"compute", reply->compute_servers},
                           {"memory", reply->memory_servers}});
  } else {
    WriteLine(peer.get(), ToJson(reply.status()));
  }
}

namespace {

/// Sends a request, and waits for the line of the reply.
absl::StatusOr<std::string> Ask(const StateDirectory& directory, const json& request, int64_t timeout_ms,
                                int interrupt_fd) {
  const UniqueFd peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!peer.valid()) return ErrnoError("socket");
  const sockaddr_un address = AddressIn(directory);
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      !IsThisUser(peer.get())) {
    return absl::UnavailableError(absl::StrCat("no supervisor answers in ", directory.path()));
  }
  WriteLine(peer.get(), request);
  auto line = ReadRequestLine(peer.get(), RealClock().After(timeout_ms * 1000), interrupt_fd);
  if (absl::IsUnavailable(line.status())) {
    return absl::UnavailableError(absl::StrCat("the cluster in ", directory.path(), " ended meanwhile"));
  }
  if (absl::IsDeadlineExceeded(line.status())) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "the cluster's supervisor did not answer within %.1f s; %s/supervisor.log may say why",
        static_cast<double>(timeout_ms) / 1000, directory.path()));
  }
  return line;
}

}  // namespace

absl::StatusOr<ScaleReply> AskForScale(const StateDirectory& directory, const ScaleRequest& request,
                                       int64_t timeout_ms, int interrupt_fd) {
  const json message = {{"scale", request.out ? "out" : "in"}, {"compute", request.compute_servers}};
  NAM_ASSIGN_OR_RETURN(const std::string line, Ask(directory, message, timeout_ms, interrupt_fd));
  return ParseReply(line);
}

absl::Status AskToEnd(const StateDirectory& directory, const EndRequest& request, int64_t timeout_ms) {
  const json message = {
      {"end", "saved"}, {"number", request.saved_records}, {"closed_by", request.closed_by}};
  NAM_ASSIGN_OR_RETURN(const std::string line, Ask(directory, message, timeout_ms, -1));
  const json reply = json::parse(line, nullptr, false);
  NAM_RETURN_IF_ERROR(ErrorIn(reply));
  const bool ending = reply.is_object() && reply.contains("ending") && reply["ending"] == true;
  return ending ? absl::OkStatus()
                : absl::InternalError("the cluster's supervisor is of another version of nam");
}

}  // namespace nam::cli
