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

/// Connects `nam scale` and `nam down` to the supervisor of a local cluster: by the UNIX socket `control` in
/// its state directory, which only its user may enter. One request and one reply a connection, a line of JSON
/// each:
///
///     nam scale ── {"scale":"out","compute":3} ───────────────────────────▶ supervisor: starts them, or
///               ◀─ {"changed":["5","6","7"],"compute":4,"memory":2} ─┐      stops them in order, and waits
///               ◀─ {"code":9,"error":"…"} ───────────────────────────┴────
///     nam down  ── {"end":"saved","number":17,"closed_by":5} ─────────────▶ marks the file, if no other
///     client
///                                                                           has been there since, and then
///                                                                           ends
///               ◀─ {"ending":true} ──────────────────────────────────┐
///               ◀─ {"code":10,"error":"…"} ──────────────────────────┴────  goes on
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

/// `nam down` asks for the end.
struct EndRequest {
  uint64_t saved_records = 0;  // the number of the file with the rows of record tables; 0: there are none
  uint32_t closed_by = 0;  // the member for which the catalog keeps other clients out since it was written
};

/// What the supervisor does for each kind of request.
struct RequestHandlers {
  std::function<absl::StatusOr<ScaleReply>(const ScaleRequest&)> scale;
  /// OK: the cluster ends.
  std::function<absl::Status(const EndRequest&)> end;
};

/// The supervisor's end. Used by one thread.
class ScaleListener {
 public:
  /// The caller holds the directory's lock. Replaces the socket that a killed supervisor left.
  static absl::StatusOr<std::unique_ptr<ScaleListener>> Listen(const StateDirectory& directory);
  /// Readable when a request comes; for poll().
  int fd() const { return listener_.get(); }
  /// Answers one request. Rejects a client that is silent for a second. A client that has gone does not end
  /// the cluster any more.
  void Serve(const RequestHandlers& handlers);

 private:
  explicit ScaleListener(UniqueFd listener) : listener_(std::move(listener)) {}
  const UniqueFd listener_;
};

/// Asks the supervisor of a directory's cluster and waits until it is done. UNAVAILABLE if none answers, or
/// it ends meanwhile; DEADLINE_EXCEEDED; CANCELLED when `interrupt_fd` becomes readable, though the
/// supervisor goes on; otherwise the supervisor's error.
absl::StatusOr<ScaleReply> AskForScale(const StateDirectory& directory, const ScaleRequest& request,
                                       int64_t timeout_ms, int interrupt_fd);

/// Asks the supervisor to end the cluster, whose record tables are in the request's file. OK: it ends.
/// ABORTED: they have changed since. UNAVAILABLE and DEADLINE_EXCEEDED as AskForScale.
absl::Status AskToEnd(const StateDirectory& directory, const EndRequest& request, int64_t timeout_ms);

}  // namespace nam::cli
