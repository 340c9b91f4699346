#include "base/process_barriers.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nam {

bool JoinBarriers() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool RunBarriers() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace nam
