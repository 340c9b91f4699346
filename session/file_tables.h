#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"
#include "proto/table.pb.h"
#include "session/columnar_tables.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Tables of the files that a statement names in its FROM. Each is a load that is never committed: it lies in
/// memory servers, compute servers learn of it with their part of the query, and it ends with the statement
/// or with the client's lease. Files that a statement names twice are read once.
class FileTables {
 public:
  explicit FileTables(ColumnarTables& columnar) : columnar_(columnar) {}

  absl::StatusOr<std::shared_ptr<const proto::Table>> Load(const sql::CopyStatement& files,
                                                           const ColumnarTables::Report& report);
  bool empty() const { return loaded_.empty(); }
  /// Called at the statement's end.
  void Clear() { loaded_.clear(); }

 private:
  struct Entry {
    std::string path;
    csv::Dialect dialect;
    std::vector<csv::SniffedFile> files;
    std::vector<std::string> columns;  // names and types
    ColumnarTables::Loaded loaded;
  };
  ColumnarTables& columnar_;
  std::vector<Entry> loaded_;
};

}  // namespace nam::session
