#include "optimizer/assignment.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "partitioner/table_metadata.h"

namespace nam::optimizer {
namespace {

using partitioner::CutPieces;
using partitioner::PartitionsOf;
using partitioner::PartOf;
using partitioner::Piece;
using partitioner::PiecesOf;
using partitioner::RowsOf;
using partitioner::StoredRowBytes;

/// Every partition that has rows, whole.
std::vector<Piece> WholePartitions(const proto::Table& driving) {
  std::vector<uint32_t> all(static_cast<size_t>(driving.partitions_size()));
  std::iota(all.begin(), all.end(), 0u);
  return PiecesOf(driving, all, UINT64_MAX);
}

/// Ascending pieces with neighbours joined.
std::vector<Piece> Joined(const std::vector<Piece>& pieces) {
  std::vector<Piece> joined;
  for (const Piece& piece : pieces) {
    if (!joined.empty() && joined.back().partition == piece.partition &&
        joined.back().first_block + joined.back().blocks == piece.first_block) {
      joined.back().blocks += piece.blocks;
    } else {
      joined.push_back(piece);
    }
  }
  return joined;
}

/// The bytes of the build sides that a server needs for these pieces.
uint64_t BuildBytes(const StageTables& stage, const std::vector<Piece>& pieces) {
  const std::vector<uint32_t> partitions = PartitionsOf(pieces);
  uint64_t all = 0;
  for (const StageTables::Build& build : stage.builds) {
    const uint64_t bytes = StoredRowBytes(*build.table, build.columns);
    for (const uint32_t p : stage.NeededOf(build, partitions))
      all += bytes * build.table->partitions(static_cast<int>(p)).rows();
  }
  return all;
}

Assignment Evaluate(const StageTables& stage, const std::vector<Piece>& pieces,
                    const std::vector<int>& server_of, int servers) {
  const proto::Table& claimed = *stage.claimed->table;
  const uint64_t row_bytes = StoredRowBytes(claimed, stage.claimed->columns);
  Assignment assignment;
  assignment.servers.resize(static_cast<size_t>(servers));
  for (size_t i = 0; i < pieces.size(); ++i)
    assignment.servers[static_cast<size_t>(server_of[i])].pieces.push_back(pieces[i]);
  for (Assignment::Share& share : assignment.servers) {
    share.pieces = Joined(share.pieces);
    for (const Piece& piece : share.pieces) share.rows += RowsOf(claimed, piece);
    share.driving_bytes = share.rows * row_bytes;
    share.build_bytes = BuildBytes(stage, share.pieces);
  }
  return assignment;
}

/// Orders the pieces (by position) so that runs need little of the build sides: by the key of the largest of
/// them first. Keys that split no build side come last.
std::vector<uint32_t> OrderForRuns(const StageTables& stage, const std::vector<Piece>& pieces) {
  const proto::Table& claimed = *stage.claimed->table;
  std::vector<uint64_t> bytes(static_cast<size_t>(claimed.partitioning_size()));  // by key
  for (const StageTables::Build& build : stage.builds) {
    if (!build.co_partitioned_key) continue;
    bytes[static_cast<size_t>(*build.co_partitioned_key)] +=
        build.table->rows() * StoredRowBytes(*build.table, build.columns);
  }
  std::vector<int> keys(bytes.size());
  std::iota(keys.begin(), keys.end(), 0);
  std::stable_sort(keys.begin(), keys.end(), [&](int a, int b) {
    return bytes[static_cast<size_t>(a)] > bytes[static_cast<size_t>(b)];
  });
  std::vector<std::pair<uint64_t, uint32_t>> ranked;  // a partition's number if `keys` were the table's order
  for (uint32_t i = 0; i < pieces.size(); ++i) {
    uint64_t rank = 0;
    for (const int key : keys)
      rank = rank * claimed.partitioning(key).parts() + PartOf(claimed, pieces[i].partition, key);
    ranked.emplace_back(rank, i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> order;
  for (const auto& [rank, position] : ranked) order.push_back(position);
  return order;
}

/// Cuts the items, in `order`, into runs of about equal cost.
std::vector<int> CutRuns(const std::vector<uint64_t>& costs, const std::vector<uint32_t>& order,
                         int servers) {
  const uint64_t total = std::max<uint64_t>(std::accumulate(costs.begin(), costs.end(), uint64_t{0}), 1);
  std::vector<int> server_of(costs.size());
  uint64_t before = 0;
  for (const uint32_t p : order) {
    const double middle = static_cast<double>(before) + static_cast<double>(costs[p]) / 2;
    server_of[p] = std::min(servers - 1, static_cast<int>(middle / static_cast<double>(total) * servers));
    before += costs[p];
  }
  return server_of;
}

/// The better result of both ways for the same pieces.
Assignment BetterOfTwo(const StageTables& stage, const std::vector<Piece>& pieces, int servers) {
  std::vector<uint64_t> costs;
  for (const Piece& piece : pieces) costs.push_back(RowsOf(*stage.claimed->table, piece));
  const std::vector<uint32_t> order = OrderForRuns(stage, pieces);
  Assignment runs = Evaluate(stage, pieces, CutRuns(costs, order, servers), servers);
  if (servers == 1) return runs;
  Assignment even = Evaluate(stage, pieces, LargestDifferencing(costs, servers), servers);
  return even.LargestBytes() < runs.LargestBytes() ? even : runs;
}

/// How far the largest share may exceed the fair one: a fiftieth. A cut must save as much.
constexpr uint64_t kShareTolerance = 50;
/// The largest pieces to try, as fractions of a fair share.
constexpr uint64_t kPiecesOfAShare[] = {1, 2, 4, 8, 16, 32};
/// A thread's part of its server's share comes in at least so many pieces, unless they would be small:
/// threads should end at about the same time, and idle servers should find something to take.
constexpr uint64_t kPiecesOfAThread = 16;
constexpr uint64_t kDrivingPieceRowsMin = 4'096;

}  // namespace

uint64_t Assignment::LargestRows() const {
  uint64_t largest = 0;
  for (const Share& share : servers) largest = std::max(largest, share.rows);
  return largest;
}

uint64_t Assignment::LargestBytes() const {
  uint64_t largest = 0;
  for (const Share& share : servers) largest = std::max(largest, share.driving_bytes + share.build_bytes);
  return largest;
}

std::vector<int> LargestDifferencing(const std::vector<uint64_t>& costs, int parts) {
  NAM_CHECK(parts >= 1);
  if (costs.empty()) return {};
  // A candidate is a partial solution: its parts, the largest sum first. Repeatedly joins the two candidates
  // that differ most, the largest part of one with the smallest of the other. At first each item is a
  // candidate; joined ones stay in the place of the first. Statements wait for this: items are chained by
  // number, so that no candidate needs an allocation.
  constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    uint64_t sum = 0;
    uint32_t first = kNone, last = kNone;  // of its items
  };
  const auto width = static_cast<size_t>(parts);
  std::vector<Part> all(costs.size() * width);  // by candidate
  std::vector<uint32_t> next(costs.size(), kNone);
  struct Ranked {
    uint64_t difference;
    uint32_t first;  // item of the largest part; kNone: nothing has a cost
    uint32_t candidate;
    bool operator<(const Ranked& other) const {
      if (difference != other.difference) return difference < other.difference;
      return first != kNone && other.first != kNone && first > other.first;
    }
  };
  const auto ranked = [&](uint32_t candidate) {
    const Part* const of = &all[candidate * width];
    return Ranked{of[0].sum - of[width - 1].sum, of[0].first, candidate};
  };
  std::vector<Ranked> heap;
  heap.reserve(costs.size());
  for (uint32_t i = 0; i < costs.size(); ++i) {
    all[i * width] = {costs[i], i, i};
    heap.push_back(ranked(i));
    std::push_heap(heap.begin(), heap.end());
  }
  while (heap.size() > 1) {
    std::pop_heap(heap.begin(), heap.end());
    std::pop_heap(heap.begin(), heap.end() - 1);
    Part* const into = &all[heap.back().candidate * width];
    const Part* const from = &all[heap[heap.size() - 2].candidate * width];
    for (size_t k = 0; k < width; ++k) {
      Part& part = into[k];
      const Part& more = from[width - 1 - k];
      part.sum += more.sum;
      if (more.first == kNone) continue;
      (part.first == kNone ? part.first : next[part.last]) = more.first;
      part.last = more.last;
    }
    std::stable_sort(into, into + width, [](const Part& x, const Part& y) { return x.sum > y.sum; });
    const uint32_t joined = heap.back().candidate;
    heap.pop_back();
    heap.back() = ranked(joined);
    std::push_heap(heap.begin(), heap.end());
  }
  std::vector<int> part_of(costs.size());
  const Part* const best = &all[heap.front().candidate * width];
  for (size_t k = 0; k < width; ++k) {
    for (uint32_t item = best[k].first; item != kNone; item = next[item]) part_of[item] = static_cast<int>(k);
  }
  return part_of;
}

Assignment Assign(const StageTables& stage, int servers, int threads) {
  const proto::Table& driving = *stage.claimed->table;
  const std::vector<Piece> whole = WholePartitions(driving);
  Assignment best = BetterOfTwo(stage, whole, servers);
  uint64_t rows = 0;
  for (const Assignment::Share& share : best.servers) rows += share.rows;
  const uint64_t fair = rows / static_cast<uint64_t>(servers), uncut_bytes = best.LargestBytes();
  size_t pieces_before = whole.size();
  for (const uint64_t pieces_of_a_share : kPiecesOfAShare) {
    if (best.LargestRows() <= fair + fair / kShareTolerance) break;
    const std::vector<Piece> pieces =
        CutPieces(driving, whole, std::max<uint64_t>(1, fair / pieces_of_a_share));
    if (std::exchange(pieces_before, pieces.size()) == pieces.size()) continue;
    Assignment cut = BetterOfTwo(stage, pieces, servers);
    const bool pays = cut.LargestBytes() < uncut_bytes - uncut_bytes / kShareTolerance;
    if (pays && cut.LargestBytes() < best.LargestBytes()) best = std::move(cut);
  }
  for (Assignment::Share& share : best.servers) {
    const uint64_t pieces = kPiecesOfAThread * static_cast<uint64_t>(std::max(1, threads));
    share.pieces = CutPieces(driving, share.pieces, std::max(kDrivingPieceRowsMin, share.rows / pieces));
  }
  return best;
}

Assignment AssignRecords(const StageTables& stage, const std::vector<Piece>& pieces, int servers) {
  const proto::Table& driving = *stage.claimed->table;
  std::vector<uint64_t> costs;
  for (const Piece& piece : pieces) costs.push_back(RowsOf(driving, piece));
  std::vector<uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0u);
  const std::vector<int> server_of = CutRuns(costs, order, servers);
  Assignment assignment;
  assignment.servers.resize(static_cast<size_t>(servers));
  for (size_t i = 0; i < pieces.size(); ++i) {
    Assignment::Share& share = assignment.servers[static_cast<size_t>(server_of[i])];
    share.pieces.push_back(pieces[i]);
    share.rows += costs[i];
  }
  for (Assignment::Share& share : assignment.servers) {
    share.driving_bytes = share.rows * driving.record().row_bytes();
    share.build_bytes = BuildBytes(stage, share.pieces);
  }
  return assignment;
}

}  // namespace nam::optimizer
