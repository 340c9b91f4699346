#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "execution/join/build_side.h"
#include "execution/join/probe.h"
#include "execution/join/unmatched_rows.h"
#include "execution/take_along.h"

namespace nam::execution {

/// Tuples by position, each with a row of the build side that may have its keys.
struct Candidates {
  uint32_t count = 0;
  uint32_t positions[kChunkRows];
  uint32_t rows[kChunkRows];
};

/// The common part of all probes: kinds, residuals, output. Derived classes find the rows.
class ProbeTask : public StepTask {
 public:
  /// `unmatched` is set for right and full joins alone, and counts this task.
  ProbeTask(const BuildSide& build, const ProbeOptions& options, UnmatchedRows* unmatched);
  ~ProbeTask() override;

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) final;
  Step Drain(TaskContext& context, Chunk& out) final;

 protected:
  /// Finds the first candidate of each selected tuple that may have one. False: the context has the error.
  virtual bool Start(TaskContext& context, const Chunk& in, Candidates& candidates) = 0;
  /// Selects the candidates with equal keys, in order; returns their number.
  virtual uint32_t Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) = 0;
  /// Moves each candidate to its next row, and drops those without one.
  virtual void Advance(Candidates& candidates) = 0;

  /// nulls[position] = 1 where a key of a selected tuple is NULL, else 0. Start fills it, if it is not
  /// nullptr.
  uint8_t* null_keys() { return wants_null_keys_ ? null_keys_ : nullptr; }

 private:
  bool Begin(TaskContext& context, const Chunk& in);
  Step PushPairs(TaskContext& context, const Chunk& in, Chunk& out);
  Step PushOwn(TaskContext& context, const Chunk& in, Chunk& out);
  uint32_t Gather(uint32_t* positions, uint32_t* rows);
  bool FindMatches(TaskContext& context, const Chunk& in, Chunk& out);
  std::optional<Selection> Residuals(TaskContext& context, const Chunk& pairs);
  bool Compare(TaskContext& context, Chunk& pairs, Selection matching);
  bool NoteMatches(TaskContext& context, Selection pairs, const uint32_t* positions, const uint32_t* rows);
  void Compose(const Chunk& in, uint32_t from, uint32_t end, Chunk& out);
  void PassOwn(const Chunk& in, Chunk& out);
  void PassMark(const Chunk& in, Chunk& out);
  void DropMatched();
  /// After the build.
  BuildFacts Facts() const {
    return options_.facts.value_or(BuildFacts{build_.empty(), build_.has_null_key()});
  }

  const BuildSide& build_;
  const ProbeOptions& options_;
  ColumnsAlong along_;
  UnmatchedRows* const unmatched_rows_;
  const bool pairs_;            // output tuples are pairs
  const bool outer_;            // emits tuples without a match beside NULLs
  const bool notes_;            // maintains matched_
  const bool wants_null_keys_;  // NOT IN and IN by a key
  std::optional<Frame> frame_;  // for the residuals
  std::optional<Frame> compared_frame_;
  std::unique_ptr<Chunk> pair_chunk_;  // for residuals where the output has no pairs
  bool draining_ = false;
  UnmatchedRows::Cursor cursor_;

  // State of the current input chunk:
  bool busy_ = false;
  uint32_t next_unmatched_ = 0;  // in the selection: those before are done
  Candidates candidates_;
  uint8_t matched_[kChunkRows];  // by position
  uint8_t unsure_[kChunkRows];   // by position: whether a comparison was NULL and not false
  uint8_t pair_unsure_[kChunkRows];
  uint8_t null_keys_[kChunkRows];  // by position
  uint8_t marks_[kChunkRows];      // by position
  uint32_t selected_[kChunkRows];
  uint32_t compared_[kChunkRows];  // pairs
};

}  // namespace nam::execution
