#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/join/direct_build.h"
#include "execution/join/row_build.h"
#include "execution/task.h"
#include "plan/join_kind.h"
#include "plan/schema.h"

/// Probes: each tuple of the input meets the rows of a build side that have its keys.
///
///     kind                           columns of the output         tuples
///     inner, left, right, full,      keep of the input, then       a pair, or one side beside NULLs
///     single                         fetch of the build side
///     semi, anti, null-aware anti    keep                          the input's own, fewer are selected
///     mark                           keep, then a boolean          the input's own
///
/// Tuples do not keep their order. Where output tuples are the input's own, columns are too: nothing is
/// copied. Else the output's row set 0 has the positions in the input, set 1 the rows of the build side, and
/// further ones the row sets of the input, taken along these positions:
///
///     input   column a: rows A    column b: flat       output  a: rows A[positions]   b: rows positions
///
/// A probe's tasks go over candidates in rounds: each tuple's first row by its keys, then the next row of
/// each chain. A round is a loop over arrays, and between two rounds the task may stop, so that one chunk may
/// match any number of rows: where a round would not fit the output, Push says kHaveMore.
///
/// Right and full joins mark rows that have matched beside the RowTable, by row number. Their tasks drain
/// together: each waits until all tasks of the probe on this server have used up their input, then they share
/// the pages, and what is not marked leaves beside NULLs. So they answer for the rows of this server's build
/// side: this is right if no other server has the same rows (partitioned by the key), and a replicated build
/// side needs its bits ORed first. All tasks are made before one of them is drained, and a task that ends
/// early, by a failure or since a step behind it is done, is destroyed at once, or the others wait for it.
///
/// Without keys every row of the build side is a candidate of every tuple (LoopProbe): cross joins, bands,
/// conditions of any form.
///
/// What NOT IN and IN ask of a build side, whether it is empty or has a NULL, is known of this server's rows:
/// those kinds need the whole build side on every server, or someone who knows (ProbeOptions::facts).
namespace nam::execution {

/// Of all rows of a build side, also of those that are elsewhere.
struct BuildFacts {
  bool empty = true;  // there is no row, also none whose key is NULL
  bool has_null_key = false;
};

struct ProbeOptions {
  plan::JoinKind kind = plan::JoinKind::kInner;
  /// Over the input: as many as the build side has, of the same kinds (all numbers of one scale, all text).
  /// nullptr: none.
  const Program* keys = nullptr;
  std::vector<uint32_t> keep;   // slots of the input
  std::vector<uint32_t> fetch;  // columns of the build side's payload
  /// Conditions over keep, then fetch: a pair matches only if all are true. nullptr: none.
  const Program* residuals = nullptr;
  /// Mark: the boolean is that of IN: unknown where the tuple's key or some key of the build side is NULL and
  /// nothing matches, unless the build side is empty. One key, no residuals. Else it is that of EXISTS.
  bool null_aware = false;
  /// Mark and null-aware anti: conditions over keep, then fetch, of pairs whose keys are equal and whose
  /// residuals are true. A pair of which all are true is a match. The mark of a tuple without a match is
  /// unknown if of one of its pairs none is false. nullptr: none.
  const Program* compared = nullptr;
  /// IN and NOT IN by the key: what is true of the whole build side, of which the build has a part. None: the
  /// build has all of it.
  std::optional<BuildFacts> facts;
  /// The input is pages of a part: its fields without a selection are those of rows one behind the other.
  bool rows_ascend = false;
  /// The build side is of a domain, and no key of the input is outside of it.
  bool keys_in_domain = false;
  /// Distinct row sets of the input's columns, at most.
  uint32_t input_row_sets = 1;
  /// Right, full: of the input, for the NULLs in its place.
  plan::Schema input;
};

/// The chunk that a probe's tasks fill.
std::unique_ptr<Chunk> NewProbeChunk(const ProbeOptions& options);

/// INVALID_ARGUMENT if the options do not fit each other or the build side. Programs and build outlive the
/// probe.
absl::StatusOr<std::unique_ptr<StepOperator>> MakeProbe(const DirectBuild& build, ProbeOptions options);
absl::StatusOr<std::unique_ptr<StepOperator>> MakeProbe(const RowBuild& build, ProbeOptions options);

}  // namespace nam::execution
