#include "fabric/shm/doorbell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace nam::fabric::shm {
namespace {

constexpr int64_t kSpinNs = 20'000;

bool HasOtherCpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool Spin(const Doorbell& bell, uint32_t seen, Deadline deadline) {
  static const bool has_other_cpus = HasOtherCpus();
  if (!has_other_cpus) return false;
  const int64_t until_ns = std::min(RealClock().NowNs() + kSpinNs, deadline.ns);
  do {
    for (int i = 0; i < 32; ++i) {
      if (bell.sequence.load(std::memory_order_acquire) != seen) return true;
      CpuRelax();
    }
  } while (RealClock().NowNs() < until_ns);
  return false;
}

}  // namespace

void Ring(Doorbell& bell) {
  // Increment, then look for a waiter; the waiter announces itself, then compares: at least one sees the
  // other.
  bell.sequence.fetch_add(1, std::memory_order_seq_cst);
  if (bell.waiters.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &bell.sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void AwaitRing(Doorbell& bell, uint32_t seen, Deadline deadline) {
  if (Spin(bell, seen, deadline)) return;
  bell.waiters.store(1, std::memory_order_seq_cst);
  if (bell.sequence.load(std::memory_order_seq_cst) == seen) {
    const int64_t ns = std::max<int64_t>(deadline.ns, 0);
    const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
    // Not FUTEX_PRIVATE: the peers that ring are other processes. The bitset form takes an absolute time.
    syscall(SYS_futex, &bell.sequence, FUTEX_WAIT_BITSET, seen,
            deadline.ns == Deadline::Never().ns ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  bell.waiters.store(0, std::memory_order_relaxed);
}

}  // namespace nam::fabric::shm
