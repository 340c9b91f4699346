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

/// Probes: each tuple of the input meets the rows of a build side with its keys.
///
///     kind                           columns of the output         tuples
///     inner, left, right, full,      keep of the input, then       a pair, or one side beside NULLs
///     single                         fetch of the build side
///     semi, anti, null-aware anti    keep                          the input's own, fewer are selected
///     mark                           keep, then a boolean          the input's own
///
/// Tuples do not keep their order. Where output tuples are the input's own, columns are too, without a copy.
/// Otherwise the output's row set 0 has the positions in the input, set 1 the rows of the build side, and
/// further ones the row sets of the input, taken along these positions:
///
///     input   column a: rows A    column b: flat       output  a: rows A[positions]   b: rows positions
///
/// A probe's tasks process candidates in rounds: each tuple's first row by its keys, then the next row of
/// each chain. A round is a loop over arrays. The task may stop between two rounds, so that one chunk may
/// match any number of rows: if a round would not fit the output, Push returns kHaveMore.
///
/// Right and full joins mark matched rows beside the RowTable, by row number. Their tasks drain together:
/// each waits until all tasks of the probe on this server have used up their input, then they share the pages
/// and emit unmarked rows beside NULLs. So they cover the rows of this server's build side. That is right if
/// no other server has the same rows (partitioned by the key); a replicated build side needs its bits ORed
/// first. All tasks are made before one of them is drained. A task that ends early, by a failure or because a
/// later step is done, is destroyed at once: otherwise the others wait for it.
///
/// Without keys every row of the build side is a candidate for every tuple (LoopProbe): cross joins, bands,
/// conditions of any form.
///
/// NOT IN and IN ask whether a build side is empty or has a NULL. A build side knows that only of this
/// server's rows, so these kinds need the whole build side on every server, or ProbeOptions::facts.
namespace nam::execution {

/// Facts about all rows of a build side, also of those elsewhere.
struct BuildFacts {
  bool empty = true;  // there is no row, not even one with a NULL key
  bool has_null_key = false;
};

struct ProbeOptions {
  plan::JoinKind kind = plan::JoinKind::kInner;
  /// Keys over the input: as many as the build side has, of the same kinds (all numbers of one scale, all
  /// text). nullptr: none.
  const Program* keys = nullptr;
  std::vector<uint32_t> keep;   // slots of the input
  std::vector<uint32_t> fetch;  // columns of the build side's payload
  /// Conditions over keep, then fetch: a pair matches only if all are true. nullptr: none.
  const Program* residuals = nullptr;
  /// Mark: the boolean of IN: unknown where the tuple's key or some key of the build side is NULL and nothing
  /// matches, unless the build side is empty. One key, no residuals. False: the boolean of EXISTS.
  bool null_aware = false;
  /// Mark and null-aware anti: conditions over keep, then fetch, on pairs with equal keys and true residuals.
  /// A pair for which all are true is a match. The mark of a tuple without a match is unknown if one of its
  /// pairs has no false condition. nullptr: none.
  const Program* compared = nullptr;
  /// IN and NOT IN by the key: facts about the whole build side, if the build has only a part of it.
  std::optional<BuildFacts> facts;
  /// The input is pages of a part: without a selection its fields are those of consecutive rows.
  bool rows_ascend = false;
  /// The build side has a domain, and no key of the input is outside of it.
  bool keys_in_domain = false;
  /// An upper bound of distinct row sets among the input's columns.
  uint32_t input_row_sets = 1;
  /// Right, full: the input's schema, for the NULLs in its place.
  plan::Schema input;
};

/// The chunk that a probe's tasks fill. BuildSide::NewProbe makes the probe: INVALID_ARGUMENT if the options
/// do not fit each other or the build side. Programs and build outlive it.
std::unique_ptr<Chunk> NewProbeChunk(const ProbeOptions& options);

}  // namespace nam::execution
