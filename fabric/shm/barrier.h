#pragma once

/// Memory barriers that one process runs for others (membarrier(2), expedited). Any thread.
namespace nam::fabric::shm {

/// From now on RunBarriers in any process covers all threads of this process. False if the kernel refuses.
/// Cheap to repeat.
bool JoinBarriers();

/// When it returns true, every thread of every joined process has passed a full memory barrier during the
/// call. False if the kernel refuses.
bool RunBarriers();

}  // namespace nam::fabric::shm
