#pragma once

#include <sqlite3.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "partitioner/loader.h"
#include "partitioner/table_schema.h"
#include "session/session.h"
#include "types/value.h"

namespace nam::testing {

/// Rows as text, for comparisons between systems; NULL is `NULL`.
using TextRows = std::vector<std::vector<std::string>>;
TextRows Sorted(TextRows rows);
TextRows ToText(const session::ResultSet& result);

/// A small table held by the test, to be loaded into both systems.
struct SmallTable {
  partitioner::TableSchema schema;
  std::vector<std::vector<Value>> rows;
};
absl::Status Load(catalog::Attachment& attachment, const SmallTable& table,
                  const partitioner::LoadOptions& options);

/// SQLite with the same data. Dates are ISO text and LIKE distinguishes case, so that one SQL text means the
/// same.
class SqliteOracle {
 public:
  SqliteOracle();
  ~SqliteOracle();
  void Load(const SmallTable& table);
  absl::StatusOr<TextRows> Run(const std::string& sql);

 private:
  void Exec(const std::string& sql);
  sqlite3* database_ = nullptr;
};

}  // namespace nam::testing
