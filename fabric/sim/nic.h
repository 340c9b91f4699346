#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fabric/sim/nic_model.h"

namespace nam::fabric::sim {

inline constexpr int64_t kPsPerNs = 1'000;
inline int64_t CeilNs(int64_t ps) {
  return (ps + kPsPerNs - 1) / kPsPerNs;
}

/// The card of one host: tracks when its ports and its message engine are free. A message takes the first
/// free port, whole and in arrival order. Atomics on one word take turns.
///
/// Picoseconds, so that rates are exact; the world's clock rounds up.
class Nic {
 public:
  explicit Nic(const NicModel& model);

  /// Sends a message; returns when its first byte leaves.
  int64_t Send(int64_t now_ps, int64_t wire_bytes);
  /// Receives a message whose first byte arrives at `now_ps`; returns when its last byte has. Messages of up
  /// to 8 bytes add no time here: the model's latencies include it.
  int64_t Receive(int64_t now_ps, int64_t wire_bytes, int64_t small_wire_bytes);
  /// An atomic arrives; returns when it takes effect. `word` identifies the word within this host.
  int64_t TakeTurn(uint64_t word, RemoteAddress address, int64_t now_ns);
  /// All operations take `times` as long from now on.
  void SlowDown(int64_t times) { times_ = times; }
  int64_t Slowed(int64_t ns) const { return ns * times_; }
  NicTraffic traffic() const { return {out_.bytes, out_.messages, in_.bytes, in_.messages}; }
  /// Starts counting atomics by word, from zero.
  void CountWords() { counted_.emplace(); }
  /// The counted word with the longest busy time.
  WordTraffic BusiestWord() const;

 private:
  struct Way {
    int64_t engine_free_ps = 0;
    std::vector<int64_t> port_free_ps;
    int64_t bytes = 0;
    int64_t messages = 0;
  };
  int64_t Occupy(Way& way, int64_t now_ps, int64_t wire_bytes);
  int64_t SerializationPs(int64_t wire_bytes) const {
    return Slowed(wire_bytes * 1'000'000 / port_bytes_per_us_);
  }

  const int64_t port_bytes_per_us_;
  const int64_t message_ps_;
  const int64_t atomic_ns_;
  int64_t times_ = 1;
  Way out_;
  Way in_;
  std::unordered_map<uint64_t, int64_t> word_free_ns_;                // recently busy words
  std::optional<std::unordered_map<uint64_t, WordTraffic>> counted_;  // by word
};

/// Payload plus packet headers.
int64_t WireBytes(const NicModel& model, uint32_t payload_bytes);

}  // namespace nam::fabric::sim
