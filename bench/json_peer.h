#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "localcluster/process.h"
#include "nlohmann/json.hpp"

namespace nam::bench {

struct JsonPeerOptions {
  std::string name;  // for messages: `DuckDB`
  std::string executable;
  std::vector<std::string> arguments;
  std::string log_file;  // its stderr
};

/// Another system in a child process, with one request at a time:
///
///     parent ──{"op": …}\n──▶ stdin │ peer │ stdout ──{"ok": true, …}\n──▶ parent
///
/// Started on the main thread (see ProcessOptions), then used by one thread, except Cancel. The child ends
/// with its owner, by the end of its stdin or by a signal. This process ignores SIGPIPE: if the child has
/// ended, the next call returns an error.
class JsonPeer {
 public:
  using Json = nlohmann::ordered_json;

  static absl::StatusOr<std::unique_ptr<JsonPeer>> Start(const JsonPeerOptions& options);
  JsonPeer(const JsonPeer&) = delete;
  JsonPeer& operator=(const JsonPeer&) = delete;

  /// Returns the answer, which says `ok`. INTERNAL with the peer's own text if it refuses, UNAVAILABLE with
  /// the last lines of its stderr if it has ended, DEADLINE_EXCEEDED, or CANCELLED. After any error but
  /// INTERNAL the conversation is over.
  absl::StatusOr<Json> Call(const Json& request, int64_t timeout_ms);
  /// Any thread. Ends the waiting call, and all later ones, with CANCELLED.
  void Cancel();

 private:
  static constexpr size_t kLineBytesMax = 64u << 20;

  explicit JsonPeer(const JsonPeerOptions& options) : options_(options) {}
  absl::Status Send(const std::string& line, Deadline deadline);
  absl::StatusOr<std::string> ReceiveLine(Deadline deadline);
  /// Waits until `fd` is ready for `events`.
  absl::Status Await(int fd, short events, Deadline deadline);
  absl::Status Ended();

  const JsonPeerOptions options_;
  UniqueFd cancelled_;  // an eventfd, readable for good once written
  UniqueFd to_peer_;
  UniqueFd from_peer_;
  std::string received_;
  std::unique_ptr<Process> process_;
};

}  // namespace nam::bench
