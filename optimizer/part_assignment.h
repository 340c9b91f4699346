#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "optimizer/assignment.h"
#include "partitioner/pieces.h"
#include "plan/join_kind.h"

namespace nam::optimizer {

/// The rows of a part that a stage claims: of the two sides of a join, or all of them `probed`.
struct PartRows {
  uint64_t probed = 0;
  uint64_t built = 0;
  uint64_t all() const { return probed + built; }
};

/// The parts of a stage, by number, and the kind of their join, if any.
struct ClaimedParts {
  std::vector<PartRows> rows;
  std::optional<plan::JoinKind> join;
};

/// The rows that the task of a piece reads. Piece {p, i, n} is share i of the n shares of part p
/// (plan::SharedSideOf): of one side of the join, beside all of the other.
uint64_t RowsOf(const ClaimedParts& parts, const partitioner::Piece& piece);

/// The parts that have rows, in part order. Under skew a part of a join may keep a thread busy when others
/// have nothing left. It comes in pieces of half a thread's fair share if it is larger than that, and larger
/// than the others: twice the mean part, or, with few parts, the fair share and a fourth more. It stays whole
/// if the side that its tasks can share is the smaller one, since each of them reads all of the other.
std::vector<partitioner::Piece> PiecesOfParts(const ClaimedParts& parts, uint64_t threads);

/// Assigns PiecesOfParts, about equally many rows for each server. A server's large pieces come first, since
/// all wait for one that is begun last, but apart, since a thread claims neighbours at once. Sets only
/// `pieces` and `rows` of shares.
Assignment AssignParts(const ClaimedParts& parts, int servers, int threads);

/// The parts that skew has made large and that come in several pieces, and these.
struct CutParts {
  uint64_t parts = 0;
  uint64_t pieces = 0;
};
CutParts CutPartsOf(const std::vector<Assignment::Share>& shares);

}  // namespace nam::optimizer
