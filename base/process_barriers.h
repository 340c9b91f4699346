#pragma once

/// Memory barriers that one thread runs for all threads of processes (membarrier(2), expedited). Where two
/// threads each write a word and then read the other's, one of them needs no barrier of its own if the other,
/// the rarer one, runs it for both:
///
///     often                     rarely
///     own = …                   other = …
///     compiler's fence          RunBarriers()
///     read other                read own          at least one sees the other's write
///
/// Any thread.
namespace nam {

/// From now on RunBarriers in any process covers all threads of this process. False if the kernel refuses.
/// Cheap to repeat.
bool JoinBarriers();

/// When it returns true, every thread of every joined process has passed a full memory barrier during the
/// call. False if the kernel refuses.
bool RunBarriers();

}  // namespace nam
