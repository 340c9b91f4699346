#include "catalog/record_tables.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "catalog/record_extents.h"

namespace nam::catalog {
namespace {

constexpr uint32_t kVersionsMax = 16;
constexpr uint64_t kExtentBytesMin = 4'096;
constexpr size_t kNameBytesMax = 128;

}  // namespace

absl::Status CheckTableName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("a table needs a name");
  if (name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a table's name has %d bytes, at most %d are allowed", name.size(), kNameBytesMax));
  }
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
    return absl::InvalidArgumentError("a table's name holds control characters");
  }
  return absl::OkStatus();
}

std::set<uint64_t> AllocationsOf(const proto::Table& table) {
  std::set<uint64_t> allocations{table.allocation()};
  for (const proto::ChainGroup& group : table.groups()) allocations.insert(group.allocation());
  for (const proto::RetiredGroups& retired : table.retired())
    allocations.insert(retired.allocations().begin(), retired.allocations().end());
  for (const proto::RecordPart& part : table.record().parts()) {
    for (const proto::RecordExtent& extent : part.extents()) allocations.insert(extent.allocation());
  }
  return allocations;
}

std::set<uint32_t> ServersOf(const proto::Table& table) {
  std::set<uint32_t> servers;
  for (const proto::ServerUsage& usage : table.usage()) {
    if (usage.blocks() != 0 || usage.bytes() != 0) servers.insert(usage.server());
  }
  for (uint32_t g = 0; g < GroupCount(table); ++g) servers.merge(GroupServers(table, g));
  servers.erase(0);  // null pointers
  return servers;
}

absl::Status CheckExtents(const google::protobuf::RepeatedPtrField<proto::RecordExtent>& extents,
                          AllocationId allocation) {
  for (const proto::RecordExtent& extent : extents) {
    if (extent.server() == 0 || extent.offset() == 0 || extent.allocation() != allocation.value()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "an extent at offset %d of memory server %d with allocation %d does not belong to allocation %d",
          extent.offset(), extent.server(), extent.allocation(), allocation.value()));
    }
    if (extent.bytes() % kExtentBytesMin != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "an extent of %d bytes is not possible; choose a multiple of 4 KiB", extent.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNewRecordTable(const proto::Table& table) {
  // No other part may take the place of the transaction state.
  const auto& parts = table.record().parts();
  const bool state = !parts.empty() && parts[0].kind() == proto::TRANSACTION_STATE &&
                     std::all_of(parts.begin() + 1, parts.end(), [](const proto::RecordPart& part) {
                       return part.kind() == proto::TRANSACTION_LOGS;
                     });
  if (state != (table.name() == kTransactionsTable)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("table `%s`: that name is reserved for the transaction state", table.name()));
  }
  if (!table.has_record()) return absl::OkStatus();
  const proto::RecordStorage& record = table.record();
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrFormat("record table `%s`: %s", table.name(), why));
  };
  if (table.partitions_size() != 0 || table.partitioning_size() != 0)
    return refuse("it must not have partitions");
  if (record.row_bytes() == 0 || record.key_bytes() > record.row_bytes()) {
    return refuse(absl::StrFormat("a row of %d bytes with a key of %d bytes is not possible",
                                  record.row_bytes(), record.key_bytes()));
  }
  if (record.versions() < 1 || record.versions() > kVersionsMax) {
    return refuse(
        absl::StrFormat("%d versions are not possible; choose 1 to %d", record.versions(), kVersionsMax));
  }
  if (!std::has_single_bit(record.extent_bytes()) || record.extent_bytes() < kExtentBytesMin) {
    return refuse(absl::StrFormat("extents of %d bytes are not possible; choose a power of two from 4 KiB",
                                  record.extent_bytes()));
  }
  std::set<std::string> names;
  for (const proto::RecordPart& part : record.parts()) {
    if (part.name().empty() || !names.insert(part.name()).second) {
      return refuse(absl::StrFormat("the part name `%s` is empty or used twice", part.name()));
    }
    NAM_RETURN_IF_ERROR(CheckExtents(part.extents(), AllocationId(table.allocation())));
  }
  return absl::OkStatus();
}

absl::Status CheckNotSystem(const std::string& name, bool may_be_system) {
  if (may_be_system || !IsSystemName(name)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "`%s` is reserved for the system and cannot be created, dropped or changed; choose another name",
      name));
}

bool IsOwnSystemName(const std::string& name, uint32_t member) {
  if (name == kTransactionsTable || name == absl::StrFormat("nam.work.%d", member) ||
      name == absl::StrFormat("nam.scratch.%d", member)) {
    return true;
  }
  return name.rfind(absl::StrFormat("nam.copy.%d.", member), 0) == 0;
}

proto::RecordPart* FindPart(proto::Table& table, const std::string& name) {
  if (!table.has_record()) return nullptr;
  for (proto::RecordPart& part : *table.mutable_record()->mutable_parts()) {
    if (part.name() == name) return &part;
  }
  return nullptr;
}

void CountUsage(proto::Table& table) {
  if (!table.has_record()) return;
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> extents;  // by server: count and bytes
  for (const proto::RecordPart& part : table.record().parts()) {
    // The transaction state depends on one memory server, regardless of others, which only have logs.
    if (part.kind() == proto::TRANSACTION_LOGS) continue;
    for (const proto::RecordExtent& extent : part.extents()) {
      auto& [count, bytes] = extents[extent.server()];
      ++count;
      bytes += BytesOf(table.record(), part.kind(), extent);
    }
  }
  table.clear_usage();
  for (const auto& [server, sum] : extents) {
    proto::ServerUsage& usage = *table.add_usage();
    usage.set_server(server);
    usage.set_blocks(sum.first);
    usage.set_bytes(sum.second);
  }
}

}  // namespace nam::catalog
