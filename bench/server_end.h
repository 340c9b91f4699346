#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/socket_peer.h"
#include "fabric/fabric.h"
#include "storage/multicast_layout.h"
#include "storage/multicast_sender.h"

namespace nam::bench {

/// What clients need to know of the other end of a benchmark.
struct ServerAddress {
  std::string one_sided;  // a passive listener
  std::string messages;   // one whose connections take every SEND
  std::string sockets;    // of the plain socket server; empty if there is none
  fabric::RemoteKey rkey;
  uint64_t region_bytes = 0;
};

/// Streams to be multicast at the same time, each by a thread of its own to a group of its own.
struct MulticastRequest {
  uint32_t first_group = 1;  // the others follow
  uint32_t members = 1;
  std::vector<std::vector<storage::MulticastExtent>> streams;
};

/// The other end of a benchmark, wherever it runs. One thread.
class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  virtual const ServerAddress& address() const = 0;
  /// From now on the group's datagrams are received and counted.
  virtual absl::Status JoinGroup(const std::string& group_address) = 0;
  /// Ever, of all groups.
  virtual absl::StatusOr<uint64_t> DatagramsReceived() = 0;
  /// In the order of the streams. Blocks lie in the server's region at their pointers' offsets.
  virtual absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const MulticastRequest& request) = 0;
  /// Returns when all of it was sent, and with the first sender's error.
  virtual absl::Status FinishMulticast() = 0;
};

struct BenchServerOptions {
  uint64_t region_bytes = uint64_t{64} << 20;
  std::string host = "127.0.0.1";  // where to listen
  bool sockets = false;            // offer the plain socket server too
};

/// It as objects of this process: a region that peers may do everything with, and threads that take what
/// is sent to them. The fabric outlives it.
class BenchServer final : public ServerEnd {
 public:
  static absl::StatusOr<std::unique_ptr<BenchServer>> Start(fabric::Fabric& fabric,
                                                            const BenchServerOptions& options);
  ~BenchServer() override;

  const ServerAddress& address() const override { return address_; }
  absl::Status JoinGroup(const std::string& group_address) override;
  absl::StatusOr<uint64_t> DatagramsReceived() override { return datagrams_.load(); }
  absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const MulticastRequest& request) override;
  absl::Status FinishMulticast() override;

 private:
  explicit BenchServer(fabric::Fabric& fabric) : fabric_(fabric) {}
  void AcceptSenders();
  void TakeMessages(fabric::CompletionQueue& completions, fabric::QueuePair& queue_pair,
                    fabric::MemoryRegion& buffer);
  void TakeDatagrams();

  fabric::Fabric& fabric_;
  ServerAddress address_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::Listener> one_sided_;
  std::unique_ptr<fabric::Listener> messages_;
  std::unique_ptr<SocketServer> sockets_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> datagrams_{0};

  // What the thread that takes datagrams uses, once it runs.
  std::unique_ptr<fabric::CompletionQueue> datagram_completions_;
  std::unique_ptr<fabric::MemoryRegion> datagram_buffer_;
  std::unique_ptr<fabric::DatagramQueuePair> datagram_queue_pair_;

  struct Sender {
    std::unique_ptr<storage::MulticastSender> stream;
    absl::Status outcome;
    std::unique_ptr<fabric::Thread> thread;
  };
  std::vector<std::unique_ptr<Sender>> senders_;

  std::unique_ptr<fabric::Thread> datagram_thread_;
  std::unique_ptr<fabric::Thread> accept_thread_;  // last: it uses everything above
};

/// `nam bench-server`, the other end in a process of its own: a JsonPeer that starts a BenchServer at the
/// first request and ends with its standard input.
int RunBenchServer();

struct ServerProcessOptions {
  fabric::FabricOptions fabric;
  BenchServerOptions server;
  std::string log_file;
};
absl::StatusOr<std::unique_ptr<ServerEnd>> StartServerProcess(const ServerProcessOptions& options);

}  // namespace nam::bench
