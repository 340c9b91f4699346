#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"

/// One end of datagram traffic in a test: a queue pair, its completion queue and its buffers.
namespace nam::fabric::conformance {

/// A datagram as it arrived.
struct Arrived {
  uint32_t bytes = 0;
  const std::byte* payload = nullptr;  // until the End is asked for the next one
};

/// Used by one thread. Reposts receives automatically when the next datagram is requested.
class End {
 public:
  static constexpr uint32_t kSlotBytes = 8192;

  /// Fails the test and is not valid() when the fabric cannot.
  explicit End(Fabric& fabric, const DatagramOptions& options = {.send_depth = 64, .receive_depth = 128});
  bool valid() const { return pair_ != nullptr; }

  Fabric& fabric() { return fabric_; }
  DatagramQueuePair& pair() { return *pair_; }
  CompletionQueue& completions() { return *completions_; }
  /// A buffer for sends or receives.
  LocalBuffer Slot(uint32_t index, uint32_t bytes) const;
  uint32_t slots() const { return options_.send_depth + options_.receive_depth; }
  void PostReceives();

  /// Sends, and waits until the buffer is free. `fill` writes the payload.
  bool Send(DatagramTarget to, uint32_t bytes, const std::function<void(std::byte*)>& fill);
  /// `bytes` of FillPattern with `seed`.
  bool SendPattern(DatagramTarget to, uint32_t bytes, uint32_t seed);
  /// The next datagram; none when the deadline passed. Checks that the completion is well formed.
  std::optional<Arrived> Next(Deadline deadline);
  /// Takes arrivals until none comes for `quiet_us`; returns their number.
  size_t Drain(int64_t quiet_us);

  /// Sends the pattern to `to`, again and again, until each of `receivers` saw it or the test's time is over.
  bool SendUntilSeen(DatagramTarget to, uint32_t bytes, uint32_t seed, std::span<End* const> receivers);

 private:
  std::optional<Completion> NextCompletion(Deadline deadline);

  Fabric& fabric_;
  const DatagramOptions options_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<MemoryRegion> memory_;
  std::unique_ptr<DatagramQueuePair> pair_;
  std::optional<uint64_t> unposted_;  // the receive that Next handed out last
  std::vector<Completion> arrived_;   // taken while a send was waited for
  uint64_t next_send_ = 0;
};

/// A numbered datagram of a length that follows from its number.
uint32_t NumberedBytes(uint64_t number, uint32_t bytes_max);
void FillNumbered(std::byte* data, uint64_t number, uint32_t bytes);
/// Its number, if every byte is as FillNumbered made it.
std::optional<uint64_t> ReadNumbered(const Arrived& arrived, uint32_t bytes_max);

}  // namespace nam::fabric::conformance
