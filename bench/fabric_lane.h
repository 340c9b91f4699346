#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "bench/bench_server.h"
#include "bench/fabric_case.h"
#include "fabric/fabric.h"

namespace nam::bench {

/// Places of `bytes` bytes in a memory of `span_bytes`, in an order that hardware cannot predict; the same
/// for a fabric and for its bound.
class Scatter {
 public:
  Scatter(uint64_t span_bytes, uint64_t bytes, uint64_t seed = 0)
      : bytes_(bytes), places_(span_bytes / bytes), state_(seed) {
    NAM_CHECK(places_ > 0);
  }
  /// Returns a multiple of `bytes`.
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    // The high half times the number of places, scaled down.
    return ((state_ >> 32) * places_ >> 32) * bytes_;
  }

 private:
  const uint64_t bytes_;
  const uint64_t places_;
  uint64_t state_;
};

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

using Lanes = std::vector<std::unique_ptr<Lane>>;

/// Runs `body` for each of the first `threads` lanes on its own thread; returns the sum of the results, or
/// the first error.
absl::StatusOr<double> SumOverLanes(fabric::Fabric& fabric, const Lanes& lanes, uint32_t threads,
                                    const std::function<absl::StatusOr<double>(Lane&, size_t)>& body);

/// The machine's speed on the same work without the fabric: the yardstick of a provider.
struct FabricBound {
  std::string name;  // such as `memcpy and bare atomics on the same memory`
  std::function<bool(Operation)> covers;
  /// Operations per second of all threads, measured for about `duration_ns`.
  std::function<absl::StatusOr<double>(const FabricCase& wanted, int64_t duration_ns)> rate;
};

/// For fabrics that show peers' memory in place: copies between a lane's buffer and the server's region.
FabricBound MemoryBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For fabrics over sockets: plain socket pairs that move as many bytes per operation.
FabricBound SocketBound(fabric::Fabric& fabric, const Lanes& lanes);
/// For simulated fabrics: the limits of the model's links and cards, in bytes and messages.
FabricBound LineRateBound(double bytes_per_second, double messages_per_second);

}  // namespace nam::bench
