#pragma once

#include <cstdio>
#include <cstdlib>

namespace nam {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s%s%s\n", file, line, condition, *why ? ": " : "", why);
  std::fflush(stderr);
  std::abort();
}

}  // namespace nam

/// Stops the process if an invariant is broken; active in every build mode. For expected failures (input,
/// peers, memory) return absl::Status instead.
#define NAM_CHECK(condition, ...)                                         \
  do {                                                                    \
    if (__builtin_expect(!(condition), 0))                                \
      ::nam::CheckFailed(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
  } while (false)
