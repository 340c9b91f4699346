#pragma once

#include "sql/logical_select.h"

namespace nam::sql {

/// Remembers which clause a select binds, and restores it.
class SavedPlace {
 public:
  SavedPlace(LogicalSelect& select, Clause clause)
      : select_(select),
        clause_(select.clause_),
        in_aggregate_(select.in_aggregate_),
        in_window_(select.in_window_) {
    select.clause_ = clause;
  }
  ~SavedPlace() {
    select_.clause_ = clause_;
    select_.in_aggregate_ = in_aggregate_;
    select_.in_window_ = in_window_;
  }
  SavedPlace(const SavedPlace&) = delete;
  SavedPlace& operator=(const SavedPlace&) = delete;

 private:
  LogicalSelect& select_;
  const Clause clause_;
  const bool in_aggregate_, in_window_;
};

}  // namespace nam::sql
