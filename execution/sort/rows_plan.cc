#include "execution/sort/rows_plan.h"

#include <utility>

#include "base/status_macros.h"
#include "plan/expression.h"

namespace nam::execution {

absl::StatusOr<std::unique_ptr<const RowsPlan>> RowsPlan::Make(const plan::Schema& schema,
                                                               uint32_t page_bytes) {
  std::vector<plan::Expr> slots;
  for (size_t i = 0; i < schema.size(); ++i) {
    plan::Expr& slot = slots.emplace_back();
    slot.op = plan::Op::kColumn;
    slot.type = schema[i].type;
    slot.column = {0, static_cast<int>(i)};
  }
  NAM_ASSIGN_OR_RETURN(RowLayout layout, RowLayout::Of(schema, page_bytes));
  std::unique_ptr<RowsPlan> made(new RowsPlan(std::move(layout)));
  made->schema_ = schema;
  NAM_ASSIGN_OR_RETURN(made->slots_, Program::Compile(slots, schema));
  return made;
}

}  // namespace nam::execution
