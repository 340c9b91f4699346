#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fabric/sim/nic_model.h"

namespace nam::fabric::sim {

/// One host's card: when its ports and its message engine are free. Messages take the port that is free
/// first, whole and in the order in which they come; atomics take turns at their word.
///
/// Picoseconds, so that rates are exact; the world's clock rounds up.
class Nic {
 public:
  explicit Nic(const NicModel& model);

  /// A message leaves: when its first byte does.
  int64_t Send(int64_t now_ps, int64_t wire_bytes);
  /// Its first byte arrives at `now_ps`: when its last one has. Messages of up to 8 bytes take no time of
  /// their own here: the model's latencies contain it.
  int64_t Receive(int64_t now_ps, int64_t wire_bytes, int64_t small_wire_bytes);
  /// An atomic on a word (by a number that is the word's own in this host) arrives: when it takes effect.
  int64_t TakeTurn(uint64_t word, RemoteAddress address, int64_t now_ns);
  /// Everything takes so many times as long from now on.
  void SlowDown(int64_t times) { times_ = times; }
  int64_t Slowed(int64_t ns) const { return ns * times_; }
  NicTraffic traffic() const { return {out_.bytes, out_.messages, in_.bytes, in_.messages}; }
  /// Counts atomics by their word from now on, beginning with none.
  void CountWords() { counted_.emplace(); }
  /// The counted word that was busy for the longest.
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
  std::unordered_map<uint64_t, int64_t> word_free_ns_;                // of words that were busy lately
  std::optional<std::unordered_map<uint64_t, WordTraffic>> counted_;  // by word
};

/// Payload and the headers of its packets.
int64_t WireBytes(const NicModel& model, uint32_t payload_bytes);

}  // namespace nam::fabric::sim
