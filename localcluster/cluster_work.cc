#include "localcluster/cluster_work.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "localcluster/connect.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"

namespace nam {
namespace {

constexpr unsigned kOrderlyEndSeconds = 45;
constexpr int64_t kCancelTimeoutMs = 5'000;

/// Runs `body` on a thread; fd() becomes readable once it has returned.
class Worker {
 public:
  explicit Worker(const std::function<void()>& body)
      : done_(eventfd(0, EFD_CLOEXEC)), thread_([this, body] {
          body();
          const uint64_t one = 1;
          [[maybe_unused]] const ssize_t ignored = write(done_.get(), &one, sizeof one);
        }) {}
  ~Worker() { thread_.join(); }
  int fd() const { return done_.get(); }
  bool AwaitDone(int64_t timeout_ms) const {
    const Deadline deadline = RealClock().After(timeout_ms * 1000);
    pollfd wait{done_.get(), POLLIN, 0};
    do {
      const int64_t left_ms = (deadline.ns - RealClock().NowNs()) / 1'000'000;
      if (poll(&wait, 1, static_cast<int>(std::max<int64_t>(left_ms, 0))) > 0) return true;
    } while (!RealClock().Passed(deadline));
    return false;
  }

 private:
  UniqueFd done_;
  std::thread thread_;
};

/// Waits for the work, a signal, or the end of a server. OK if the work is done.
absl::Status Await(const Worker& worker, const StopSignals& stop, const LocalCluster& cluster) {
  const std::vector<Process*> processes = cluster.processes();
  std::vector<pollfd> waits{{worker.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
  for (const Process* process : processes) waits.push_back({process->exit_fd(), POLLIN, 0});
  while (poll(waits.data(), waits.size(), -1) <= 0) {
  }
  if (waits[0].revents != 0) return absl::OkStatus();
  if (waits[1].revents != 0) return absl::CancelledError("interrupted");
  for (Process* process : processes) {
    if (!process->running()) {
      return absl::UnavailableError(absl::StrCat(process->name(), " ended with ", process->Outcome()));
    }
  }
  return absl::InternalError("poll");
}

}  // namespace

absl::Status RunClusterWork(LocalCluster& cluster, ClusterWork& work, StopSignals& stop,
                            const std::string& directory) {
  absl::Status done = absl::UnknownError("not run"), end;
  {
    const Worker worker([&] { done = work.Run(); });
    end = Await(worker, stop, cluster);
    if (!end.ok()) {
      if (absl::IsCancelled(end)) stop.GiveOrderlyEnd(kOrderlyEndSeconds);
      work.Cancel();
      if (!worker.AwaitDone(kCancelTimeoutMs)) {
        // It hangs in a call that cannot be cancelled: stop its servers and do not wait for it.
        cluster.Stop().IgnoreError();
        RemoveTree(directory);
        ReportFailure(end);
        _exit(ExitCodeOf(end));
      }
    }
  }
  const absl::Status stopped = cluster.Stop();
  if (!end.ok()) return end;
  if (done.ok() && !stopped.ok()) std::fprintf(stderr, "nam: %s\n", std::string(stopped.message()).c_str());
  return done;
}

}  // namespace nam
