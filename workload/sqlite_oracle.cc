#include "workload/sqlite_oracle.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam {
namespace {

constexpr int kInstructionsBetweenChecks = 100'000;

int IsCancelled(void* flag) {
  return static_cast<const std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

bool InWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool Mentions(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !InWord(text[at - 1])) && (end == text.size() || !InWord(text[end]))) return true;
  }
  return false;
}

Value ColumnValue(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return Value::Null();
    case SQLITE_INTEGER:
      return Value::Integer(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return Value::Double(sqlite3_column_double(statement, column));
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return Value::String(std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column))));
    }
  }
}

std::vector<std::vector<std::string>> SortedText(const SqliteOracle::Rows& rows) {
  std::vector<std::vector<std::string>> text;
  for (const std::vector<Value>& row : rows) {
    std::vector<std::string>& line = text.emplace_back();
    for (const Value& value : row) line.push_back(value.null ? std::string("\0", 1) : value.ToString());
  }
  std::sort(text.begin(), text.end());
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteOracle>> SqliteOracle::Open(const std::atomic<bool>* cancelled) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(":memory:", &database,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteOracle> oracle(new SqliteOracle(database));
  if (code != SQLITE_OK) return oracle->Error("cannot open");
  if (cancelled != nullptr) {
    sqlite3_progress_handler(database, kInstructionsBetweenChecks, &IsCancelled,
                             const_cast<std::atomic<bool>*>(cancelled));
  }
  NAM_RETURN_IF_ERROR(oracle->Execute("PRAGMA case_sensitive_like = ON"));
  NAM_RETURN_IF_ERROR(oracle->Execute("BEGIN"));
  return oracle;
}

SqliteOracle::~SqliteOracle() {
  for (auto& [name, table] : tables_) sqlite3_finalize(table.insert);
  sqlite3_close(database_);
}

absl::Status SqliteOracle::Error(const std::string& what) const {
  if (sqlite3_errcode(database_) == SQLITE_INTERRUPT) return absl::CancelledError("interrupted");
  return absl::InternalError(
      absl::StrCat("SQLite, which checks the answers: ", what, ": ", sqlite3_errmsg(database_)));
}

absl::Status SqliteOracle::Execute(const std::string& sql) {
  return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                                      : Error(sql);
}

absl::Status SqliteOracle::CreateTable(const partitioner::TableSchema& schema,
                                       const std::vector<std::string>& queries, const std::string& key) {
  const MutexLock lock(mutex_);
  Table& table = tables_[schema.name];
  std::string names, marks;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const partitioner::ColumnSchema& column = schema.columns[i];
    const bool wanted = std::any_of(queries.begin(), queries.end(),
                                    [&](const std::string& q) { return Mentions(q, column.name); });
    if (!wanted) continue;
    if (column.type.kind != TypeKind::kInteger && column.type.kind != TypeKind::kString &&
        column.type.kind != TypeKind::kDate && column.type.kind != TypeKind::kDecimal) {
      return absl::UnimplementedError(
          absl::StrCat(column.name, " is a ", TypeName(column.type), ", which SQLite has not"));
    }
    table.columns.push_back(i);
    table.types.push_back(column.type);
    table.names.push_back(column.name);
    absl::StrAppend(&names, names.empty() ? "\"" : ", \"", column.name,
                    column.name == key ? "\" INTEGER PRIMARY KEY" : "\"");
    marks += marks.empty() ? "?" : ", ?";
  }
  if (table.columns.empty()) return absl::OkStatus();  // unused by the queries
  NAM_RETURN_IF_ERROR(Execute(absl::StrCat("CREATE TABLE \"", schema.name, "\" (", names, ")")));
  const std::string insert = absl::StrCat("INSERT INTO \"", schema.name, "\" VALUES (", marks, ")");
  const int code =
      sqlite3_prepare_v3(database_, insert.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &table.insert, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(insert);
}

void SqliteOracle::Bind(const Table& table, const partitioner::ColumnBatch& batch, size_t row) const {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const partitioner::ColumnBatch::Column& column = batch.column(table.columns[i]);
    const int at = static_cast<int>(i) + 1;
    if (!column.nulls.empty() && column.nulls[row] != 0) {
      sqlite3_bind_null(table.insert, at);
    } else if (!column.strings.empty()) {
      const std::string_view text = column.strings[row];
      sqlite3_bind_text(table.insert, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    } else if (table.types[i].kind == TypeKind::kDecimal) {
      sqlite3_bind_double(table.insert, at,
                          static_cast<double>(column.numbers[row]) / std::pow(10.0, table.types[i].scale));
    } else if (table.types[i].kind == TypeKind::kDate) {
      const std::string text = Value::Date(column.numbers[row]).ToString();
      sqlite3_bind_text(table.insert, at, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    } else {
      sqlite3_bind_int64(table.insert, at, column.numbers[row]);
    }
  }
}

absl::Status SqliteOracle::Append(const std::string& name, const partitioner::ColumnBatch& batch) {
  const MutexLock lock(mutex_);
  const auto found = tables_.find(name);
  NAM_CHECK(found != tables_.end());
  const Table& table = found->second;
  if (table.insert == nullptr) return absl::OkStatus();
  for (size_t row = 0; row < batch.rows(); ++row) {
    Bind(table, batch, row);
    const int code = sqlite3_step(table.insert);
    sqlite3_reset(table.insert);
    if (code != SQLITE_DONE) return Error(absl::StrCat("cannot insert into ", name));
  }
  return absl::OkStatus();
}

absl::Status SqliteOracle::CreateIndex(const std::string& name, const std::string& column) {
  const MutexLock lock(mutex_);
  const auto found = tables_.find(name);
  NAM_CHECK(found != tables_.end());
  if (std::find(found->second.names.begin(), found->second.names.end(), column) == found->second.names.end())
    return absl::OkStatus();
  return Execute(absl::StrCat("CREATE INDEX \"by_", column, "\" ON \"", name, "\" (\"", column, "\")"));
}

absl::Status SqliteOracle::Commit() {
  return Execute("COMMIT");
}

absl::StatusOr<SqliteOracle::Rows> SqliteOracle::Run(const std::string& sql) {
  const MutexLock lock(mutex_);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return Error(sql);
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> owner(statement, &sqlite3_finalize);
  Rows rows;
  int code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    std::vector<Value>& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) row.push_back(ColumnValue(statement, i));
  }
  if (code != SQLITE_DONE) return Error(sql);
  return rows;
}

bool SameRows(const SqliteOracle::Rows& a, const SqliteOracle::Rows& b) {
  return a.size() == b.size() && SortedText(a) == SortedText(b);
}

namespace {

struct Cell {
  std::string text;
  std::optional<double> number;
  int decimals = 0;
};

/// Digits after the point; none for 1.5e-7.
int DecimalsOf(const std::string& text) {
  const size_t point = text.find('.');
  if (point == std::string::npos || text.find_first_of("eE") != std::string::npos) return 0;
  return static_cast<int>(text.size() - point - 1);
}

/// A number if the whole text is one, as other systems write them.
Cell CellOf(const Value& value) {
  if (value.null) return {.text = std::string("\0", 1)};
  Cell cell{.text = value.ToString()};
  char* end = nullptr;
  const double number = std::strtod(cell.text.c_str(), &end);
  if (!cell.text.empty() && end == cell.text.c_str() + cell.text.size() && std::isfinite(number))
    cell.number = number;
  cell.decimals = DecimalsOf(cell.text);
  return cell;
}

using Cells = std::vector<Cell>;

/// Orders by texts first, because nearly equal numbers may come in either order.
bool Before(const Cells& a, const Cells& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!a[i].number && !b[i].number && a[i].text != b[i].text) return a[i].text < b[i].text;
  }
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i].number && b[i].number && *a[i].number != *b[i].number) return *a[i].number < *b[i].number;
  }
  return a.size() < b.size();
}

std::vector<Cells> SortedCells(const SqliteOracle::Rows& rows) {
  std::vector<Cells> sorted;
  for (const std::vector<Value>& row : rows) {
    Cells& cells = sorted.emplace_back();
    for (const Value& value : row) cells.push_back(CellOf(value));
  }
  std::sort(sorted.begin(), sorted.end(), &Before);
  return sorted;
}

bool SameCell(double tolerance, const Cell& a, const Cell& b) {
  if (!a.number || !b.number) return a.text == b.text;
  constexpr int kRoundedDecimalsMin = 6;
  const double difference = std::abs(*a.number - *b.number);
  if (difference <= tolerance * std::max(std::abs(*a.number), std::abs(*b.number))) return true;
  const int decimals = std::min(a.decimals, b.decimals);
  return decimals >= kRoundedDecimalsMin && difference < std::pow(10.0, -decimals);
}

}  // namespace

bool SameRowsTo(int digits, const SqliteOracle::Rows& a, const SqliteOracle::Rows& b) {
  if (a.size() != b.size()) return false;
  const double tolerance = std::pow(10.0, -digits);
  const std::vector<Cells> ours = SortedCells(a), theirs = SortedCells(b);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), [&](const Cells& x, const Cells& y) {
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(),
                      [&](const Cell& p, const Cell& q) { return SameCell(tolerance, p, q); });
  });
}

}  // namespace nam
