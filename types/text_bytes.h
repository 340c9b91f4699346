#pragma once

#include <cstddef>

namespace nam {

/// The most bytes of a text or a bytea, which every statement can carry from a load to its client. Longer
/// ones are refused with 54000:
///
///     a load of a columnar table     partitioner/row_bytes.h; rows of record tables end before
///     an expression's result         plan/function.h
///     a row that a query keeps       execution/rows/row_writer.h
inline constexpr size_t kTextBytesMax = size_t{16} << 20;

}  // namespace nam
