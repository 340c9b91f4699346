#include "ssb/generator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "ssb/calendar.h"
#include "ssb/counter_random.h"
#include "ssb/line_counts.h"

namespace nam::ssb {
namespace {

uint64_t Scaled(double per_scale_factor, double scale_factor) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(per_scale_factor * scale_factor)));
}

uint64_t PartCount(double scale_factor) {
  if (scale_factor < 1) return Scaled(200'000, scale_factor);
  return 200'000 * (1 + static_cast<uint64_t>(std::ilogb(scale_factor)));  // ilogb is floor(log2), exactly
}

}  // namespace

absl::Status Validate(const GeneratorOptions& options) {
  if (options.scale_factor >= kScaleFactorMin && options.scale_factor <= kScaleFactorMax)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "scale factor %g is out of range: %g to %g (1 is 6 million lineorder rows, about 0.6 GB as text)",
      options.scale_factor, kScaleFactorMin, kScaleFactorMax));
}

Generator::Generator(const GeneratorOptions& options) : options_(options) {
  NAM_CHECK(Validate(options).ok(), "options are validated before they come here");
  const auto set = [&](Table table, uint64_t units) { units_[static_cast<size_t>(table)] = units; };
  set(Table::kCustomer, Scaled(30'000, options.scale_factor));
  set(Table::kSupplier, Scaled(2'000, options.scale_factor));
  set(Table::kPart, PartCount(options.scale_factor));
  set(Table::kDate, kCalendarDays);
  set(Table::kLineorder, Scaled(1'500'000, options.scale_factor));
}

uint64_t Generator::Rows(Table table) const {
  if (table != Table::kLineorder) return Units(table);
  uint64_t rows = lineorder_rows_.load(std::memory_order_relaxed);
  if (rows == 0) {
    rows = CountLines(0, Units(table));  // the same for every thread that gets here
    lineorder_rows_.store(rows, std::memory_order_relaxed);
  }
  return rows;
}

uint64_t Generator::Key(Table table) const {
  return MixBits(MixBits(options_.seed) + (static_cast<uint64_t>(table) + 1) * kGoldenGamma);
}

void Generator::Fill(Table table, uint64_t first_unit, uint64_t unit_count,
                     partitioner::ColumnBatch& batch) const {
  NAM_CHECK(first_unit <= Units(table) && unit_count <= Units(table) - first_unit, "rows outside the table");
  NAM_CHECK(batch.column_count() == Tables()[static_cast<size_t>(table)].columns.size(),
            "batch of another table");
  batch.Clear();
  switch (table) {
    case Table::kCustomer:
      return FillCustomer(first_unit, unit_count, batch);
    case Table::kSupplier:
      return FillSupplier(first_unit, unit_count, batch);
    case Table::kPart:
      return FillPart(first_unit, unit_count, batch);
    case Table::kDate:
      return FillDate(first_unit, unit_count, batch);
    case Table::kLineorder:
      return FillLineorder(first_unit, unit_count, batch);
  }
}

}  // namespace nam::ssb
