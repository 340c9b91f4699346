#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"

/// The bound of the tcp fabric: two ends of a TCP connection that move the same number of bytes per
/// operation, with as many requests in flight, and do nothing else. Each end is one thread that blocks in the
/// kernel, takes all input at once and answers it with one call.
///
///     client ── request bytes, reply bytes (8 B each) ──▶ server     once
///     client ── request ──▶ server,  server ── reply ──▶ client      pipelined, contents unused
namespace nam::bench {

class SocketServer {
 public:
  /// Sends replies from, and receives requests into, `memory_bytes` of its own.
  static absl::StatusOr<std::unique_ptr<SocketServer>> Start(fabric::Fabric& fabric, const std::string& host,
                                                             uint64_t memory_bytes);
  ~SocketServer();
  const std::string& address() const { return address_; }

 private:
  explicit SocketServer(fabric::Fabric& fabric) : fabric_(fabric) {}
  void Accept();
  void Serve(int socket);

  fabric::Fabric& fabric_;
  std::string address_;
  UniqueFd listener_;
  std::vector<std::byte> memory_;
  std::vector<UniqueFd> connections_;  // the accepting thread's
  std::atomic<bool> stopping_{false};
  std::unique_ptr<fabric::Thread> accept_thread_;
};

/// One connection of a client; one thread.
class SocketClient {
 public:
  /// `memory` is the source of requests and the target of replies; it holds several of each.
  static absl::StatusOr<std::unique_ptr<SocketClient>> Connect(const std::string& address,
                                                               uint64_t request_bytes, uint64_t reply_bytes,
                                                               std::span<std::byte> memory);
  /// Operations per second, over about `duration_ns`.
  absl::StatusOr<double> Run(uint32_t in_flight, int64_t duration_ns);

 private:
  SocketClient(UniqueFd socket, uint64_t request_bytes, uint64_t reply_bytes, std::span<std::byte> memory)
      : socket_(std::move(socket)),
        request_bytes_(request_bytes),
        reply_bytes_(reply_bytes),
        memory_(memory) {}
  bool Ask(uint64_t requests);

  const UniqueFd socket_;
  const uint64_t request_bytes_;
  const uint64_t reply_bytes_;
  const std::span<std::byte> memory_;
  size_t send_at_ = 0;
};

}  // namespace nam::bench
