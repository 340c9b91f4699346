#pragma once

#include "absl/status/statusor.h"
#include "proto/type.pb.h"
#include "types/type.h"
#include "types/value.h"

/// Types and values as messages: the only code that knows both forms.
namespace nam {

/// The type as catalogs and plans hold it. Of a string's column the catalog also wants its bytes, as the
/// message's precision.
proto::Type ToProto(const Type& type);

/// The type of a message that another process sent. INVALID_ARGUMENT if its kind has no values, or if it has
/// more decimals or digits than there are.
absl::StatusOr<Type> TypeOf(const proto::Type& type);

/// The type that the values of a catalog's column have in expressions: as wide as its kind goes, however
/// narrow the column is. A kind without values becomes kNull.
Type ColumnTypeOf(const proto::Type& type);

proto::Value ToProto(const Value& value);
/// INVALID_ARGUMENT as TypeOf. A number is not compared with its type's bounds.
absl::StatusOr<Value> ValueOf(const proto::Value& value);

}  // namespace nam
