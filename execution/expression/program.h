#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/chunk.h"
#include "execution/expression/memo_share.h"
#include "execution/expression/vector.h"
#include "plan/expression.h"
#include "plan/schema.h"

/// Expressions over chunks.
///
///     Program   compiled once for an attempt, immutable, shared by its threads
///       Node    one for each operation; knows its inputs and its register
///       Memo    the results of an expression over one column for each code of a dictionary; filled lazily
///     Frame     one thread's registers, texts and first error; does not outlive the program
namespace nam::execution {

/// One thread's scratch for one program. Not shared.
class Frame {
 public:
  Frame(Frame&&) noexcept;
  Frame& operator=(Frame&&) noexcept;
  ~Frame();

  /// The error with which Evaluate failed; OK until then.
  const absl::Status& error() const { return error_; }
  /// Keeps the first error: for callers that find one in the result of Evaluate.
  void Fail(absl::Status error) {
    if (error_.ok()) error_ = std::move(error);
  }

 private:
  friend class Program;
  friend class FrameAccess;  // for nodes
  Frame();
  struct Registers;
  std::unique_ptr<Registers> registers_;
  absl::Status error_;
};

class Program {
 public:
  /// The slots of `outputs` (Expr::column, relation 0) are those of `input`. Operations without a vectorized
  /// form are evaluated row by row by the reference: right, slow, and counted by by_row_nodes. Memos take
  /// their memory from `memos`, which outlives the program; nullptr: unlimited.
  static absl::StatusOr<std::unique_ptr<const Program>> Compile(std::span<const plan::Expr> outputs,
                                                                const plan::Schema& input,
                                                                MemoShare* memos = nullptr);
  ~Program();

  Frame NewFrame() const;
  /// Computes one output at the selected positions and nowhere else. Errors arise only from selected
  /// positions, in the branch that decides. nullptr: the frame has the error.
  const Vector* Evaluate(size_t output, Frame& frame, const Chunk& chunk, Selection rows) const;
  /// The slot, if the output is a plain slot of the input: a caller that can work on codes takes the chunk's
  /// column and loads nothing.
  std::optional<uint32_t> slot_of(size_t output) const;
  /// The least and greatest result, from the bounds of the slots.
  const plan::Bounds& bounds(size_t output) const;
  Physical physical(size_t output) const;
  size_t outputs() const;
  size_t by_row_nodes() const;

 private:
  struct Nodes;
  explicit Program(std::unique_ptr<const Nodes> nodes);
  std::unique_ptr<const Nodes> nodes_;
};

/// Writes the positions among `rows` where all conditions of the program are true to `kept` (kChunkRows
/// places; may be what `rows` points to). Evaluates conditions one after the other, each where those before
/// held. nullopt if the frame has an error.
std::optional<uint32_t> SelectWhere(const Program& conditions, Frame& frame, const Chunk& chunk,
                                    Selection rows, uint32_t* kept);

}  // namespace nam::execution
