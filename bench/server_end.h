#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "storage/multicast_layout.h"
#include "storage/multicast_sender.h"

namespace nam::bench {

/// The addresses of a benchmark's server, for clients.
struct ServerAddress {
  std::string one_sided;  // a passive listener
  std::string messages;   // a listener whose connections take every SEND
  fabric::RemoteKey rkey;
  uint64_t region_bytes = 0;
};

/// Streams of a ChainSet to multicast concurrently, each on its own thread to its own group.
struct MulticastRequest {
  uint32_t first_group = 1;  // the others follow it
  uint32_t members = 1;
  uint32_t block_bytes = 0, chains = 0;  // the set lies in the server's region
  uint32_t streams = 1;                  // stream i has part i of it
};

/// A benchmark's server, wherever it runs. One thread.
class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  virtual const ServerAddress& address() const = 0;
  /// Returns addresses in the order of the streams.
  virtual absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const MulticastRequest& request) = 0;
  /// Returns when everything was sent, or with the first sender's error.
  virtual absl::Status FinishMulticast() = 0;
};

struct BenchServerOptions {
  uint64_t region_bytes = uint64_t{64} << 20;
  std::string host = "127.0.0.1";  // where to listen
};

/// The server within this process: a region with all rights for peers, and threads that take incoming
/// messages. The fabric must outlive it.
class BenchServer final : public ServerEnd {
 public:
  static absl::StatusOr<std::unique_ptr<BenchServer>> Start(fabric::Fabric& fabric,
                                                            const BenchServerOptions& options);
  ~BenchServer() override;

  const ServerAddress& address() const override { return address_; }
  absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const MulticastRequest& request) override;
  absl::Status FinishMulticast() override;

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

/// `nam bench-server`, the server in a separate process: a JsonPeer that starts a BenchServer at the first
/// request and ends with its standard input.
int RunBenchServer();

struct ServerProcessOptions {
  fabric::FabricOptions fabric;
  BenchServerOptions server;
  std::string log_file;
};
absl::StatusOr<std::unique_ptr<ServerEnd>> StartServerProcess(const ServerProcessOptions& options);

}  // namespace nam::bench
