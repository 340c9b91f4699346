#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/table.pb.h"
#include "types/value.h"

/// Which share of a table's rows has which values of a column, by what the loader has found of it
/// (partitioner/column_statistics.h). Shares are 0 … 1; NULLs are in none of them.
namespace nam::optimizer {

/// Of rows that are not NULL.
double ShareNotNull(const proto::Column& column, uint64_t rows);

/// Of rows that have this value, which is not NULL. A common one is known; the others share what is left
/// evenly.
double ShareOf(const proto::Column& column, uint64_t rows, const Value& value);

/// Of rows with a value that is less; with `also_it`, or equal. Nothing of texts without a histogram and of
/// values that are no numbers.
std::optional<double> ShareBelow(const proto::Column& column, uint64_t rows, const Value& value,
                                 bool also_it);

/// Of rows whose text begins so; nothing without a histogram.
std::optional<double> ShareWithPrefix(const proto::Column& column, uint64_t rows, std::string_view prefix);

}  // namespace nam::optimizer
