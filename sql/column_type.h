#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// The type of a record table's column from its TypeName node; always of fixed width.
absl::StatusOr<proto::Type> ColumnTypeOfName(const Node& type_name);

/// The integer type of smallserial, serial and bigserial; nullopt for another type.
absl::StatusOr<std::optional<proto::Type>> SerialTypeOfName(const Node& type_name);

}  // namespace nam::sql
