#pragma once

#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "bench/two_phase/transport.h"

namespace nam::bench::two_phase {

/// Uses TCP sockets and one epoll, for real kernels: the protocol's only waits outside the fabric. Peers are
/// not authenticated.
class SocketTransport final : public Transport {
 public:
  static absl::StatusOr<std::unique_ptr<Transport>> Open(const TransportOptions& options);

  absl::StatusOr<ConnectionId> Connect(const std::string& address, Deadline deadline) override;
  void Wake() override;

 private:
  struct Socket : Stream {
    UniqueFd fd;
    bool awaits_room = false;  // watched for EPOLLOUT
  };

  explicit SocketTransport(const TransportOptions& options);
  absl::Status Start(const std::string& host);
  absl::StatusOr<ConnectionId> Watch(UniqueFd fd);
  void WatchForRoom(Socket& socket, bool wanted);
  void AcceptAll();
  void Read(Socket& socket, FrameSink& sink);
  bool Push(Stream& stream) override;
  void Await(FrameSink& sink, Deadline deadline) override;

  const TransportOptions options_;
  UniqueFd epoll_;
  UniqueFd doorbell_;
  UniqueFd listener_;
  std::vector<std::byte> arrived_;
};

}  // namespace nam::bench::two_phase
