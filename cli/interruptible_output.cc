#include "cli/interruptible_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace nam::cli {

InterruptibleOutput::InterruptibleOutput(std::ostream& stream, int fd, const Interrupts& interrupts)
    : stream_(stream), fd_(fd), interrupts_(interrupts), former_(stream.rdbuf()) {
  stream_.flush();
  stream_.rdbuf(this);
}

InterruptibleOutput::~InterruptibleOutput() {
  const std::ios_base::iostate state = stream_.rdstate();
  stream_.rdbuf(former_);  // forgets the state
  stream_.setstate(state);
}

bool InterruptibleOutput::AwaitRoom() const {
  while (!interrupts_.Seen()) {
    pollfd fds[] = {{.fd = fd_, .events = POLLOUT, .revents = 0},
                    {.fd = interrupts_.fd(), .events = POLLIN, .revents = 0}};
    if (poll(fds, std::size(fds), -1) < 0 && errno != EINTR) return false;
    if (fds[0].revents != 0) return true;
  }
  return false;
}

std::streamsize InterruptibleOutput::xsputn(const char* text, std::streamsize bytes) {
  std::streamsize written = 0;
  while (written < bytes) {
    if (!AwaitRoom()) break;
    // A pipe with room takes so much at once, without waiting for its reader.
    const auto piece = static_cast<size_t>(std::min<std::streamsize>(bytes - written, PIPE_BUF));
    const ssize_t taken = write(fd_, text + written, piece);
    if (taken < 0 && errno != EINTR && errno != EAGAIN) break;
    written += std::max<ssize_t>(taken, 0);
  }
  return written;
}

int InterruptibleOutput::overflow(int c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

}  // namespace nam::cli
