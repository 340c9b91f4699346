#include "terminal/exit_codes.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace nam {
namespace {

/// Why output was lost; 0: unknown. The reason of an earlier failure is gone, but usually still holds.
int ReasonOf(int flush_error) {
  if (flush_error != 0) return flush_error;
  return write(STDOUT_FILENO, "\n", 1) == 1 ? 0 : errno;
}

}  // namespace

int FinishOutput(int code) {
  std::cout.flush();  // into stdio's buffer, which it shares
  const bool lost_before = std::ferror(stdout) != 0 || !std::cout.good();
  errno = 0;
  const bool lost_now = std::fflush(stdout) != 0;
  if (!lost_before && !lost_now) return code;
  const int reason = ReasonOf(lost_now ? errno : 0);
  if (reason == EPIPE) return code;  // the reader has seen enough
  std::fprintf(stderr, "nam: cannot write the output: %s\n",
               reason == 0 ? "some of it is lost" : std::strerror(reason));
  return code == kExitOk ? kExitFailed : code;
}

}  // namespace nam
