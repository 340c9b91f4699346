#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "fabric/sim/world.h"
#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"

namespace nam::txn {

/// Two memory servers in this process, each a passive listener and a region, that together serve one space.
class SpaceCluster final : public fabric::RegionDirectory, public ExtentSource {
 public:
  struct Options {
    fabric::Kind kind = fabric::Kind::kShm;
    uint64_t seed = 1;  // of the simulated world
    fabric::sim::FaultPlan faults;
    uint64_t extent_bytes = 64 << 10;
    size_t extents_max = 512;
    uint64_t first_extent_bytes = 0;  // the first extents are short: this many bytes, then thrice as many, …
  };
  explicit SpaceCluster(const Options& options) : options_(options) {
    if (options.kind == fabric::Kind::kSim) {
      world_ = std::make_unique<fabric::sim::World>(
          fabric::sim::WorldOptions{.seed = options.seed, .faults = options.faults});
    }
    for (int id = 1; id <= 2; ++id) {
      Server& server = servers_[id - 1];
      server.fabric = OpenFabric();
      server.region =
          *server.fabric->Allocate(options.extent_bytes * options.extents_max / 2, {.huge_pages = false});
      const bool sim = options.kind == fabric::Kind::kSim;
      const std::string address = options.kind == fabric::Kind::kShm ? "@" : sim ? ":0" : "127.0.0.1:0";
      server.listener = *server.fabric->Listen({.address = address});
      auto regions = std::make_shared<fabric::ServerRegions>();
      regions->member = MemoryServerId(static_cast<uint16_t>(id));
      regions->fabric_address = server.listener->address();
      regions->name = "memory server " + std::to_string(id);
      regions->regions.push_back({0, server.region->bytes(), server.region->rkey()});
      server.regions = regions;
    }
    client_ = OpenFabric();
  }
  fabric::Fabric& client() { return *client_; }
  uint64_t extent_bytes() const { return options_.extent_bytes; }
  const Options& options() const { return options_; }

  absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server, bool) override {
    return servers_[server.value() - 1u].regions;
  }
  absl::StatusOr<std::vector<SpaceExtent>> Extents() override {
    const MutexLock lock(mutex_);
    return extents_;
  }
  absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) override {
    const MutexLock lock(mutex_);
    if (known < extents_.size()) return extents_;
    if (known >= options_.extents_max) return absl::ResourceExhaustedError("no memory server has room");
    uint64_t bytes = options_.first_extent_bytes;
    for (size_t i = 0; i < known && bytes < options_.extent_bytes; ++i) bytes *= 3;
    extents_.push_back({.server = MemoryServerId(static_cast<uint16_t>(known % 2 + 1)),
                        .offset = known / 2 * options_.extent_bytes,
                        .bytes = std::min(bytes, options_.extent_bytes),
                        .grant = std::make_shared<fabric::Grant>(AllocationId(known + 1), /*attempt=*/0)});
    return extents_;
  }

 private:
  struct Server {
    std::unique_ptr<fabric::Fabric> fabric;
    std::unique_ptr<fabric::MemoryRegion> region;
    std::unique_ptr<fabric::Listener> listener;
    std::shared_ptr<const fabric::ServerRegions> regions;
  };
  std::unique_ptr<fabric::Fabric> OpenFabric() {
    if (world_ == nullptr) return *fabric::Open({.kind = options_.kind, .secret = "s"});
    return *world_->OpenFabric("host-" + std::to_string(++hosts_), {.secret = "s"});
  }

  const Options options_;
  std::unique_ptr<fabric::sim::World> world_;
  int hosts_ = 0;
  Server servers_[2];
  Mutex mutex_;
  std::vector<SpaceExtent> extents_;
  std::unique_ptr<fabric::Fabric> client_;
};

/// What a client needs to use the space; belongs to one thread.
struct SpaceClient {
  SpaceClient(SpaceCluster& cluster, fabric::Fabric& fabric)
      : cluster(cluster),
        channel(*storage::Channel::Open(fabric, cluster, {.buffer_bytes = 1 << 20})),
        batch(*channel) {}
  explicit SpaceClient(SpaceCluster& cluster) : SpaceClient(cluster, cluster.client()) {}
  ExtentSpace Space() {
    // Only a reference: the cluster outlives its clients.
    return *ExtentSpace::Open(*channel, {std::shared_ptr<void>(), &cluster}, cluster.extent_bytes());
  }

  /// The client dies with all its connections.
  struct Connections {
    ~Connections() { cluster.grants().DropConnections(); }
    SpaceCluster& cluster;
  };
  SpaceCluster& cluster;
  const Connections connections{cluster};
  std::unique_ptr<storage::Channel> channel;
  storage::VerbBatch batch;
};

/// Runs body(0) … body(threads - 1) at once, each in an engine thread.
inline void RunThreads(SpaceCluster& cluster, int threads, const std::function<void(int)>& body) {
  std::vector<std::unique_ptr<fabric::Thread>> running;
  for (int i = 0; i < threads; ++i) {
    running.push_back(cluster.client().StartThread("client", [&body, i] { body(i); }));
  }
}

/// The seeds of a test's worlds: `count` of simulated ones; a real one takes none.
inline std::vector<uint64_t> Seeds(fabric::Kind kind, uint64_t count) {
  std::vector<uint64_t> seeds{1};
  for (uint64_t seed = 2; kind == fabric::Kind::kSim && seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

/// The member that dies or stalls.
inline constexpr uint32_t kVictim = 2;

/// Wraps another fabric. Its user dies after a number of work requests: those are executed, and all further
/// ones fail. Or only one of its queue pairs breaks, and its user lives on.
class MortalFabric final : public fabric::Fabric {
 public:
  static constexpr uint64_t kNever = ~uint64_t{0} >> 1;
  MortalFabric(fabric::Fabric& under, uint64_t requests) : under_(under), left_(requests) {}
  bool dead() const { return dead_; }
  uint64_t left() const { return left_; }
  void DieAfter(uint64_t requests) { left_ = requests; }

  /// After this many work requests its user dies. The rest of that posting is lost on its way; requests to
  /// other servers behind it still arrive.
  void LoseAfter(uint64_t requests) { lose_in_ = requests; }
  /// After this many work requests its user dies in the middle of the next one: of a WRITE only the later
  /// half is placed. Words are placed whole.
  void TearAfter(uint64_t requests) { tear_in_ = requests; }
  /// After this many work requests the queue pair that gets the next one breaks, and again every `then`
  /// requests after that. Requests posted before take effect, late unless `answered_us` have passed before
  /// the user notices.
  void BreakAfter(uint64_t requests, uint64_t then = kNever, int64_t answered_us = 0) {
    break_in_ = requests;
    break_then_ = then;
    answered_us_ = answered_us;
  }
  /// Whether BreakAfter's queue pair breaks as soon as the last request is posted, so that its user gets no
  /// completion of it.
  void SetBreaksUnheard(bool unheard) { breaks_unheard_ = unheard; }
  /// After this many work requests, before the next one is posted, its user pauses: `meanwhile` runs, once.
  void PauseAfter(uint64_t requests, std::function<void()> meanwhile) {
    pause_in_ = requests;
    meanwhile_ = std::move(meanwhile);
  }
  /// Runs once, after the next connection that is made.
  void OnConnected(std::function<void()> hook) { connected_ = std::move(hook); }
  /// Whether it has paused.
  bool paused() const { return meanwhile_ == nullptr; }
  /// Whether memory servers confirm the end of a connection.
  void SetDisconnects(bool confirmed) { confirmed_ = confirmed; }
  int breaks() const { return breaks_; }
  int connections() const { return connections_; }
  int open_connections() const { return open_connections_; }

  fabric::Kind kind() const override { return under_.kind(); }
  fabric::Capabilities capabilities() const override { return under_.capabilities(); }
  Clock& clock() override { return under_.clock(); }
  absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> Allocate(
      size_t bytes, const fabric::AllocateOptions& options) override {
    return under_.Allocate(bytes, options);
  }
  absl::StatusOr<std::unique_ptr<fabric::CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return under_.CreateCompletionQueue(depth);
  }
  absl::StatusOr<std::unique_ptr<fabric::Listener>> Listen(const fabric::ListenOptions& options) override {
    return under_.Listen(options);
  }
  absl::StatusOr<std::unique_ptr<fabric::QueuePair>> Connect(const std::string& address,
                                                             fabric::CompletionQueue& completions,
                                                             const fabric::QueuePairOptions& options,
                                                             Deadline deadline) override {
    if (dead_) return absl::UnavailableError("the client has died");
    auto queue_pair = under_.Connect(address, completions, options, deadline);
    if (!queue_pair.ok()) return queue_pair.status();
    ++connections_;
    if (connected_ != nullptr) std::exchange(connected_, nullptr)();
    return std::make_unique<MortalQueuePair>(*this, *std::move(queue_pair));
  }
  absl::StatusOr<std::unique_ptr<fabric::DatagramQueuePair>> CreateDatagramQueuePair(
      fabric::CompletionQueue& completions, const fabric::DatagramOptions& options) override {
    return under_.CreateDatagramQueuePair(completions, options);
  }
  fabric::DatagramDrops datagram_drops() const override { return under_.datagram_drops(); }
  uint64_t Random() override { return under_.Random(); }
  std::unique_ptr<fabric::Event> CreateEvent() override { return under_.CreateEvent(); }
  std::unique_ptr<fabric::Thread> StartThread(const std::string& name, std::function<void()> body) override {
    return under_.StartThread(name, std::move(body));
  }

 private:
  class MortalQueuePair final : public fabric::QueuePair {
   public:
    MortalQueuePair(MortalFabric& fabric, std::unique_ptr<fabric::QueuePair> under)
        : fabric_(fabric), under_(std::move(under)) {
      ++fabric_.open_connections_;
    }
    ~MortalQueuePair() override { --fabric_.open_connections_; }
    uint64_t id() const override { return under_->id(); }
    fabric::QueuePairState state() const override { return under_->state(); }
    std::string peer() const override { return under_->peer(); }
    absl::Status Post(std::span<const fabric::WorkRequest> batch) override {
      if (broken_) return absl::UnavailableError("the queue pair is broken");
      if (!fabric_.paused() && batch.size() > fabric_.pause_in_) {
        const auto before = batch.first(fabric_.pause_in_);
        const absl::Status posted = before.empty() ? absl::OkStatus() : under_->Post(before);
        std::exchange(fabric_.meanwhile_, nullptr)();
        return posted.ok() ? Post(batch.subspan(before.size())) : posted;
      }
      if (!fabric_.paused()) fabric_.pause_in_ -= batch.size();
      if (batch.size() > fabric_.lose_in_) {
        fabric_.dead_ = broken_ = true;
        const auto before = batch.first(std::exchange(fabric_.lose_in_, kNever));
        return before.empty() ? absl::OkStatus() : under_->Post(before);
      }
      fabric_.lose_in_ -= batch.size();
      if (batch.size() > fabric_.tear_in_) {
        fabric_.dead_ = broken_ = true;
        return PostTorn(batch.first(fabric_.tear_in_ + 1));
      }
      fabric_.tear_in_ -= batch.size();
      const bool last = fabric_.breaks_unheard_ && fabric_.break_in_ > 0 && batch.size() == fabric_.break_in_;
      if (batch.size() > fabric_.break_in_ || last) {
        broken_ = true;
        ++fabric_.breaks_;
        const uint64_t posted = std::exchange(fabric_.break_in_, fabric_.break_then_);
        const absl::Status status = under_->Post(batch.first(posted));
        Clock& clock = fabric_.clock();
        if (fabric_.answered_us_ > 0) clock.SleepUntil(clock.After(fabric_.answered_us_));
        return status.ok() ? absl::UnavailableError("the queue pair broke") : status;
      }
      fabric_.break_in_ -= batch.size();
      if (batch.size() <= fabric_.left_) {
        fabric_.left_ -= batch.size();
        return under_->Post(batch);
      }
      fabric_.dead_ = true;
      const absl::Status status = under_->Post(batch.first(std::exchange(fabric_.left_, 0)));
      return status.ok() ? absl::UnavailableError("the client has died") : status;
    }
    absl::Status PostReceive(std::span<const fabric::ReceiveRequest> batch) override {
      return under_->PostReceive(batch);
    }
    absl::StatusOr<std::span<const std::byte>> View(fabric::RemoteAddress from, size_t bytes) override {
      return under_->View(from, bytes);
    }
    absl::Status Disconnect(Deadline deadline) override {
      if (fabric_.dead_) return absl::UnavailableError("the client has died");
      if (!fabric_.confirmed_) return absl::UnavailableError("no memory server has confirmed the end");
      broken_ = true;
      return under_->Disconnect(deadline);
    }

   private:
    absl::Status PostTorn(std::span<const fabric::WorkRequest> batch) {
      std::vector<fabric::WorkRequest> torn(batch.begin(), batch.end());
      fabric::WorkRequest& last = torn.back();
      const uint32_t lost = last.local.bytes / 16 * 8;
      if (last.opcode == fabric::Opcode::kWrite && last.local.bytes > 8) {
        last.local.data += lost;
        last.local.bytes -= lost;
        last.remote.offset += lost;
      } else {
        torn.pop_back();
      }
      const absl::Status status = torn.empty() ? absl::OkStatus() : under_->Post(torn);
      return status.ok() ? absl::UnavailableError("the client has died") : status;
    }

    MortalFabric& fabric_;
    std::unique_ptr<fabric::QueuePair> under_;
    bool broken_ = false;
  };

  fabric::Fabric& under_;
  uint64_t left_;
  bool dead_ = false;
  bool confirmed_ = true;
  uint64_t pause_in_ = 0;
  std::function<void()> connected_;
  std::function<void()> meanwhile_;
  uint64_t lose_in_ = kNever;
  uint64_t tear_in_ = kNever;
  uint64_t break_in_ = kNever;
  uint64_t break_then_ = kNever;
  int64_t answered_us_ = 0;
  bool breaks_unheard_ = false;
  int breaks_ = 0;
  int connections_ = 0;
  int open_connections_ = 0;
};

}  // namespace nam::txn
