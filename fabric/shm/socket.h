#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace nam::fabric::shm {

/// A listening UNIX socket; its file, if it has one, goes with it.
class ListeningSocket {
 public:
  /// `address` as in shm_fabric.h. Replaces a socket file on which nobody answers; ALREADY_EXISTS when
  /// somebody does, or when the file is something else.
  static absl::StatusOr<ListeningSocket> Bind(const std::string& address);
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int get() const { return socket_.get(); }
  /// What to pass to ConnectSocket: `@` replaced by the name that was picked.
  const std::string& address() const { return address_; }

 private:
  ListeningSocket(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;
  dev_t device_ = 0;  // of the file that we made: another's is not removed
  ino_t inode_ = 0;
};

/// UNAVAILABLE when nobody listens there.
absl::StatusOr<UniqueFd> ConnectSocket(const std::string& address, Deadline deadline);

/// The process at the other end, if it runs as our user or as root. PERMISSION_DENIED otherwise.
absl::StatusOr<pid_t> CheckPeerUser(int socket);

}  // namespace nam::fabric::shm
