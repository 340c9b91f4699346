#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/expression_binder.h"
#include "types/sql_error.h"

/// ANY and ALL over arrays: lists of values written as ARRAY[…], as a text, or given as a parameter.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::MakeLiteral;
using plan::Op;

constexpr size_t kMostElements = 100'000;

constexpr QuantifiedComparison kComparisons[] = {
    {"=", Op::kEqual, Op::kNotEqual},    {"<>", Op::kNotEqual, Op::kEqual},
    {"<", Op::kLess, Op::kGreaterEqual}, {"<=", Op::kLessEqual, Op::kGreater},
    {">", Op::kGreater, Op::kLessEqual}, {">=", Op::kGreaterEqual, Op::kLess},
};

/// Parses `{a,"b c",NULL}`.
class ArrayReader {
 public:
  ArrayReader(const std::string& text, int position) : text_(text), position_(position) {}

  absl::StatusOr<std::vector<std::optional<std::string>>> Read() {
    std::vector<std::optional<std::string>> elements;
    SkipBlanks();
    if (!Consume('{')) return Malformed();
    SkipBlanks();
    if (!Consume('}')) {
      do {
        SkipBlanks();
        if (At('{')) return Refusal("arrays of arrays are not supported", position_, "list the values");
        std::optional<std::string> element;
        NAM_RETURN_IF_ERROR(Element(element));
        if (elements.size() == kMostElements)
          return UserError(sqlstate::kTooComplex, "the array has too many elements", position_,
                           absl::StrCat("at most ", kMostElements));
        elements.push_back(std::move(element));
        SkipBlanks();
      } while (Consume(','));
      if (!Consume('}')) return Malformed();
    }
    SkipBlanks();
    if (at_ < text_.size()) return Malformed();
    return elements;
  }

 private:
  absl::Status Malformed() const {
    return UserError(sqlstate::kBadText, absl::StrCat("malformed array literal: ", Quote(text_)), position_,
                     "an array is written as {1,2,3}");
  }
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool Consume(char c) {
    if (!At(c)) return false;
    ++at_;
    return true;
  }
  void SkipBlanks() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  absl::Status Element(std::optional<std::string>& out) {
    std::string element;
    if (Consume('"')) {
      while (!At('"')) {
        if (At('\\')) ++at_;
        if (at_ >= text_.size()) return Malformed();
        element.push_back(text_[at_++]);
      }
      ++at_;
      out = std::move(element);
      return absl::OkStatus();
    }
    size_t end = 0;  // after the last character that is not blank
    bool escaped = false;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}') {
      if (At('"') || At('{')) return Malformed();
      if (At('\\')) {
        escaped = true;
        ++at_;
        if (at_ >= text_.size()) return Malformed();
        element.push_back(text_[at_++]);
        end = element.size();
        continue;
      }
      element.push_back(text_[at_]);
      if (!absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) end = element.size();
      ++at_;
    }
    if (end == 0) return Malformed();
    element.resize(end);
    if (escaped || absl::AsciiStrToLower(element) != "null") out = std::move(element);
    return absl::OkStatus();
  }

  const std::string& text_;
  const int position_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<QuantifiedComparison> QuantifiedComparisonOf(const std::vector<std::string>& name,
                                                            int position) {
  for (const QuantifiedComparison& known : kComparisons) {
    if (name.size() == 1 && name[0] == known.name) return known;
  }
  return Refusal(
      absl::StrCat("operator ", name.empty() ? "" : name.back(), " with ANY and ALL is not supported"),
      position, "operators are = <> < <= > >=");
}

absl::StatusOr<std::vector<std::optional<std::string>>> ArrayElements(const std::string& text, int position) {
  return ArrayReader(text, position).Read();
}

/// `a op ANY (…)`, `a op ALL (…)` over ARRAY[…], a text or a parameter, of which the last two may have a
/// type.
absl::StatusOr<Expr> ExpressionBinder::Listed(const Node& node, const Context& context) {
  Node array = node.Field("rexpr"), type_name;
  const int position = array.position();
  NAM_ASSIGN_OR_RETURN(Expr a, Expression(node.Field("lexpr"), context));
  if (array.Is("TypeCast") && array.Field("typeName").Has("arrayBounds")) {
    type_name = array.Field("typeName");
    array = array.Field("arg");
  }
  std::vector<Expr> items;
  if (array.Is("A_ArrayExpr")) {
    for (const Node& element : array.List("elements")) {
      NAM_ASSIGN_OR_RETURN(Expr item, Expression(element, context));
      items.push_back(std::move(item));
    }
    if (items.empty() && !type_name)
      return UserError(sqlstate::kUnknownType, "the type of an empty array is not known", position,
                       "list a value");
  } else {
    NAM_ASSIGN_OR_RETURN(Expr text, Expression(array, context));
    NAM_RETURN_IF_ERROR(builder_.ResolveType(text, Type::String()));
    if (!array.Is("ParamRef") && !array.Is("A_Const"))
      return Refusal("arrays are not supported", position, "list the values with IN (…)");
    if (text.type.kind != TypeKind::kString) {
      return UserError(sqlstate::kWrongObjectType, "op ANY/ALL (array) requires array on right side",
                       position, "write '{1,2,3}', or IN (…)");
    }
    if (text.literal.null) return MakeLiteral(Value::Null(Type::Bool()), position);
    NAM_ASSIGN_OR_RETURN(const auto elements, ArrayElements(text.literal.text, position));
    for (const std::optional<std::string>& element : elements) {
      items.push_back(element ? ExpressionBuilder::UntypedString(*element, position)
                              : ExpressionBuilder::UntypedNull(position));
    }
  }
  if (type_name) {
    for (Expr& item : items) {
      NAM_ASSIGN_OR_RETURN(const CastTarget target, ElementTypeOfName(type_name, item));
      NAM_ASSIGN_OR_RETURN(item, builder_.Cast(std::move(item), target.type, position, target.width));
    }
  } else if (array.Is("A_ArrayExpr")) {
    std::vector<Expr*> all;
    for (Expr& item : items) all.push_back(&item);
    if (ExpressionBuilder::IsUntyped(a)) all.push_back(&a);
    NAM_RETURN_IF_ERROR(builder_.Unify(all, "ARRAY"));
  }
  return ComparedWithItems(node, std::move(a), std::move(items));
}

absl::StatusOr<Expr> ExpressionBinder::ComparedWithItems(const Node& node, Expr a, std::vector<Expr> items) {
  const int position = node.position();
  const bool any = node.Text("kind") == "AEXPR_OP_ANY";
  NAM_ASSIGN_OR_RETURN(const QuantifiedComparison comparison,
                       QuantifiedComparisonOf(node.Names("name"), position));
  const Op op = comparison.op;
  if (op == (any ? Op::kEqual : Op::kNotEqual)) {
    NAM_ASSIGN_OR_RETURN(Expr in, builder_.In(std::move(a), std::move(items), position));
    return any ? std::move(in) : builder_.Not(std::move(in), position);
  }
  for (Expr& item : items) {
    NAM_ASSIGN_OR_RETURN(Expr copy, builder_.Duplicate(a));
    NAM_ASSIGN_OR_RETURN(item, builder_.Compare(op, std::move(copy), std::move(item), position));
  }
  if (items.size() == 1) return std::move(items[0]);
  return builder_.Junction(any ? Op::kOr : Op::kAnd, std::move(items), position);
}

}  // namespace nam::sql
