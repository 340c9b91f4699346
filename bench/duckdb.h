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
  std::string peer_dir;  // contains peer.mjs and its node_modules
  std::string log_file;
  int threads = 2;
  uint64_t memory_bytes = 0;  // 0: DuckDB's default
  std::string file;           // database file, which DuckDB compresses; empty: in memory, uncompressed
};

/// DuckDB in a separate process. Start on the main thread; afterwards one thread uses it, except Cancel.
class DuckDb {
 public:
  using Json = JsonPeer::Json;
  struct Answer {
    std::vector<std::vector<Value>> rows;  // strings, in DuckDB's text form
    double elapsed_ms = 0;                 // measured in its process, from statement to last row
  };

  /// FAILED_PRECONDITION without Node.js or DuckDB's package, with a remedy.
  static absl::Status Check(const std::string& peer_dir);
  /// Checks first.
  static absl::StatusOr<std::unique_ptr<DuckDb>> Start(const DuckDbOptions& options);

  /// Opens an empty database. Must come first.
  absl::Status Open();
  absl::StatusOr<Answer> Query(const std::string& sql);
  /// Creates a table from dbgen's files or columns of integers (see peer.mjs); returns the seconds taken.
  absl::StatusOr<double> Load(const Json& request, int64_t timeout_ms);
  void Cancel() { peer_->Cancel(); }
  /// `v1.5.6`, once open.
  const std::string& version() const { return version_; }

 private:
  explicit DuckDb(const DuckDbOptions& options) : options_(options) {}

  const DuckDbOptions options_;
  std::string version_;
  std::unique_ptr<JsonPeer> peer_;
};

}  // namespace nam::bench
