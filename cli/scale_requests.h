#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "localcluster/state_directory.h"

/// Connects `nam scale` to the supervisor of a local cluster: by the UNIX socket `control` in its state
/// directory, which only its user may enter. One request and one reply a connection, a line of JSON each:
///
///     nam scale ── {"scale":"out","compute":3} ───────────────────────────▶ supervisor: starts them, or
///               ◀─ {"changed":["5","6","7"],"compute":4,"memory":2} ─┐      stops them in order, and waits
///               ◀─ {"code":9,"error":"…"} ───────────────────────────┴────
namespace nam::cli {

struct ScaleRequest {
  bool out = true;  // or in
  int compute_servers = 1;
};

struct ScaleReply {
  std::vector<std::string> changed;  // ids of the compute servers that came or went
  int compute_servers = 0;           // running now
  int memory_servers = 0;
};

/// The supervisor's end. Used by one thread.
class ScaleListener {
 public:
  /// The caller holds the directory's lock. Replaces the socket that a killed supervisor left.
  static absl::StatusOr<std::unique_ptr<ScaleListener>> Listen(const StateDirectory& directory);
  /// Readable when a request comes; for poll().
  int fd() const { return listener_.get(); }
  /// Answers one request. Rejects a client that is silent for a second.
  void Serve(const std::function<absl::StatusOr<ScaleReply>(const ScaleRequest&)>& scale);

 private:
  explicit ScaleListener(UniqueFd listener) : listener_(std::move(listener)) {}
  const UniqueFd listener_;
};

/// Asks the supervisor of a directory's cluster and waits until it is done. UNAVAILABLE if none answers, or
/// it ends meanwhile; DEADLINE_EXCEEDED; CANCELLED when `interrupt_fd` becomes readable, though the
/// supervisor goes on; otherwise the supervisor's error.
absl::StatusOr<ScaleReply> AskForScale(const StateDirectory& directory, const ScaleRequest& request,
                                       int64_t timeout_ms, int interrupt_fd);

}  // namespace nam::cli
