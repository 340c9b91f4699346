#pragma once

#include <cstdint>
#include <vector>

#include "fabric/sim/nic_model.h"

namespace nam::fabric::sim {

/// One host's card: when its ports and its message engine are free. Messages take the port that is free
/// first, whole and in the order in which they come.
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
  NicTraffic traffic() const { return {out_.bytes, out_.messages, in_.bytes, in_.messages}; }

 private:
  struct Way {
    int64_t engine_free_ps = 0;
    std::vector<int64_t> port_free_ps;
    int64_t bytes = 0;
    int64_t messages = 0;
  };
  int64_t Occupy(Way& way, int64_t now_ps, int64_t wire_bytes);
  int64_t SerializationPs(int64_t wire_bytes) const { return wire_bytes * 1'000'000 / port_bytes_per_us_; }

  const int64_t port_bytes_per_us_;
  const int64_t message_ps_;
  Way out_;
  Way in_;
};

/// Payload and the headers of its packets.
int64_t WireBytes(const NicModel& model, uint32_t payload_bytes);

}  // namespace nam::fabric::sim
