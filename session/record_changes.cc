#include "session/record_changes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <ranges>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/assigned_value.h"
#include "session/record_rows.h"
#include "sql/constraints.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::session {
namespace {

using partitioner::RecordLayout;
using plan::Expr;
using sql::ChangeValue;
using sql::ColumnAssignment;

constexpr char kRowsBehind[] = "nam.session.RowsBehind";

/// Columns of table 0 are those of one row, columns of table 1 those of another.
plan::Resolver TwoRows(const std::vector<Value>& first, const std::vector<Value>& second) {
  return [&first, &second](const Expr& e) {
    return (e.column.table == 0 ? first : second)[static_cast<size_t>(e.column.column)];
  };
}

/// 2200H if the number does not fit the column's type.
absl::StatusOr<Value> NumberOf(const proto::Table& table, const proto::Column& column, uint64_t place) {
  const __int128 number =
      column.first_number() + static_cast<__int128>(place) * static_cast<__int128>(column.number_step());
  if (plan::FitsInteger(number, static_cast<int>(column.type().precision()))) return Value::Integer(number);
  const bool up = column.number_step() > 0;
  const __int128 limit = __int128{1} << (8 * column.type().precision() - 1);
  return UserError(sqlstate::kSequenceLimit,
                   absl::StrCat("nextval: reached ", up ? "maximum" : "minimum", " value of sequence ",
                                Quote(absl::StrCat(table.name(), "_", column.name(), "_seq")), " (",
                                Int128ToString(up ? limit - 1 : -limit), ")"),
                   -1, "its column has no larger numbers: give them in INSERT, or make another table");
}

}  // namespace

/// Collects RETURNING's values of the rows.
class RecordChanges::Returned {
 public:
  explicit Returned(const std::vector<sql::OutputColumn>& outputs) : outputs_(outputs) {
    for (const sql::OutputColumn& output : outputs)
      result_.columns.push_back({output.name, output.expr.type});
  }
  absl::Status Add(const std::vector<Value>& row, const std::vector<Value>& rest) {
    if (outputs_.empty()) return absl::OkStatus();
    std::vector<Value>& shown = result_.rows.emplace_back();
    for (const sql::OutputColumn& output : outputs_) {
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(output.expr, TwoRows(row, rest)));
      shown.push_back(std::move(value));
    }
    return absl::OkStatus();
  }
  ResultSet Take(std::string command) {
    result_.command = std::move(command);
    return std::move(result_);
  }

 private:
  const std::vector<sql::OutputColumn>& outputs_;
  ResultSet result_;
};

absl::StatusOr<Value> RecordChanges::DefaultOf(const proto::Table& table, int column,
                                               const ChangeValue& otherwise) {
  if (otherwise.has_value()) return plan::Evaluate(*otherwise, sql::ValueResolver());
  NAM_ASSIGN_OR_RETURN(const uint64_t place, access_.NextNumber(table, column));
  return NumberOf(table, table.columns(column), place);
}

absl::StatusOr<std::optional<std::string>> RecordChanges::FindKey(const proto::Table& table, int key,
                                                                  const std::string& row, bool but_itself) {
  const RecordLayout layout(table);
  std::optional<std::string> found;
  const RecordAccess::OnRow take = [&](std::span<const std::byte> bytes) -> absl::StatusOr<bool> {
    std::string other(reinterpret_cast<const char*>(bytes.data()), layout.row_bytes());
    found = std::move(other);
    return true;
  };
  if (key == sql::ConflictAction::kPrimaryKey) {
    const std::string primary = row.substr(0, layout.key_bytes());
    NAM_RETURN_IF_ERROR(access_.Lookup(table, {&primary, 1}, take));
    return found;
  }
  const proto::RecordPart& index = table.record().parts(key);
  const std::vector<uint32_t> columns(index.columns().begin(), index.columns().end());
  for (const uint32_t column : columns) {
    if (layout.nullable(column) && layout.field(column).IsNull(BytesOf(row).data())) return found;
  }
  const std::string low = layout.IndexKey(BytesOf(row), columns);
  const sql::KeyRange range{low, partitioner::SuccessorOfPrefix(low)};
  NAM_RETURN_IF_ERROR(access_.ScanIndex(table, key, range, [&](std::span<const std::byte> bytes) {
    const bool itself = std::memcmp(bytes.data(), row.data(), layout.key_bytes()) == 0;
    return itself && but_itself ? absl::StatusOr<bool>(true) : take(bytes);
  }));
  return found;
}

/// Checks the keys of unique indexes, for all rows that the statement has written: `rows` is a range of them.
/// The commit covers concurrent commits.
template <typename Rows>
absl::Status RecordChanges::CheckUnique(const proto::Table& table, const Rows& rows,
                                        const std::function<bool(uint32_t column)>& written, size_t* wrong) {
  for (int i = 0; i < table.record().parts_size(); ++i) {
    const proto::RecordPart& part = table.record().parts(i);
    if (part.kind() != proto::ORDERED_INDEX || !part.unique() || part.leaving()) continue;
    if (part.usable_from() == 0 || part.usable_from() > access_.snapshot()) continue;
    if (std::none_of(part.columns().begin(), part.columns().end(), written)) continue;
    size_t number = 0;
    for (const std::string& row : rows) {
      if (cancelled_) return absl::CancelledError("cancelled");
      NAM_ASSIGN_OR_RETURN(const std::optional<std::string> other,
                           FindKey(table, i, row, /*but_itself=*/true));
      if (other.has_value()) {
        if (wrong != nullptr) *wrong = number;
        return sql::DuplicateKey(table, i, RecordLayout(table).Decode(BytesOf(row)));
      }
      ++number;
    }
  }
  return absl::OkStatus();
}

/// One INSERT.
class RecordChanges::Inserting {
 public:
  Inserting(RecordChanges& changes, const sql::InsertStatement& statement)
      : changes_(changes),
        access_(changes.access_),
        statement_(statement),
        table_(*statement.table.table),
        layout_(table_),
        returned_(statement.returning) {}

  /// `values`: for the statement's columns; nullopt means the default. The first row that cannot be inserted
  /// is the error.
  absl::Status Add(std::vector<std::optional<Value>> values, const std::vector<int>& positions) {
    const absl::Status added = AddRow(std::move(values), positions);
    ++taken_;
    if (added.ok() && waiting_.size() < kRowsAtOnce && !statement_.conflict.has_value()) return added;
    NAM_RETURN_IF_ERROR(InsertWaiting());
    return OfRow(taken_ - 1, added);
  }

  absl::StatusOr<ResultSet> Finish() {
    NAM_RETURN_IF_ERROR(InsertWaiting());
    size_t wrong = written_.size();
    const absl::Status unique = changes_.CheckUnique(
        table_, std::views::values(written_) | std::views::transform(&Written::row),
        [](uint32_t) { return true; }, &wrong);
    if (wrong < written_.size())
      return OfRow(std::next(written_.begin(), static_cast<ptrdiff_t>(wrong))->second.number, unique);
    NAM_RETURN_IF_ERROR(unique);
    if (HasReferences(statement_.table)) {
      std::vector<RowChange> rows;
      for (auto& [key, written] : written_)
        rows.push_back({std::move(replaced_[key]), std::move(written.row)});
      NAM_RETURN_IF_ERROR(changes_.CheckReferences(statement_.table, rows));
    }
    return returned_.Take(absl::StrCat("INSERT 0 ", rows_));
  }

 private:
  static constexpr size_t kRowsAtOnce = 256;
  struct Written {
    std::string row;
    uint64_t number = 0;  // in the order of Add
  };

  absl::Status OfRow(uint64_t number, absl::Status error) const {
    if (!error.ok()) error.SetPayload(kRowsBehind, absl::Cord(absl::StrCat(taken_ - 1 - number)));
    return error;
  }

  absl::Status AddRow(std::vector<std::optional<Value>> values, const std::vector<int>& positions) {
    if (changes_.cancelled_) return absl::CancelledError("cancelled");
    Row row(static_cast<size_t>(table_.columns_size()));
    std::vector<bool> given(row.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].has_value()) continue;
      const int column = statement_.columns[i];
      given[static_cast<size_t>(column)] = true;
      NAM_ASSIGN_OR_RETURN(row[static_cast<size_t>(column)],
                           partitioner::Assign(table_, column, *std::move(values[i]), positions[i]));
    }
    for (int i = 0; i < table_.columns_size(); ++i) {
      const auto column = static_cast<size_t>(i);
      if (given[column]) continue;
      NAM_ASSIGN_OR_RETURN(Value value, changes_.DefaultOf(table_, i, statement_.defaults[column]));
      NAM_ASSIGN_OR_RETURN(row[column], partitioner::Assign(table_, i, std::move(value), -1));
    }
    NAM_RETURN_IF_ERROR(sql::Check(table_, statement_.checks, row));
    std::string encoded = layout_.Encode(row);
    if (statement_.conflict.has_value()) {
      for (const int key : statement_.conflict->keys) {
        NAM_ASSIGN_OR_RETURN(const std::optional<std::string> there,
                             changes_.FindKey(table_, key, encoded, /*but_itself=*/false));
        if (there.has_value()) return Meet(*there, row);
      }
    }
    if (written_.contains(encoded.substr(0, layout_.key_bytes())))
      return sql::DuplicateKey(table_, sql::ConflictAction::kPrimaryKey, row);
    waiting_.push_back(encoded);
    waiting_numbers_.push_back(taken_);
    return Wrote(std::move(encoded), row);
  }

  absl::Status InsertWaiting() {
    size_t there = waiting_.size();
    const absl::Status inserted = changes_.InsertRows(table_, waiting_, &there);
    if (there < waiting_.size()) return OfRow(waiting_numbers_[there], inserted);
    waiting_.clear();
    waiting_numbers_.clear();
    return inserted;
  }

  absl::Status Wrote(std::string encoded, const Row& row) {
    ++rows_;
    std::string key = encoded.substr(0, layout_.key_bytes());
    written_[std::move(key)] = {std::move(encoded), taken_};
    return returned_.Add(row, {});
  }

  /// Handles an existing row with one of the keys: it stays, or is changed.
  absl::Status Meet(const std::string& there, const Row& excluded) {
    const sql::ConflictAction& conflict = *statement_.conflict;
    if (!conflict.update) return absl::OkStatus();
    const std::string key = there.substr(0, layout_.key_bytes());
    if (written_.contains(key)) {
      return UserError(sqlstate::kCardinalityViolation,
                       "ON CONFLICT DO UPDATE command cannot affect row a second time", -1,
                       "no two rows of one INSERT may have the same key");
    }
    const Row old = layout_.Decode(BytesOf(there));
    const plan::Resolver rows = TwoRows(old, excluded);
    std::vector<const Expr*> conditions;
    for (const Expr& condition : conflict.conjuncts) conditions.push_back(&condition);
    NAM_ASSIGN_OR_RETURN(const bool holds, HoldsAll(conditions, rows));
    if (!holds) return absl::OkStatus();
    Row row = old;
    for (const ColumnAssignment& assignment : conflict.assignments) {
      const auto column = static_cast<size_t>(assignment.column);
      absl::StatusOr<Value> value =
          assignment.value.has_value()
              ? plan::Evaluate(*assignment.value, rows)
              : changes_.DefaultOf(table_, assignment.column, statement_.defaults[column]);
      NAM_RETURN_IF_ERROR(value.status());
      NAM_ASSIGN_OR_RETURN(
          row[column], partitioner::Assign(table_, assignment.column, *std::move(value),
                                           assignment.value.has_value() ? assignment.value->position : -1));
    }
    NAM_RETURN_IF_ERROR(sql::Check(table_, statement_.checks, row));
    std::string encoded = layout_.Encode(row);
    if (HasReferences(statement_.table)) replaced_[encoded.substr(0, layout_.key_bytes())] = there;
    if (encoded.compare(0, layout_.key_bytes(), key) == 0) {
      NAM_RETURN_IF_ERROR(access_.Update(table_, {&encoded, 1}));
    } else {
      NAM_RETURN_IF_ERROR(access_.Delete(table_, {&key, 1}));
      NAM_RETURN_IF_ERROR(changes_.InsertRows(table_, {&encoded, 1}));
    }
    return Wrote(std::move(encoded), row);
  }

  RecordChanges& changes_;
  RecordAccess& access_;
  const sql::InsertStatement& statement_;
  const proto::Table& table_;
  const RecordLayout layout_;
  Returned returned_;
  std::vector<std::string> waiting_;  // rows to insert next
  std::vector<uint64_t> waiting_numbers_;
  std::map<std::string, Written> written_;       // by primary key, including waiting_
  std::map<std::string, std::string> replaced_;  // rows changed by ON CONFLICT, by their new key
  uint64_t rows_ = 0;
  uint64_t taken_ = 0;  // rows that were added, or could not be
};

std::optional<uint64_t> RowsBehind(const absl::Status& error) {
  const auto text = error.GetPayload(kRowsBehind);
  uint64_t rows = 0;
  if (!text.has_value() || !absl::SimpleAtoi(std::string(*text), &rows)) return std::nullopt;
  return rows;
}

absl::Status RecordChanges::InsertRows(const proto::Table& table, std::span<const std::string> rows,
                                       size_t* there) {
  size_t taken = 0;
  const absl::Status inserted = access_.Insert(table, rows, &taken);
  if (!absl::IsAlreadyExists(inserted)) return inserted;
  if (there != nullptr) *there = taken;
  return sql::DuplicateKey(table, sql::ConflictAction::kPrimaryKey,
                           RecordLayout(table).Decode(BytesOf(rows[taken])));
}

absl::StatusOr<ResultSet> RecordChanges::Insert(const sql::InsertStatement& statement, const NextRow& next) {
  Inserting inserting(*this, statement);
  const std::vector<int> positions(statement.columns.size(), -1);
  while (true) {
    NAM_ASSIGN_OR_RETURN(std::optional<Row> row, next());
    if (!row.has_value()) return inserting.Finish();
    std::vector<std::optional<Value>> values(std::make_move_iterator(row->begin()),
                                             std::make_move_iterator(row->end()));
    NAM_RETURN_IF_ERROR(inserting.Add(std::move(values), positions));
  }
}

absl::StatusOr<RecordChanges::NextRow> RecordChanges::RowsOf(const sql::InsertStatement& statement,
                                                             const RunQuery& run_query) {
  NAM_ASSIGN_OR_RETURN(ResultSet source, run_query(std::move(*statement.source)));
  struct Rest {
    std::vector<Row> rows;
    size_t taken = 0;
  };
  const auto rest = std::make_shared<Rest>(Rest{std::move(source.rows)});
  return [rest]() -> absl::StatusOr<std::optional<Row>> {
    if (rest->taken == rest->rows.size()) return std::nullopt;
    return std::move(rest->rows[rest->taken++]);
  };
}

absl::StatusOr<ResultSet> RecordChanges::Insert(const sql::InsertStatement& statement) {
  Inserting inserting(*this, statement);
  for (const std::vector<ChangeValue>& row : statement.rows) {
    std::vector<std::optional<Value>> values;
    std::vector<int> positions;
    for (const ChangeValue& expr : row) {
      positions.push_back(expr.has_value() ? expr->position : -1);
      if (!expr.has_value()) {
        values.emplace_back();
        continue;
      }
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(*expr, sql::ValueResolver()));
      values.emplace_back(std::move(value));
    }
    NAM_RETURN_IF_ERROR(inserting.Add(std::move(values), positions));
  }
  return inserting.Finish();
}

sql::AccessPath RecordChanges::PathOf(const proto::Table& table, const std::vector<Expr>& conjuncts,
                                      uint64_t snapshot) {
  return sql::ChooseAccessPath(table, RecordLayout(table), conjuncts, {.snapshot = snapshot});
}

absl::Status RecordChanges::FindByPath(const proto::Table& table, const std::vector<Expr>& conjuncts,
                                       const OnFound& on_found) {
  const RecordLayout layout(table);
  const sql::AccessPath path = PathOf(table, conjuncts, access_.snapshot());
  size_t count = 0;
  const auto change = [&](std::span<const std::byte> bytes) -> absl::StatusOr<bool> {
    if (!layout.HasNumbers(bytes))
      return absl::DataLossError(absl::StrCat("table ", table.name(), " is damaged: a row holds no number"));
    Row row = layout.Decode(bytes);
    NAM_ASSIGN_OR_RETURN(const bool holds, HoldsAll(path.filter, sql::RowResolver(row)));
    if (!holds) return true;
    NAM_RETURN_IF_ERROR(access_.MayWrite(++count));
    NAM_RETURN_IF_ERROR(
        on_found({{reinterpret_cast<const char*>(bytes.data()), layout.key_bytes()}, std::move(row), {}}));
    return true;
  };
  return FollowPath(access_, cancelled_, table, path, change);
}

template <typename Change>
absl::Status RecordChanges::FindAll(const Change& of, const RunQuery& run_query, const OnFound& on_found) {
  const proto::Table& table = *of.table.table;
  if (of.source == nullptr) return FindByPath(table, of.conjuncts, on_found);
  const RecordLayout layout(table);
  size_t count = 0;
  NAM_ASSIGN_OR_RETURN(ResultSet rows, run_query(std::move(*of.source)));
  std::set<std::string> keys;
  const auto width = static_cast<std::ptrdiff_t>(table.columns_size());
  for (Row& all : rows.rows) {
    if (cancelled_) return absl::CancelledError("cancelled");
    Row row(std::make_move_iterator(all.begin()), std::make_move_iterator(all.begin() + width));
    std::string key = layout.Encode(row).substr(0, layout.key_bytes());
    // A row that several others match is changed once, by any of them.
    if (!keys.insert(key).second) continue;
    NAM_RETURN_IF_ERROR(access_.MayWrite(++count));
    NAM_RETURN_IF_ERROR(
        on_found({std::move(key),
                  std::move(row),
                  {std::make_move_iterator(all.begin() + width), std::make_move_iterator(all.end())}}));
  }
  return absl::OkStatus();
}

/// The row after SET; `returned`: the source's values for RETURNING.
absl::StatusOr<RecordChanges::Row> RecordChanges::ChangedRow(const sql::UpdateStatement& statement,
                                                             const Found& found, Row& returned) {
  const proto::Table& table = *statement.table.table;
  Row row = found.row;
  size_t next = 0;
  for (const ColumnAssignment& assignment : statement.assignments) {
    const auto column = static_cast<size_t>(assignment.column);
    absl::StatusOr<Value> value =
        !assignment.value.has_value() ? DefaultOf(table, assignment.column, statement.defaults[column])
        : statement.source != nullptr ? found.rest[next++]
                                      : plan::Evaluate(*assignment.value, sql::RowResolver(found.row));
    NAM_RETURN_IF_ERROR(value.status());
    NAM_ASSIGN_OR_RETURN(row[column],
                         partitioner::Assign(table, assignment.column, *std::move(value),
                                             assignment.value.has_value() ? assignment.value->position : -1));
  }
  NAM_RETURN_IF_ERROR(sql::Check(table, statement.checks, row));
  returned.assign(found.rest.begin() + static_cast<std::ptrdiff_t>(next), found.rest.end());
  return row;
}

absl::StatusOr<ResultSet> RecordChanges::Update(const sql::UpdateStatement& statement,
                                                const RunQuery& run_query) {
  const proto::Table& table = *statement.table.table;
  const RecordLayout layout(table);
  Returned returned(statement.returning);
  const bool references = HasReferences(statement.table);
  std::vector<std::string> before;  // keys
  std::vector<std::string> rows;
  std::vector<RowChange> changes;
  bool moved = false;
  NAM_RETURN_IF_ERROR(FindAll(statement, run_query, [&](Found one) -> absl::Status {
    Row rest;
    NAM_ASSIGN_OR_RETURN(const Row row, ChangedRow(statement, one, rest));
    NAM_RETURN_IF_ERROR(returned.Add(row, rest));
    rows.push_back(layout.Encode(row));
    if (references) changes.push_back({layout.Encode(one.row), rows.back()});
    moved = moved || rows.back().compare(0, layout.key_bytes(), one.key) != 0;
    before.push_back(std::move(one.key));
    return absl::OkStatus();
  }));
  const size_t count = rows.size();
  NAM_RETURN_IF_ERROR(moved ? MoveRows(table, std::move(before), rows) : access_.Update(table, rows));
  NAM_RETURN_IF_ERROR(CheckUnique(table, rows, [&](uint32_t column) {
    return std::any_of(statement.assignments.begin(), statement.assignments.end(),
                       [&](const ColumnAssignment& to) { return to.column == static_cast<int>(column); });
  }));
  NAM_RETURN_IF_ERROR(CheckReferences(statement.table, changes));
  return returned.Take(absl::StrCat("UPDATE ", count));
}

absl::Status RecordChanges::CheckReferences(const sql::BoundTable& table,
                                            std::span<const RowChange> changes) {
  if (changes.empty()) return absl::OkStatus();
  return ForeignKeys(access_, cancelled_, table).Check(changes);
}

/// Gives rows other keys, perhaps former keys of other rows of the statement.
absl::Status RecordChanges::MoveRows(const proto::Table& table, std::vector<std::string> before,
                                     std::span<const std::string> rows) {
  const RecordLayout layout(table);
  std::sort(before.begin(), before.end());
  std::map<std::string_view, const std::string*> change;  // rows by their new key
  for (const std::string& row : rows) {
    if (!change.emplace(std::string_view(row).substr(0, layout.key_bytes()), &row).second)
      return sql::DuplicateKey(table, sql::ConflictAction::kPrimaryKey, layout.Decode(BytesOf(row)));
  }
  std::vector<std::string> left, stay, come;
  for (const std::string& key : before) {
    if (!change.contains(key)) left.push_back(key);
  }
  NAM_RETURN_IF_ERROR(access_.Delete(table, left));
  for (const auto& [key, row] : change) {
    (std::binary_search(before.begin(), before.end(), key) ? stay : come).push_back(*row);
  }
  NAM_RETURN_IF_ERROR(InsertRows(table, come));
  return access_.Update(table, stay);
}

absl::StatusOr<ResultSet> RecordChanges::Delete(const sql::DeleteStatement& statement,
                                                const RunQuery& run_query) {
  const RecordLayout layout(*statement.table.table);
  const bool references = HasReferences(statement.table);
  Returned returned(statement.returning);
  std::vector<std::string> keys;
  std::vector<RowChange> changes;
  NAM_RETURN_IF_ERROR(FindAll(statement, run_query, [&](Found one) -> absl::Status {
    keys.push_back(std::move(one.key));
    if (references) changes.push_back({layout.Encode(one.row), {}});
    return returned.Add(one.row, one.rest);
  }));
  NAM_RETURN_IF_ERROR(access_.Delete(*statement.table.table, keys));
  NAM_RETURN_IF_ERROR(CheckReferences(statement.table, changes));
  return returned.Take(absl::StrCat("DELETE ", keys.size()));
}

}  // namespace nam::session
