#include "execution/join/direct_build.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/join/key_numbers.h"
#include "execution/task.h"
#include "plan/work_cost.h"

namespace nam::execution {

class DirectBuild::Task : public SinkTask {
 public:
  explicit Task(DirectBuild& build)
      : build_(build), keys_(*build.options_.key, 0, build.options_.texts.get()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    context.Charge(rows.count, plan::work_cost::kInsertRowPs);
    ChargeAccesses(context, rows.count, build_.table_bytes());
    const std::optional<uint32_t> keys = keys_.Evaluate(in, rows);
    if (!keys.has_value()) return context.Fail(keys_.error());
    if (rows.count > 0) build_.SawRows();
    if (keys_.null_count() > 0) build_.SawNullKey();
    const bool all_have_numbers = *keys + keys_.null_count() == rows.count;
    if (!all_have_numbers || !Insert(*keys)) {
      return context.Fail(absl::DataLossError(
          "a key is outside of what the catalog says, in another partition, or a duplicate"));
    }
    for (size_t i = 0; i < build_.options_.payload.size(); ++i) {
      if (!Store(i, in.column(build_.options_.payload[i]), *keys))
        return context.Fail(absl::InternalError("a build side's payload has other codes than its table"));
    }
    return Step::kNeedInput;
  }

 private:
  bool Insert(uint32_t count) {
    if (count == 0) return true;
    DirectTable& table = *build_.table_;
    const int64_t* keys = keys_.numbers();
    const auto [least, greatest] = std::minmax_element(keys, keys + count);
    if (!table.InDomain(*least) || !table.InDomain(*greatest)) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!table.IsHere(keys[i]) || !table.InsertUnique(keys[i])) return false;
      places_[i] = table.PositionOf(keys[i]);
    }
    table.Inserted(*least, *greatest, count);
    return true;
  }

  /// Stores codes of the tuples with a key; false if the column has other codes, or NULL without a code for
  /// it.
  bool Store(size_t i, const Column& column, uint32_t count) {
    const CodeMeaning& meaning = *build_.options_.meanings[i];
    if (column.kind != Column::Kind::kCodes || column.meaning != &meaning) return false;
    const uint32_t* positions = keys_.positions();
    return WithCodes(column.base, column.width, [&](const auto* codes) {
      using Code = std::remove_cvref_t<decltype(*codes)>;
      auto* const out = reinterpret_cast<Code*>(build_.table_->payload(i));
      for (uint32_t k = 0; k < count; ++k) {
        const uint32_t index = column.IndexOf(positions[k]);
        if (index == kNullRow && !meaning.null_code) return false;
        out[places_[k]] = index == kNullRow ? Code{0} : codes[index];
      }
      return true;
    });
  }

  DirectBuild& build_;
  KeyNumbers keys_;
  uint32_t places_[kChunkRows];
};

absl::StatusOr<std::unique_ptr<DirectBuild>> DirectBuild::Make(Options options, MemoryBudget& budget) {
  NAM_CHECK(options.table.unique && options.payload.size() == options.meanings.size());
  NAM_CHECK(options.texts == nullptr || !options.texts->ignores_blanks());
  options.table.payload_widths.clear();
  for (const CodeMeaning* meaning : options.meanings) options.table.payload_widths.push_back(meaning->width);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<DirectTable> table, DirectTable::Make(options.table, budget));
  return std::unique_ptr<DirectBuild>(new DirectBuild(std::move(options), std::move(table)));
}

std::unique_ptr<SinkTask> DirectBuild::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

Column DirectBuild::PayloadOf(size_t i, const uint32_t* rows) const {
  const CodeMeaning& meaning = *options_.meanings[i];
  Column column;
  column.kind = Column::Kind::kCodes;
  column.width = meaning.width;
  column.physical = PhysicalOf(meaning.type);
  column.base = table_->payload(i);
  column.rows = rows;
  column.meaning = &meaning;
  return column;
}

}  // namespace nam::execution
