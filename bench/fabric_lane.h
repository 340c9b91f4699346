#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/bench_server.h"
#include "bench/fabric_case.h"
#include "bench/scatter.h"
#include "fabric/fabric.h"

namespace nam::bench {

/// One client thread's connections to the server: a completion queue, a queue pair for one-sided operations,
/// one for SEND, and a registered buffer with one slot per operation in flight. One thread at a time.
class Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Open(fabric::Fabric& fabric, const ServerAddress& server,
                                                    uint64_t buffer_bytes, uint64_t seed);

  struct Outcome {
    uint64_t operations = 0;
    int64_t elapsed_ns = 0;
  };
  /// Keeps `in_flight` operations going for `duration_ns`, then waits for the last ones. The next operation
  /// follows each completion at once; those that complete together are posted together. `latencies_ns`,
  /// unless null, receives the time of each operation, up to its capacity. Reading the clock costs time, so
  /// such a run does not measure throughput.
  absl::StatusOr<Outcome> Run(const FabricCase& wanted, int64_t duration_ns,
                              std::vector<int64_t>* latencies_ns);

  /// READs the whole region of the server once, which maps every page.
  absl::Status Touch();
  /// The server's memory in place, if the fabric supports it.
  absl::StatusOr<std::byte*> View();
  fabric::MemoryRegion& buffer() { return *buffer_; }
  uint64_t region_bytes() const { return server_.region_bytes; }
  uint64_t seed() const { return seed_; }

 private:
  Lane(fabric::Fabric& fabric, const ServerAddress& server, uint64_t seed)
      : fabric_(fabric), server_(server), seed_(seed) {}
  void Prepare(const FabricCase& wanted);
  /// Posts the next operation of every slot, in runs of adjacent slots.
  absl::Status Post(const FabricCase& wanted, std::span<const uint32_t> slots, Scatter& scatter);
  absl::Status CompletionFailed(const fabric::Completion& completion) const;

  fabric::Fabric& fabric_;
  const ServerAddress server_;
  const uint64_t seed_;
  std::unique_ptr<fabric::MemoryRegion> buffer_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::QueuePair> one_sided_;
  std::unique_ptr<fabric::QueuePair> messages_;
  std::vector<fabric::WorkRequest> requests_;  // one per slot; only the remote address changes
};

}  // namespace nam::bench
