#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fabric_bound.h"

namespace nam::bench {

struct PerftestOptions {
  std::string rdma;         // of the client: DEVICE[:PORT][,gid=N]; empty: perftest's own choice
  std::string server_rdma;  // of the server
  std::string server_host;  // the address at which the two meet
  std::string directory;    // for what the programs print
};

/// For verbs: perftest's ib_read_bw, ib_write_bw, ib_send_bw and ib_atomic_bw between the same devices, each
/// case measured once, with 16 in flight. nullptr if perftest is not installed. `Rate` is called on the main
/// thread: it starts processes.
std::unique_ptr<FabricBound> MakePerftestBound(const PerftestOptions& options);

/// Operations per second, from what one of its bandwidth tests printed.
absl::StatusOr<double> ParsePerftest(const std::string& output);
/// `-d DEVICE -i PORT -x GID`, of what is said.
std::vector<std::string> PerftestDevice(const std::string& rdma);

}  // namespace nam::bench
