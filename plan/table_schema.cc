#include "plan/table_schema.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/flow.h"
#include "plan/plan_error.h"
#include "plan/slot_of.h"
#include "types/date.h"
#include "types/wire.h"

namespace nam::plan {
namespace {

/// The range of a record's column of this width.
Bounds BoundsOfRecords(const proto::Type& type) {
  switch (static_cast<TypeKind>(type.kind())) {
    case TypeKind::kInteger: {
      const uint32_t bytes = type.precision() == 2 || type.precision() == 4 ? type.precision() : 8;
      const __int128 limit = __int128{1} << (8 * bytes - 1);
      return {-limit, limit - 1, true};
    }
    case TypeKind::kDecimal: {
      const uint32_t digits = type.precision() == 0 ? kMaxDecimalDigits : type.precision();
      const __int128 most = PowerOfTen(static_cast<int>(std::min<uint32_t>(digits, kMaxDecimalDigits))) - 1;
      return {-most, most, true};
    }
    case TypeKind::kDate:
      return {kLeastDay, kGreatestDay, true};
    case TypeKind::kTime:
      return {0, kMicrosecondsPerDay, true};
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      return {static_cast<__int128>(kLeastDay) * kMicrosecondsPerDay,
              static_cast<__int128>(kGreatestDay + 1) * kMicrosecondsPerDay - 1, true};
    default:
      return {};
  }
}

/// Whether the column has plain values anywhere: these have no known bounds.
bool HoldsPlain(const proto::Table& table, uint32_t column) {
  const auto place = static_cast<int>(column);
  bool plain = table.columns(place).encoding().plain();
  for (const proto::ChainGroup& group : table.groups())
    plain = plain || (place < group.columns_size() && group.columns(place).encoding().plain());
  return plain;
}

/// The partition key that has the column, if there is one.
std::optional<int32_t> KeyOf(const proto::Table& table, uint32_t column) {
  for (int k = 0; k < table.partitioning_size(); ++k) {
    if (table.partitioning(k).column() == table.columns(static_cast<int>(column)).name()) return k;
  }
  return std::nullopt;
}

/// The table column that a key of the pipeline is, unchanged, at the input of step `step`.
std::optional<uint32_t> ColumnOf(const Pipeline& pipeline, size_t step, const Expr& key) {
  const TableScan* scan = ScanOf(pipeline);
  const std::optional<uint32_t> slot = BareSlot(key);
  if (scan == nullptr || !slot) return std::nullopt;
  const std::optional<uint32_t> of_source = SourceSlotOf(pipeline, step, *slot);
  if (!of_source) return std::nullopt;
  return scan->columns[scan->output[*of_source]];
}

absl::Status CheckScan(const TableScan& scan, const proto::Table& table) {
  for (size_t i = 0; i < scan.columns.size(); ++i) {
    if (scan.columns[i] >= static_cast<uint32_t>(table.columns_size()))
      return BadPlan("a scan of columns that are not there");
    NAM_ASSIGN_OR_RETURN(const Slot slot, SlotOfColumn(table, scan.columns[i]));
    if (slot != scan.slots[i]) return BadPlan("a scan of columns that hold something else");
  }
  return absl::OkStatus();
}

/// Whether all probes of the build side match it by this key of theirs, as the scan states.
bool MatchesBy(size_t key, const PhysicalPlan& plan, uint32_t number, const TableMetadata& tables) {
  const Pipeline& build = plan.pipelines[number];
  const BlockScan& scan = std::get<BlockScan>(build.source);
  const std::optional<uint32_t> built =
      ColumnOf(build, build.steps.size(), std::get<BuildSink>(build.sink).keys[key]);
  const Pipeline& claimed = plan.pipelines[plan.stages[build.stage].claimed];
  for (size_t s = 0; s < claimed.steps.size(); ++s) {
    const auto* probe = std::get_if<ProbeStep>(&claimed.steps[s]);
    if (probe == nullptr || probe->build != number) continue;
    const std::optional<uint32_t> probed = ColumnOf(claimed, s, probe->keys[key]);
    if (!built || !probed ||
        MatchingKey(*tables[scan.table], *built, *tables[ScanOf(claimed)->table], *probed) !=
            scan.co_partitioned_key)
      return false;
  }
  return true;
}

/// Checks that all probes of the build side come from the claimed table and match by the stated key.
absl::Status CheckMatch(const PhysicalPlan& plan, uint32_t number, const TableMetadata& tables) {
  const size_t keys = std::get<BuildSink>(plan.pipelines[number].sink).keys.size();
  for (size_t key = 0; key < keys; ++key) {
    if (MatchesBy(key, plan, number, tables)) return absl::OkStatus();
  }
  return BadPlan("a partition match of tables that do not match");
}

}  // namespace

absl::StatusOr<Slot> SlotOfColumn(const proto::Table& table, uint32_t column) {
  const proto::Column& in = table.columns(static_cast<int>(column));
  Slot out{ColumnTypeOf(in.type()), in.nullable(), {}};
  if (!IsValueType(out.type))
    return absl::InvalidArgumentError(absl::StrCat("column ", in.name(), " has a type without values"));
  if (table.has_record()) {
    out.bounds = BoundsOfRecords(in.type());
  } else if (HoldsPlain(table, column)) {
    out.bounds = BoundsOfRecords(in.type());
  } else if (HasBounds(out.type)) {
    out.bounds = {in.min(), std::max(in.min(), in.max()), true};
  }
  return out;
}

std::optional<int32_t> MatchingKey(const proto::Table& build, uint32_t build_column,
                                   const proto::Table& claimed, uint32_t claimed_column) {
  const std::optional<int32_t> own = KeyOf(build, build_column), key = KeyOf(claimed, claimed_column);
  if (!own || !key || build.partitioning_size() != 1) return std::nullopt;
  const proto::PartitionKey& b = build.partitioning(*own);
  const proto::PartitionKey& c = claimed.partitioning(*key);
  if (b.parts() != c.parts() || b.function() != c.function()) return std::nullopt;
  const Type x = ColumnTypeOf(build.columns(static_cast<int>(build_column)).type());
  const Type y = ColumnTypeOf(claimed.columns(static_cast<int>(claimed_column)).type());
  // The loader's functions take stored numbers and bytes.
  const bool same = x.kind == y.kind && x.scale == y.scale && x.blank_padded == y.blank_padded;
  return same ? key : std::nullopt;
}

absl::Status CheckTables(const PhysicalPlan& plan, const TableMetadata& tables) {
  if (tables.size() != plan.tables.size()) return BadPlan("tables and their metadata do not match");
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableRef& ref = plan.tables[t];
    if (ref.name != tables[t]->name() || ref.allocation != tables[t]->allocation())
      return absl::FailedPreconditionError(absl::StrCat("the plan is for another version of ", ref.name));
    if (ref.records != tables[t]->has_record()) return BadPlan("a table of another kind");
  }
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const TableScan* scan = ScanOf(plan.pipelines[p]);
    if (scan == nullptr) continue;
    NAM_RETURN_IF_ERROR(CheckScan(*scan, *tables[scan->table]));
    const auto* blocks = std::get_if<BlockScan>(&plan.pipelines[p].source);
    if (blocks != nullptr && blocks->co_partitioned_key >= 0)
      NAM_RETURN_IF_ERROR(CheckMatch(plan, p, tables));
  }
  return absl::OkStatus();
}

}  // namespace nam::plan
