#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "storage/multicast_blocks.h"
#include "storage/multicast_layout.h"
#include "storage/multicast_sender.h"

namespace nam::bench {

inline constexpr MemoryServerId kBenchServer{1};

/// The addresses of a benchmark's server, for clients.
struct ServerAddress {
  std::string one_sided;  // a passive listener
  std::string messages;   // a listener whose connections take every SEND
  fabric::RemoteKey rkey;
  uint64_t region_bytes = 0;
};

/// A benchmark's server, on a fabric of its own: a region with all rights for peers, and threads that take
/// incoming messages. The fabric must outlive it. Used by one thread.
class BenchServer {
 public:
  /// `host`: where to listen.
  static absl::StatusOr<std::unique_ptr<BenchServer>> Start(fabric::Fabric& fabric, uint64_t region_bytes,
                                                            const std::string& host);
  ~BenchServer();

  const ServerAddress& address() const { return address_; }
  /// Multicasts tables in the region concurrently, each on its own thread to its own group, from
  /// `first_group` on. Returns addresses in the order of the tables.
  absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const std::vector<storage::MulticastTable>& tables, uint32_t members, uint32_t first_group);
  /// Returns when everything was sent, or with the first sender's error.
  absl::Status FinishMulticast();

 private:
  explicit BenchServer(fabric::Fabric& fabric) : fabric_(fabric) {}
  void AcceptSenders();
  void TakeMessages(fabric::CompletionQueue& completions, fabric::QueuePair& queue_pair,
                    fabric::MemoryRegion& buffer);

  fabric::Fabric& fabric_;
  ServerAddress address_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::Listener> one_sided_;
  std::unique_ptr<fabric::Listener> messages_;
  std::atomic<bool> stopping_{false};

  struct Sender {
    std::unique_ptr<storage::MulticastSender> stream;
    absl::Status outcome;
    std::unique_ptr<fabric::Thread> thread;
  };
  std::vector<std::unique_ptr<Sender>> senders_;

  std::unique_ptr<fabric::Thread> accept_thread_;  // last: it uses everything above
};

}  // namespace nam::bench
