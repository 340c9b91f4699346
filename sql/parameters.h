#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "types/value.h"

namespace nam::sql {

/// What $1, $2, … mean while a statement is bound. Outlives the binding.
class Parameters {
 public:
  struct Parameter {
    Type type;                   // kNull: not known yet
    std::optional<Value> value;  // nothing while types are found: then it is a NULL
    bool occurs = false;
  };
  static constexpr int64_t kMost = 65'535;  // PostgreSQL's own bound

  /// The parameter of `number`, from 1 to kMost.
  Parameter& Get(int64_t number) {
    if (static_cast<size_t>(number) > list_.size()) list_.resize(static_cast<size_t>(number));
    return list_[static_cast<size_t>(number) - 1];
  }
  /// Its surroundings give it a type, the first ones for all. False if it has a type of another kind.
  bool Settle(int64_t number, const Type& type) {
    Parameter& parameter = Get(number);
    if (parameter.type.kind != TypeKind::kNull) return parameter.type.kind == type.kind;
    parameter.type = type;
    parameter.type.length = 0;
    return true;
  }
  const std::vector<Parameter>& list() const { return list_; }
  /// Whether types are being found: what a parameter's value decides is not known.
  bool without_values() const {
    return std::any_of(list_.begin(), list_.end(), [](const Parameter& p) { return !p.value.has_value(); });
  }

 private:
  std::vector<Parameter> list_;
};

}  // namespace nam::sql
