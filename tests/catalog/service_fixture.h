#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catalog/service.h"
#include "catalog/store.h"
#include "tests/catalog/temp_folder.h"

namespace nam::catalog {

class FakeClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_; }
  void SleepUntil(Deadline deadline) override { now_ns_ = deadline.ns; }
  void AdvanceMs(int64_t ms) { now_ns_ += ms * 1'000'000; }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

/// A disk that is full, except for what the reserve is for.
struct FakeDisk {
  bool full = false;
  bool has_reserve = false;
};

// Fails on demand in place of a full disk.
class FailingStore final : public Store {
 public:
  FailingStore(std::unique_ptr<Store> store, const FakeDisk& disk) : store_(std::move(store)), disk_(disk) {}
  absl::StatusOr<StoredState> Load() override { return store_->Load(); }
  absl::Status Apply(const Mutation& mutation) override {
    const bool fits = !disk_.full || (disk_.has_reserve && mutation.makes_room);
    return fits ? store_->Apply(mutation) : absl::ResourceExhaustedError("full");
  }

 private:
  const std::unique_ptr<Store> store_;
  const FakeDisk& disk_;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { Restart(); }

  /// Starts the catalog on the same store; its memory servers report at once.
  void Restart(const std::string& timestamps = kDefaultTimestamps) {
    Stop();
    Start({.timestamps = timestamps});
    for (const uint32_t server : memory_servers_) EXPECT_TRUE(Renew(server).ok());
    if (service_->AwaitsMembers()) clock_.AdvanceMs(500);
    ASSERT_FALSE(service_->AwaitsMembers());
  }
  void Stop() {
    if (service_ == nullptr) return;
    const auto cluster = service_->GetCluster({});
    if (cluster.ok()) {
      memory_servers_.clear();
      for (const proto::Member& member : cluster->members()) {
        if (member.alive() && member.role() == proto::ROLE_MEMORY) memory_servers_.push_back(member.id());
      }
    }
    service_.reset();
  }
  /// Starts it; no server has reported.
  void Start(ServiceOptions options = {}) {
    service_.reset();
    auto store = OpenEmbeddedStore(folder_.File("catalog.db"), {"test", "shm", 77});
    ASSERT_TRUE(store.ok()) << store.status();
    options.epoch_id_high = 1;
    options.epoch_id_low = ++starts_;
    auto service = Service::Open(std::make_unique<FailingStore>(*std::move(store), disk_), clock_, options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }

  /// Keeps the member's proof, for its later requests.
  absl::StatusOr<proto::JoinReply> NotedJoin(const proto::JoinRequest& request) {
    absl::StatusOr<proto::JoinReply> reply = service_->Join(request);
    if (reply.ok()) proofs_[reply->id()] = reply->proof();
    return reply;
  }
  absl::StatusOr<proto::RenewReply> ProvenRenew(proto::RenewRequest request) {
    request.set_proof(proofs_[request.id()]);
    return service_->Renew(request);
  }
  absl::StatusOr<proto::LeaveReply> ProvenLeave(proto::LeaveRequest request) {
    request.set_proof(proofs_[request.id()]);
    return service_->Leave(request);
  }
  absl::StatusOr<uint32_t> TryJoin(proto::Role role) {
    proto::JoinRequest request;
    request.mutable_member()->set_role(role);
    request.mutable_member()->set_control_address("127.0.0.1:7");
    request.mutable_member()->set_fabric_address("127.0.0.1:8");
    auto reply = NotedJoin(request);
    if (!reply.ok()) return reply.status();
    EXPECT_EQ(reply->lease_ms(), 3'000u);
    return reply->id();
  }
  uint32_t Join(proto::Role role) {
    const auto id = TryJoin(role);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  absl::StatusOr<std::vector<uint64_t>> Renew(uint32_t id, std::vector<uint64_t> held = {},
                                              uint64_t used = 0) {
    proto::RenewRequest request;
    request.set_id(id);
    request.set_used_bytes(used);
    for (const uint64_t allocation : held) request.add_held(allocation);
    auto reply = ProvenRenew(request);
    if (!reply.ok()) return reply.status();
    return std::vector<uint64_t>(reply->release().begin(), reply->release().end());
  }
  absl::StatusOr<uint64_t> Begin(uint32_t member, const std::string& table, bool replace = false) {
    proto::BeginLoadRequest request;
    request.set_member(member);
    request.set_table(table);
    request.set_replace(replace);
    auto reply = service_->BeginLoad(request);
    if (!reply.ok()) return reply.status();
    return reply->allocation();
  }
  absl::StatusOr<uint64_t> Commit(uint64_t allocation, const std::string& name,
                                  std::vector<uint32_t> servers = {}, uint64_t replaces = 0) {
    proto::CommitLoadRequest request;
    request.mutable_table()->set_name(name);
    request.mutable_table()->set_allocation(allocation);
    request.set_replaces(replaces);
    for (const uint32_t server : servers) {
      proto::ServerUsage& usage = *request.mutable_table()->add_usage();
      usage.set_server(server);
      usage.set_blocks(1);
    }
    request.mutable_table()->add_partitions()->set_rows(5);
    auto reply = service_->CommitLoad(request);
    if (!reply.ok()) return reply.status();
    return reply->version();
  }
  /// A record table with one extent in its part `rows`.
  uint64_t CreateRecords(uint32_t client, uint32_t server, const std::string& timestamps = "") {
    proto::CommitLoadRequest request;
    proto::Table& table = *request.mutable_table();
    table.set_name("stock");
    table.set_allocation(*Begin(client, "stock"));
    table.mutable_record()->set_row_bytes(64);
    table.mutable_record()->set_key_bytes(8);
    table.mutable_record()->set_versions(1);
    table.mutable_record()->set_extent_bytes(8'192);
    table.mutable_record()->set_timestamps(timestamps);
    proto::RecordPart& part = *table.mutable_record()->add_parts();
    part.set_name("rows");
    AddExtent(server, table.allocation(), *part.mutable_extents());
    EXPECT_TRUE(service_->CommitLoad(request).ok());
    return table.allocation();
  }
  template <typename Extents>
  static void AddExtent(uint32_t server, uint64_t allocation, Extents& extents) {
    proto::RecordExtent& extent = *extents.Add();
    extent.set_server(server);
    extent.set_allocation(allocation);
    extent.set_offset(4'096);
  }
  absl::StatusOr<uint64_t> BeginExtend(uint32_t member, const std::string& table = "stock") {
    proto::BeginExtendRequest request;
    request.set_member(member);
    request.set_table(table);
    const auto reply = service_->BeginExtend(request);
    if (!reply.ok()) return reply.status();
    return reply->allocation();
  }
  absl::Status CommitExtend(uint64_t allocation, uint32_t expected, uint32_t server,
                            const std::string& part = "rows") {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.set_part(part);
    request.set_expected_extents(expected);
    AddExtent(server, allocation, *request.mutable_extents());
    return service_->CommitExtend(request).status();
  }
  /// The table as it is, or was at `before`, with one group more.
  absl::StatusOr<uint64_t> Append(uint64_t allocation, const proto::Table& before, uint32_t server) {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.set_expected_version(before.version());
    proto::Table& table = *request.mutable_appended();
    table = before;
    if (table.groups().empty()) table.add_groups()->set_allocation(before.allocation());
    table.add_groups()->set_allocation(allocation);
    for (proto::ChainGroup& group : *table.mutable_groups()) {
      while (group.columns_size() < table.columns_size()) group.add_columns();
    }
    table.set_allocation(allocation);
    table.add_partitions()->add_head(uint64_t{server} << 48 | 4'096);
    const auto reply = service_->CommitExtend(request);
    if (!reply.ok()) return reply.status();
    return reply->version();
  }
  absl::Status AddIndex(uint64_t allocation, uint32_t server, const std::string& name) {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation);
    request.mutable_new_part()->set_name(name);
    request.mutable_new_part()->set_kind(proto::ORDERED_INDEX);
    AddExtent(server, allocation, *request.mutable_extents());
    return service_->CommitExtend(request).status();
  }
  static proto::ChangePartRequest Change(const std::string& index, uint64_t allocation) {
    proto::ChangePartRequest request;
    request.set_table("stock");
    request.set_part(index);
    request.set_allocation(allocation);
    return request;
  }
  absl::Status Abort(uint64_t allocation) {
    proto::AbortLoadRequest request;
    request.set_allocation(allocation);
    return service_->AbortLoad(request).status();
  }
  absl::Status Drop(const std::string& name) {
    proto::DropTableRequest request;
    request.set_name(name);
    return service_->DropTable(request).status();
  }
  absl::StatusOr<proto::GetTableReply> Get(const std::string& name, uint64_t known = 0) {
    proto::GetTableRequest request;
    request.set_name(name);
    request.set_known_version(known);
    return service_->GetTable(request);
  }
  /// Events for an operator since the last call.
  std::vector<std::string> Reported() {
    std::vector<std::string> lines;
    for (const MemberEvent& event : service_->TakeEvents()) {
      if (event.level == LogLevel::kError) lines.push_back(event.text);
    }
    return lines;
  }
  proto::Cluster Cluster() { return *service_->GetCluster({}); }
  const proto::Member* Find(const proto::Cluster& cluster, uint32_t id) {
    for (const proto::Member& member : cluster.members()) {
      if (member.id() == id) return &member;
    }
    return nullptr;
  }

  static constexpr int64_t kLeaseMs = 3'000;
  /// From its last renewal to a memory server's burial.
  static constexpr int64_t kBurialMs = kLeaseMs + kDefaultBuryAfterMs;

  const TempFolder folder_;
  FakeClock clock_;
  FakeDisk disk_;
  uint64_t starts_ = 0;
  std::map<uint32_t, std::string> proofs_;  // by member
  std::vector<uint32_t> memory_servers_;    // alive when the catalog was stopped
  std::unique_ptr<Service> service_;
};

}  // namespace nam::catalog
