#include <algorithm>

#include "absl/strings/str_cat.h"
#include "sql/select_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

absl::Status RefuseSetOperation(const Node& select) {
  const std::string op = select.Text("op");
  struct {
    const char *op, *word, *name;
  } constexpr kOperations[] = {{"SETOP_UNION", "union", "UNION"},
                               {"SETOP_INTERSECT", "intersect", "INTERSECT"},
                               {"SETOP_EXCEPT", "except", "EXCEPT"}};
  for (const auto& operation : kOperations) {
    if (op == operation.op) {
      // Between its two sides: of several in a row this node is the last one.
      const int right = select.Field("rarg").Leftmost();
      return Refusal(absl::StrCat(operation.name, " is not supported"),
                     select.text().FindBefore(operation.word, right),
                     "run the two queries one after the other");
    }
  }
  return Refusal("this combination of queries is not supported", select.text().Start());
}

absl::Status RefuseLocking(const Node& select) {
  const SqlText& text = select.text();
  for (const char* word : {"update", "share", "no", "key"}) {
    if (const int position = text.Find({"for", word}); position >= 0) {
      return Refusal("FOR UPDATE and FOR SHARE are not supported", position,
                     "a query reads one snapshot anyway");
    }
  }
  return Refusal("locking clauses are not supported", text.Start());
}

absl::Status RefuseDistinctOn(const Node& select) {
  for (const Node& expression : select.List("distinctClause")) {
    if (!expression.kind().empty()) {
      return Refusal("DISTINCT ON is not supported", select.text().Find({"distinct", "on"}),
                     "use GROUP BY with min or max");
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseGroupingSets(const Node& select) {
  const SqlText& text = select.text();
  if (select.Flag("groupDistinct")) {
    const int group = text.Find({"group", "by", "distinct"});
    return Refusal("GROUP BY DISTINCT is not supported", text.Find({"distinct"}, group),
                   "leave DISTINCT out");
  }
  for (const Node& item : select.List("groupClause")) {
    if (!item.Is("GroupingSet")) continue;
    const std::string kind = item.Text("kind");
    const char* name = kind == "GROUPING_SET_ROLLUP"  ? "ROLLUP"
                       : kind == "GROUPING_SET_CUBE"  ? "CUBE"
                       : kind == "GROUPING_SET_EMPTY" ? "GROUP BY ()"
                                                      : "GROUPING SETS";
    return Refusal(absl::StrCat(name, " is not supported"), item.position(),
                   "run one query for each grouping");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RefuseSelectClauses(const Node& select) {
  const SqlText& text = select.text();
  if (select.Has("withClause")) {
    return Refusal("WITH is not supported", text.Find({"with"}), "write the query as a join");
  }
  if (select.Text("op") != "SETOP_NONE") return RefuseSetOperation(select);
  if (select.Has("valuesLists"))
    return Refusal("VALUES is not supported", text.Find({"values"}), "select from a table");
  if (select.Has("intoClause")) return Refusal("SELECT INTO is not supported", text.Find({"into"}));
  if (select.Has("windowClause")) {
    return Refusal("window functions are not supported", text.Find({"window"}), "use GROUP BY");
  }
  if (select.Has("lockingClause")) return RefuseLocking(select);
  if (select.Text("limitOption") == "LIMIT_OPTION_WITH_TIES") {
    return Refusal("FETCH … WITH TIES is not supported", text.Find({"with", "ties"}), "use ONLY, or LIMIT");
  }
  if (absl::Status status = RefuseDistinctOn(select); !status.ok()) return status;
  if (absl::Status status = RefuseGroupingSets(select); !status.ok()) return status;
  if (!select.Has("fromClause")) {
    return Refusal("SELECT without FROM is not supported", text.Find({"select"}), "select from a table");
  }
  if (!select.Has("targetList")) {
    return Refusal("SELECT without columns is not supported", text.Find({"select"}),
                   "name columns, or write *");
  }
  return select.Only({"distinctClause", "targetList", "fromClause", "whereClause", "groupClause",
                      "havingClause", "sortClause", "limitOffset", "limitCount", "limitOption", "op"});
}

}  // namespace nam::sql
