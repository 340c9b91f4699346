#pragma once

/// Barriers that one process runs on behalf of others (membarrier(2), expedited). Any thread.
namespace nam::fabric::shm {

/// From now on RunBarriers, called by anybody, counts for all threads of this process. False when the
/// kernel refuses. Cheap when repeated.
bool JoinBarriers();

/// Every thread of every process that joined has passed a full memory barrier between the call and the
/// return. False when the kernel refuses.
bool RunBarriers();

}  // namespace nam::fabric::shm
