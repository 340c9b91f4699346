#include "computeserver/query_shape.h"

#include <algorithm>
#include <bit>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "computeserver/vector_expression.h"
#include "partitioner/table_metadata.h"
#include "plan/aggregate.h"
#include "types/wire.h"

namespace nam::computeserver {
namespace {

using optimizer::Plan;

/// Every reference of the plan must exist in the tables, and be listed among the columns to read.
absl::Status CheckReferences(const Plan& plan, const optimizer::TableRefs& tables) {
  std::vector<const plan::Expr*> all;
  for (const Plan::Table& table : plan.tables) {
    for (const plan::Expr& filter : table.filters) all.push_back(&filter);
  }
  for (const Plan::Join& join : plan.joins) {
    all.push_back(&join.probe_key);
    all.push_back(&join.build_key);
    for (const plan::Expr& residual : join.residuals) all.push_back(&residual);
  }
  for (const plan::Expr& key : plan.group_by) all.push_back(&key);
  for (const plan::Aggregate& aggregate : plan.aggregates) all.push_back(&aggregate.argument);
  for (const plan::Expr& expr : plan.output) all.push_back(&expr);
  for (size_t t = 0; t < tables.size(); ++t) {
    uint32_t before = 0;
    for (uint32_t column : plan.tables[t].columns) {
      if (column >= static_cast<uint32_t>(tables[t]->columns_size()) || (before > 0 && column < before)) {
        return absl::InvalidArgumentError("not a plan: it reads columns that do not exist");
      }
      before = column + 1;
    }
  }
  for (const plan::Expr* expr : all) {
    for (plan::ColumnRef ref : plan::ColumnsOf(*expr)) {
      const auto& columns = plan.tables[static_cast<size_t>(ref.table)].columns;
      if (std::find(columns.begin(), columns.end(), static_cast<uint32_t>(ref.column)) == columns.end()) {
        return absl::InvalidArgumentError("not a plan: it uses a column that it does not read");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ColumnMeaning> MeaningOf(const proto::Table& table, uint32_t column,
                                        const DictionaryLoader& load) {
  const proto::Column& in = table.columns(static_cast<int>(column));
  ColumnMeaning out;
  out.type = ColumnTypeOf(in.type());
  out.nullable = in.nullable();
  out.base = in.encoding().base();
  out.width = static_cast<uint8_t>(in.encoding().width());
  out.min = in.min();
  out.max = std::max(in.min(), in.max());
  const uint64_t spread = static_cast<uint64_t>(out.max) - static_cast<uint64_t>(out.min);
  out.codes = spread >= UINT64_MAX - 1 ? 0 : spread + 1 + out.nullable;
  if (out.type.kind == TypeKind::kString) {
    NAM_ASSIGN_OR_RETURN(out.dictionary, load(table, column));
    out.codes = std::max<uint64_t>(out.dictionary->size() + out.nullable, 1);
  }
  return out;
}

void AddTables(const plan::Expr& expr, std::set<int>& tables) {
  for (plan::ColumnRef ref : plan::ColumnsOf(expr)) tables.insert(ref.table);
}

void AddColumns(const plan::Expr& expr, int table, std::set<uint32_t>& columns) {
  for (plan::ColumnRef ref : plan::ColumnsOf(expr)) {
    if (ref.table == table) columns.insert(static_cast<uint32_t>(ref.column));
  }
}

/// Visits every expression that is evaluated at or after level `level` (0: the driving table alone),
/// without the build keys and the filters of the tables themselves.
template <typename Visit>
void ForLaterExpressions(const Plan& plan, size_t level, Visit&& visit) {
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    if (j >= level) visit(plan.joins[j].probe_key);
    if (j + 1 < level) continue;
    for (const plan::Expr& residual : plan.joins[j].residuals) visit(residual);
  }
  for (const plan::Expr& key : plan.group_by) visit(key);
  for (const plan::Aggregate& aggregate : plan.aggregates) visit(aggregate.argument);
  for (const plan::Expr& expr : plan.output) visit(expr);
}

/// Whether keys of the join that differ in their bytes may be equal.
bool BlanksDoNotCount(const Plan::Join& join) {
  const Type &probe = join.probe_key.type, &build = join.build_key.type;
  return plan::IsChar(probe) != plan::IsChar(build) && plan::IgnoresBlanks(probe, build);
}

absl::Status PlanJoin(QueryShape& shape, size_t j) {
  const Plan::Join& join = shape.plan.joins[j];
  const proto::Table& build = *shape.tables[static_cast<size_t>(join.table)];
  QueryShape::Join& out = shape.joins[j];
  const proto::Table& driving = *shape.tables[static_cast<size_t>(shape.plan.driving)];
  out.partitions =
      partitioner::NeededPartitions(driving, build, optimizer::MatchingKey(shape.plan, join, shape.tables),
                                    partitioner::PartitionsOf(shape.pieces));
  uint64_t rows = 0;
  for (uint32_t p : out.partitions) {
    out.first_row.push_back(rows);
    rows += build.partitions(static_cast<int>(p)).rows();
  }
  if (rows > JoinTable::kMaxRows) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s has too many rows for the build side of a join", build.name()));
  }
  out.table.rows = rows;
  if (join.build_key.op == plan::Op::kColumn) {
    const ColumnMeaning& key = shape.columns.at(join.build_key.column).meaning;
    out.table.key_min = key.min;
    out.table.key_max = key.max;
    out.table.key_known = true;
    out.table.key_unique = build.columns(join.build_key.column.column).unique() && !BlanksDoNotCount(join);
    if (build.partitioning_size() == 1 && build.partitioning(0).function() == proto::MODULO &&
        build.partitioning(0).column() == build.columns(join.build_key.column.column).name() &&
        std::has_single_bit(build.partitioning(0).parts())) {
      out.table.parts = build.partitioning(0).parts();
    }
    if (join.probe_key.op == plan::Op::kColumn) {
      const ColumnMeaning& probe = shape.columns.at(join.probe_key.column).meaning;
      out.always_in_domain = probe.min >= key.min && probe.max <= key.max;
    }
  }
  std::set<uint32_t> payload;
  ForLaterExpressions(shape.plan, j + 1, [&](const plan::Expr& e) { AddColumns(e, join.table, payload); });
  out.payload = {payload.begin(), payload.end()};
  out.row_numbers_needed = !payload.empty();
  for (uint32_t column : out.payload) {
    out.table.payload_widths.push_back(
        shape.columns.at({join.table, static_cast<int>(column)}).meaning.width);
  }
  out.by_driving_key = JoinTable::IsUnique(out.table) && join.probe_key.op == plan::Op::kColumn &&
                       join.probe_key.column.table == shape.plan.driving &&
                       join.probe_key.type.kind != TypeKind::kString && join.residuals.empty();
  return absl::OkStatus();
}

/// char(n) beside varchar(n): entries that differ by blanks at the end alone are one key, the first of them.
void TranslateKeysWithoutBlanks(const storage::Dictionary& probe, const storage::Dictionary& build,
                                QueryShape::Join& join) {
  absl::flat_hash_map<std::string_view, int64_t> first;
  for (size_t b = 0; b < build.size(); ++b) {
    join.build_translation.push_back(
        first.try_emplace(plan::WithoutBlanks(build[b]), static_cast<int64_t>(b)).first->second);
  }
  for (size_t p = 0; p < probe.size(); ++p) {
    const auto found = first.find(plan::WithoutBlanks(probe[p]));
    join.translation.push_back(found == first.end() ? -1 : found->second);
  }
}

/// Text keys join by the build side's dictionary.
void TranslateKeys(QueryShape& shape, size_t j) {
  const Plan::Join& join = shape.plan.joins[j];
  if (join.probe_key.type.kind != TypeKind::kString) return;
  const auto& probe = *shape.columns.at(join.probe_key.column).meaning.dictionary;
  const auto& build = *shape.columns.at(join.build_key.column).meaning.dictionary;
  if (BlanksDoNotCount(join)) return TranslateKeysWithoutBlanks(probe, build, shape.joins[j]);
  std::vector<int64_t>& translation = shape.joins[j].translation;
  translation.resize(probe.size(), -1);
  for (size_t p = 0, b = 0; p < probe.size(); ++p) {  // both are in order
    while (b < build.size() && build[b] < probe[p]) ++b;
    if (b < build.size() && build[b] == probe[p]) translation[p] = static_cast<int64_t>(b);
  }
}

}  // namespace

int QueryShape::sort_column(int table) const {
  const proto::Table& meta = *tables[static_cast<size_t>(table)];
  for (int c = 0; c < meta.columns_size(); ++c) {
    if (!meta.sort_column().empty() && meta.columns(c).name() == meta.sort_column()) return c;
  }
  return -1;
}

absl::StatusOr<std::shared_ptr<const QueryShape>> QueryShape::Make(
    Plan plan, optimizer::TableRefs tables, std::vector<std::shared_ptr<storage::KnownBlocks>> known,
    const proto::StreamSettings& settings, std::vector<partitioner::Piece> pieces,
    const DictionaryLoader& load_dictionary) {
  NAM_RETURN_IF_ERROR(CheckReferences(plan, tables));
  auto shape = std::make_shared<QueryShape>();
  shape->plan = std::move(plan);
  shape->tables = std::move(tables);
  shape->known = std::move(known);
  shape->settings = settings;
  shape->pieces = std::move(pieces);
  shape->columns = ColumnSpace(shape->tables.size());
  const proto::Table& driving = *shape->tables[static_cast<size_t>(shape->plan.driving)];
  for (const partitioner::Piece& piece : shape->pieces) {
    if (piece.partition >= static_cast<uint32_t>(driving.partitions_size()))
      return absl::InvalidArgumentError("no such partition");
    if (uint64_t{piece.first_block} + piece.blocks >
        driving.partitions(static_cast<int>(piece.partition)).blocks())
      return absl::InvalidArgumentError("no such blocks");
  }
  for (size_t t = 0; t < shape->tables.size(); ++t) {
    auto& columns = shape->columns.table(static_cast<int>(t));
    columns.resize(static_cast<size_t>(shape->tables[t]->columns_size()));
    for (uint32_t column : shape->plan.tables[t].columns) {
      NAM_ASSIGN_OR_RETURN(columns[column].meaning, MeaningOf(*shape->tables[t], column, load_dictionary));
    }
  }
  shape->joins.resize(shape->plan.joins.size());
  uint64_t build_bytes = 0;
  for (size_t j = 0; j < shape->joins.size(); ++j) {
    const Plan::Join& join = shape->plan.joins[j];
    const bool text = join.probe_key.type.kind == TypeKind::kString;
    if (text && (join.probe_key.op != plan::Op::kColumn || join.build_key.op != plan::Op::kColumn ||
                 join.build_key.type.kind != TypeKind::kString)) {
      return absl::InvalidArgumentError("not a plan: text keys that are not columns");
    }
    NAM_RETURN_IF_ERROR(PlanJoin(*shape, j));
    TranslateKeys(*shape, j);
    build_bytes += JoinTable::BytesNeeded(shape->joins[j].table);
  }
  if (build_bytes > settings.build_bytes_max()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the build sides of the query's joins need %d MiB on one server, more than nam.build_mib_max allows",
        (build_bytes >> 20) + 1));
  }
  for (size_t level = 0; level <= shape->joins.size(); ++level) {
    std::set<int> live;
    ForLaterExpressions(shape->plan, level, [&](const plan::Expr& e) { AddTables(e, live); });
    std::erase_if(live, [&](int t) {  // those that are joined by then
      if (t == shape->plan.driving) return false;
      for (size_t j = 0; j < shape->joins.size(); ++j) {
        if ((j < level || shape->joins[j].by_driving_key) && shape->plan.joins[j].table == t) return false;
      }
      return true;
    });
    // The driving table's rows carry the count of tuples and are always there.
    live.insert(shape->plan.driving);
    shape->live.emplace_back(live.begin(), live.end());
  }
  return std::shared_ptr<const QueryShape>(std::move(shape));
}

}  // namespace nam::computeserver
