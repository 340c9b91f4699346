#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "txn/record_layout.h"
#include "txn/rsi/client_log.h"
#include "txn/tables.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// Memory servers in this process, each a passive listener and a region, and the record tables in them:
/// txn::Tables without catalog and processes. A member is a number that marks who is dead; a dead member can
/// be fenced.
class RecordCluster {
 public:
  struct Options {
    fabric::Kind kind = fabric::Kind::kShm;
    uint64_t seed = 1;  // of the simulated world
    fabric::sim::FaultPlan faults;
    fabric::sim::NicModel nic;
    int servers = 2;
    uint64_t memory_bytes = uint64_t{64} << 20;  // of each
    TimestampKind timestamps = TimestampKind::kLeased;
    int log_server = 1;  // of the first extent of logs
  };
  explicit RecordCluster(const Options& options) : options_(options) {
    if (options.kind == fabric::Kind::kSim) {
      world_ = std::make_unique<fabric::sim::World>(
          fabric::sim::WorldOptions{.seed = options.seed, .nic = options.nic, .faults = options.faults});
    }
    for (int id = 1; id <= options.servers; ++id) {
      auto server = std::make_unique<Server>();
      server->fabric = OpenFabric("memory");
      server->region = *server->fabric->Allocate(options.memory_bytes, {.huge_pages = false});
      const bool sim = options.kind == fabric::Kind::kSim;
      const std::string address = options.kind == fabric::Kind::kShm ? "@" : sim ? ":0" : "127.0.0.1:0";
      server->keys = std::make_unique<Keys>(*this, MemoryServerId(static_cast<uint16_t>(id)));
      server->listener = *server->fabric->Listen({.address = address, .member_keys = server->keys.get()});
      auto regions = std::make_shared<fabric::ServerRegions>();
      regions->member = MemoryServerId(static_cast<uint16_t>(id));
      regions->fabric_address = server->listener->address();
      regions->name = "memory server " + std::to_string(id);
      regions->regions.push_back({0, server->region->bytes(), server->region->rkey()});
      server->regions = regions;
      servers_.push_back(std::move(server));
    }
    client_ = OpenFabric("client");
    state_ = std::make_shared<Source>(*this, kStateBytes, 1, 1);
    EXPECT_TRUE(state_->Grow(0).ok());
    logs_ = std::make_shared<Source>(*this, kLogExtentBytes, 64, options.log_server);
    EXPECT_TRUE(logs_->Grow(0).ok());
  }

  struct TableOptions {
    int first_server = 1;  // of its first extents; the next follow on the next servers
    uint32_t row_bytes = 64;
    uint32_t key_bytes = 8;
    uint32_t versions = 1;
    uint64_t extent_bytes = 256 << 10;
    size_t extents_max = 64;
    bool small = false;  // its first extents are short
  };
  void AddTable(const std::string& name, const TableOptions& options) {
    TableDescription table{.name = name,
                           .allocation = AllocationId(100 + tables_added_++),
                           .row_bytes = options.row_bytes,
                           .key_bytes = options.key_bytes,
                           .versions = options.versions,
                           .extent_bytes = options.extent_bytes,
                           .index_extent_bytes = 64 << 10,
                           .index_root_bits = 2};
    const uint64_t chunk_bytes =
        kChunkRecords * storage::RecordGeometry::Of(options.row_bytes, options.versions).block_bytes();
    auto records = std::make_shared<Source>(*this, options.extent_bytes, options.extents_max,
                                            options.first_server, options.small ? chunk_bytes + 4'096 : 0);
    auto index = std::make_shared<Source>(*this, table.index_extent_bytes, 4'096, options.first_server,
                                          options.small ? 20 << 10 : 0);
    EXPECT_TRUE(records->Grow(0).ok());
    EXPECT_TRUE(index->Grow(0).ok());
    table.records = records;
    table.index = index;
    tables_.push_back(table);
  }

  /// A memory server dies: its memory cannot be reached. The catalog has buried it only if it says so.
  void KillServer(int id, bool buried) {
    const MutexLock lock(mutex_);
    Server& server = *servers_[static_cast<size_t>(id) - 1];
    if (buried) buried_.insert(MemoryServerId(static_cast<uint16_t>(id)));
    if (server.listener == nullptr) return;
    server.listener.reset();
    EXPECT_TRUE(server.region->Revoke());
  }

  /// The catalog says that a memory server is dead, though it can still be reached.
  void BuryServer(int id) {
    const MutexLock lock(mutex_);
    buried_.insert(MemoryServerId(static_cast<uint16_t>(id)));
  }

  /// Its memory has no owner any more; or it is zeroed at once, for another owner.
  void DropTable(const std::string& name, bool zeroed = false) {
    const MutexLock lock(mutex_);
    const TableDescription& table = Described(name);
    End(*table.records);
    End(*table.index);
    for (const IndexDescription& index : table.indexes) End(*index.extents);
    for (ExtentSource* const source : {table.records.get(), table.index.get()}) {
      if (zeroed) static_cast<Source*>(source)->Zero();
    }
    std::erase_if(tables_, [&](const TableDescription& known) { return known.name == name; });
  }

  /// The catalog's answer about a table's indexes from now on; `index` comes without extents. Returns its
  /// allocation.
  AllocationId AddIndex(const std::string& table, IndexDescription index, size_t extents_max = 256) {
    auto extents = std::make_shared<Source>(*this, kIndexExtentBytes, extents_max, 1);
    EXPECT_TRUE(extents->Grow(0).ok());
    const MutexLock lock(mutex_);
    index.allocation = AllocationId(1'000 + ++indexes_);
    index.extent_bytes = kIndexExtentBytes;
    index.extents = extents;
    Described(table).indexes.push_back(index);
    return index.allocation;
  }
  void SetUsable(const std::string& table, AllocationId index, uint64_t usable_from) {
    const MutexLock lock(mutex_);
    for (IndexDescription& known : Described(table).indexes) {
      if (known.allocation == index) known.usable_from = usable_from;
    }
  }
  void RemoveIndex(const std::string& table, AllocationId index) {
    const MutexLock lock(mutex_);
    std::erase_if(Described(table).indexes,
                  [&](const IndexDescription& known) { return known.allocation == index; });
  }
  /// The catalog's answer about a foreign key to `parent` from now on; `reference` comes without the child's
  /// allocation.
  void AddReference(const std::string& parent, ReferenceDescription reference) {
    const MutexLock lock(mutex_);
    reference.child_allocation = Described(reference.child).allocation;
    Described(parent).referenced_by.push_back(std::move(reference));
  }
  void RemoveReferences(const std::string& parent) {
    const MutexLock lock(mutex_);
    Described(parent).referenced_by.clear();
  }
  std::vector<IndexDescription> IndexesOf(const std::string& table) {
    const MutexLock lock(mutex_);
    return Described(table).indexes;
  }

  /// Acts as if `leased` timestamps up to this one had been given out and completed. Call it before the first
  /// session.
  void SetLastTimestamp(uint64_t timestamp) {
    std::byte* const state = servers_[0]->region->data();
    const auto set = [&](uint64_t offset, uint64_t word) {
      std::memcpy(state + offset, &word, sizeof(word));
    };
    set(kNextOffset, timestamp);
    set(kWatermarkOffset, timestamp);
    for (uint64_t done = timestamp < kRingEntries ? 1 : timestamp - kRingEntries + 1; done <= timestamp;
         ++done)
      set(StateGeometry::entry(done), RingEntry::Done(done).word());
  }

  fabric::Fabric& client() { return *client_; }
  fabric::sim::World& world() { return *world_; }
  std::vector<std::string> reports() {
    const MutexLock lock(mutex_);
    return reports_;
  }
  void SetDead(MemberId member) {
    const MutexLock lock(mutex_);
    dead_.insert(member);
  }
  std::unique_ptr<fabric::Fabric> OpenFabric(const std::string& role) {
    if (world_ == nullptr) return *fabric::Open({.kind = options_.kind, .secret = "s"});
    return *world_->OpenFabric(role + "-" + std::to_string(++hosts_), {.secret = "s"});
  }

  /// One process's view; its member joins again once it is dead. The cluster must outlive it.
  class Member final : public Tables, private fabric::RegionDirectory {
   public:
    Member(RecordCluster& cluster, fabric::Fabric& fabric, uint32_t id)
        : cluster_(cluster), fabric_(fabric), id_(id) {}
    /// Ends with all its connections, as a process does.
    ~Member() override {
      lost_clients().TakeAll();
      grants().DropConnections();
    }
    fabric::Fabric& fabric() override { return fabric_; }
    fabric::RegionDirectory& directory() override { return *this; }
    MemberId member() override { return MemberId(id_); }
    absl::StatusOr<TableDescription> Find(const std::string& name) override {
      if (before_find_ != nullptr) {
        if (absl::Status status = before_find_(); !status.ok()) return status;
      }
      const MutexLock lock(cluster_.mutex_);
      for (const TableDescription& table : cluster_.tables_) {
        if (table.name == name) return table;
      }
      return absl::NotFoundError(name);
    }
    absl::StatusOr<std::vector<TableDescription>> FindAll(std::span<const std::string> names) override {
      if (names.empty()) return std::vector<TableDescription>();
      if (before_find_all_ != nullptr) before_find_all_(names);
      if (before_find_ != nullptr) {
        if (absl::Status status = before_find_(); !status.ok()) return status;
      }
      const MutexLock lock(cluster_.mutex_);
      std::vector<TableDescription> found;
      for (const TableDescription& table : cluster_.tables_) {
        if (std::find(names.begin(), names.end(), table.name) != names.end()) found.push_back(table);
      }
      return found;
    }
    absl::StatusOr<std::vector<TableDescription>> All() override {
      if (before_all_ != nullptr) {
        if (absl::Status status = before_all_(); !status.ok()) return status;
      }
      const MutexLock lock(cluster_.mutex_);
      return cluster_.tables_;
    }
    absl::StatusOr<TransactionState> State() override {
      return TransactionState{cluster_.state_, cluster_.logs_, cluster_.options_.timestamps, shared_};
    }
    void Report(const std::string& what) override {
      const MutexLock lock(cluster_.mutex_);
      cluster_.reports_.push_back(what);
    }
    absl::Status Fence(MemberId member) override {
      if (before_fence_ != nullptr) {
        if (absl::Status status = before_fence_(); !status.ok()) return status;
      }
      return cluster_.Fence(member);
    }
    absl::Status KeepMembership() override {
      if (before_keep_ != nullptr) {
        if (absl::Status status = before_keep_(); !status.ok()) return status;
      }
      const MutexLock lock(cluster_.mutex_);
      if (cluster_.dead_.contains(member())) id_ = kJoinedAgain + ++cluster_.joined_again_;
      return absl::OkStatus();
    }
    void RecoverLater(std::function<void()> attempt) override { attempt_ = std::move(attempt); }

    /// The last connection that was to be made later.
    std::function<void()> TakeAttempt() { return std::exchange(attempt_, nullptr); }
    /// They run first, and may make the call fail.
    void BeforeAll(std::function<absl::Status()> hook) { before_all_ = std::move(hook); }
    void BeforeFence(std::function<absl::Status()> hook) { before_fence_ = std::move(hook); }
    void BeforeKeep(std::function<absl::Status()> hook) { before_keep_ = std::move(hook); }
    /// Of one table, or of several by one call.
    void BeforeFind(std::function<absl::Status()> hook) { before_find_ = std::move(hook); }
    void BeforeFindAll(std::function<void(std::span<const std::string>)> hook) {
      before_find_all_ = std::move(hook);
    }

   private:
    static constexpr uint32_t kJoinedAgain = 1'000;
    fabric::MemberProof Self() override { return {member(), ""}; }
    absl::StatusOr<std::shared_ptr<const fabric::ServerRegions>> Lookup(MemoryServerId server,
                                                                        bool) override {
      return cluster_.servers_[server.value() - 1u]->regions;
    }
    RecordCluster& cluster_;
    fabric::Fabric& fabric_;
    std::atomic<uint32_t> id_;
    std::function<void()> attempt_;
    std::function<absl::Status()> before_all_, before_fence_, before_find_, before_keep_;
    std::function<void(std::span<const std::string>)> before_find_all_;
    const std::shared_ptr<SharedTimestamps> shared_ = std::make_shared<SharedTimestamps>();
  };

 private:
  /// The changes of members that a memory server learns.
  class Keys final : public fabric::MemberKeys {
   public:
    Keys(RecordCluster& cluster, MemoryServerId server) : cluster_(cluster), server_(server) {}
    absl::StatusOr<std::vector<std::optional<fabric::MemberKey>>> KeysOf(
        std::span<const MemberId> members) override {
      const MutexLock lock(cluster_.mutex_);
      std::vector<std::optional<fabric::MemberKey>> keys(members.size());
      for (size_t i = 0; i < members.size(); ++i) {
        if (!cluster_.dead_.contains(members[i])) keys[i] = fabric::DeriveMemberKey("", server_);
      }
      return keys;
    }

   private:
    RecordCluster& cluster_;
    const MemoryServerId server_;
  };
  absl::Status Fence(MemberId member) {
    {
      const MutexLock lock(mutex_);
      if (!dead_.contains(member)) return absl::FailedPreconditionError("alive");
    }
    for (const std::unique_ptr<Server>& server : servers_) {
      if (server->listener == nullptr || server->listener->Fence(member, true)) continue;
      return absl::UnavailableError("it stands still");
    }
    return absl::OkStatus();
  }

  struct Server {
    std::unique_ptr<fabric::Fabric> fabric;
    std::unique_ptr<fabric::MemoryRegion> region;
    std::unique_ptr<Keys> keys;
    std::unique_ptr<fabric::Listener> listener;
    std::shared_ptr<const fabric::ServerRegions> regions;
    uint64_t used = 0;
  };
  class Source final : public ExtentSource {
   public:
    Source(RecordCluster& cluster, uint64_t bytes, size_t most, int first_server, uint64_t first_bytes = 0)
        : cluster_(cluster),
          bytes_(bytes),
          most_(most),
          first_(static_cast<size_t>(first_server) - 1),
          next_bytes_(first_bytes == 0 ? bytes : std::min(bytes, first_bytes)) {}
    absl::StatusOr<std::vector<SpaceExtent>> Extents() override {
      const MutexLock lock(cluster_.mutex_);
      return Now();
    }
    absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) override {
      const MutexLock lock(cluster_.mutex_);
      if (known < extents_.size()) return Now();
      const size_t number = (known + first_) % cluster_.servers_.size();
      Server& server = *cluster_.servers_[number];
      if (known >= most_ || server.used + bytes_ > cluster_.options_.memory_bytes) {
        return absl::ResourceExhaustedError("no memory server has room");
      }
      extents_.push_back({.server = MemoryServerId(static_cast<uint16_t>(number + 1)),
                          .offset = server.used,
                          .bytes = next_bytes_,
                          .grant = fabric::Grants::Opening(cluster_.grants_,
                                                           MemoryServerId(static_cast<uint16_t>(number + 1)))
                                       .Add(AllocationId(++cluster_.allocations_), /*attempt=*/0)});
      server.used += bytes_;
      next_bytes_ = std::min(bytes_, 3 * next_bytes_);
      return Now();
    }
    void Zero() {
      for (const SpaceExtent& extent : extents_) {
        std::byte* const bytes =
            cluster_.servers_[extent.server.value() - 1u]->region->data() + extent.offset;
        std::memset(bytes, 0, extent.bytes);
      }
    }
    void End() {
      for (const SpaceExtent& extent : extents_) {
        const AllocationId allocation = extent.grant->allocation();
        EXPECT_TRUE(cluster_.grants_.End({&allocation, 1}));
      }
    }

   private:
    /// Called with the cluster's mutex held.
    std::vector<SpaceExtent> Now() const {
      std::vector<SpaceExtent> extents = extents_;
      for (SpaceExtent& extent : extents) extent.lost = cluster_.buried_.contains(extent.server);
      return extents;
    }
    RecordCluster& cluster_;
    const uint64_t bytes_;
    const size_t most_;
    const size_t first_;
    uint64_t next_bytes_;
    std::vector<SpaceExtent> extents_;
  };

  // Every source belongs to a cluster.
  static void End(ExtentSource& source) { static_cast<Source&>(source).End(); }

  static constexpr uint64_t kIndexExtentBytes = 64 << 10;
  TableDescription& Described(const std::string& name) {
    return *std::find_if(tables_.begin(), tables_.end(),
                         [&](const TableDescription& table) { return table.name == name; });
  }

  const Options options_;
  std::unique_ptr<fabric::sim::World> world_;
  int hosts_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
  Mutex mutex_;
  std::set<MemberId> dead_;
  std::set<MemoryServerId> buried_;
  fabric::Grants grants_;  // of all processes
  uint64_t allocations_ = 0;
  std::vector<std::string> reports_;
  std::shared_ptr<Source> state_, logs_;
  std::vector<TableDescription> tables_;
  uint64_t tables_added_ = 0;
  uint64_t indexes_ = 0;
  uint32_t joined_again_ = 0;
  std::unique_ptr<fabric::Fabric> client_;
};

}  // namespace nam::txn
