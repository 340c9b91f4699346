#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/json_peer.h"
#include "ssb/generator.h"
#include "types/value.h"

namespace nam::bench {

struct SsbDuckDbOptions {
  std::string peer_dir;  // with peer.mjs and its node_modules
  std::string log_file;
  int threads = 2;
  bool sorted = false;  // lineorder by lo_orderdate, as ours is clustered; otherwise as generated
};

/// SSB in DuckDB, in memory, in a process of its own. Start on the main thread; then used by one thread,
/// but for Cancel.
class SsbDuckDb {
 public:
  struct Answer {
    std::vector<std::vector<Value>> rows;  // strings, as DuckDB makes text of its values
    double elapsed_ms = 0;                 // measured in its process: statement to last row
  };

  /// FAILED_PRECONDITION without Node.js or DuckDB's package, with what to do about it.
  static absl::StatusOr<std::unique_ptr<SsbDuckDb>> Start(const SsbDuckDbOptions& options);

  /// From dbgen's files of the generator's data. The seconds that it took.
  absl::StatusOr<double> Load(const std::string& tbl_directory, const ssb::Generator& generator);
  absl::StatusOr<Answer> Query(const std::string& sql);
  void Cancel() { peer_->Cancel(); }
  /// `v1.5.6`, once it is loaded.
  const std::string& version() const { return version_; }

 private:
  explicit SsbDuckDb(const SsbDuckDbOptions& options) : options_(options) {}

  const SsbDuckDbOptions options_;
  std::string version_;
  std::unique_ptr<JsonPeer> peer_;
};

}  // namespace nam::bench
