#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace nam::fabric::shm {

/// A listening UNIX socket. Its file, if any, is removed with it.
class ListeningSocket {
 public:
  /// `address` as in shm_fabric.h. Replaces a stale socket file; ALREADY_EXISTS if a process listens there or
  /// the file is not a socket.
  static absl::StatusOr<ListeningSocket> Bind(const std::string& address);
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int get() const { return socket_.get(); }
  /// The address for ConnectSocket, with `@` replaced by the chosen name.
  const std::string& address() const { return address_; }

 private:
  ListeningSocket(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;
  dev_t device_ = 0;  // of the file created here; a replaced file is not removed
  ino_t inode_ = 0;
};

/// UNAVAILABLE if no process listens there.
absl::StatusOr<UniqueFd> ConnectSocket(const std::string& address, Deadline deadline);

/// The process at the other end. PERMISSION_DENIED unless it runs as this user or as root.
absl::StatusOr<pid_t> CheckPeerUser(int socket);

}  // namespace nam::fabric::shm
