#include "tests/cluster/oracle.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::testing {

TextRows Sorted(TextRows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

TextRows ToText(const session::ResultSet& result) {
  TextRows rows;
  for (const auto& row : result.rows) {
    auto& text = rows.emplace_back();
    for (const Value& value : row) {
      // SQLite has no booleans.
      text.push_back(!value.null && value.type.kind == TypeKind::kBool ? (value.number != 0 ? "1" : "0")
                                                                       : value.ToString());
    }
  }
  return rows;
}

absl::Status Load(catalog::Attachment& attachment, const SmallTable& table,
                  const partitioner::LoadOptions& options) {
  NAM_ASSIGN_OR_RETURN(auto loader, partitioner::BeginLoad(attachment, table.schema, options));
  constexpr size_t kBatchRows = 97;  // several batches even for small tables
  for (size_t first = 0; first < table.rows.size(); first += kBatchRows) {
    const size_t rows = std::min(kBatchRows, table.rows.size() - first);
    partitioner::ColumnBatch batch(table.schema.columns.size());
    batch.set_rows(rows);
    for (size_t c = 0; c < table.schema.columns.size(); ++c) {
      auto& column = batch.column(c);
      for (size_t r = first; r < first + rows; ++r) {
        const Value& value = table.rows[r][c];
        const partitioner::Form form = partitioner::FormOf(table.schema.columns[c].type);
        if (value.null) {
          column.PushNull(form, r - first);
        } else {
          column.Push(form, value.number, batch.Keep(value.text));
        }
      }
    }
    NAM_RETURN_IF_ERROR(loader->Append(batch));
  }
  return loader->Commit().status();
}

SqliteOracle::SqliteOracle() {
  NAM_CHECK(sqlite3_open(":memory:", &database_) == SQLITE_OK);
  Exec("PRAGMA case_sensitive_like = ON");
}
SqliteOracle::~SqliteOracle() {
  sqlite3_close(database_);
}

void SqliteOracle::Exec(const std::string& sql) {
  NAM_CHECK(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
            "SQLite refused a statement");
}

void SqliteOracle::Load(const SmallTable& table) {
  std::string create = "CREATE TABLE " + table.schema.name + " (",
              insert = "INSERT INTO " + table.schema.name + " VALUES (";
  for (const auto& column : table.schema.columns) {
    const bool text = column.type.kind == TypeKind::kString || column.type.kind == TypeKind::kDate;
    create += (create.back() == '(' ? "" : ", ") + column.name + (text ? " TEXT" : " INTEGER");
    insert += insert.back() == '(' ? "?" : ", ?";
  }
  Exec("DROP TABLE IF EXISTS " + table.schema.name);
  Exec(create + ")");
  Exec("BEGIN");
  sqlite3_stmt* statement = nullptr;
  NAM_CHECK(sqlite3_prepare_v2(database_, (insert + ")").c_str(), -1, &statement, nullptr) == SQLITE_OK);
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const int at = static_cast<int>(c) + 1;
      if (row[c].null) {
        sqlite3_bind_null(statement, at);
      } else if (row[c].type.kind == TypeKind::kString || row[c].type.kind == TypeKind::kDate) {
        const std::string text = row[c].ToString();
        sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
      } else {
        sqlite3_bind_int64(statement, at, static_cast<int64_t>(row[c].number));
      }
    }
    NAM_CHECK(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
  }
  sqlite3_finalize(statement);
  Exec("COMMIT");
}

absl::StatusOr<TextRows> SqliteOracle::Run(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return absl::InvalidArgumentError(std::string("SQLite: ") + sqlite3_errmsg(database_));
  }
  TextRows rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    auto& row = rows.emplace_back();
    for (int c = 0; c < sqlite3_column_count(statement); ++c) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, c));
      row.push_back(text == nullptr ? "NULL" : text);
    }
  }
  sqlite3_finalize(statement);
  return rows;
}

}  // namespace nam::testing
