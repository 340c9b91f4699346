#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"

namespace nam::sql {

inline constexpr char kCharacterBytes[] = " bytes; each character of a text takes 4";

bool HasColumnOf(const proto::Table& table, const std::string& name);

/// The column of this name, for a key or an index; 42703 if there is none.
absl::StatusOr<int> IndexedColumn(const proto::Table& table, const std::string& name, int position);

/// 0A000 if the column's values have no order of bytes.
absl::Status CheckOrdered(const proto::Column& column, int position);

/// An ordered index over index.columns, without extents. 54000 if its keys are too long.
absl::Status DescribeIndex(const proto::Table& table, const std::string& name, bool unique, int position,
                           proto::RecordPart& index);

}  // namespace nam::sql
