#pragma once

#include "absl/status/statusor.h"
#include "proto/type.pb.h"
#include "types/type.h"
#include "types/value.h"

/// Types and values as messages. Only this code knows both forms.
namespace nam {

/// The type's form in catalogs and plans. For a string column the catalog also needs its bytes, as the
/// message's precision.
proto::Type ToProto(const Type& type);

/// The type of a message from another process. INVALID_ARGUMENT if its kind has no values, or if it has too
/// many decimals or digits.
absl::StatusOr<Type> TypeOf(const proto::Type& type);

/// The type of a catalog column's values in expressions: the widest of its kind, however narrow the column. A
/// kind without values becomes kNull.
Type ColumnTypeOf(const proto::Type& type);

proto::Value ToProto(const Value& value);
/// INVALID_ARGUMENT as in TypeOf. Does not check numbers against their type's bounds.
absl::StatusOr<Value> ValueOf(const proto::Value& value);

}  // namespace nam
