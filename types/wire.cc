#include "types/wire.h"

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace nam {
namespace {

bool HasValues(uint32_t kind) {
  const bool known = kind <= static_cast<uint32_t>(TypeKind::kNumeric);
  return kind == 0 || (known && Type{.kind = static_cast<TypeKind>(kind)}.HasValues());
}

}  // namespace

proto::Type ToProto(const Type& type) {
  proto::Type out;
  out.set_kind(static_cast<uint32_t>(type.kind));
  out.set_scale(type.blank_padded ? 1 : type.scale);
  out.set_length(type.length);
  out.set_precision(type.precision);
  out.set_blank_padded(type.blank_padded);
  return out;
}

absl::StatusOr<Type> TypeOf(const proto::Type& type) {
  if (!HasValues(type.kind())) return absl::InvalidArgumentError("not a type: unknown kind");
  Type out{.kind = static_cast<TypeKind>(type.kind()), .length = type.length()};
  // The precision of types stored as text is a number of bytes, which concerns the catalog only.
  if (PhysicalOf(out) == Physical::kText) {
    out.blank_padded = out.kind == TypeKind::kString && type.blank_padded();
    return out;
  }
  if (type.scale() > kMaxDecimalDigits || type.precision() > kMaxDecimalDigits)
    return absl::InvalidArgumentError("not a type: more than 38 digits");
  out.scale = static_cast<uint8_t>(type.scale());
  out.precision = static_cast<uint8_t>(type.precision());
  return out;
}

Type ColumnTypeOf(const proto::Type& type) {
  Type out = TypeOf(type).value_or(Type::Null());
  out.precision = 0;
  return out;
}

proto::Value ToProto(const Value& value) {
  proto::Value out;
  *out.mutable_type() = ToProto(value.type);
  out.set_null(value.null);
  out.set_high(static_cast<int64_t>(value.number >> 64));
  out.set_low(static_cast<uint64_t>(value.number));
  out.set_text(value.text);
  return out;
}

absl::StatusOr<Value> ValueOf(const proto::Value& value) {
  Value out;
  NAM_ASSIGN_OR_RETURN(out.type, TypeOf(value.type()));
  out.null = value.null();
  out.number = static_cast<__int128>(value.high()) << 64 | value.low();
  out.text = value.text();
  return out;
}

}  // namespace nam
