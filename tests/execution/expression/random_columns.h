#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "execution/chunk.h"
#include "execution/row_field.h"
#include "plan/schema.h"
#include "types/value.h"

namespace nam::testing {

using Random = std::mt19937_64;

/// 0 … n - 1
inline uint64_t Below(Random& random, uint64_t n) {
  return random() % n;
}
inline bool Chance(Random& random, int percent) {
  return Below(random, 100) < static_cast<uint64_t>(percent);
}
template <typename T>
const T& OneOf(Random& random, const std::vector<T>& from) {
  return from[Below(random, from.size())];
}

/// The properties of a slot's values that columns must keep to.
struct RandomSlot {
  plan::Slot slot;
  std::vector<Value> values;  // those that occur, none NULL; texts in byte order
};

/// One of few values, or a distant one: near a bound, or where arithmetic overflows.
Value RandomValue(Random& random, const Type& type, bool far);
/// Slots of all types, with and without NULLs, with and without bounds, with few values and with distant
/// ones.
std::vector<RandomSlot> RandomSlots(Random& random);
plan::Schema SchemaOf(const std::vector<RandomSlot>& slots);

/// Memory of columns, and for each chunk column the values that it stands for.
class RandomChunk {
 public:
  /// Columns of all kinds that hold values of the slots, or NULL where the slot may.
  RandomChunk(Random& random, const std::vector<RandomSlot>& slots, uint32_t rows);

  const execution::Chunk& chunk() const { return *chunk_; }
  execution::Chunk& chunk() { return *chunk_; }
  /// The value of the column at the position.
  const Value& At(uint32_t slot, uint32_t position) const;

 private:
  struct Made {
    std::vector<Value> stored;  // by index
    bool constant = false;
  };
  void Make(Random& random, const RandomSlot& slot, execution::Column& column, Made& made, uint32_t indexes);
  void MakeCodes(Random& random, const RandomSlot& slot, execution::Column& column, const Made& made);
  void MakeValues(Random& random, const RandomSlot& slot, execution::Column& column, const Made& made);
  void MakeField(Random& random, const RandomSlot& slot, execution::Column& column, const Made& made);
  std::byte* Bytes(size_t bytes);

  std::unique_ptr<execution::Chunk> chunk_;
  std::vector<Made> made_;
  std::deque<std::vector<std::byte>> memory_;
  std::deque<execution::RowField> fields_;
  std::deque<std::string> texts_;
  std::vector<std::shared_ptr<execution::CodeMeaning>> meanings_;
  std::vector<Value> nulls_;  // by slot
};

/// The meaning of codes over all values of the slot. Equal slots, `null_code` and `width` give equal ids.
std::shared_ptr<execution::CodeMeaning> MeaningFor(const RandomSlot& slot, bool null_code, uint8_t width);
/// The code of one of its values.
uint64_t CodeOf(const execution::CodeMeaning& meaning, const Value& value);

/// Ascending positions below `rows`, each with this chance.
std::vector<uint32_t> RandomPositions(Random& random, uint32_t rows, int percent);

}  // namespace nam::testing
