#include "terminal/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "terminal/exit_codes.h"

namespace nam {
namespace {

/// Why output is lost. If it was earlier, its reason is gone; but who could not write then cannot now.
std::string Reason(int flush_error) {
  if (flush_error != 0) return std::strerror(flush_error);
  return write(STDOUT_FILENO, "\n", 1) == 1 ? "some of it is lost" : std::strerror(errno);
}

}  // namespace

int FinishOutput(int code) {
  std::cout.flush();  // into stdio's buffer, which it shares
  const bool lost_before = std::ferror(stdout) != 0 || !std::cout.good();
  errno = 0;
  const bool lost_now = std::fflush(stdout) != 0;
  if (!lost_before && !lost_now) return code;
  std::fprintf(stderr, "nam: cannot write the output: %s\n", Reason(lost_now ? errno : 0).c_str());
  return code == kExitOk ? kExitFailed : code;
}

}  // namespace nam
