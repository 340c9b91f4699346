#include "fabric/shm/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/shm/wire.h"

namespace nam::fabric::shm {
namespace {

constexpr int kBacklog = 128;
constexpr int64_t kDirectoryLockTimeoutUs = 1'000'000;

struct Address {
  sockaddr_un socket{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

bool IsAbstract(const std::string& address) {
  return address.starts_with('@');
}

absl::StatusOr<Address> ParseAddress(const std::string& address) {
  Address parsed;
  parsed.socket.sun_family = AF_UNIX;
  if (address.empty()) {
    return absl::InvalidArgumentError("fabric shm: the address is empty; give a path, or @name");
  }
  if (address.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("fabric shm: the address contains a zero byte");
  }
  constexpr size_t kLengthMax = sizeof(parsed.socket.sun_path) - 1;
  if (address.size() > kLengthMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("fabric shm: socket address \"%s\" has %d bytes, the system's limit is %d; use a "
                        "shorter directory, or @name",
                        address, address.size(), kLengthMax));
  }
  std::memcpy(parsed.socket.sun_path, address.data(), address.size());
  parsed.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  if (IsAbstract(address)) {
    parsed.socket.sun_path[0] = '\0';
  } else {
    ++parsed.bytes;
  }
  return parsed;
}

absl::Status SystemError(absl::StatusCode code, const char* what, const std::string& address) {
  return absl::Status(
      code, absl::StrFormat("fabric shm: cannot %s \"%s\": %s", what, address, std::strerror(errno)));
}

absl::StatusOr<UniqueFd> NewSocket(const std::string& address) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SystemError(absl::StatusCode::kResourceExhausted, "create a socket for", address);
  return fd;
}

/// Held while a stale socket file is replaced, so that only one of two processes replaces it.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(absl::StatusCode::kNotFound, "open the directory of socket", path);
  const Deadline deadline = RealClock().After(kDirectoryLockTimeoutUs);
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;  // a file system without locks
    if (RealClock().Passed(deadline)) {
      return absl::UnavailableError(
          absl::StrFormat("fabric shm: another process holds a lock on \"%s\"", directory));
    }
    RealClock().SleepUntil(RealClock().After(1000));
  }
  return fd;
}

absl::Status RemoveIfStale(const std::string& path, const Address& address) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISSOCK(status.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrFormat("fabric shm: \"%s\" exists and is not a socket; choose another path", path));
  }
  NAM_ASSIGN_OR_RETURN(UniqueFd probe, NewSocket(path));
  // A busy listener answers EAGAIN, which proves that it is alive.
  fcntl(probe.get(), F_SETFL, O_NONBLOCK);
  if (connect(probe.get(), address.get(), address.bytes) == 0 || errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "fabric shm: another server listens at \"%s\"; stop it or choose another path", path));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SystemError(absl::StatusCode::kPermissionDenied, "remove the stale socket", path);
  }
  return absl::OkStatus();
}

std::string PickName() {
  std::string name = "@nam-";
  for (const uint8_t byte : RandomProcessId()) name += absl::StrFormat("%02x", byte);
  return name;
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Bind(const std::string& wanted) {
  const std::string address = wanted == "@" ? PickName() : wanted;
  NAM_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  NAM_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(address));
  UniqueFd lock;
  if (!IsAbstract(address)) {
    NAM_ASSIGN_OR_RETURN(lock, LockDirectory(address));
    NAM_RETURN_IF_ERROR(RemoveIfStale(address, parsed));
    fchmod(fd.get(), 0600);  // the mode that bind gives to the file
  }
  if (bind(fd.get(), parsed.get(), parsed.bytes) != 0) {
    return SystemError(errno == EADDRINUSE ? absl::StatusCode::kAlreadyExists
                       : errno == ENOENT   ? absl::StatusCode::kNotFound
                                           : absl::StatusCode::kPermissionDenied,
                       "listen at", address);
  }
  ListeningSocket listening(std::move(fd), address);
  if (struct stat status; !IsAbstract(address) && stat(address.c_str(), &status) == 0) {
    listening.device_ = status.st_dev;
    listening.inode_ = status.st_ino;
  }
  // The service thread accepts until none is left, and must not wait for the next one.
  fcntl(listening.get(), F_SETFL, O_NONBLOCK);
  if (listen(listening.get(), kBacklog) != 0) {
    return SystemError(absl::StatusCode::kInternal, "listen at", address);
  }
  return listening;
}

ListeningSocket::~ListeningSocket() {
  struct stat status;
  if (!socket_.valid() || IsAbstract(address_) || stat(address_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) unlink(address_.c_str());
}

absl::StatusOr<UniqueFd> ConnectSocket(const std::string& address, Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  NAM_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(address));
  // Bounds connect() itself, which waits while the listener's backlog is full.
  const int64_t left_us =
      std::clamp<int64_t>((deadline.ns - RealClock().NowNs()) / 1000, 1000, 3'600'000'000);
  const timeval timeout{left_us / 1'000'000, left_us % 1'000'000};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (connect(fd.get(), parsed.get(), parsed.bytes) == 0) return fd;
  switch (errno) {
    case EAGAIN:
    case EINTR:
      return absl::DeadlineExceededError(
          absl::StrFormat("fabric shm: the server at \"%s\" does not accept connections in time", address));
    case EACCES:
    case EPERM:
      return SystemError(absl::StatusCode::kPermissionDenied, "connect to", address);
    default:
      return absl::UnavailableError(absl::StrFormat(
          "fabric shm: no process listens at \"%s\" (%s); is the server running on this host?", address,
          std::strerror(errno)));
  }
}

absl::StatusOr<pid_t> CheckPeerUser(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    return absl::PermissionDeniedError("the peer's user is unknown");
  }
  if (credentials.uid != geteuid() && credentials.uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("the peers run as different users (%d and %d)", geteuid(), credentials.uid));
  }
  return credentials.pid;
}

}  // namespace nam::fabric::shm
