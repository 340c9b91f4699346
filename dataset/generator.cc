#include "dataset/generator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/random.h"

namespace nam::dataset {

absl::Status Validate(const GeneratorOptions& options) {
  if (options.scale_factor >= kScaleFactorMin && options.scale_factor <= kScaleFactorMax)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "scale factor %g is out of range: %g to %g (1 is 6 million rows of the largest table, up to "
      "1 GB as text)",
      options.scale_factor, kScaleFactorMin, kScaleFactorMax));
}

uint64_t ScaledRows(double per_scale_factor, double scale_factor) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(per_scale_factor * scale_factor)));
}

Generator::Generator(const GeneratorOptions& options) : options_(options) {
  NAM_CHECK(Validate(options).ok(), "options are validated before they come here");
}

void Generator::Fill(size_t table, uint64_t first_unit, uint64_t unit_count,
                     partitioner::ColumnBatch& batch) const {
  NAM_CHECK(first_unit <= Units(table) && unit_count <= Units(table) - first_unit, "rows outside the table");
  NAM_CHECK(batch.column_count() == tables()[table].schema.columns.size(), "batch of another table");
  batch.Clear();
  FillRows(table, first_unit, unit_count, batch);
}

uint64_t Generator::Key(size_t table) const {
  return MixBits(MixBits(options_.seed) + (table + 1) * kGoldenGamma);
}

}  // namespace nam::dataset
