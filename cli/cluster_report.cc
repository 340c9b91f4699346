#include "cli/cluster_report.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/qualified_names.h"
#include "catalog/chain_groups.h"
#include "catalog/missing_servers.h"
#include "catalog/server_ids.h"
#include "partitioner/record_row.h"
#include "partitioner/table_metadata.h"
#include "terminal/units.h"
#include "types/wire.h"

namespace nam::cli {
namespace {

using session::ResultSet;

std::string RoleName(proto::Role role) {
  switch (role) {
    case proto::ROLE_MEMORY:
      return "memory";
    case proto::ROLE_COMPUTE:
      return "compute";
    case proto::ROLE_CLIENT:
      return "client";
    default:
      return "unknown";
  }
}

Value CountValue(uint64_t n) {
  return Value::Integer(static_cast<__int128>(n));
}

Value CountIf(bool has, uint64_t n) {
  return has ? CountValue(n) : Value::Null(Type::Integer());
}

uint64_t Partitions(const proto::Table& table) {
  uint64_t parts = 1;
  for (const proto::PartitionKey& key : table.partitioning()) parts *= key.parts();
  return parts;
}

/// `ok`, `lost 12 blocks with memory server 3`, `waits for memory server 4`.
std::string TableState(const proto::Table& table, const proto::Cluster& cluster) {
  std::string text;
  for (const catalog::MissingServer& server : catalog::MissingServersOf(table, cluster)) {
    if (const std::string directory = server.directory(); !directory.empty()) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", "waits for a memory server on `", directory, "`");
      continue;
    }
    absl::StrAppend(
        &text, text.empty() ? "" : "; ",
        server.buried() ? absl::StrCat("lost ", CountOf(server.blocks, "block"), " with") : "waits for",
        " memory server ", server.member.id());
  }
  return text.empty() ? "ok" : text;
}

std::string TypeText(const proto::Type& type) {
  const Type t = ColumnTypeOf(type);
  switch (t.kind) {
    case TypeKind::kInteger:
      return type.precision() == 2 ? "smallint" : type.precision() == 8 ? "bigint" : "integer";
    case TypeKind::kDecimal: {
      const uint32_t digits = type.precision() != 0 ? type.precision() : kMaxDecimalDigits;
      return absl::StrCat("decimal(", digits, ",", type.scale(), ")");
    }
    case TypeKind::kString:
      if (type.blank_padded()) return absl::StrCat("char(", type.length(), ")");
      return TypeName(t);
    default:
      return TypeName(t);
  }
}

/// `primary key`, with the column's place if there are several.
std::string KeyRole(const proto::Table& table, const std::string& column) {
  const auto& key = table.record().primary_key();
  const auto found = std::find(key.begin(), key.end(), column);
  if (found == key.end()) return "";
  if (key.size() == 1) return "primary key";
  return absl::StrCat("primary key (", found - key.begin() + 1, " of ", key.size(), ")");
}

}  // namespace

std::string CalibrationLine(const proto::Cluster& cluster) {
  if (!cluster.has_constants()) {
    return "The fabric has not been calibrated: the optimizer takes defaults (`nam bench calibrate` measures "
           "it).";
  }
  std::vector<std::string> values;
  for (const proto::FabricConstant& constant : cluster.constants().constants())
    values.push_back(absl::StrFormat("%s %.6g", constant.name(), constant.value()));
  return absl::StrCat("Calibrated: ", absl::StrJoin(values, ", "), ".");
}

ResultSet MembersReport(const proto::Cluster& cluster, const ScratchUses& scratch) {
  ResultSet result;
  result.columns = {
      {"role", Type::String()},     {"id", Type::Integer()},         {"host", Type::String()},
      {"pid", Type::Integer()},     {"address", Type::String()},     {"state", Type::String()},
      {"threads", Type::Integer()}, {"memory_used", Type::String()}, {"memory_total", Type::String()}};
  if (!scratch.empty()) {
    for (const char* const column : {"scratch_used", "scratch_highest", "scratch_total"})
      result.columns.push_back({column, Type::String()});
  }
  for (const proto::Role role : {proto::ROLE_MEMORY, proto::ROLE_COMPUTE, proto::ROLE_CLIENT}) {
    for (const proto::Member& member : cluster.members()) {
      if (member.role() != role) continue;
      const bool memory = role == proto::ROLE_MEMORY;
      const auto bytes = [&](uint64_t n) {
        return memory ? Value::String(FormatBytes(n)) : Value::Null(Type::String());
      };
      result.rows.push_back({Value::String(RoleName(role)), CountValue(member.id()),
                             Value::String(member.host()), CountValue(member.pid()),
                             Value::String(member.control_address()), Value::String(catalog::StateOf(member)),
                             CountIf(role == proto::ROLE_COMPUTE, member.threads()),
                             bytes(member.used_bytes()), bytes(member.memory_bytes())});
      if (scratch.empty()) continue;
      const auto use = scratch.find(member.id());
      for (const auto field : {&ScratchUse::used_bytes, &ScratchUse::highest_bytes, &ScratchUse::bytes}) {
        result.rows.back().push_back(use == scratch.end() ? Value::Null(Type::String())
                                                          : Value::String(FormatBytes(use->second.*field)));
      }
    }
  }
  return result;
}

ResultSet TablesReport(const std::vector<proto::Table>& tables, bool readable,
                       const proto::Cluster& cluster) {
  ResultSet result;
  result.columns = {{"table", Type::String()},
                    {"rows", Type::Integer()},
                    {"columns", Type::Integer()},
                    {"partitions", Type::Integer()},
                    {"groups", Type::Integer()},
                    {"blocks", Type::Integer()},
                    {readable ? "size" : "bytes", readable ? Type::String() : Type::Integer()}};
  if (readable) result.columns.push_back({"by_memory_server", Type::String()});
  result.columns.push_back({"state", Type::String()});
  for (const proto::Table& table : tables) {
    uint64_t blocks = 0, bytes = 0;
    std::string servers;
    for (const proto::ServerUsage& usage : table.usage()) {
      blocks += usage.blocks();
      bytes += usage.bytes();
      absl::StrAppend(&servers, servers.empty() ? "" : ", ", catalog::ShownId(cluster, usage.server()), ": ",
                      FormatBytes(usage.bytes()));
    }
    auto& row = result.rows.emplace_back();
    row = {Value::String(table.name()),
           CountIf(!table.has_record(), table.rows()),
           CountValue(static_cast<uint64_t>(table.columns_size())),
           CountValue(Partitions(table)),
           CountIf(!table.has_record(), catalog::GroupCount(table)),
           CountValue(blocks)};
    row.push_back(readable ? Value::String(FormatBytes(bytes)) : CountValue(bytes));
    if (readable) row.push_back(Value::String(servers));
    row.push_back(Value::String(TableState(table, cluster)));
  }
  return result;
}

ResultSet ColumnsReport(const proto::Table& table) {
  ResultSet result;
  result.columns = {{"column", Type::String()},    {"type", Type::String()},   {"nullable", Type::Bool()},
                    {"distinct", Type::Integer()}, {"bytes", Type::Integer()}, {"role", Type::String()}};
  for (const proto::Column& column : table.columns()) {
    if (column.hidden()) continue;
    std::string role;
    const auto add = [&](const std::string& text) { absl::StrAppend(&role, role.empty() ? "" : ", ", text); };
    for (const proto::PartitionKey& key : table.partitioning()) {
      if (key.column() == column.name()) add(absl::StrCat("partition key (", key.parts(), ")"));
    }
    if (table.sort_column() == column.name()) add("sort key");
    if (column.unique()) add("unique");
    const std::string key = KeyRole(table, column.name());
    if (!key.empty()) add(key);
    if (column.numbering() != proto::NOT_NUMBERED) add("numbered");
    if (!column.default_expression().empty()) add(absl::StrCat("default ", column.default_expression()));
    const bool record = table.has_record();  // its values are not counted
    result.rows.push_back(
        {Value::String(column.name()), Value::String(TypeText(column.type())), Value::Bool(column.nullable()),
         CountIf(!record, column.distinct()),
         CountValue(record ? partitioner::BytesOfColumn(column.type()) : partitioner::StoredBytesOf(column)),
         Value::String(role)});
  }
  return result;
}

ResultSet ViewsReport(const std::vector<proto::Table>& entries) {
  ResultSet result;
  result.columns = {{"view", Type::String()}, {"definition", Type::String()}};
  for (const proto::Table& entry : entries) {
    if (entry.has_view())
      result.rows.push_back({Value::String(entry.name()), Value::String(entry.view().query())});
  }
  return result;
}

ResultSet SchemasReport(const std::vector<proto::Table>& entries) {
  ResultSet result;
  result.columns = {{"schema", Type::String()}};
  std::vector<std::string> names = {kPublicSchema};
  for (const proto::Table& entry : entries) {
    if (entry.schema()) names.push_back(SchemaOfName(entry.name()));
  }
  std::sort(names.begin(), names.end());
  for (std::string& name : names) result.rows.push_back({Value::String(std::move(name))});
  return result;
}

ResultSet IndexesReport(const proto::Table& table) {
  ResultSet result;
  result.columns = {{"index", Type::String()},
                    {"columns", Type::String()},
                    {"unique", Type::Bool()},
                    {"state", Type::String()}};
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.kind() != proto::ORDERED_INDEX) continue;
    const std::string columns = absl::StrJoin(part.columns(), ", ", [&](std::string* out, uint32_t column) {
      absl::StrAppend(out, static_cast<int>(column) < table.columns_size()
                               ? table.columns(static_cast<int>(column)).name()
                               : "?");
    });
    const char* state = part.leaving() ? "being dropped" : part.usable_from() == 0 ? "being filled" : "used";
    result.rows.push_back({Value::String(part.name()), Value::String(columns), Value::Bool(part.unique()),
                           Value::String(state)});
  }
  return result;
}

ResultSet ChecksReport(const proto::Table& table) {
  ResultSet result;
  result.columns = {{"check", Type::String()}, {"condition", Type::String()}};
  for (const proto::RecordCheck& check : table.record().checks())
    result.rows.push_back({Value::String(check.name()), Value::String(check.expression())});
  return result;
}

ResultSet ForeignKeysReport(const proto::Table& table, const FindTable& find) {
  ResultSet result;
  result.columns = {{"foreign_key", Type::String()},
                    {"table", Type::String()},
                    {"columns", Type::String()},
                    {"references", Type::String()}};
  const auto names = [&](const std::string& of, const auto& columns) {
    const std::shared_ptr<const proto::Table> other = of == table.name() ? nullptr : find(of);
    return absl::StrJoin(columns, ", ", [&](std::string* out, uint32_t column) {
      const proto::Table& its = other == nullptr ? table : *other;
      const bool known =
          (other != nullptr || of == table.name()) && static_cast<int>(column) < its.columns_size();
      absl::StrAppend(out, known ? its.columns(static_cast<int>(column)).name() : "?");
    });
  };
  const auto add = [&](const std::string& child, const proto::ForeignKey& key) {
    result.rows.push_back(
        {Value::String(key.name()), Value::String(child), Value::String(names(child, key.columns())),
         Value::String(absl::StrCat(key.parent(), " (", names(key.parent(), key.parent_columns()), ")"))});
  };
  for (const proto::ForeignKey& key : table.record().foreign_keys()) add(table.name(), key);
  for (const proto::ReferencingKey& reference : table.record().referenced_by()) {
    if (reference.child() != table.name()) add(reference.child(), reference.key());
  }
  return result;
}

ResultSet PlacementReport(const std::vector<proto::Table>& tables) {
  ResultSet result;
  result.columns = {{"table", Type::String()},
                    {"memory_server", Type::Integer()},
                    {"blocks", Type::Integer()},
                    {"bytes", Type::Integer()}};
  for (const proto::Table& table : tables) {
    for (const proto::ServerUsage& usage : table.usage()) {
      result.rows.push_back({Value::String(table.name()), CountValue(usage.server()),
                             CountValue(usage.blocks()), CountValue(usage.bytes())});
    }
  }
  return result;
}

}  // namespace nam::cli
