#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

/// The fabric of one simulated process.
class SimFabric final : public Fabric {
 public:
  SimFabric(Network& network, Process& process, Clock& clock, uint64_t seed, bool in_place);
  ~SimFabric() override;

  /// Of each simulated host: the same on every real one, so that a seed replays.
  static constexpr int kProcessors = 2;

  Kind kind() const override { return Kind::kSim; }
  Capabilities capabilities() const override {
    return {.in_place = in_place_,
            .card_moves = true,
            .sockets = true,
            .simulated = true,
            .processors = kProcessors};
  }
  Clock& clock() override { return clock_; }
  Process& process() const { return process_; }

  absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                         const AllocateOptions& options) override;
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) override;
  absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address, CompletionQueue& completions,
                                                     const QueuePairOptions& options,
                                                     Deadline deadline) override;
  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) override;
  DatagramDrops datagram_drops() const override { return process_.drops; }
  uint64_t Random() override;
  std::unique_ptr<Event> CreateEvent() override;
  std::unique_ptr<Thread> StartThread(const std::string& name, std::function<void()> body) override;

 private:
  absl::Status CheckAlive() const;
  absl::Status AwaitPath(const std::string& address, Deadline deadline);
  /// The rights of an admitted connection, and the place held while its other end exists.
  struct Admitted {
    Access rights = Access::kAll;
    std::shared_ptr<MemberConnections::Place> place;
    MemberKey key{};
  };
  absl::StatusOr<Admitted> Introduce(const std::shared_ptr<ListeningPort>& port,
                                     const MemberCredentials& member, Deadline deadline);
  absl::StatusOr<std::shared_ptr<ListeningPort>> KnockAt(const std::string& address, Deadline deadline);

  Network& network_;
  Process& process_;
  Clock& clock_;
  const bool in_place_;
  RandomStream random_;
};

class SimEvent final : public Event {
 public:
  SimEvent(Scheduler& scheduler, int64_t poll_ns, uint64_t id)
      : scheduler_(scheduler), poll_ns_(poll_ns), id_(id) {}
  void Set() override;
  bool IsSet() const override;
  bool Wait(Deadline deadline) override;

  /// Like Wait, but also returns when the other list is notified.
  void WaitOr(WaitList& other, const WaitReason& reason, Deadline deadline);

 private:
  Scheduler& scheduler_;
  const int64_t poll_ns_;
  const uint64_t id_;  // in reports
  /// In the time of the setting thread, which may be ahead of other threads.
  int64_t set_ns_ = Deadline::Never().ns;
  WaitList waiters_;
};

/// Joins the process's detached threads.
void JoinDetached(Scheduler& scheduler, Process& process);

}  // namespace nam::fabric::sim
