#include "partitioner/pieces.h"

#include <algorithm>

namespace nam::partitioner {

uint32_t PartOf(const proto::Table& table, uint32_t partition, int key) {
  for (int k = table.partitioning_size() - 1; k > key; --k) partition /= table.partitioning(k).parts();
  return partition % table.partitioning(key).parts();
}

std::vector<uint32_t> NeededPartitions(const proto::Table& driving, const proto::Table& build,
                                       std::optional<int> key, const std::vector<uint32_t>& partitions) {
  const uint32_t parts =
      key ? driving.partitioning(*key).parts() : static_cast<uint32_t>(build.partitions_size());
  std::vector<bool> is_needed(parts, !key && !partitions.empty());
  if (key) {
    for (const uint32_t p : partitions) is_needed[PartOf(driving, p, *key)] = true;
  }
  std::vector<uint32_t> needed;
  for (uint32_t chain = 0; chain < static_cast<uint32_t>(build.partitions_size()); ++chain) {
    if (is_needed[chain % parts]) needed.push_back(chain);
  }
  return needed;
}

uint64_t RowsOf(const proto::Table& table, const Piece& piece) {
  if (table.has_record()) return uint64_t{piece.blocks} * (piece.partition == kOwnRows ? 1 : kRecordsOfChunk);
  const proto::Chain& chain = table.partitions(static_cast<int>(piece.partition));
  if (piece.blocks == chain.blocks()) return chain.rows();
  const auto before = [&](uint64_t block) { return chain.rows() * block / chain.blocks(); };
  return before(uint64_t{piece.first_block} + piece.blocks) - before(piece.first_block);
}

std::vector<Piece> RecordPieces(uint32_t extents, uint32_t chunks, uint32_t chunks_max, uint32_t own_rows) {
  std::vector<Piece> pieces;
  if (own_rows > 0) pieces.push_back({kOwnRows, 0, own_rows});
  for (uint32_t extent = 0; extent < extents; ++extent) {
    for (uint32_t first = 0; first < chunks;) {
      const uint32_t run = std::clamp<uint32_t>(chunks_max, 1, chunks - first);
      pieces.push_back({extent, first, run});
      first += run;
    }
  }
  return pieces;
}

std::vector<Piece> PiecesOf(const proto::Table& table, const std::vector<uint32_t>& partitions,
                            uint64_t rows_max) {
  std::vector<Piece> whole;
  for (const uint32_t p : partitions) {
    const proto::Chain& chain = table.partitions(static_cast<int>(p));
    if (chain.rows() > 0) whole.push_back({p, 0, chain.blocks()});
  }
  return CutPieces(table, whole, rows_max);
}

std::optional<Piece> FirstRowsOf(const proto::Table& table, uint64_t rows) {
  for (int p = 0; p < table.partitions_size(); ++p) {
    const proto::Chain& chain = table.partitions(p);
    if (chain.rows() == 0) continue;
    if (chain.rows() < rows) return std::nullopt;
    return Piece{static_cast<uint32_t>(p), 0, chain.blocks()};
  }
  return std::nullopt;
}

std::vector<uint32_t> PartitionsOf(const std::vector<Piece>& pieces) {
  std::vector<uint32_t> partitions;
  for (const Piece& piece : pieces) {
    if (partitions.empty() || partitions.back() != piece.partition) partitions.push_back(piece.partition);
  }
  return partitions;
}

std::vector<Piece> CutPieces(const proto::Table& table, const std::vector<Piece>& pieces, uint64_t rows_max) {
  std::vector<Piece> cut;
  for (const Piece& piece : pieces) {
    const uint64_t wanted = (RowsOf(table, piece) - 1) / rows_max + 1;
    const uint64_t parts = std::max<uint64_t>(1, std::min<uint64_t>(wanted, piece.blocks));
    for (uint64_t i = 0; i < parts; ++i) {
      const uint64_t from = piece.blocks * i / parts, to = piece.blocks * (i + 1) / parts;
      cut.push_back({piece.partition, static_cast<uint32_t>(piece.first_block + from),
                     static_cast<uint32_t>(to - from)});
    }
  }
  return cut;
}

}  // namespace nam::partitioner
