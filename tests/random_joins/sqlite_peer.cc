#include "tests/random_joins/sqlite_peer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace nam::testing {
namespace {

constexpr int kStepsOfALook = 10'000;
constexpr size_t kIndexedRowsMin = 100;

bool IsText(const Type& type) {
  return type.kind == TypeKind::kString || type.kind == TypeKind::kDate;
}

void Bind(sqlite3_stmt* statement, int at, const Value& value) {
  if (value.null) {
    sqlite3_bind_null(statement, at);
  } else if (IsText(value.type)) {
    const std::string text = value.ToString();
    sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  } else if (value.type.kind == TypeKind::kDecimal) {
    sqlite3_bind_double(
        statement, at, static_cast<double>(value.number) / static_cast<double>(PowerOfTen(value.type.scale)));
  } else {
    sqlite3_bind_int64(statement, at, static_cast<int64_t>(value.number));
  }
}

std::string Cell(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return "NULL";
    case SQLITE_FLOAT:
      return CanonicalNumber(absl::StrFormat("%.9f", sqlite3_column_double(statement, column)));
    case SQLITE_INTEGER:
      return absl::StrCat(sqlite3_column_int64(statement, column));
    default:
      return reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  }
}

bool Close(const std::string& a, const std::string& b) {
  double x = 0, y = 0;
  if (!absl::SimpleAtod(a, &x) || !absl::SimpleAtod(b, &y)) return a == b;
  return std::abs(x - y) <= std::max(1e-6, 1e-9 * std::max(std::abs(x), std::abs(y)));
}

/// Rows in the order of the columns that are exact, then of the others by value.
TextRows SortedByExact(TextRows rows, const std::vector<bool>& approximate) {
  const auto number = [](const std::string& text) {
    double value = -INFINITY;
    return absl::SimpleAtod(text, &value) ? value : -INFINITY;
  };
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    for (size_t c = 0; c < a.size(); ++c) {
      if (!approximate[c] && a[c] != b[c]) return a[c] < b[c];
    }
    for (size_t c = 0; c < a.size(); ++c) {
      if (approximate[c] && number(a[c]) != number(b[c])) return number(a[c]) < number(b[c]);
    }
    return false;
  });
  return rows;
}

}  // namespace

SqlitePeer::SqlitePeer() {
  NAM_CHECK(sqlite3_open(":memory:", &database_) == SQLITE_OK);
  sqlite3_progress_handler(database_, kStepsOfALook, &SqlitePeer::Stop, this);
}

SqlitePeer::~SqlitePeer() {
  sqlite3_close(database_);
}

int SqlitePeer::Stop(void* self) {
  auto& peer = *static_cast<SqlitePeer*>(self);
  if (peer.steps_left_ < kStepsOfALook) return 1;
  peer.steps_left_ -= kStepsOfALook;
  return 0;
}

void SqlitePeer::Exec(const std::string& sql) {
  steps_left_ = UINT64_MAX;
  NAM_CHECK(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
            "SQLite refused a statement");
}

void SqlitePeer::Load(const SmallTable& table) {
  const std::string& name = table.schema.name;
  std::vector<std::string> columns, places;
  for (const auto& column : table.schema.columns) {
    const char* const affinity = IsText(column.type)                      ? "TEXT"
                                 : column.type.kind == TypeKind::kDecimal ? "REAL"
                                                                          : "INTEGER";
    columns.push_back(absl::StrCat(column.name, " ", affinity));
    places.emplace_back("?");
  }
  Exec(absl::StrCat("DROP TABLE IF EXISTS ", name));
  Exec(absl::StrCat("CREATE TABLE ", name, " (", absl::StrJoin(columns, ", "), ")"));
  Exec("BEGIN");
  const std::string insert = absl::StrCat("INSERT INTO ", name, " VALUES (", absl::StrJoin(places, ","), ")");
  sqlite3_stmt* statement = nullptr;
  NAM_CHECK(sqlite3_prepare_v2(database_, insert.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) Bind(statement, static_cast<int>(c) + 1, row[c]);
    NAM_CHECK(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
  }
  sqlite3_finalize(statement);
  Exec("COMMIT");
  if (table.rows.size() < kIndexedRowsMin) return;
  for (const auto& column : table.schema.columns) {
    if (column.type.kind != TypeKind::kBool)
      Exec(absl::StrCat("CREATE INDEX ", name, "_", column.name, " ON ", name, " (", column.name, ")"));
  }
  Exec("ANALYZE");
}

absl::StatusOr<TextRows> SqlitePeer::Run(const std::string& sql, uint64_t steps_max) {
  steps_left_ = steps_max;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return absl::InvalidArgumentError(absl::StrCat("SQLite: ", sqlite3_errmsg(database_)));
  TextRows rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW && rows.size() <= kRowsMax) {
    auto& row = rows.emplace_back();
    for (int c = 0; c < sqlite3_column_count(statement); ++c) row.push_back(Cell(statement, c));
  }
  const std::string message = sqlite3_errmsg(database_);
  sqlite3_finalize(statement);
  if (code == SQLITE_INTERRUPT || rows.size() > kRowsMax)
    return absl::ResourceExhaustedError("SQLite would take too long");
  if (code != SQLITE_DONE) return absl::OutOfRangeError(absl::StrCat("SQLite: ", message));
  return rows;
}

std::string CanonicalNumber(std::string number) {
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number == "-0" ? "0" : number;
}

TextRows Canonical(const session::ResultSet& result) {
  TextRows rows;
  rows.reserve(result.rows.size());
  for (const auto& row : result.rows) {
    auto& text = rows.emplace_back();
    for (const Value& value : row) {
      if (value.null) {
        text.emplace_back("NULL");
      } else if (value.type.kind == TypeKind::kBool) {
        text.emplace_back(value.number != 0 ? "1" : "0");
      } else if (value.type.kind == TypeKind::kString) {
        text.push_back(value.ToString());
        if (value.type.blank_padded) text.back().erase(text.back().find_last_not_of(' ') + 1);
      } else {
        text.push_back(value.type.kind == TypeKind::kDate ? value.ToString()
                                                          : CanonicalNumber(value.ToString()));
      }
    }
  }
  return rows;
}

bool SameRows(const TextRows& a, const TextRows& b, const std::vector<bool>& approximate) {
  if (a.size() != b.size()) return false;
  if (std::find(approximate.begin(), approximate.end(), true) == approximate.end())
    return a == b || Sorted(a) == Sorted(b);
  const TextRows x = SortedByExact(a, approximate), y = SortedByExact(b, approximate);
  for (size_t r = 0; r < x.size(); ++r) {
    if (x[r].size() != y[r].size()) return false;
    for (size_t c = 0; c < x[r].size(); ++c) {
      if (approximate[c] ? !Close(x[r][c], y[r][c]) : x[r][c] != y[r][c]) return false;
    }
  }
  return true;
}

std::string Differences(const TextRows& expected, const TextRows& actual, size_t most) {
  const TextRows a = Sorted(expected), b = Sorted(actual);
  std::string text = absl::StrFormat("SQLite has %d rows, the engine %d\n", a.size(), b.size());
  const auto add = [&](const char* whose, const TextRows& rows, const TextRows& others) {
    TextRows alone;
    std::set_difference(rows.begin(), rows.end(), others.begin(), others.end(), std::back_inserter(alone));
    for (size_t r = 0; r < std::min(most, alone.size()); ++r)
      absl::StrAppend(&text, "  ", whose, ": ", absl::StrJoin(alone[r], " | "), "\n");
    if (alone.size() > most) absl::StrAppend(&text, "  … ", alone.size() - most, " more of ", whose, "\n");
  };
  add("SQLite alone", a, b);
  add("the engine alone", b, a);
  return text;
}

}  // namespace nam::testing
