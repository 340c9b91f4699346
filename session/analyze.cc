#include "session/analyze.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

struct Counts {
  uint64_t rows = 0, values = 0, distinct = 0;
};

}  // namespace

absl::StatusOr<ResultSet> Analyze(const sql::AnalyzeStatement& statement, catalog::Client& catalog,
                                  const std::function<absl::StatusOr<ResultSet>(const std::string&)>& run) {
  for (const sql::AnalyzedTable& analyzed : statement.tables) {
    const proto::Table& table = *analyzed.table;
    const std::string from =
        absl::StrCat(" FROM ", Quoted(SchemaOfName(table.name())), ".", Quoted(BareName(table.name())));
    proto::ChangeCatalogRequest request;
    request.mutable_alter()->set_expected_version(table.version());
    proto::Table& now = *request.mutable_alter()->mutable_table();
    now = table;
    for (const int c : analyzed.columns) {
      const std::string name = Quoted(table.columns(c).name());
      NAM_ASSIGN_OR_RETURN(const ResultSet counted, run(absl::StrCat("SELECT count(*), count(", name,
                                                                     "), count(DISTINCT ", name, ")", from)));
      const auto number = [&](size_t i) { return static_cast<uint64_t>(counted.rows[0][i].number); };
      const Counts counts{number(0), number(1), number(2)};
      proto::Column& column = *now.mutable_columns(c);
      column.set_distinct(counts.distinct);
      if (table.has_record()) continue;
      column.set_unique(counts.distinct == counts.rows);
      column.set_nulls(counts.rows - counts.values);
    }
    const absl::Status changed = catalog.ChangeCatalog(request).status();
    if (absl::IsAborted(changed) || absl::IsNotFound(changed)) {
      return ToStatus(
          {.message = absl::StrCat("table ", Quote(table.name()), " was changed while it was analyzed"),
           .hint = "run it again",
           .sqlstate = sqlstate::kSerializationFailure});
    }
    NAM_RETURN_IF_ERROR(changed);
  }
  ResultSet result;
  result.command = "ANALYZE";
  return result;
}

}  // namespace nam::session
