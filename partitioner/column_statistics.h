#pragma once

#include <cstddef>
#include <cstdint>

#include "partitioner/encoder.h"
#include "partitioner/staging.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

/// What planning knows of a column's values:
///
///     distinct    how many differ: exact for texts and where numbers lie close together, otherwise a sketch
///     of all
///                 values (HyperLogLog, 2^14 registers: 0.8 % standard error)
///     common      values with clearly more rows than the average, from a sample of rows
///     histogram   how the sample's other values are spread; none if that is evenly, which planning assumes
///
/// `code` is the column's, with its dictionary if it has one. After the last Append.
void DescribeValues(const StagedTable& staged, size_t column, const ColumnCode& code, proto::Column& out);

}  // namespace nam::partitioner
