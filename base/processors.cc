#include "base/processors.h"

#include <algorithm>
#include <thread>

namespace nam {

int HostProcessors() {
  // glibc asks the kernel for the affinity. Later changes of it are not seen.
  static const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return processors;
}

}  // namespace nam
