#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "types/sql_type.h"
#include "types/value.h"

namespace nam::sql {

/// The parameters $1, $2, … of a statement being bound. Outlives the binding.
class Parameters {
 public:
  struct Parameter {
    Type type;                   // kNull: not known yet
    SqlType declared;            // by PREPARE; of integers, whose widths `type` does not tell
    std::optional<Value> value;  // nullopt while types are inferred: then it is a NULL
    bool occurs = false;
  };
  static constexpr int64_t kMost = 65'535;  // PostgreSQL's own bound

  /// The parameter of `number`, from 1 to kMost.
  Parameter& Get(int64_t number) {
    if (static_cast<size_t>(number) > list_.size()) list_.resize(static_cast<size_t>(number));
    return list_[static_cast<size_t>(number) - 1];
  }
  /// Takes a type from the context, the first one for all uses. False if it has a type of another kind.
  bool ResolveType(int64_t number, const Type& type) {
    Parameter& parameter = Get(number);
    if (parameter.type.kind != TypeKind::kNull) return parameter.type.kind == type.kind;
    parameter.type = type;
    parameter.type.length = 0;
    return true;
  }
  const std::vector<Parameter>& list() const { return list_; }
  /// Whether types are being inferred: then values are unknown.
  bool without_values() const {
    return std::any_of(list_.begin(), list_.end(), [](const Parameter& p) { return !p.value.has_value(); });
  }

 private:
  std::vector<Parameter> list_;
};

}  // namespace nam::sql
