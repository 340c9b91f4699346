#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "execution/expression/program.h"
#include "execution/join/text_keys.h"

namespace nam::execution {

/// The keys of chunks as 64-bit numbers, for look-ups in direct tables. Text is its entry in the build side's
/// dictionary. NULL has no number, nor has any key that no row of a direct table can equal: numbers beyond 64
/// bits and texts that the dictionary lacks. One thread's.
class KeyNumbers {
 public:
  /// Output `output` of the program is the key, which is text if there are `texts`. Both outlive this.
  KeyNumbers(const Program& program, size_t output, const TextKeys* texts);

  /// Evaluates the keys of the selected tuples. positions()[0 … n) and numbers()[0 … n) are those with a
  /// number. nullopt if it failed: error() says why. If `nulls` is not nullptr, nulls[position] becomes 1
  /// where the key is NULL, else 0.
  std::optional<uint32_t> Evaluate(const Chunk& chunk, Selection rows, uint8_t* nulls = nullptr);
  const uint32_t* positions() const { return positions_; }
  const int64_t* numbers() const { return numbers_; }
  /// The number of NULL keys. Keys that are neither NULL nor have a number cannot match.
  uint32_t null_count() const { return null_count_; }
  const absl::Status& error() const { return frame_.error(); }

 private:
  void FromCodes(const Column& column, Selection rows, uint8_t* nulls);
  void ToBuildEntries(const CodeMeaning& meaning);
  void FromVector(const Vector& vector, Selection rows, uint8_t* nulls);
  const Program& program_;
  const size_t output_;
  Frame frame_;
  std::optional<TextTranslation> texts_;
  uint32_t null_count_ = 0;
  uint32_t count_ = 0;
  uint32_t positions_[kChunkRows];
  int64_t numbers_[kChunkRows];
};

}  // namespace nam::execution
