#include "terminal/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "terminal/exit_codes.h"

namespace nam {

int FinishOutput(int code) {
  std::cout.flush();  // into stdio's buffer, which it shares
  const bool lost_before = std::ferror(stdout) != 0 || !std::cout.good();
  errno = 0;
  const bool lost_now = std::fflush(stdout) != 0;
  if (!lost_before && !lost_now) return code;
  // The reason of an earlier loss is gone, and an attempt to find it again might succeed in the user's
  // output.
  std::fprintf(stderr, "nam: cannot write the output: %s\n",
               lost_now ? std::strerror(errno) : "some of it is lost");
  return code == kExitOk ? kExitFailed : code;
}

}  // namespace nam
