#include "terminal/json_report.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/processors.h"
#include "catalog/chain_groups.h"
#include "catalog/missing_servers.h"
#include "catalog/server_ids.h"

namespace nam {
namespace {

std::string ProcessorModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return {};
}

std::string RoleText(proto::Role role) {
  return role == proto::ROLE_MEMORY ? "memory" : role == proto::ROLE_COMPUTE ? "compute" : "client";
}

Json MemberJson(const proto::Member& member) {
  Json json{{"role", RoleText(member.role())},
            {"id", member.id()},
            {"host", member.host()},
            {"pid", member.pid()},
            {"address", member.control_address()},
            {"alive", member.alive()},
            {"state", catalog::StateOf(member)}};
  if (member.role() == proto::ROLE_COMPUTE) json["threads"] = member.threads();
  if (member.role() == proto::ROLE_MEMORY) {
    json["used_bytes"] = member.used_bytes();
    json["memory_bytes"] = member.memory_bytes();
    json["storage"] = catalog::StorageOf(member);
    if (!member.data_directory().empty()) json["data_directory"] = member.data_directory();
  }
  return json;
}

Json TableJson(const proto::Table& table, const proto::Cluster& cluster) {
  uint64_t blocks = 0, bytes = 0, partitions = 1;
  Json servers = Json::array();
  for (const proto::PartitionKey& key : table.partitioning()) partitions *= key.parts();
  for (const proto::ServerUsage& usage : table.usage()) {
    blocks += usage.blocks();
    bytes += usage.bytes();
    servers.push_back({{"id", catalog::ShownId(cluster, usage.server())},
                       {"blocks", usage.blocks()},
                       {"bytes", usage.bytes()}});
  }
  uint64_t lost_blocks = 0, lost_bytes = 0;
  Json waits_for = Json::array();
  for (const catalog::MissingServer& server : catalog::MissingServersOf(table, cluster)) {
    if (!server.buried()) waits_for.push_back(server.member.id());
    if (server.buried()) lost_blocks += server.blocks, lost_bytes += server.bytes;
  }
  return {{"lost_blocks", lost_blocks},
          {"lost_bytes", lost_bytes},
          {"waits_for", waits_for},
          {"table", table.name()},
          {"rows", table.rows()},
          {"partitions", partitions},
          {"groups", catalog::GroupCount(table)},
          {"blocks", blocks},
          {"bytes", bytes},
          {"memory_servers", servers}};
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Value CellOf(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return Value::Null(Type::String());
  if (found->is_string()) return Value::String(found->get<std::string>());
  if (found->is_boolean()) return Value::String(found->get<bool>() ? "yes" : "no");
  if (found->is_number_integer()) return Value::Integer(found->get<int64_t>());
  return Value::Decimal(std::llround(found->get<double>() * 1000), 3);
}

Type TypeOf(const Json& rows, const std::string& key) {
  for (const Json& row : rows) {
    const auto found = row.find(key);
    if (found == row.end() || found->is_null()) continue;
    if (found->is_string() || found->is_boolean()) return Type::String();
    return found->is_number_integer() ? Type::Integer() : Type::Decimal(3);
  }
  return Type::String();
}

}  // namespace

session::ResultSet TableOf(const Json& rows) {
  session::ResultSet table;
  std::vector<std::string> keys;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) table.columns.push_back({key, TypeOf(rows, key)});
  for (const Json& row : rows) {
    std::vector<Value>& cells = table.rows.emplace_back();
    for (const std::string& key : keys) cells.push_back(CellOf(row, key));
  }
  return table;
}

Json WithoutArrays(Json rows) {
  for (Json& row : rows) {
    for (auto cell = row.begin(); cell != row.end();) {
      const bool fits =
          !cell->is_structured() &&
          !(cell->is_string() && cell->get_ref<const std::string&>().find('\n') != std::string::npos);
      cell = fits ? std::next(cell) : row.erase(cell);
    }
  }
  return rows;
}

std::string JsonReport::ToString() const {
  return Dump(
      {{"command", command}, {"config", config}, {"host", HostJson()}, {"rows", rows}, {"summary", summary}});
}

Json ToJson(const Value& value) {
  if (value.null || value.type.kind == TypeKind::kNull) return nullptr;
  if (value.type.kind == TypeKind::kBool) return value.number != 0;
  if (value.type.kind == TypeKind::kInteger && value.number >= std::numeric_limits<int64_t>::min() &&
      value.number <= std::numeric_limits<int64_t>::max()) {
    return static_cast<int64_t>(value.number);
  }
  return value.ToString();
}

Json HostJson() {
  utsname name = {};
  uname(&name);
  struct sysinfo info = {};
  sysinfo(&info);
  return {{"name", name.nodename},
          {"system", std::string(name.sysname) + " " + name.release + " " + name.machine},
          {"processor", ProcessorModel()},
          {"processors", HostProcessors()},
          {"memory_bytes", static_cast<uint64_t>(info.totalram) * info.mem_unit}};
}

std::string StatusJson(const proto::Cluster& cluster, const ScratchUses& scratch,
                       const std::vector<proto::Table>& tables, const std::vector<std::string>& events) {
  Json members = Json::array(), table_rows = Json::array();
  uint64_t used = 0, total = 0;
  for (const proto::Member& member : cluster.members()) {
    members.push_back(MemberJson(member));
    if (const auto use = scratch.find(member.id()); use != scratch.end()) {
      members.back()["scratch_used_bytes"] = use->second.used_bytes;
      members.back()["scratch_highest_bytes"] = use->second.highest_bytes;
      members.back()["scratch_bytes"] = use->second.bytes;
    }
    if (member.role() == proto::ROLE_MEMORY && member.alive()) {
      used += member.used_bytes();
      total += member.memory_bytes();
    }
  }
  for (const proto::Table& table : tables) table_rows.push_back(TableJson(table, cluster));
  Json constants = Json::object();  // empty: not calibrated
  for (const proto::FabricConstant& constant : cluster.constants().constants())
    constants[constant.name()] = constant.value();
  return Dump({{"command", "status"},
               {"config",
                {{"cluster", cluster.name()},
                 {"fabric", cluster.fabric()},
                 {"lease_ms", cluster.lease_ms()},
                 {"bury_after_ms", cluster.bury_after_ms()},
                 {"timestamps", cluster.timestamps()}}},
               {"host", HostJson()},
               {"rows", members},
               {"tables", table_rows},
               {"events", events},
               {"constants", constants},
               {"summary", {{"used_bytes", used}, {"memory_bytes", total}}}});
}

}  // namespace nam
