#include "sql/logical_with.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using plan::logical::CteScan;
using plan::logical::MakeColumn;
using plan::logical::MakeNode;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::With;

size_t CountScans(const plan::logical::Node& root, int cte) {
  const auto* scan = root.As<CteScan>();
  size_t scans = scan != nullptr && scan->cte == cte ? 1 : 0;
  for (const NodePtr& input : root.inputs) scans += CountScans(*input, cte);
  return scans;
}

/// Replaces its one scan by the definition.
void InlineScan(plan::logical::Node& root, int cte, NodePtr& definition) {
  if (const auto* scan = root.As<CteScan>(); scan != nullptr && scan->cte == cte) {
    Project project;
    for (const uint32_t field : scan->fields)
      project.outputs.push_back(MakeColumn(definition->columns[field]));
    root.op = std::move(project);
    root.inputs.push_back(std::move(definition));
    return;
  }
  for (NodePtr& input : root.inputs) {
    if (definition != nullptr) InlineScan(*input, cte, definition);
  }
}

}  // namespace

absl::Status WithBinder::Bind(const Node& with) {
  if (with.Flag("recursive")) {
    return Refusal("WITH RECURSIVE is not supported", with.text().Find({"recursive"}),
                   "leave RECURSIVE out if no query names itself");
  }
  NAM_RETURN_IF_ERROR(with.Only({"ctes"}));
  for (const Node& cte : with.List("ctes")) NAM_RETURN_IF_ERROR(BindOne(cte));
  return absl::OkStatus();
}

NodePtr WithBinder::Around(NodePtr body) {
  if (definitions_.empty()) return body;
  for (size_t i = definitions_.size(); i-- > 0;) {
    Definition& definition = definitions_[i];
    const int number = tables_.tables[i]->number;
    const size_t scans = CountScans(*body, number);
    if (scans == 0) continue;
    if (scans == 1 && !definition.materialized) {
      InlineScan(*body, number, definition.root);
    } else {
      body = MakeNode(With{number, tables_.tables[i]->name}, {}, std::move(definition.root), std::move(body));
    }
  }
  plan::logical::DeriveAllColumns(*body);
  return body;
}

absl::Status WithBinder::BindOne(const Node& cte) {
  const std::string name = cte.Text("ctename");
  const int position = cte.position();
  for (const auto& other : tables_.tables) {
    if (other->name != name) continue;
    return UserError(sqlstate::kDuplicateAlias,
                     absl::StrCat("WITH query name ", Quote(name), " is there twice"), position,
                     "give each its own name");
  }
  const Node query = cte.Field("ctequery");
  if (!query.Is("SelectStmt")) {
    return Refusal("statements in WITH that change rows are not supported", position, "write a SELECT");
  }
  NAM_RETURN_IF_ERROR(cte.Only({"ctename", "aliascolnames", "ctematerialized", "ctequery"}));
  NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context_, {level_, &tables_}, query));
  auto table = std::make_unique<CommonTable>();
  table->name = name;
  table->number = context_.ctes++;
  table->columns = tree.root->columns;
  NAM_RETURN_IF_ERROR(RenameColumns(cte.Names("aliascolnames"), name, position, table->columns));
  tables_.tables.push_back(std::move(table));
  definitions_.push_back({std::move(tree.root), cte.Text("ctematerialized") == "CTEMaterializeAlways"});
  return absl::OkStatus();
}

}  // namespace nam::sql
