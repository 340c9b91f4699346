#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/json_peer.h"
#include "types/value.h"

namespace nam::bench {

struct DuckDbOptions {
  std::string peer_dir;  // with peer.mjs and its node_modules
  std::string log_file;
  int threads = 2;
  uint64_t memory_bytes = 0;  // 0: what DuckDB takes by itself
  std::string file;           // of the database, which is compressed there; empty: in memory, and not
};

/// DuckDB in a process of its own. Start on the main thread; then used by one thread, but for
/// Cancel.
class DuckDb {
 public:
  using Json = JsonPeer::Json;
  struct Answer {
    std::vector<std::vector<Value>> rows;  // strings, as DuckDB makes text of its values
    double elapsed_ms = 0;                 // measured in its process: statement to last row
  };

  /// FAILED_PRECONDITION without Node.js or DuckDB's package, with what to do about it.
  static absl::StatusOr<std::unique_ptr<DuckDb>> Start(const DuckDbOptions& options);

  /// Before all else: an empty database.
  absl::Status Open();
  absl::StatusOr<Answer> Query(const std::string& sql);
  /// A new table of dbgen's files, or of columns of integers: see peer.mjs. The seconds that it took.
  absl::StatusOr<double> Load(const Json& request, int64_t timeout_ms);
  void Cancel() { peer_->Cancel(); }
  /// `v1.5.6`, once it is open.
  const std::string& version() const { return version_; }

 private:
  explicit DuckDb(const DuckDbOptions& options) : options_(options) {}

  const DuckDbOptions options_;
  std::string version_;
  std::unique_ptr<JsonPeer> peer_;
};

}  // namespace nam::bench
