#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "execution/expression/program.h"
#include "execution/join/build_side.h"
#include "execution/join/direct_table.h"
#include "execution/join/text_keys.h"

namespace nam::execution {

/// Builds a unique DirectTable while chunks arrive: keys set bits, and payload codes go to the keys'
/// positions. Nothing is left to combine. A duplicate key, or one outside of the domain, is DATA_LOSS: it
/// contradicts the loader's statistics.
class DirectBuild : public BuildSide {
 public:
  struct Options {
    DirectTable::Options table;  // unique, and fits; text: over the entries of `texts`
    /// Output 0 is the key: a number, or text if there are `texts`. Outlives the build.
    const Program* key = nullptr;
    /// For text keys with significant blanks: entries that differ by blanks alone would be one key.
    std::unique_ptr<const TextKeys> texts;
    /// Slots of the input that the join's output fetches, and the meaning of their codes: they are kCodes
    /// with this meaning in every chunk. table.payload_widths follows from them.
    std::vector<uint32_t> payload;
    std::vector<const CodeMeaning*> meanings;
  };

  /// RESOURCE_EXHAUSTED if the budget, which outlives the build, does not allow it.
  static absl::StatusOr<std::unique_ptr<DirectBuild>> Make(Options options, MemoryBudget& budget);

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  absl::StatusOr<std::unique_ptr<StepOperator>> NewProbe(ProbeOptions options) const override;
  const DirectBuild* direct_build() const override { return this; }

  /// Complete after the build; at the same address before.
  const DirectTable& table() const { return *table_; }
  const TextKeys* texts() const { return options_.texts.get(); }
  Column PayloadOf(size_t i, const uint32_t* rows) const override;
  size_t payload_columns() const override { return options_.payload.size(); }

 private:
  class Task;
  DirectBuild(Options options, std::unique_ptr<DirectTable> table)
      : options_(std::move(options)), table_(std::move(table)) {
    SetTableBytes(DirectTable::BytesNeeded(options_.table));
  }
  const Options options_;
  const std::unique_ptr<DirectTable> table_;
};

}  // namespace nam::execution
