#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace nam::bench {

/// Runs `body(0)` … `body(threads - 1)` concurrently, `body(0)` on the calling thread. Returns when all have
/// returned.
template <typename Body>
void OnThreads(int threads, const Body& body) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(std::cref(body), t);
  body(0);
  for (std::thread& other : others) other.join();
}

}  // namespace nam::bench
