#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/table.pb.h"

/// The units of a table's rows that workers claim.
namespace nam::partitioner {

/// One claim. Of the driving table: a chain (`partition` is its number, catalog/chain_groups.h; its partition
/// is that number modulo the number of partitions), or adjacent blocks of a large one. Of a record table:
/// adjacent chunks (`blocks`) of an extent (`partition`), or the transaction's own rows. Of a stage over
/// parts: share `first_block` of `blocks` shares of the part `partition`.
struct Piece {
  uint32_t partition = 0;
  uint32_t first_block = 0;
  uint32_t blocks = 0;
  auto operator<=>(const Piece&) const = default;
};
/// The piece of a record table with the transaction's own new rows, which no extent contains yet: `blocks` of
/// them from `first_block` on.
inline constexpr uint32_t kOwnRows = UINT32_MAX;
/// Records per chunk: txn/record_layout.h.
inline constexpr uint32_t kRecordsOfChunk = 256;

/// For a record table, the number of rows that there is room for: its rows are not counted.
uint64_t RowsOf(const proto::Table& table, const Piece& piece);
/// Runs of at most `chunks_max` of the `chunks` chunks of each of `extents`, after the transaction's own
/// rows, if any.
std::vector<Piece> RecordPieces(uint32_t extents, uint32_t chunks, uint32_t chunks_max, uint32_t own_rows);
/// The partitions of the pieces, ascending.
std::vector<uint32_t> PartitionsOf(const std::vector<Piece>& pieces);
/// The non-empty partitions. Those of more than `rows_max` rows are cut evenly, as far as there are blocks.
std::vector<Piece> PiecesOf(const proto::Table& table, const std::vector<uint32_t>& partitions,
                            uint64_t rows_max);
/// The first chain with rows, whole, if it has at least so many: one thread reads it in its order, from its
/// first row on.
std::optional<Piece> FirstRowsOf(const proto::Table& table, uint64_t rows);
/// Cuts pieces with more than `rows_max` rows evenly, as far as there are blocks.
std::vector<Piece> CutPieces(const proto::Table& table, const std::vector<Piece>& pieces, uint64_t rows_max);

/// The number of the part, by key `key`, that contains partition `partition` of a table (row-major order).
uint32_t PartOf(const proto::Table& table, uint32_t partition, int key);

/// The build side's chains that the driving table's `partitions`, also chains, need, ascending. `key`: the
/// driving table's partition key by which the build side is partitioned, too; none: the whole build side is
/// needed.
std::vector<uint32_t> NeededPartitions(const proto::Table& driving, const proto::Table& build,
                                       std::optional<int> key, const std::vector<uint32_t>& partitions);

}  // namespace nam::partitioner
