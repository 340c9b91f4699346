#include <utility>

#include "absl/status/statusor.h"
#include "execution/expression/node.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

Value ValueAt(const Vector& vector, uint32_t position, const Type& type) {
  if (vector.null(position)) return Value::Null(type);
  Value value;
  value.type = type;
  value.null = false;
  if (vector.physical == Physical::kText) {
    value.text = std::string(vector.text[position]);
  } else {
    value.number = vector.number(position);
  }
  return value;
}

/// For one expression and chunk. A function makes up to 16 MiB a row, too much memory for 1,024 rows.
constexpr size_t kMostTextBytes = size_t{256} << 20;

absl::Status TextsTooLong(int position) {
  return UserError(sqlstate::kOutOfMemory, "texts that are computed take too much memory", position,
                   "1,024 rows of one expression have at most 256 MiB");
}

absl::Status NoMemoryForTexts(int position) {
  return UserError(sqlstate::kOutOfMemory,
                   "the texts that 1,024 rows of an expression make need more memory than the query may hold",
                   position, "raise nam.result_mib_max");
}

class ByRow final : public Node {
 public:
  /// Column i of `e` is child i.
  ByRow(plan::Expr e, Physical physical, const plan::Bounds& bounds, std::vector<NodePtr> children,
        MemoShare* memory)
      : Node(physical, bounds, std::move(children)), e_(std::move(e)), memory_(memory) {}
  Needs needs() const override {
    return {.value_bytes = WidthOf(physical()),
            .nulls = physical() != Physical::kTruth,
            .texts = physical() == Physical::kText};
  }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    if (rows.count == 0) return &Out(At(frame));
    std::vector<const Vector*> operands;
    for (const NodePtr& operand : children()) {
      operands.push_back(operand->Evaluate(frame, chunk, rows));
      if (operands.back() == nullptr) return nullptr;
    }
    Register& at = At(frame);
    Vector& out = Out(at);
    if (physical() != Physical::kTruth) out.nulls = at.nulls;
    uint32_t p = 0;
    size_t text_bytes = 0;
    const plan::Resolver resolve = [&](const plan::Expr& column) {
      return ValueAt(*operands[static_cast<size_t>(column.column.column)], p, column.type);
    };
    for (uint32_t i = 0; i < rows.count; ++i) {
      p = rows[i];
      absl::StatusOr<Value> value = plan::Evaluate(e_, resolve);
      if (!value.ok()) return FrameAccess::Fail(frame, value.status());
      text_bytes += value->text.size();
      if (text_bytes > kMostTextBytes) return FrameAccess::Fail(frame, TextsTooLong(e_.position));
      if (physical() == Physical::kText &&
          !at.text_bytes.Replace(at.texts[p].size(), value->text.size(), memory_))
        return FrameAccess::Fail(frame, NoMemoryForTexts(e_.position));
      Store(*std::move(value), p, at);
    }
    return &out;
  }

 private:
  void Store(Value value, uint32_t p, Register& at) const {
    Vector& out = at.vector;
    if (physical() == Physical::kTruth) {
      out.truth[p] = value.null ? kUnknown : value.number != 0;
      return;
    }
    out.nulls[p] = value.null;
    if (physical() == Physical::kText) {
      at.texts[p] = std::move(value.text);
      out.text[p] = at.texts[p];
    } else if (physical() == Physical::kInt64) {
      out.narrow[p] = value.null ? 0 : static_cast<int64_t>(value.number);
    } else {
      out.wide[p] = value.null ? 0 : value.number;
    }
  }
  const plan::Expr e_;
  MemoShare* const memory_;
};

}  // namespace

NodePtr MakeByRow(const plan::Expr& e, std::vector<NodePtr> children, MemoShare* memory) {
  Physical physical = PhysicalOf(e.type);
  plan::Bounds bounds;
  if (physical == Physical::kInt64 || physical == Physical::kInt128) {
    plan::Slot slot;
    slot.type = e.type;
    const bool to_integer = e.op == plan::Op::kCast && e.type.kind == TypeKind::kInteger;
    slot.type.precision = to_integer ? static_cast<uint8_t>(plan::IntegerBytes(e)) : 0;
    bounds = BoundsOf(slot);
    physical = NumberForm(bounds);
  }
  plan::Expr own;
  own.op = e.op;
  own.type = e.type;
  own.position = e.position;
  own.column = e.column;
  own.index = e.index;
  own.literal = e.literal;
  if (children.empty()) own.children = e.children;  // of a constant
  for (size_t i = 0; i < children.size(); ++i) {
    plan::Expr& column = own.children.emplace_back();
    column.op = plan::Op::kColumn;
    column.type = e.children[i].type;
    column.column.column = static_cast<int>(i);
  }
  return std::make_unique<ByRow>(std::move(own), physical, bounds, std::move(children), memory);
}

}  // namespace nam::execution
