#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "optimizer/assignment.h"
#include "partitioner/pieces.h"
#include "plan/join_kind.h"

namespace nam::optimizer {

/// Rows of a part that a stage claims: of the two sides of a join, or all of them `probed`.
struct PartRows {
  uint64_t probed = 0;
  uint64_t built = 0;
  uint64_t all() const { return probed + built; }
};

/// The parts of a stage, by number, and of what kind the join is that it makes of them, if it makes one.
struct ClaimedParts {
  std::vector<PartRows> rows;
  std::optional<plan::JoinKind> join;
};

/// Rows that the task of a piece reads. Piece {p, i, n} is share i of the n shares that part p comes in
/// (plan::SharedSideOf): of one side of the join, beside all of the other.
uint64_t RowsOf(const ClaimedParts& parts, const partitioner::Piece& piece);

/// The parts that have rows, in part order. Under skew a part of a join may keep a thread busy when others
/// have nothing left. It comes in pieces of half a thread's fair share if it is larger than that, and larger
/// than its like: twice the mean part, or, of few parts, the fair share and a fourth more. It stays whole if
/// the side that its tasks can share is the smaller one, since each of them reads all of the other.
std::vector<partitioner::Piece> PiecesOfParts(const ClaimedParts& parts, uint64_t threads);

/// PiecesOfParts, about as many rows for each server. Of a server's pieces large ones come first, since all
/// wait for one that is begun last, but apart, since a thread claims neighbours at once. Of shares only
/// `pieces` and `rows` are set.
Assignment AssignParts(const ClaimedParts& parts, int servers, int threads);

/// What skew has made of parts: those that come in several pieces, and these.
struct CutParts {
  uint64_t parts = 0;
  uint64_t pieces = 0;
};
CutParts CutPartsOf(const std::vector<Assignment::Share>& shares);

}  // namespace nam::optimizer
