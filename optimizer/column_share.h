#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/table.pb.h"
#include "types/value.h"

/// The share of a table's rows with certain values of a column, from the loader's statistics
/// (partitioner/column_statistics.h). Shares are 0 … 1 and exclude NULLs.
namespace nam::optimizer {

/// Rows that are not NULL.
double ShareNotNull(const proto::Column& column, uint64_t rows);

/// Rows with this value, which is not NULL. Common values are known; the others share the rest evenly.
double ShareOf(const proto::Column& column, uint64_t rows, const Value& value);

/// Rows with a smaller value; with `also_it`, or an equal one. nullopt for texts without a histogram and for
/// values that are not numbers.
std::optional<double> ShareBelow(const proto::Column& column, uint64_t rows, const Value& value,
                                 bool also_it);

/// Rows whose text begins so; nullopt without a histogram.
std::optional<double> ShareWithPrefix(const proto::Column& column, uint64_t rows, std::string_view prefix);

}  // namespace nam::optimizer
