#include "execution/rows/row_hash.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "execution/rows/row_table.h"
#include "execution/rows/row_writer.h"
#include "tests/execution/tuples.h"
#include "types/hash.h"

namespace nam::execution {
namespace {

/// A cell's hash, as types/hash.h defines it.
uint64_t HashOf(const plan::Slot& slot, const Cell& cell) {
  if (cell.null) return kHashOfNull;
  return PhysicalOf(slot.type) == Physical::kText ? HashText(cell.text) : HashNumber(cell.number);
}

uint64_t HashOf(const plan::Schema& schema, const Tuple& tuple, std::span<const uint32_t> fields) {
  uint64_t hash = kHashOfNothing;
  for (const uint32_t field : fields) {
    const uint64_t of = HashOf(schema[field], tuple[field]);
    hash = field == fields.front() ? of : CombineHashes(hash, of);
  }
  return hash;
}

/// Hashes columns of every kind and rows of every width, and compares them with a naive model.
TEST(RowHashProperty, KeysOfChunksAndOfRowsHaveOneHash) {
  for (const uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    const plan::Schema schema = RandomSchema(6, random);
    std::vector<plan::Expr> outputs(schema.size());
    for (size_t i = 0; i < schema.size(); ++i) {
      outputs[i].op = plan::Op::kColumn;
      outputs[i].type = schema[i].type;
      outputs[i].column = {0, static_cast<int>(i)};
    }
    const auto program = Program::Compile(outputs, schema);
    ASSERT_TRUE(program.ok());
    Frame frame = (*program)->NewFrame();
    const uint64_t first = random.Below(schema.size() + 1), count = random.Below(schema.size() - first + 1);
    std::vector<uint32_t> fields;
    for (uint64_t i = first; i < first + count; ++i) fields.push_back(static_cast<uint32_t>(i));

    const size_t sizes[] = {1, 1023, 1024};
    const auto tuples = RandomTuples(schema, sizes[random.Below(3)], 1 + random.Below(300), random);
    ChunkMaker maker(schema, random);
    const auto chunk = maker.NewChunk();
    maker.Fill(tuples, *chunk);
    std::vector<uint64_t> hashes(kChunkRows, 0x1111);
    ASSERT_TRUE(HashKeys(**program, first, count, frame, *chunk, chunk->selection(), hashes.data()));
    std::vector<bool> selected(kChunkRows);
    for (uint32_t i = 0; i < tuples.size(); ++i) {
      const uint32_t position = chunk->selection()[i];
      selected[position] = true;
      ASSERT_EQ(hashes[position], HashOf(schema, tuples[i], fields)) << i;
    }
    for (uint32_t p = 0; p < kChunkRows; ++p)
      ASSERT_TRUE(selected[p] || hashes[p] == 0x1111) << "others are left alone";

    MemoryBudget budget(1 << 30);
    const auto table = *RowTable::Make(*RowLayout::Of(schema, RowLayout::kSmallPageBytes), budget, 1000);
    RowWriter writer(table->layout(), **program);
    for (uint32_t done = 0; done < tuples.size();) {
      const uint32_t page = *table->NewPage();
      const uint32_t before = done;
      writer.Open(table->page(page), page << table->layout().rows_shift());
      ASSERT_TRUE(writer.Append(frame, *chunk, chunk->selection(), done, nullptr));
      // A range may begin anywhere.
      const auto place = static_cast<uint32_t>(random.Below(done - before));
      const uint32_t rows = done - before - place;
      std::vector<uint64_t> of_rows(rows);
      HashRows(table->layout(), fields, table->page(page), place, rows, of_rows.data());
      for (uint32_t i = 0; i < rows; ++i) {
        ASSERT_EQ(of_rows[i], HashOf(schema, tuples[before + place + i], fields)) << i;
      }
    }
  }
}

TEST(RowHash, CodesHaveTheHashesOfWhatTheyStandFor) {
  const std::vector<std::string_view> entries = {"blue", "green"};
  CodeMeaning colours{.type = Type::String(), .null_code = true, .base = -1, .codes = 3, .max = 1};
  colours.dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
  const CodeMeaning years{.type = Type::Integer(), .base = 1992, .codes = 7, .min = 1992, .max = 1998};
  const plan::Schema schema = {{Type::String(), true, {}}, {Type::Integer(), false, {1992, 1998, true}}};
  const CodeMeaning* const meanings[] = {&colours, &years};
  const auto layout = RowLayout::Local(schema, meanings, RowLayout::kSmallPageBytes);
  ASSERT_TRUE(layout.ok());
  alignas(8) std::byte page[RowLayout::kSmallPageBytes];
  layout->Clear(page);
  ASSERT_EQ(layout->stride(), 3U);
  const uint8_t rows[] = {2, 3, 0, 0, 6, 1};  // "green", 1995; NULL, 1998
  std::copy_n(reinterpret_cast<const std::byte*>(rows), sizeof(rows), page + kPageHeaderBytes);
  const uint32_t fields[] = {0, 1};
  uint64_t hashes[2];
  HashRows(*layout, fields, page, 0, 2, hashes);
  EXPECT_EQ(hashes[0], CombineHashes(HashText("green"), HashNumber(int64_t{1995})));
  EXPECT_EQ(hashes[1], CombineHashes(kHashOfNull, HashNumber(int64_t{1998})));
}

}  // namespace
}  // namespace nam::execution
