#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fabric_bound.h"

namespace nam::bench {

struct PerftestOptions {
  std::string rdma;         // the client's: DEVICE[:PORT][,gid=N]; empty: perftest's default
  std::string server_rdma;  // the server's
  std::string server_host;  // the address at which they connect
  std::string directory;    // for the programs' output
};

/// For verbs: perftest's ib_read_bw, ib_write_bw, ib_send_bw and ib_atomic_bw between the same devices, each
/// case measured once, with 16 in flight. nullptr if perftest is not installed. `Rate` must be called on the
/// main thread, because it starts processes.
std::unique_ptr<FabricBound> MakePerftestBound(const PerftestOptions& options);

/// Parses operations per second from the output of a bandwidth test.
absl::StatusOr<double> ParsePerftest(const std::string& output);
/// The given parts of `-d DEVICE -i PORT -x GID`.
std::vector<std::string> PerftestDevice(const std::string& rdma);

}  // namespace nam::bench
