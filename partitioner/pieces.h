#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/table.pb.h"

/// The parts that a table's rows are shared out in.
namespace nam::partitioner {

/// What is claimed at once of the driving table: a chain (`partition` is its number: catalog/chain_groups.h;
/// it is in the partition of the number modulo how many partitions there are), or neighbouring blocks of one
/// that is large. Of a record table: neighbouring chunks (`blocks`) of an extent (`partition`), or the
/// transaction's own rows. Of a stage over parts: share `first_block` of `blocks` shares of the part
/// `partition`.
struct Piece {
  uint32_t partition = 0;
  uint32_t first_block = 0;
  uint32_t blocks = 0;
  auto operator<=>(const Piece&) const = default;
};
/// The piece of a record table that holds the rows which the transaction has written: `blocks` of them from
/// `first_block` on, which no extent has yet.
inline constexpr uint32_t kOwnRows = UINT32_MAX;
/// The records of a chunk: txn/record_layout.h.
inline constexpr uint32_t kRecordsOfChunk = 256;

/// Of a record table how many it has room for: nobody counts its rows.
uint64_t RowsOf(const proto::Table& table, const Piece& piece);
/// Runs of at most `chunks_max` of the `chunks` chunks of each of `extents`, behind the transaction's own
/// rows, if it has any.
std::vector<Piece> RecordPieces(uint32_t extents, uint32_t chunks, uint32_t chunks_max, uint32_t own_rows);
/// Those that the pieces are of, ascending.
std::vector<uint32_t> PartitionsOf(const std::vector<Piece>& pieces);
/// The partitions that have rows, those of more than `rows_max` cut evenly, as far as there are blocks.
std::vector<Piece> PiecesOf(const proto::Table& table, const std::vector<uint32_t>& partitions,
                            uint64_t rows_max);
/// Cuts those that have more rows than `rows_max`, evenly, as far as there are blocks.
std::vector<Piece> CutPieces(const proto::Table& table, const std::vector<Piece>& pieces, uint64_t rows_max);

/// The number of the part by key `key` that partition `partition` of a table lies in (row-major order).
uint32_t PartOf(const proto::Table& table, uint32_t partition, int key);

/// The build side's chains that the driving table's `partitions`, chains too, need, ascending. `key`: which
/// of the driving table's partition keys the build side is split like, too; none: all of the build side is
/// needed.
std::vector<uint32_t> NeededPartitions(const proto::Table& driving, const proto::Table& build,
                                       std::optional<int> key, const std::vector<uint32_t>& partitions);

}  // namespace nam::partitioner
