#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// CREATE TABLE and COPY of columnar tables. A table is loaded as a whole: COPY makes a table with the rows
/// and puts it in the place of the empty one, all at once or not at all.
class ColumnarTables {
 public:
  using Report = std::function<void(const QueryProgress&)>;
  /// Borrows both; `cancelled` ends a COPY.
  ColumnarTables(catalog::Attachment& attachment, const std::atomic<bool>& cancelled)
      : attachment_(attachment), cancelled_(cancelled) {}

  /// 42P07 if there is one of its name.
  absl::StatusOr<ResultSet> Create(const sql::CreateTableStatement& statement);
  /// 40001 if the table has been loaded, or dropped, meanwhile. `report`: on a thread of its own; may be
  /// empty.
  absl::StatusOr<ResultSet> Copy(const sql::CopyStatement& statement, const Report& report);

 private:
  catalog::Attachment& attachment_;
  const std::atomic<bool>& cancelled_;
};

}  // namespace nam::session
