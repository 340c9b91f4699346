#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/sim/trace.h"
#include "fabric/sim/world.h"

/// The threads and the time of one world.
///
///               Notify, or time                 picked by the seed
///     kBlocked ─────────────────▶ kReady ─────────────────────────▶ kRunning ──▶ kFinished
///        ▲                          ▲  due                              │
///        └────────── Wait ──────────┼───────── kWaking ◀─── Sync ───────┤
///                                   └───────────────────────────────────┘
///
/// A thread of a paused process is kHeld instead of kReady until the process resumes.
///
/// The threads belong to the operating system, but only the holder of the baton runs. So one thread at a time
/// touches the world, and it needs no lock. When no thread is ready, the holder of the baton advances the
/// clock to the next event or timer.
///
/// A thread's own time runs ahead of the world's by its debt: the sum of its charges since it last waited. So
/// a charge needs no thread switch.
namespace nam::fabric::sim {

class Scheduler;
struct SimThread;

/// Threads that wait for one condition. Must be empty when destroyed.
class WaitList {
 private:
  friend class Scheduler;
  std::vector<SimThread*> threads_;
};

/// The subject of a wait, for reports: `completion queue 7`.
struct WaitReason {
  const char* what = "";
  uint64_t number = 0;
};

class Scheduler {
 public:
  Scheduler(const WorldOptions& options, Trace& trace);
  /// Requires that only the driver is left.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The calling thread's time; within an event, the world's time.
  int64_t NowNs() const;
  /// Advances the calling thread's time without a thread switch.
  void Charge(int64_t ns);
  /// Lets the world catch up with the calling thread: others may run.
  void Sync();
  /// Like Sync, but only if the calling thread is more than `ahead_ns` ahead.
  void SyncBeyond(int64_t ahead_ns);
  void SleepUntil(Deadline deadline);

  /// Runs `event` at that time, outside every thread; it must not wait. Simultaneous events run in an order
  /// drawn from the seed.
  void At(int64_t at_ns, std::function<void()> event);

  /// Blocks the calling thread until one of the lists is notified or the deadline passes. It resumes no
  /// earlier than its own time. Nothing happens between the caller's check of the condition and this call.
  void Wait(std::initializer_list<WaitList*> lists, const WaitReason& reason, Deadline deadline);
  /// Callable from threads and events.
  void Notify(WaitList& list);

  /// Stops all threads of the process, while time passes. The caller must not belong to the process.
  void Pause(ProcessId process);
  void Resume(ProcessId process);
  bool IsPaused(ProcessId process) const { return paused_.contains(process); }

  /// Starts a thread of `process`; returns its index.
  uint32_t Start(ProcessId process, const std::string& name, std::function<void()> body);
  /// Waits until the thread has ended.
  void Join(uint32_t thread);
  /// Removes ended threads from the list, without waiting.
  void Reap(std::vector<uint32_t>& threads);

  /// The threads and what each waits for, one per line.
  std::string Describe() const;
  void set_host_of(std::function<std::string(ProcessId)> host_of) { host_of_ = std::move(host_of); }

 private:
  struct Event {
    int64_t at_ns;
    uint64_t order;     // drawn
    uint64_t sequence;  // makes the order total
    std::function<void()> run;
  };
  struct Timer {
    int64_t at_ns;
    uint32_t index;
    SimThread* thread;
    auto operator<=>(const Timer& other) const {
      return at_ns != other.at_ns ? at_ns <=> other.at_ns : index <=> other.index;
    }
    bool operator==(const Timer& other) const { return at_ns == other.at_ns && index == other.index; }
  };
  static bool Later(const Event& a, const Event& b);

  SimThread& Current() const;
  void SetTimer(SimThread& thread, int64_t at_ns);
  void ClearTimer(SimThread& thread);
  void LeaveLists(SimThread& thread);
  void MakeReady(SimThread& thread, int64_t at_ns);
  void RunDue();
  int64_t NextNs() const;
  void AdvanceTo(int64_t at_ns);
  SimThread& Pick();
  void SwitchFrom(SimThread& self);
  void GiveBaton(SimThread& next);
  void Body(SimThread& self, const std::function<void()>& body);
  void Watch(int64_t stuck_real_ms);
  [[noreturn]] void Hang(const char* kind);

  const uint64_t seed_;
  const int64_t end_ns_;
  const int64_t wake_delay_ns_max_;
  const std::string replay_;
  const std::function<void(const std::string&)> on_hang_;
  Trace& trace_;
  RandomStream random_;
  std::function<std::string(ProcessId)> host_of_;

  int64_t now_ns_ = World::kStartNs;
  bool in_event_ = false;
  uint64_t events_made_ = 0;
  std::vector<Event> events_;  // a heap
  std::set<Timer> timers_;
  std::vector<SimThread*> ready_;
  std::vector<SimThread*> held_;
  std::set<ProcessId> paused_;
  std::map<uint32_t, std::unique_ptr<SimThread>> threads_;
  uint32_t threads_made_ = 0;

  // Used by the watchdog, the only thread that reads state here without the baton.
  std::atomic<uint64_t> steps_{0};
  Mutex watch_mutex_;
  ConditionVariable watch_ends_;
  bool ended_ ABSL_GUARDED_BY(watch_mutex_) = false;
  const SimThread* running_ ABSL_GUARDED_BY(watch_mutex_) = nullptr;
  std::thread watchdog_;
};

}  // namespace nam::fabric::sim
