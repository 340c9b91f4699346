#include "txn/table_extents.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/record_extents.h"

namespace nam::txn {
namespace {

using Extents = google::protobuf::RepeatedPtrField<proto::RecordExtent>;

/// Of an index that is added to a table: a root and some more nodes.
constexpr uint64_t kFirstIndexBytes = uint64_t{32} << 10;
/// The next extent has so many times the bytes that the part has, as long as that is no whole extent.
constexpr uint64_t kGrowth = 3;

const proto::RecordPart* FindPart(const proto::Table& table, const std::string& name) {
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.name() == name) return &part;
  }
  return nullptr;
}

/// 0: the part has no extents.
uint64_t FirstAllocation(const proto::RecordPart& part) {
  return part.extents().empty() ? 0 : part.extents(0).allocation();
}

/// The bytes of an extent to be added.
uint64_t NextBytes(const proto::RecordStorage& record, const proto::RecordPart& part) {
  const uint64_t whole = catalog::ExtentBytesOf(record, part.kind());
  if (part.extents().empty()) return whole;
  uint64_t held = 0;
  for (const proto::RecordExtent& extent : part.extents())
    held += catalog::BytesOf(record, part.kind(), extent);
  return std::min(whole, kGrowth * held);
}

/// The servers for a part's next extents: living ones, fewest extents of the part first, then fewest of the
/// table, then from one on that differs from table to table: most tables are small, and have few extents.
absl::StatusOr<std::vector<MemoryServerId>> Candidates(catalog::Attachment& attachment,
                                                       const proto::Table& table,
                                                       const proto::RecordPart& part) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment.Members(proto::ROLE_MEMORY));
  std::map<uint32_t, std::pair<size_t, size_t>> extents;  // by server: the part's, the table's
  for (const proto::Member& server : servers) extents[server.id()] = {};
  for (const proto::RecordPart& one : table.record().parts()) {
    for (const proto::RecordExtent& extent : one.extents()) {
      const auto server = extents.find(extent.server());
      if (server == extents.end()) continue;  // dead
      ++server->second.second;
      if (&one == &part) ++server->second.first;
    }
  }
  std::vector<std::tuple<size_t, size_t, uint64_t, uint32_t>> order;
  for (const auto& [server, count] : extents) {
    const uint64_t turn = (order.size() + table.allocation()) % extents.size();
    order.emplace_back(count.first, count.second, turn, server);
  }
  std::sort(order.begin(), order.end());
  std::vector<MemoryServerId> candidates;
  for (const auto& [of_part, of_table, turn, server] : order)
    candidates.push_back(MemoryServerId(static_cast<uint16_t>(server)));
  if (candidates.empty()) return absl::ResourceExhaustedError("there is no memory server");
  return candidates;
}

/// Requests memory of so many bytes for an extent, or for a whole one.
absl::StatusOr<proto::RecordExtent> AllocateExtent(catalog::Attachment& attachment, MemoryServerId server,
                                                   AllocationId allocation, uint64_t bytes, uint64_t whole) {
  NAM_ASSIGN_OR_RETURN(const catalog::GrantedExtent granted,
                       attachment.AllocateContiguous(server, allocation, bytes));
  proto::RecordExtent extent;
  extent.set_server(server.value());
  extent.set_allocation(allocation.value());
  extent.set_offset(granted.offset);
  if (granted.bytes < whole) extent.set_bytes(granted.bytes);
  return extent;
}

/// Ends the allocation under way. The memory servers that took part free its memory now if they are
/// reachable, otherwise when they hear of it.
void GiveUp(catalog::Attachment& attachment, AllocationId allocation,
            const std::vector<MemoryServerId>& servers) {
  if (!attachment.catalog().AbortLoad(allocation).ok()) return;
  for (const MemoryServerId server : servers) attachment.Release(server, allocation).IgnoreError();
}

/// Adds an extent to the part. Only a lack of room leads to the next server: after an error of unknown
/// outcome the allocation must end.
absl::Status AddExtent(catalog::Attachment& attachment, AllocationId allocation, uint64_t bytes,
                       proto::Table& table, proto::RecordPart& part) {
  NAM_ASSIGN_OR_RETURN(const std::vector<MemoryServerId> candidates, Candidates(attachment, table, part));
  const uint64_t whole = catalog::ExtentBytesOf(table.record(), part.kind());
  absl::Status refused;
  for (const MemoryServerId server : candidates) {
    absl::StatusOr<proto::RecordExtent> extent =
        AllocateExtent(attachment, server, allocation, bytes == 0 ? whole : std::min(whole, bytes), whole);
    if (extent.ok()) {
      *part.add_extents() = *std::move(extent);
      return absl::OkStatus();
    }
    refused = extent.status();
    if (!absl::IsResourceExhausted(refused)) break;
  }
  return refused;
}

absl::Status FillAndCommit(catalog::Attachment& attachment, AllocationId allocation, proto::Table& table,
                           const std::vector<FirstExtents>& extents_of_parts) {
  for (int i = 0; i < table.record().parts_size(); ++i) {
    proto::RecordPart& part = *table.mutable_record()->mutable_parts(i);
    const FirstExtents& first = extents_of_parts[static_cast<size_t>(i)];
    for (uint32_t n = 0; n < first.count; ++n)
      NAM_RETURN_IF_ERROR(AddExtent(attachment, allocation, first.bytes, table, part));
  }
  return attachment.catalog().CommitLoad(table).status();
}

std::vector<MemoryServerId> ServersOf(const proto::Table& table) {
  std::vector<MemoryServerId> servers;
  for (const proto::RecordPart& part : table.record().parts()) {
    for (const proto::RecordExtent& extent : part.extents())
      servers.push_back(MemoryServerId(static_cast<uint16_t>(extent.server())));
  }
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

/// Memory servers that are not buried. A server missing here is gone for good: ids are not reused, and the
/// catalog forgets only dead members.
absl::StatusOr<std::set<MemoryServerId>> NotBuried(catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
  std::set<MemoryServerId> servers;
  for (const proto::Member& member : cluster.members()) {
    if (member.role() == proto::ROLE_MEMORY && member.alive())
      servers.insert(MemoryServerId(static_cast<uint16_t>(member.id())));
  }
  return servers;
}

/// Opens extents[begin …), in one call to each memory server. Extents of servers not in `there` are lost.
absl::StatusOr<std::vector<SpaceExtent>> OpenFrom(catalog::Attachment& attachment, const Extents& extents,
                                                  size_t begin, const std::set<MemoryServerId>& there) {
  std::map<MemoryServerId, std::vector<AllocationId>> wanted;
  for (int i = static_cast<int>(begin); i < extents.size(); ++i) {
    const MemoryServerId server(static_cast<uint16_t>(extents[i].server()));
    if (!there.contains(server)) continue;
    std::vector<AllocationId>& allocations = wanted[server];
    const AllocationId allocation(extents[i].allocation());
    if (std::find(allocations.begin(), allocations.end(), allocation) == allocations.end())
      allocations.push_back(allocation);
  }
  std::map<std::pair<MemoryServerId, uint64_t>, std::shared_ptr<fabric::Grant>>
      grants;  // by server and offset
  for (const auto& [server, allocations] : wanted) {
    NAM_ASSIGN_OR_RETURN(const std::vector<catalog::GrantedExtent> opened,
                         attachment.OpenExtents(server, allocations));
    for (const catalog::GrantedExtent& extent : opened) grants[{server, extent.offset}] = extent.grant;
  }
  std::vector<SpaceExtent> result;
  for (int i = static_cast<int>(begin); i < extents.size(); ++i) {
    const MemoryServerId server(static_cast<uint16_t>(extents[i].server()));
    if (!there.contains(server)) {
      result.push_back({.server = server,
                        .offset = extents[i].offset(),
                        .bytes = extents[i].bytes(),
                        .grant = nullptr,
                        .lost = true});
      continue;
    }
    const auto grant = grants.find({server, extents[i].offset()});
    if (grant == grants.end()) {
      return absl::DataLossError(absl::StrFormat("memory server %d does not hold the extent at offset %d",
                                                 server.value(), extents[i].offset()));
    }
    result.push_back({.server = server,
                      .offset = extents[i].offset(),
                      .bytes = extents[i].bytes(),
                      .grant = grant->second});
  }
  return result;
}

}  // namespace

absl::Status CreateRecordTable(catalog::Attachment& attachment, proto::Table table,
                               const std::vector<FirstExtents>& extents_of_parts) {
  if (static_cast<int>(extents_of_parts.size()) != table.record().parts_size())
    return absl::InvalidArgumentError("a record table needs a number of extents for each of its parts");
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                       attachment.catalog().BeginLoad(attachment.member(), table.name(), false));
  table.set_allocation(allocation.value());
  absl::Status status = FillAndCommit(attachment, allocation, table, extents_of_parts);
  if (status.ok()) return status;
  // The answer to the commit was lost; the catalog knows whether it happened.
  if (absl::IsFailedPrecondition(attachment.catalog().AbortLoad(allocation))) return absl::OkStatus();
  for (const MemoryServerId server : ServersOf(table)) attachment.Release(server, allocation).IgnoreError();
  return status;
}

absl::StatusOr<AllocationId> AddPart(catalog::Attachment& attachment, const std::string& name,
                                     const proto::RecordPart& part) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> now, attachment.catalog().GetTable(name));
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                       attachment.catalog().BeginExtend(attachment.member(), name));
  proto::Table table = *now;
  proto::RecordPart& added = *table.mutable_record()->add_parts();
  added = part;
  absl::Status status = AddExtent(attachment, allocation, kFirstIndexBytes, table, added);
  if (status.ok()) {
    proto::CommitExtendRequest request;
    request.set_allocation(allocation.value());
    *request.mutable_new_part() = part;
    *request.mutable_extents() = added.extents();
    status = attachment.catalog().CommitExtend(request).status();
  }
  if (status.ok()) return allocation;
  // The answer to the commit was lost; the catalog knows whether it happened.
  if (absl::IsFailedPrecondition(attachment.catalog().AbortLoad(allocation))) return allocation;
  for (const proto::RecordExtent& extent : added.extents()) {
    attachment.Release(MemoryServerId(static_cast<uint16_t>(extent.server())), allocation).IgnoreError();
  }
  return status;
}

absl::StatusOr<std::shared_ptr<TableExtents>> TableExtents::Open(catalog::Attachment& attachment,
                                                                 const std::string& table,
                                                                 const std::string& part) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> found, attachment.catalog().GetTable(table));
  const proto::RecordPart* const found_part = FindPart(*found, part);
  if (found_part == nullptr)
    return absl::NotFoundError(absl::StrFormat("table `%s` has no part `%s`", table, part));
  return std::shared_ptr<TableExtents>(new TableExtents(attachment, AllocationId(found->allocation()), table,
                                                        part, FirstAllocation(*found_part)));
}

absl::StatusOr<std::shared_ptr<const proto::Table>> TableExtents::Table() {
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<const proto::Table> table, attachment_.catalog().GetTable(table_));
  const proto::RecordPart* const part = FindPart(*table, part_);
  const bool same = table->allocation() == allocation_.value() && part != nullptr &&
                    (part_allocation_ == 0 || FirstAllocation(*part) == part_allocation_);
  if (same) return table;
  return absl::NotFoundError(absl::StrFormat("table `%s`, or its part `%s`, was dropped", table_, part_));
}

absl::StatusOr<std::vector<SpaceExtent>> TableExtents::Extents() {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table, Table());
  std::vector<SpaceExtent> all;
  {
    const MutexLock lock(mutex_);
    all = opened_;
  }
  // The process has joined again, and must open them as its new member.
  const auto over = [](const SpaceExtent& extent) { return extent.grant != nullptr && extent.grant->over(); };
  const bool anew = std::any_of(all.begin(), all.end(), over);
  if (anew) all.clear();
  for (SpaceExtent& extent : all)
    extent.lost = extent.lost || attachment_.Buried(extent.server, /*ask=*/false);
  const auto& extents = FindPart(*table, part_)->extents();
  if (static_cast<size_t>(extents.size()) > all.size()) {
    NAM_ASSIGN_OR_RETURN(const std::set<MemoryServerId> there, NotBuried(attachment_));
    NAM_ASSIGN_OR_RETURN(const std::vector<SpaceExtent> fresh,
                         OpenFrom(attachment_, extents, all.size(), there));
    all.insert(all.end(), fresh.begin(), fresh.end());
  }
  const MutexLock lock(mutex_);
  if (anew || all.size() > opened_.size()) opened_ = all;
  return all;
}

// OK also if another process was faster.
absl::Status TableExtents::TryGrow(MemoryServerId server, uint64_t bytes, uint64_t whole, size_t known) {
  catalog::Client& catalog = attachment_.catalog();
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation, catalog.BeginExtend(attachment_.member(), table_));
  absl::StatusOr<proto::RecordExtent> extent = AllocateExtent(attachment_, server, allocation, bytes, whole);
  if (!extent.ok()) {
    GiveUp(attachment_, allocation, {server});
    return extent.status();
  }
  proto::CommitExtendRequest request;
  request.set_allocation(allocation.value());
  request.set_part(part_);
  request.set_expected_extents(static_cast<uint32_t>(known));
  *request.add_extents() = *std::move(extent);
  const absl::Status committed = catalog.CommitExtend(request).status();
  // Does nothing if the commit happened and only its answer was lost; Grow's look at the table tells.
  if (!committed.ok()) GiveUp(attachment_, allocation, {server});
  return absl::IsAborted(committed) ? absl::OkStatus() : committed;
}

absl::StatusOr<std::vector<SpaceExtent>> TableExtents::Grow(size_t known) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table, Table());
  const proto::RecordPart& part = *FindPart(*table, part_);
  if (static_cast<size_t>(part.extents_size()) > known) return Extents();
  NAM_ASSIGN_OR_RETURN(const std::vector<MemoryServerId> candidates, Candidates(attachment_, *table, part));
  const uint64_t whole = catalog::ExtentBytesOf(table->record(), part.kind());
  const uint64_t bytes = NextBytes(table->record(), part);
  absl::Status refused;
  bool full = true;
  for (const MemoryServerId server : candidates) {
    const absl::Status status = TryGrow(server, bytes, whole, known);
    if (status.ok()) return Extents();
    full = full && absl::IsResourceExhausted(status);
    if (refused.ok() || !absl::IsResourceExhausted(status)) refused = status;
  }
  NAM_ASSIGN_OR_RETURN(std::vector<SpaceExtent> extents, Extents());
  if (extents.size() > known) return extents;
  return full ? refused : absl::UnavailableError(refused.message());
}

}  // namespace nam::txn
