#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "execution/chunk.h"
#include "execution/row_field.h"
#include "plan/schema.h"

/// Tuples as naive models see them, and chunks that hold them in every form there is.
namespace nam::execution {

/// One value.
struct Cell {
  bool null = true;
  __int128 number = 0;
  std::string text;

  static Cell Number(__int128 n) { return {false, n, {}}; }
  static Cell Text(std::string s) { return {false, 0, std::move(s)}; }
  auto operator<=>(const Cell&) const = default;
};
using Tuple = std::vector<Cell>;
void PrintTo(const Cell& cell, std::ostream* out);

/// Up to `columns` columns of all types and bounds that the engine computes with.
plan::Schema RandomSchema(size_t columns, RandomStream& random);
/// Fails the test at the first tuple that differs, and shows these two alone.
void ExpectTuples(const std::vector<Tuple>& actual, const std::vector<Tuple>& expected);
/// Values of a slot: within its bounds, out of `distinct` different ones, NULL one time in six if it may be.
Cell RandomCell(const plan::Slot& slot, uint64_t distinct, RandomStream& random);
/// Rows of a number below 50 and two texts, many of which fit no page of 64 KiB. Texts with equal beginnings.
std::vector<Tuple> LongTuples(size_t rows, RandomStream& random);
plan::Schema LongTupleSchema();
std::vector<Tuple> RandomTuples(const plan::Schema& schema, size_t count, uint64_t distinct,
                                RandomStream& random);

/// In which form the values of a slot lie in arrays.
Physical ArrayPhysical(const plan::Slot& slot);

Cell CellOf(const Column& column, uint32_t position);
/// The selected tuples, by the first `columns` columns.
std::vector<Tuple> TuplesOf(const Chunk& chunk, size_t columns);

/// Puts tuples into a chunk. The kind of each column is drawn anew (codes with and without NULL's code, in
/// one dictionary a chunk; values; fields of rows; constants), with and without row numbers, among positions
/// that are not selected and hold other values. Owns the memory that the chunk points to, until it fills the
/// next.
class ChunkMaker {
 public:
  /// The stream must outlive the maker.
  ChunkMaker(plan::Schema schema, RandomStream& random) : schema_(std::move(schema)), random_(random) {}

  /// A chunk with columns and row sets for Fill.
  std::unique_ptr<Chunk> NewChunk() const { return std::make_unique<Chunk>(schema_.size(), schema_.size()); }
  /// At most kChunkRows tuples.
  void Fill(std::span<const Tuple> tuples, Chunk& chunk);

 private:
  struct Holder;  // what a column points to

  void FillColumn(size_t slot, const std::vector<Cell>& cells, Chunk& chunk);
  bool AsCodes(const plan::Slot& slot, const std::vector<Cell>& stored, Column& column, Holder& holder,
               bool null_rows);
  void AsValues(const std::vector<Cell>& stored, Column& column, Holder& holder);
  void AsField(const plan::Slot& slot, const std::vector<Cell>& stored, Column& column, Holder& holder);

  const plan::Schema schema_;
  RandomStream& random_;
  std::vector<uint32_t> positions_;
  std::vector<std::shared_ptr<Holder>> holders_;
};

/// The seeds of a random test: NAM_SEED alone if it is set, else `count` from 1 on (NAM_SEEDS of them).
std::vector<uint64_t> TestSeeds(uint64_t count);

}  // namespace nam::execution
