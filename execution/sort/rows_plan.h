#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/rows/row_layout.h"
#include "plan/schema.h"

namespace nam::execution {

/// Tuples that a sink keeps as rows at rest, slot by slot. Prepared once for a stage, immutable, shared.
class RowsPlan {
 public:
  static absl::StatusOr<std::unique_ptr<const RowsPlan>> Make(
      const plan::Schema& schema, uint32_t page_bytes = RowLayout::kMostPageBytes);

  const plan::Schema& schema() const { return schema_; }
  const RowLayout& layout() const { return layout_; }
  /// Computes slot i of the input, or of the rows.
  const Program& slots() const { return *slots_; }

 private:
  explicit RowsPlan(RowLayout layout) : layout_(std::move(layout)) {}
  plan::Schema schema_;
  RowLayout layout_;
  std::unique_ptr<const Program> slots_;
};

}  // namespace nam::execution
