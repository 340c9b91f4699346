#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"
#include "tests/plan/logical_run.h"

/// Window functions of the reference, and the code that they share with the rest of it.
namespace nam::plan::logical::testing {

/// A row, and the rows around it whose columns a dependent input sees.
struct Surroundings {
  const std::vector<Column>* columns = nullptr;
  const Row* row = nullptr;
  const Surroundings* outer = nullptr;
};

absl::StatusOr<Value> Eval(const Expr& expr, const Surroundings& frame);

/// The aggregate of these rows.
absl::StatusOr<Value> Fold(const AggregateCall& call, const std::vector<const Row*>& rows,
                           const std::vector<Column>& columns, const Surroundings* outer);

/// One partition, sorted, with the order keys of its rows.
class WindowRunner {
 public:
  WindowRunner(const Window& window, const std::vector<Column>& columns, const Rows& rows,
               const std::vector<Row>& order, const Surroundings* outer);

  /// The rows with the functions' results appended.
  absl::StatusOr<Rows> Run();

 private:
  absl::StatusOr<Value> Call(const WindowCall& call, size_t row);
  /// percent_rank and cume_dist.
  absl::StatusOr<Value> Share(const WindowCall& call, int64_t part, int64_t whole) const;
  absl::StatusOr<Value> Ntile(const WindowCall& call, size_t row);
  absl::StatusOr<Value> Neighbor(const WindowCall& call, size_t row, int direction);
  absl::StatusOr<Value> OfFrame(const WindowCall& call, size_t row);
  absl::StatusOr<Value> At(const Expr& expr, size_t row) const;
  /// The first row of the frame, or the row behind its last one.
  bool Excluded(const Frame& frame, size_t row, size_t i) const;
  size_t Edge(const Frame& frame, const FrameBound& bound, size_t row, bool start) const;
  size_t RangeEdge(const FrameBound& bound, size_t row, bool start) const;
  size_t DistanceEdge(const FrameBound& bound, size_t row, bool start, bool up) const;
  static bool Reaches(const Value& own, const Value& other, const Value& distance, bool up, bool least);

  const Window& window_;
  const std::vector<Column>& columns_;
  const Rows& rows_;
  const std::vector<Row>& order_;
  const Surroundings* outer_;
  std::vector<size_t> group_;  // of each row: the number of its peers' group
};

}  // namespace nam::plan::logical::testing
