#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/net/handshake.h"
#include "fabric/tcp/datagram_socket.h"
#include "fabric/tcp/nic_thread.h"
#include "fabric/tcp/regions.h"

namespace nam::fabric::tcp {

/// The shared part of a fabric. Kept alive by its regions, queue pairs and listeners. Thread-safe.
class Core {
 public:
  explicit Core(const FabricOptions& options);

  const FabricOptions& options() const { return options_; }
  net::Credentials credentials() const { return {options_.secret, options_.encrypt}; }
  Regions& regions() { return regions_; }
  DatagramCounters& datagram_counters() { return datagram_counters_; }
  /// The next NIC thread, round robin.
  NicThread& AssignNic();
  uint64_t NextId() { return next_id_.fetch_add(1); }
  /// Retires a region; returns when no thread uses it any more.
  void ReleaseRegion(uint32_t key);
  /// Ends the NIC threads: peers see every connection closed.
  void StopNics();

 private:
  const FabricOptions options_;
  Regions regions_;
  DatagramCounters datagram_counters_;
  std::atomic<uint32_t> next_nic_{0};
  static std::atomic<uint64_t> next_id_;
  std::vector<std::unique_ptr<NicThread>> nics_;  // after what they use
};

}  // namespace nam::fabric::tcp
