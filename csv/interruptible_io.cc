#include "csv/interruptible_io.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "base/interruption.h"

namespace nam::csv {
namespace {

/// A cancelled statement ends so soon.
constexpr int kLookMs = 50;

}  // namespace

absl::Status AwaitReady(int fd, short events) {
  while (!Interruption::requested()) {
    pollfd polled{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&polled, 1, Interruption::flag() == nullptr ? -1 : kLookMs);
    // What failed fails again where it is read or written, which tells of it.
    if (ready > 0 || (ready < 0 && errno != EINTR)) return absl::OkStatus();
  }
  return absl::CancelledError("cancelled");
}

absl::StatusOr<UniqueFd> OpenFifoToWrite(const std::string& path) {
  while (!Interruption::requested()) {
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid() || errno != ENXIO) return fd;
    // The system tells of a reader only who waits in open(), which only a signal ends.
    poll(nullptr, 0, kLookMs);
  }
  return absl::CancelledError("cancelled");
}

}  // namespace nam::csv
