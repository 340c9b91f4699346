#include "session/file_tables.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::session {
namespace {

std::vector<std::string> ColumnsOf(const proto::Table& table) {
  std::vector<std::string> columns;
  for (const proto::Column& column : table.columns())
    columns.push_back(absl::StrCat(column.name(), " ", column.type().SerializeAsString()));
  return columns;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const proto::Table>> FileTables::Load(const sql::CopyStatement& files,
                                                                     const ColumnarTables::Report& report) {
  std::vector<std::string> columns = ColumnsOf(*files.insert.table.table);
  for (const Entry& entry : loaded_) {
    if (entry.path == files.path && entry.dialect == files.dialect && entry.files == files.files &&
        entry.columns == columns)
      return entry.loaded.table;
  }
  NAM_ASSIGN_OR_RETURN(ColumnarTables::Loaded loaded, columnar_.LoadUncommitted(files, report));
  std::shared_ptr<const proto::Table> table = loaded.table;
  loaded_.push_back({files.path, files.dialect, files.files, std::move(columns), std::move(loaded)});
  return table;
}

}  // namespace nam::session
