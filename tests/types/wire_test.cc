#include "types/wire.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "types/value.h"

namespace nam {
namespace {

/// Any type with values, as in a column or an expression.
Type ArbitraryType() {
  Type type{.kind = static_cast<TypeKind>(*rc::gen::inRange(0, static_cast<int>(TypeKind::kReal) + 1))};
  const auto digits =
      rc::gen::map(rc::gen::inRange(0, kMaxDecimalDigits + 1), [](int n) { return static_cast<uint8_t>(n); });
  if (type.kind == TypeKind::kDecimal) type.scale = *digits;
  if (type.numeric()) type.precision = *digits;
  if (type.kind == TypeKind::kString) {
    type.length = *rc::gen::element<uint32_t>(0, 1, 16'383, Type::kAnyLength);
    type.blank_padded = *rc::gen::arbitrary<bool>();
  }
  return type;
}

Value ArbitraryValue() {
  Value value = Value::Null(ArbitraryType());
  value.null = *rc::gen::arbitrary<bool>();
  const auto word = rc::gen::arbitrary<uint64_t>();
  value.number = static_cast<__int128>(static_cast<unsigned __int128>(*word) << 64 | *word);
  value.text = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  return value;
}

RC_GTEST_PROP(WireProperty, TypesReturnAsTheyWere, ()) {
  const Type type = ArbitraryType();
  const auto back = TypeOf(ToProto(type));
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == type);
}

RC_GTEST_PROP(WireProperty, ValuesReturnAsTheyWere, ()) {
  const Value value = ArbitraryValue();
  proto::Value read;
  RC_ASSERT(read.ParseFromString(ToProto(value).SerializeAsString()));
  const auto back = ValueOf(read);
  RC_ASSERT(back.ok());
  RC_ASSERT(back->type == value.type);
  RC_ASSERT(back->null == value.null);
  RC_ASSERT(back->number == value.number);
  RC_ASSERT(back->text == value.text);
}

/// Data from the catalog are decoded, or refused, and never out of range.
RC_GTEST_PROP(WireProperty, AnyMessageIsATypeOrRefused, ()) {
  proto::Type message;
  const auto number = rc::gen::element<uint32_t>(0, 1, 3, 5, 6, 7, 13, 14, 38, 39, 256 + 3, UINT32_MAX);
  message.set_kind(*number);
  message.set_scale(*number);
  message.set_precision(*number);
  message.set_length(*number);
  message.set_blank_padded(*rc::gen::arbitrary<bool>());
  const auto type = TypeOf(message);
  if (!type.ok()) {
    RC_ASSERT(absl::IsInvalidArgument(type.status()));
    RC_ASSERT(ColumnTypeOf(message) == Type::Null());
    return;
  }
  RC_ASSERT(static_cast<uint32_t>(type->kind) == message.kind());
  RC_ASSERT(type->scale <= kMaxDecimalDigits && type->precision <= kMaxDecimalDigits);
  RC_ASSERT(!type->blank_padded || type->kind == TypeKind::kString);
  RC_ASSERT(TypeOf(ToProto(*type)).value() == *type);
}

/// Stores hold these numbers.
TEST(WireTest, NumbersStayAsTheyAre) {
  const std::pair<Type, std::string> kStored[] = {
      {Type::Null(), ""},
      {Type::Bool(), "\x08\x01"},
      {Type::Integer(), "\x08\x02"},
      {Type::Decimal(2), "\x08\x03\x10\x02"},
      {Type::Date(), "\x08\x04"},
      {Type::String(7), "\x08\x05\x18\x07"},
      {Type::Timestamp(), "\x08\x06"},
      {{.kind = TypeKind::kString, .blank_padded = true, .length = 7}, "\x08\x05\x10\x01\x18\x07\x28\x01"},
      {{.kind = TypeKind::kInteger, .precision = 4}, "\x08\x02\x20\x04"},
      {{.kind = TypeKind::kDecimal, .scale = 2, .precision = 12}, "\x08\x03\x10\x02\x20\x0c"}};
  for (const auto& [type, bytes] : kStored) {
    EXPECT_EQ(ToProto(type).SerializeAsString(), bytes) << TypeName(type);
    proto::Type stored;
    ASSERT_TRUE(stored.ParseFromString(bytes));
    EXPECT_EQ(TypeOf(stored).value(), type) << TypeName(type);
  }
}

TEST(WireTest, KindsWithoutValuesAreRefused) {
  for (uint32_t kind = static_cast<uint32_t>(TypeKind::kNumeric) + 1; kind < 300; ++kind) {
    proto::Type message;
    message.set_kind(kind);
    EXPECT_TRUE(absl::IsInvalidArgument(TypeOf(message).status())) << kind;
    proto::Value value;
    *value.mutable_type() = message;
    EXPECT_TRUE(absl::IsInvalidArgument(ValueOf(value).status())) << kind;
  }
}

TEST(WireTest, ExpressionsComputeInTheWidest) {
  EXPECT_EQ(ColumnTypeOf(ToProto({.kind = TypeKind::kInteger, .precision = 2})), Type::Integer());
  EXPECT_EQ(ColumnTypeOf(ToProto({.kind = TypeKind::kDecimal, .scale = 3, .precision = 9})),
            Type::Decimal(3));
  proto::Type text = ToProto(Type::String(9));
  text.set_precision(36);  // its bytes
  EXPECT_EQ(ColumnTypeOf(text), Type::String(9));
}

TEST(TypeTest, EveryKindHasANameAndAForm) {
  std::set<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(TypeKind::kBytes); ++kind) {
    const Type type{.kind = static_cast<TypeKind>(kind)};
    names.insert(TypeName(type));
    EXPECT_EQ(PhysicalOf(type) == Physical::kTruth, kind <= static_cast<int>(TypeKind::kBool));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(TypeKind::kBytes) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace nam
