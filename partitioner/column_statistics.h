#pragma once

#include <cstddef>
#include <cstdint>

#include "partitioner/encoder.h"
#include "partitioner/staging.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

/// The most common values that a description has.
inline constexpr int kCommonMost = 32;

/// Describes a column's values for planning:
///
///     distinct    number of distinct values: exact for texts and for numbers in a narrow range, otherwise a
///                 sketch of all values (HyperLogLog, 2^14 registers: 0.8 % standard error)
///     common      values with clearly more rows than the average, from a sample of rows
///     histogram   distribution of the sample's other values; none if uniform, which planning assumes
///
/// `code` is the column's code, with its dictionary if it has one. Call after the last Append.
void DescribeValues(const StagedTable& staged, size_t column, const ColumnCode& code, proto::Column& out);

}  // namespace nam::partitioner
