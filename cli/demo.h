#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace nam::cli {

struct DemoOptions {
  double scale_factor = 1;
  uint64_t seed = 1;
  int memory_servers = 2;
  int compute_servers = 2;
  std::string fabric = "shm";
  uint64_t memory_bytes = 0;  // of each memory server; 0: enough for the scale factor
  std::optional<uint64_t> scratch_bytes;
  int threads = 0;  // of each compute server; 0: the processors shared out
  int repeat = 3;
  std::string timestamps = "leased";
};

/// A private cluster: loads SSB, runs the 13 queries, checks every answer against SQLite, runs checkout for a
/// few seconds, prints both tables, and leaves no process, socket, memory or file behind. kExitOk only if all
/// 13 are correct and checkout's stocks and orders add up.
int RunDemo(const DemoOptions& options);

}  // namespace nam::cli
