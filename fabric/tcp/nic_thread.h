#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/tcp/doorbell.h"
#include "fabric/tcp/receive_queue.h"
#include "fabric/tcp/regions.h"
#include "fabric/tcp/served_connection.h"

namespace nam::fabric::tcp {

/// One thread of the software NIC; serves many connections by epoll. The connections belong to the thread;
/// other threads send it commands, which it runs between two turns. It never blocks, so a command completes
/// soon.
class NicThread {
 public:
  NicThread(const Regions& regions, int64_t peer_timeout_us, int index);
  ~NicThread();

  struct Terms {
    std::shared_ptr<ReceiveQueue> receives;  // null for connections of a passive listener
    Access rights = Access::kAll;
    std::shared_ptr<void> held;  // until the connection is closed
  };
  /// `id` is unique in the process and not 0. False if the thread has stopped.
  bool Add(uint64_t id, net::Stream stream, Terms terms);
  /// A receive was posted that the connection waits for.
  void Resume(uint64_t id);
  /// Returns when the connection is closed and its receives are no longer accessed; the one being filled has
  /// completed with `status`.
  void Remove(uint64_t id, CompletionStatus status);
  /// Returns when no operation executes on the retired region any more.
  void ReleaseRegion(uint32_t key);
  /// Closes everything and ends the thread.
  void Stop();

 private:
  struct Served {
    std::shared_ptr<void> held;
    std::unique_ptr<ServedConnection> connection;
    uint32_t interest = 0;
    uint64_t bytes_moved = 0;  // at the last sweep
    int64_t last_progress_ns = 0;
  };

  void Run();
  bool Enqueue(std::function<void()> command);
  bool EnqueueAndWait(std::function<void()> command);
  bool HasCommands();
  void RunCommands();
  void OnEvent(uint64_t id, uint32_t events);
  void Turn(uint64_t id, Served& served);
  void Close(uint64_t id);
  void SetInterest(uint64_t id, Served& served, uint32_t interest);
  /// Closes connections whose peer's host has vanished.
  void Sweep(int64_t now_ns);

  const Regions& regions_;
  const int64_t peer_timeout_us_;
  UniqueFd epoll_;
  Doorbell doorbell_;

  Mutex mutex_;
  std::vector<std::function<void()>> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // NIC thread only.
  std::unordered_map<uint64_t, Served> served_;
  std::vector<uint64_t> turns_;  // connections that have more to do
  bool running_ = true;

  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric::tcp
