#include "fabric/sim/scheduler.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "fabric/threads.h"

namespace nam::fabric::sim {

struct SimThread {
  /// Lets a thread wait for its turn. A bare futex: with the library's spinning semaphore, hand-overs took
  /// most of a simulation's CPU time.
  class Baton {
   public:
    void Take() {
      while (there_.exchange(0, std::memory_order_acquire) == 0) {
        syscall(SYS_futex, &there_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
      }
    }
    void Give() {
      there_.store(1, std::memory_order_release);
      syscall(SYS_futex, &there_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }

   private:
    std::atomic<uint32_t> there_{0};
    static_assert(sizeof(there_) == sizeof(uint32_t));
  };

  enum class State : uint8_t { kReady, kRunning, kWaking, kBlocked, kHeld, kFinished };

  Scheduler* scheduler = nullptr;
  uint32_t index = 0;
  ProcessId process;
  std::string name;
  Baton baton;
  State state = State::kReady;
  int64_t debt_ns = 0;
  int64_t not_before_ns = 0;  // while blocked: its own time
  WaitReason reason;
  bool has_timer = false;
  int64_t timer_ns = 0;
  std::vector<WaitList*> lists;
  WaitList joiners;
  std::unique_ptr<Thread> thread;  // none for the driver
};

namespace {

thread_local SimThread* current = nullptr;

double MillisecondsOf(int64_t ns) {
  return static_cast<double>(ns - World::kStartNs) / 1e6;
}

}  // namespace

Scheduler::Scheduler(const WorldOptions& options, Trace& trace)
    : seed_(options.seed),
      end_ns_(World::kStartNs + options.duration_ns_max),
      wake_delay_ns_max_(options.faults.wake_delay_ns_max),
      replay_(options.replay),
      on_hang_(options.on_hang),
      trace_(trace),
      random_(options.seed * 2 + 1) {
  NAM_CHECK(current == nullptr, "this thread belongs to another simulated world");
  auto driver = std::make_unique<SimThread>();
  driver->scheduler = this;
  driver->name = "driver";
  driver->state = SimThread::State::kRunning;
  current = driver.get();
  running_ = current;
  threads_.emplace(threads_made_++, std::move(driver));
  watchdog_ = std::thread([this, stuck_real_ms = options.stuck_real_ms] { Watch(stuck_real_ms); });
}

Scheduler::~Scheduler() {
  NAM_CHECK(current != nullptr && current->scheduler == this && current->index == 0,
            "a world is destroyed by its driver");
  std::erase_if(threads_,
                [](const auto& entry) { return entry.second->state == SimThread::State::kFinished; });
  if (threads_.size() > 1) std::fputs(Describe().c_str(), stderr);
  NAM_CHECK(threads_.size() == 1, "a world is destroyed after its threads");
  {
    const MutexLock lock(watch_mutex_);
    ended_ = true;
  }
  watch_ends_.NotifyAll();
  watchdog_.join();
  current = nullptr;
}

SimThread& Scheduler::Current() const {
  NAM_CHECK(current != nullptr && current->scheduler == this,
            "a thread that the simulated world does not know: Fabric::StartThread makes them");
  return *current;
}

int64_t Scheduler::NowNs() const {
  return in_event_ ? now_ns_ : now_ns_ + Current().debt_ns;
}

void Scheduler::Charge(int64_t ns) {
  steps_.fetch_add(1, std::memory_order_relaxed);
  if (ns > 0) Current().debt_ns += ns;
}

void Scheduler::Sync() {
  steps_.fetch_add(1, std::memory_order_relaxed);
  SimThread& self = Current();
  NAM_CHECK(!in_event_, "an event must not wait");
  if (self.debt_ns == 0) return;
  const int64_t until_ns = now_ns_ + std::exchange(self.debt_ns, 0);
  if (ready_.empty() && NextNs() > until_ns) {
    AdvanceTo(until_ns);
    return;
  }
  self.state = SimThread::State::kWaking;
  SetTimer(self, until_ns);
  SwitchFrom(self);
}

void Scheduler::SyncBeyond(int64_t ahead_ns) {
  if (Current().debt_ns > ahead_ns) Sync();
}

void Scheduler::SleepUntil(Deadline deadline) {
  SimThread& self = Current();
  self.reason = {"the clock", 0};
  NAM_CHECK(deadline.ns != Deadline::Never().ns, "a sleep without an end");
  self.debt_ns = std::max(self.debt_ns, deadline.ns - now_ns_);
  Sync();
}

bool Scheduler::Later(const Event& a, const Event& b) {
  if (a.at_ns != b.at_ns) return a.at_ns > b.at_ns;
  return a.order != b.order ? a.order > b.order : a.sequence > b.sequence;
}

void Scheduler::At(int64_t at_ns, std::function<void()> event) {
  events_.push_back({std::max(at_ns, now_ns_), random_.Next(), events_made_++, std::move(event)});
  std::push_heap(events_.begin(), events_.end(), Later);
}

void Scheduler::Wait(std::initializer_list<WaitList*> lists, const WaitReason& reason, Deadline deadline) {
  SimThread& self = Current();
  NAM_CHECK(!in_event_, "an event must not wait");
  steps_.fetch_add(1, std::memory_order_relaxed);
  self.not_before_ns = now_ns_ + std::exchange(self.debt_ns, 0);
  self.reason = reason;
  self.lists = lists;
  for (WaitList* list : lists) list->threads_.push_back(&self);
  if (deadline.ns != Deadline::Never().ns) SetTimer(self, std::max(deadline.ns, self.not_before_ns));
  self.state = SimThread::State::kBlocked;
  SwitchFrom(self);
}

void Scheduler::Notify(WaitList& list) {
  const int64_t at_ns = NowNs();
  while (!list.threads_.empty()) {
    SimThread& thread = *list.threads_.back();
    LeaveLists(thread);
    ClearTimer(thread);
    MakeReady(thread, std::max(at_ns, thread.not_before_ns) + random_.UpTo(wake_delay_ns_max_));
  }
}

void Scheduler::SetTimer(SimThread& thread, int64_t at_ns) {
  thread.has_timer = true;
  thread.timer_ns = at_ns;
  timers_.insert({at_ns, thread.index, &thread});
}

void Scheduler::ClearTimer(SimThread& thread) {
  if (std::exchange(thread.has_timer, false)) timers_.erase({thread.timer_ns, thread.index, &thread});
}

void Scheduler::LeaveLists(SimThread& thread) {
  for (WaitList* list : thread.lists) std::erase(list->threads_, &thread);
  thread.lists.clear();
}

void Scheduler::MakeReady(SimThread& thread, int64_t at_ns) {
  if (at_ns > now_ns_) {
    thread.state = SimThread::State::kWaking;
    SetTimer(thread, at_ns);
    return;
  }
  const bool held = IsPaused(thread.process);
  thread.state = held ? SimThread::State::kHeld : SimThread::State::kReady;
  (held ? held_ : ready_).push_back(&thread);
}

void Scheduler::Pause(ProcessId process) {
  NAM_CHECK(process != ProcessId(), "the driver cannot be paused");
  NAM_CHECK(in_event_ || Current().process != process, "a process cannot pause itself");
  if (!paused_.insert(process).second) return;
  const auto held = std::stable_partition(ready_.begin(), ready_.end(), [process](const SimThread* thread) {
    return thread->process != process;
  });
  for (auto thread = held; thread != ready_.end(); ++thread) {
    (*thread)->state = SimThread::State::kHeld;
    held_.push_back(*thread);
  }
  ready_.erase(held, ready_.end());
}

void Scheduler::Resume(ProcessId process) {
  if (paused_.erase(process) == 0) return;
  std::vector<SimThread*> held;
  std::swap(held, held_);
  for (SimThread* thread : held) {
    if (thread->process == process) {
      MakeReady(*thread, now_ns_);
    } else {
      held_.push_back(thread);
    }
  }
}

void Scheduler::RunDue() {
  while (!timers_.empty() && timers_.begin()->at_ns <= now_ns_) {
    SimThread& thread = *timers_.begin()->thread;
    ClearTimer(thread);
    LeaveLists(thread);
    MakeReady(thread, now_ns_);
  }
  in_event_ = true;
  while (!events_.empty() && events_.front().at_ns <= now_ns_) {
    std::pop_heap(events_.begin(), events_.end(), Later);
    const std::function<void()> run = std::move(events_.back().run);
    events_.pop_back();
    run();
  }
  in_event_ = false;
}

int64_t Scheduler::NextNs() const {
  int64_t next_ns = Deadline::Never().ns;
  if (!events_.empty()) next_ns = events_.front().at_ns;
  if (!timers_.empty()) next_ns = std::min(next_ns, timers_.begin()->at_ns);
  return next_ns;
}

void Scheduler::AdvanceTo(int64_t at_ns) {
  now_ns_ = std::max(now_ns_, at_ns);
  if (now_ns_ > end_ns_) Hang("hang: virtual time ran out");
}

SimThread& Scheduler::Pick() {
  while (true) {
    RunDue();
    if (!ready_.empty()) break;
    const int64_t next_ns = NextNs();
    if (next_ns == Deadline::Never().ns) Hang("deadlock: no thread can run and nothing is under way");
    AdvanceTo(next_ns);
  }
  const size_t at = ready_.size() == 1 ? 0 : random_.Below(ready_.size());
  SimThread& next = *ready_[at];
  ready_[at] = ready_.back();
  ready_.pop_back();
  trace_.Add(Trace::Kind::kRun, now_ns_, next.index);
  return next;
}

void Scheduler::SwitchFrom(SimThread& self) {
  SimThread& next = Pick();
  if (&next != &self) {
    GiveBaton(next);
    self.baton.Take();
  }
  self.state = SimThread::State::kRunning;
}

void Scheduler::GiveBaton(SimThread& next) {
  {
    const MutexLock lock(watch_mutex_);
    running_ = &next;
  }
  next.baton.Give();
}

uint32_t Scheduler::Start(ProcessId process, const std::string& name, std::function<void()> body) {
  const uint32_t index = threads_made_++;
  auto made = std::make_unique<SimThread>();
  SimThread& thread = *made;
  thread.scheduler = this;
  thread.index = index;
  thread.process = process;
  thread.name = name.substr(0, 15);
  threads_.emplace(index, std::move(made));
  trace_.Add(Trace::Kind::kStart, now_ns_, index, process.value());
  thread.thread = StartRealThread(name, [this, &thread, body = std::move(body)] { Body(thread, body); });
  MakeReady(thread, NowNs());
  return index;
}

void Scheduler::Body(SimThread& self, const std::function<void()>& body) {
  self.baton.Take();
  current = &self;
  self.state = SimThread::State::kRunning;
  body();
  Sync();
  self.state = SimThread::State::kFinished;
  trace_.Add(Trace::Kind::kEnd, now_ns_, self.index);
  Notify(self.joiners);
  SimThread& next = Pick();
  current = nullptr;
  // After this, `self` may be gone.
  GiveBaton(next);
}

void Scheduler::Join(uint32_t thread) {
  Sync();
  SimThread& joined = *threads_.at(thread);
  while (joined.state != SimThread::State::kFinished) {
    Wait({&joined.joiners}, {"the end of thread", thread}, Deadline::Never());
  }
  threads_.erase(thread);
}

void Scheduler::Reap(std::vector<uint32_t>& threads) {
  std::erase_if(threads, [this](uint32_t thread) {
    const auto found = threads_.find(thread);
    if (found->second->state != SimThread::State::kFinished) return false;
    threads_.erase(found);
    return true;
  });
}

std::string Scheduler::Describe() const {
  std::string text;
  for (const auto& [index, thread] : threads_) {
    text += absl::StrFormat("  #%d %s", index, thread->name);
    if (thread->process != ProcessId()) {
      text += absl::StrFormat(" (process %d on %s)", thread->process.value(), host_of_(thread->process));
    }
    switch (thread->state) {
      case SimThread::State::kReady:
        text += " could run";
        break;
      case SimThread::State::kRunning:
        text += " runs";
        break;
      case SimThread::State::kWaking:
        text += absl::StrFormat(" is busy until %.6f ms", MillisecondsOf(thread->timer_ns));
        break;
      case SimThread::State::kBlocked:
        text += absl::StrFormat(" waits for %s %d", thread->reason.what, thread->reason.number);
        text += thread->has_timer ? absl::StrFormat(" until %.6f ms", MillisecondsOf(thread->timer_ns))
                                  : std::string(" without a deadline");
        break;
      case SimThread::State::kHeld:
        text += " is paused";
        break;
      case SimThread::State::kFinished:
        text += " has ended and is not joined";
        break;
    }
    text += '\n';
  }
  return text;
}

void Scheduler::Hang(const char* kind) {
  std::string report = absl::StrFormat("simulated world, seed %d, at %.6f ms of virtual time: %s\n%s", seed_,
                                       MillisecondsOf(now_ns_), kind, Describe());
  if (!replay_.empty()) report += "replay: " + replay_ + "\n";
  trace_.Flush();
  std::fputs(report.c_str(), stderr);
  std::fflush(stderr);
  if (on_hang_) on_hang_(report);
  std::abort();
}

void Scheduler::Watch(int64_t stuck_real_ms) {
  const MutexLock lock(watch_mutex_);
  uint64_t seen = steps_;
  while (true) {
    const Deadline check = RealClock().After(stuck_real_ms * 1000);
    while (!ended_ && watch_ends_.WaitUntil(watch_mutex_, check)) {
    }
    if (ended_) return;
    const uint64_t steps = steps_;
    if (steps == std::exchange(seen, steps)) {
      std::fprintf(stderr,
                   "simulated world, seed %llu: thread #%u %s made no call of its fabric for %lld ms of real "
                   "time: it loops, or waits for another thread by other means than the fabric (a mutex held "
                   "across a wait)\n%s%s\n",
                   static_cast<unsigned long long>(seed_), running_->index, running_->name.c_str(),
                   static_cast<long long>(stuck_real_ms), replay_.empty() ? "" : "replay: ", replay_.c_str());
      std::fflush(stderr);
      std::abort();
    }
  }
}

}  // namespace nam::fabric::sim
