#include "localcluster/stop_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace nam {

StopSignals::StopSignals() {
  sigemptyset(&stop_set_);
  sigaddset(&stop_set_, SIGINT);
  sigaddset(&stop_set_, SIGTERM);
  NAM_CHECK(pthread_sigmask(SIG_BLOCK, &stop_set_, &previous_) == 0);
  fd_.reset(signalfd(-1, &stop_set_, SFD_CLOEXEC | SFD_NONBLOCK));
  NAM_CHECK(fd_.valid(), "signalfd");
}

StopSignals::~StopSignals() {
  // A pending signal has been answered; it must not kill the code after the scope.
  signalfd_siginfo seen;
  while (read(fd_.get(), &seen, sizeof seen) == sizeof seen) {
  }
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

bool StopSignals::Pending() const {
  pollfd wait{fd_.get(), POLLIN, 0};
  return poll(&wait, 1, 0) > 0;
}

void StopSignals::GiveOrderlyEnd(unsigned seconds) {
  signalfd_siginfo seen;
  while (read(fd_.get(), &seen, sizeof seen) == sizeof seen) {
  }
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGALRM, SIG_DFL);
  alarm(seconds);
  pthread_sigmask(SIG_UNBLOCK, &stop_set_, nullptr);
}

}  // namespace nam
