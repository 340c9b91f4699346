#include "optimizer/part_assignment.h"

#include <algorithm>
#include <numeric>

#include "plan/shared_side.h"

namespace nam::optimizer {
namespace {

using partitioner::Piece;
using plan::SharedSide;

/// A thread's fair share of the rows is so many pieces of cut parts: the last thread ends at most one of them
/// after the others.
constexpr uint64_t kCutPiecesOfAThread = 2;
/// Parts up to so many times the mean one are not worth reading a side twice.
constexpr uint64_t kMeanParts = 2;
/// Nor are those that exceed the fair share by up to one in so many of its rows, if there are about as many
/// as threads.
constexpr uint64_t kPartTolerance = 4;
/// A thread claims up to so many neighbours of a list (execution/scan/piece_claims.cc).
constexpr size_t kClaimedAtOnce = 8;
/// Fewer rows of the shared side end before another task has built a table.
constexpr uint64_t kSharedPieceRowsMin = 1'024;

SharedSide SharedSideOf(const ClaimedParts& parts, const PartRows& rows) {
  return parts.join ? plan::SharedSideOf(*parts.join, rows.probed, rows.built) : SharedSide::kNone;
}

/// How to cut parts with so many rows together.
struct Cut {
  Cut(uint64_t rows, uint64_t parts, uint64_t threads) {
    const uint64_t fair = rows / threads;
    piece = std::max<uint64_t>(1, fair / kCutPiecesOfAThread);
    most = std::max(piece, std::min(kMeanParts * (rows / parts), fair + fair / kPartTolerance));
  }
  uint64_t most;   // rows of a part that stays whole
  uint64_t piece;  // about so many rows in each piece of the others
};

/// The number of pieces of a part.
uint64_t NumberOfPieces(const ClaimedParts& parts, const PartRows& part, const Cut& cut) {
  const SharedSide side = SharedSideOf(parts, part);
  if (side == SharedSide::kNone || part.all() <= cut.most) return 1;
  const uint64_t shared = side == SharedSide::kProbed ? part.probed : part.built;
  if (shared < part.all() - shared) return 1;
  return std::clamp<uint64_t>((part.all() + cut.piece - 1) / cut.piece, 1,
                              std::max<uint64_t>(1, shared / kSharedPieceRowsMin));
}

/// Spreads `large` from the first place on, kClaimedAtOnce apart, if there are as many others.
std::vector<Piece> Mixed(const std::vector<Piece>& others, const std::vector<Piece>& large) {
  std::vector<Piece> mixed;
  const size_t all = others.size() + large.size();
  const size_t distance = large.empty() ? 1 : std::min(kClaimedAtOnce, all / large.size());
  size_t of_large = 0;
  for (size_t i = 0; i < all; ++i) {
    const bool next = i % distance == 0 && of_large < large.size();
    mixed.push_back(next ? large[of_large++] : others[i - of_large]);
  }
  return mixed;
}

}  // namespace

uint64_t RowsOf(const ClaimedParts& parts, const Piece& piece) {
  const PartRows& rows = parts.rows[piece.partition];
  const SharedSide side = SharedSideOf(parts, rows);
  if (side == SharedSide::kNone) return rows.all();
  const uint64_t shared = side == SharedSide::kProbed ? rows.probed : rows.built;
  const auto before = [&](uint64_t number) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(shared) * number / piece.blocks);
  };
  return rows.all() - shared + before(uint64_t{piece.first_block} + 1) - before(piece.first_block);
}

std::vector<Piece> PiecesOfParts(const ClaimedParts& parts, uint64_t threads) {
  uint64_t rows = 0;
  for (const PartRows& part : parts.rows) rows += part.all();
  const Cut cut(rows, std::max<uint64_t>(1, parts.rows.size()), std::max<uint64_t>(1, threads));
  std::vector<Piece> pieces;
  for (uint32_t part = 0; part < parts.rows.size(); ++part) {
    if (parts.rows[part].all() == 0) continue;
    const auto count = static_cast<uint32_t>(NumberOfPieces(parts, parts.rows[part], cut));
    for (uint32_t number = 0; number < count; ++number) pieces.push_back({part, number, count});
  }
  return pieces;
}

Assignment AssignParts(const ClaimedParts& parts, int servers, int threads) {
  const auto all_threads = static_cast<uint64_t>(servers) * static_cast<uint64_t>(threads);
  const std::vector<Piece> pieces = PiecesOfParts(parts, all_threads);
  std::vector<uint64_t> rows;
  for (const Piece& piece : pieces) rows.push_back(RowsOf(parts, piece));
  const std::vector<int> server_of = LargestDifferencing(rows, servers);
  const uint64_t all = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
  const uint64_t large_min = pieces.empty() ? 0 : kMeanParts * (all / pieces.size());
  Assignment assignment;
  for (int server = 0; server < servers; ++server) {
    Assignment::Share& share = assignment.servers.emplace_back();
    std::vector<Piece> others, large;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (server_of[i] != server) continue;
      (pieces[i].blocks > 1 || rows[i] > large_min ? large : others).push_back(pieces[i]);
      share.rows += rows[i];
    }
    std::stable_sort(large.begin(), large.end(),
                     [&](const Piece& x, const Piece& y) { return RowsOf(parts, x) > RowsOf(parts, y); });
    share.pieces = Mixed(others, large);
  }
  return assignment;
}

CutParts CutPartsOf(const std::vector<Assignment::Share>& shares) {
  std::vector<uint32_t> parts;
  for (const Assignment::Share& share : shares) {
    for (const Piece& piece : share.pieces) {
      if (piece.blocks > 1) parts.push_back(piece.partition);
    }
  }
  CutParts cut{.pieces = parts.size()};
  std::sort(parts.begin(), parts.end());
  cut.parts = static_cast<uint64_t>(std::unique(parts.begin(), parts.end()) - parts.begin());
  return cut;
}

}  // namespace nam::optimizer
