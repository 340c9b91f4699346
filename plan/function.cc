#include "plan/function.h"

#include <algorithm>
#include <array>

#include "plan/function_families.h"
#include "plan/time_field.h"
#include "types/date.h"
#include "types/numeric.h"

namespace nam::plan {
namespace {

/// Of several signatures that fit a call, the binder takes the first of the cheapest.
constexpr Signature kSignatures[] = {
    // A chain of || is one call.
    {F::kConcat, "textcat", "tt*", 't'},
    {F::kConcatAll, "concat", "a*", 't', false},
    {F::kConcatWith, "concat_ws", "ta*", 't', false},
    {F::kUpper, "upper", "t", 't'},
    {F::kLower, "lower", "t", 't'},
    {F::kInitcap, "initcap", "t", 't'},
    {F::kLength, "length", "t", 'i'},
    {F::kLength, "char_length", "t", 'i'},
    {F::kLength, "character_length", "t", 'i'},
    {F::kOctetLength, "octet_length", "t", 'i'},
    {F::kBitLength, "bit_length", "t", 'i'},
    {F::kSubstring, "substring", "ti", 't'},
    {F::kSubstring, "substring", "tii", 't'},
    {F::kSubstring, "substr", "ti", 't'},
    {F::kSubstring, "substr", "tii", 't'},
    {F::kPosition, "strpos", "tt", 'i'},
    {F::kPosition, "position", "tt", 'i'},
    {F::kReplace, "replace", "ttt", 't'},
    {F::kTranslate, "translate", "ttt", 't'},
    {F::kLeft, "left", "ti", 't'},
    {F::kRight, "right", "ti", 't'},
    {F::kPadLeft, "lpad", "ti", 't'},
    {F::kPadLeft, "lpad", "tit", 't'},
    {F::kPadRight, "rpad", "ti", 't'},
    {F::kPadRight, "rpad", "tit", 't'},
    {F::kRepeat, "repeat", "ti", 't'},
    {F::kReverse, "reverse", "t", 't'},
    {F::kSplitPart, "split_part", "tti", 't'},
    {F::kStartsWith, "starts_with", "tt", 'b'},
    {F::kAscii, "ascii", "t", 'i'},
    {F::kChr, "chr", "i", 't'},
    {F::kMd5, "md5", "t", 't'},
    {F::kTrim, "btrim", "t", 't'},
    {F::kTrim, "btrim", "tt", 't'},
    {F::kTrimLeft, "ltrim", "t", 't'},
    {F::kTrimLeft, "ltrim", "tt", 't'},
    {F::kTrimRight, "rtrim", "t", 't'},
    {F::kTrimRight, "rtrim", "tt", 't'},
    {F::kLike, "like", "tt", 'b'},
    {F::kLikeEscape, "like_escape", "tt", 't'},
    {F::kLikeIgnoreCase, "texticlike", "tt", 'b'},
    {F::kMatches, "textregexeq", "tt", 'b'},
    {F::kMatchesIgnoreCase, "texticregexeq", "tt", 'b'},
    {F::kGreatest, "greatest", "a*", '=', false},
    {F::kLeast, "least", "a*", '=', false},
    {F::kAbs, "abs", "f", 'f'},
    {F::kAbs, "abs", "i", 'i'},
    {F::kAbs, "abs", "n", '='},
    {F::kAbs, "abs", "N", 'N'},
    {F::kSign, "sign", "f", 'f'},
    {F::kSign, "sign", "n", 'n'},
    {F::kSign, "sign", "N", 'n'},
    {F::kFloor, "floor", "f", 'f'},
    {F::kFloor, "floor", "n", 'n'},
    {F::kFloor, "floor", "N", 'n'},
    {F::kCeiling, "ceiling", "f", 'f'},
    {F::kCeiling, "ceiling", "n", 'n'},
    {F::kCeiling, "ceiling", "N", 'n'},
    {F::kCeiling, "ceil", "f", 'f'},
    {F::kCeiling, "ceil", "n", 'n'},
    {F::kCeiling, "ceil", "N", 'n'},
    {F::kTruncate, "trunc", "f", 'f'},
    {F::kTruncate, "trunc", "n", 'n'},
    {F::kTruncate, "trunc", "ni", 'n'},
    {F::kTruncate, "trunc", "N", 'n'},
    {F::kTruncate, "trunc", "Ni", 'N'},
    {F::kRound, "round", "f", 'f'},
    {F::kRound, "round", "n", 'n'},
    {F::kRound, "round", "ni", 'n'},
    {F::kRound, "round", "N", 'n'},
    {F::kRound, "round", "Ni", 'N'},
    {F::kDivide, "div", "nn", 'n'},
    {F::kDivide, "div", "NN", 'n'},
    {F::kRemainder, "mod", "nn", 'n'},
    {F::kRemainder, "mod", "NN", 'N'},
    {F::kPower, "power", "ff", 'f'},
    {F::kPower, "power", "NN", 'N'},
    {F::kPower, "pow", "ff", 'f'},
    {F::kPower, "pow", "NN", 'N'},
    {F::kSquareRoot, "sqrt", "f", 'f'},
    {F::kSquareRoot, "sqrt", "N", 'N'},
    {F::kExp, "exp", "f", 'f'},
    {F::kExp, "exp", "N", 'N'},
    {F::kLn, "ln", "f", 'f'},
    {F::kLn, "ln", "N", 'N'},
    {F::kLog10, "log", "f", 'f'},
    {F::kLog10, "log", "N", 'N'},
    {F::kLog10, "log10", "f", 'f'},
    {F::kLog10, "log10", "N", 'N'},
    {F::kLog, "log", "NN", 'N'},
    {F::kCubeRoot, "cbrt", "f", 'f'},
    {F::kDegrees, "degrees", "f", 'f'},
    {F::kRadians, "radians", "f", 'f'},
    {F::kSin, "sin", "f", 'f'},
    {F::kCos, "cos", "f", 'f'},
    {F::kTan, "tan", "f", 'f'},
    {F::kAsin, "asin", "f", 'f'},
    {F::kAcos, "acos", "f", 'f'},
    {F::kAtan, "atan", "f", 'f'},
    {F::kAtan2, "atan2", "ff", 'f'},
    {F::kExtract, "extract", "tT", 'n'},
    {F::kExtract, "extract", "tD", 'n'},
    {F::kExtract, "extract", "tI", 'n'},
    {F::kExtract, "extract", "tC", 'n'},
    {F::kDatePart, "date_part", "tT", 'f'},
    {F::kDatePart, "date_part", "tD", 'f'},
    {F::kDatePart, "date_part", "tI", 'f'},
    {F::kDatePart, "date_part", "tC", 'f'},
    {F::kTruncateTime, "date_trunc", "tT", 'T'},
    {F::kTruncateTime, "date_trunc", "tI", 'I'},
    {F::kTruncateTime, "date_trunc", "tZt", 'Z'},
    {F::kMoveForward, "timestamp_pl_interval", "TI", 'T'},
    {F::kMoveForward, "timestamp_pl_interval", "ZIt", 'Z'},
    {F::kMoveForward, "timestamp_pl_interval", "CI", 'C'},
    {F::kMoveBack, "timestamp_mi_interval", "TI", 'T'},
    {F::kMoveBack, "timestamp_mi_interval", "ZIt", 'Z'},
    {F::kMoveBack, "timestamp_mi_interval", "CI", 'C'},
    {F::kTimeBetween, "timestamp_mi", "TT", 'I'},
    {F::kTimeBetween, "timestamp_mi", "ZZ", 'I'},
    {F::kTimeBetween, "timestamp_mi", "CC", 'I'},
    {F::kIntervalSum, "interval_pl", "II", 'I'},
    {F::kIntervalDifference, "interval_mi", "II", 'I'},
    {F::kIntervalProduct, "interval_mul", "If", 'I'},
    {F::kIntervalQuotient, "interval_div", "If", 'I'},
    {F::kAge, "age", "TT", 'I'},
    {F::kMakeDate, "make_date", "iii", 'D'},
    {F::kToChar, "to_char", "Tt", 't'},
    {F::kToChar, "to_char", "Dt", 't'},
    {F::kToChar, "to_char", "Ct", 't'},
    {F::kToChar, "to_char", "Ztt", 't'},
    {F::kToChar, "to_char", "nt", 't'},
    {F::kToChar, "to_char", "it", 't'},
    {F::kToChar, "to_char", "ft", 't'},
    {F::kToChar, "to_char", "It", 't'},
    {F::kToChar, "to_char", "Nt", 't'},
    {F::kConcat, "byteacat", "BB", 'B'},
    {F::kLength, "length", "B", 'i'},
    {F::kOctetLength, "octet_length", "B", 'i'},
    {F::kBitLength, "bit_length", "B", 'i'},
    {F::kSubstring, "substring", "Bi", 'B'},
    {F::kSubstring, "substring", "Bii", 'B'},
    {F::kSubstring, "substr", "Bi", 'B'},
    {F::kSubstring, "substr", "Bii", 'B'},
    {F::kPosition, "position", "BB", 'i'},
    {F::kTrim, "btrim", "BB", 'B'},
    {F::kTrimLeft, "ltrim", "BB", 'B'},
    {F::kTrimRight, "rtrim", "BB", 'B'},
    {F::kMd5, "md5", "B", 't'},
    {F::kEncode, "encode", "Bt", 't'},
    {F::kDecode, "decode", "tt", 'B'},
    {F::kConvertFrom, "convert_from", "Bt", 't'},
    {F::kConvertTo, "convert_to", "tt", 'B'},
    {F::kSha224, "sha224", "B", 'B'},
    {F::kSha256, "sha256", "B", 'B'},
    {F::kSha384, "sha384", "B", 'B'},
    {F::kSha512, "sha512", "B", 'B'},
    {F::kGetByte, "get_byte", "Bi", 'i'},
    {F::kSetByte, "set_byte", "Bii", 'B'},
    {F::kGetBit, "get_bit", "Bi", 'i'},
    {F::kSetBit, "set_bit", "Bii", 'B'},
    {F::kIntervalSpan, "interval_span", "I", 'n'},
    {F::kIntervalMonths, "interval_months", "I", 'i'},
    {F::kIntervalDays, "interval_days", "I", 'i'},
    {F::kIntervalTime, "interval_time", "I", 'i'},
    {F::kIntervalOfParts, "interval_of_parts", "iii", 'I'},
    {F::kIntervalOrder, "interval_order", "I", 'B'},
    {F::kIntervalOfOrder, "interval_of_order", "B", 'I'},
    {F::kAtZone, "timezone", "tZ", 'T'},
    {F::kAtZone, "timezone", "tT", 'Z'},
    {F::kTimestampTzOfText, "timestamptz_in", "tt", 'Z'},
    {F::kTextOfTimestampTz, "timestamptz_out", "Zt", 't'},
    {F::kToTimestamp, "to_timestamp", "f", 'Z'},
    {F::kMatchedPart, "substring", "tt", 't'},
    {F::kSimilarPart, "substring_similar", "tt", 't'},
    {F::kReplaceMatches, "regexp_replace", "ttt", 't'},
    {F::kReplaceMatches, "regexp_replace", "tttt", 't'},
    {F::kReplaceMatches, "regexp_replace", "ttti", 't'},
    {F::kReplaceMatches, "regexp_replace", "tttii", 't'},
    {F::kReplaceMatches, "regexp_replace", "tttiit", 't'},
    {F::kCountMatches, "regexp_count", "tt", 'i'},
    {F::kCountMatches, "regexp_count", "tti", 'i'},
    {F::kCountMatches, "regexp_count", "ttit", 'i'},
    {F::kHasMatch, "regexp_like", "tt", 'b'},
    {F::kHasMatch, "regexp_like", "ttt", 'b'},
    {F::kNthMatch, "regexp_substr", "tt", 't'},
    {F::kNthMatch, "regexp_substr", "tti", 't'},
    {F::kNthMatch, "regexp_substr", "ttii", 't'},
    {F::kNthMatch, "regexp_substr", "ttiit", 't'},
    {F::kNthMatch, "regexp_substr", "ttiiti", 't'},
    {F::kMatchPlace, "regexp_instr", "tt", 'i'},
    {F::kMatchPlace, "regexp_instr", "tti", 'i'},
    {F::kMatchPlace, "regexp_instr", "ttii", 'i'},
    {F::kMatchPlace, "regexp_instr", "ttiii", 'i'},
    {F::kMatchPlace, "regexp_instr", "ttiiit", 'i'},
    {F::kMatchPlace, "regexp_instr", "ttiiiti", 'i'},
    {F::kOverlay, "overlay", "tti", 't'},
    {F::kOverlay, "overlay", "ttii", 't'},
    {F::kOverlay, "overlay", "BBi", 'B'},
    {F::kOverlay, "overlay", "BBii", 'B'},
    {F::kFormatText, "format", "t", 't', false},
    {F::kFormatText, "format", "ta*", 't', false},
    {F::kGreatestDivisor, "gcd", "ii", 'i'},
    {F::kLeastMultiple, "lcm", "ii", 'i'},
    {F::kBitsAnd, "int8and", "ii", 'i'},
    {F::kBitsOr, "int8or", "ii", 'i'},
    {F::kBitsXor, "int8xor", "ii", 'i'},
    {F::kBitsNot, "int8not", "i", 'i'},
    {F::kShiftLeft, "int8shl", "ii", 'i'},
    {F::kShiftRight, "int8shr", "ii", 'i'},
    {F::kJustifyDays, "justify_days", "I", 'I'},
    {F::kJustifyHours, "justify_hours", "I", 'I'},
    {F::kJustifyInterval, "justify_interval", "I", 'I'},
    {F::kToDate, "to_date", "tt", 'D'},
    {F::kTimestampByPattern, "to_timestamp", "ttt", 'Z'},
    {F::kOverlaps, "overlaps", "TTTT", 'b', false},
    {F::kOverlaps, "overlaps", "ZZZZ", 'b', false},
    {F::kOverlaps, "overlaps", "CCCC", 'b', false},
    {F::kNumericKey, "numeric_key", "N", 'n'},
    {F::kNumericOrder, "numeric_order", "N", 'B'},
    {F::kNumericOfOrder, "numeric_of_order", "B", 'N'},
    {F::kNumericScale, "numeric_scale", "N", 'i'},
    {F::kNumericLimb, "numeric_limb", "Ni", 'n'},
    {F::kNumericSquareLimb, "numeric_square_limb", "Ni", 'n'},
    {F::kNumericOfLimbs, "numeric_of_limbs", "nnni", 'N'},
    {F::kNumericAverage, "numeric_average", "nnnii", 'N'},
    {F::kNumericVarPop, "numeric_var_pop", "nnnnnnnnnii", 'N'},
    {F::kNumericVarSamp, "numeric_var_samp", "nnnnnnnnnii", 'N'},
    {F::kNumericStddevPop, "numeric_stddev_pop", "nnnnnnnnnii", 'N'},
    {F::kNumericStddevSamp, "numeric_stddev_samp", "nnnnnnnnnii", 'N'},
    {F::kDecimalLimb, "decimal_limb", "ni", 'n'},
    {F::kDecimalOfLimbs, "decimal_of_limbs", "nni", 'N'},
    {F::kDecimalAverage, "decimal_average", "nnii", 'N'},
};

constexpr size_t kFunctions = static_cast<size_t>(kLastFunction) + 1;

/// The first signature of each function.
constexpr auto kFirst = [] {
  std::array<const Signature*, kFunctions> first{};
  for (const Signature& signature : kSignatures) {
    const Signature*& at = first[static_cast<size_t>(signature.function)];
    if (at == nullptr) at = &signature;
  }
  return first;
}();
static_assert(std::none_of(kFirst.begin(), kFirst.end(), [](const Signature* s) { return s == nullptr; }));

bool Fits(std::string_view letters, std::span<const Type> arguments) {
  const bool repeats = letters.ends_with('*');
  if (repeats) letters.remove_suffix(1);
  if (repeats ? arguments.size() < letters.size() : arguments.size() != letters.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const char letter = letters[std::min(i, letters.size() - 1)];
    if (letter != 'a' && letter != LetterOf(arguments[i])) return false;
    if (!arguments[i].HasValues()) return false;
  }
  return true;
}

bool IsIntegerLiteral(const Expr& e) {
  return e.op == Op::kLiteral && !e.literal.null && e.literal.type.kind == TypeKind::kInteger;
}

/// The decimals of a decimal result.
uint8_t ResultScale(Function function, std::span<const Expr> operands) {
  const Type& first = operands[0].type;
  switch (function) {
    case F::kRound:
    case F::kTruncate:
      if (operands.size() == 1) return 0;
      if (!IsIntegerLiteral(operands[1])) return first.scale;
      return static_cast<uint8_t>(
          std::clamp<__int128>(operands[1].literal.number, 0, __int128{kMaxDecimalDigits}));
    case F::kRemainder:
      return std::max(first.scale, operands[1].type.scale);
    default:
      return 0;
  }
}

std::optional<Type> ExtractType(std::span<const Expr> operands) {
  const Expr& field = operands[0];
  if (field.op != Op::kLiteral || field.literal.null) return std::nullopt;
  const std::optional<TimeField> known = TimeFieldOf(field.literal.text);
  if (!known) return std::nullopt;
  const bool date = operands[1].type.kind == TypeKind::kDate;
  switch (*known) {
    case TimeField::kSecond:
      return Type::Decimal(6);
    case TimeField::kEpoch:
      return date ? Type::Integer() : Type::Decimal(6);
    case TimeField::kMillisecond:
      return Type::Decimal(3);
    default:
      return Type::Integer();
  }
}

Bounds LimbBounds(const Expr& which) {
  if (!IsIntegerLiteral(which)) return {};
  if (which.literal.number == 0) return {0, UINT64_MAX, true};
  const __int128 most = PowerOfTen(kMaxDecimalDigits) - 1;
  return {DecimalLimb(-most, 1), DecimalLimb(most, 1), true};
}

}  // namespace

std::span<const Signature> Signatures() {
  return kSignatures;
}

char LetterOf(const Type& type) {
  switch (type.kind) {
    case TypeKind::kString:
      return 't';
    case TypeKind::kBool:
      return 'b';
    case TypeKind::kInteger:
      return 'i';
    case TypeKind::kDecimal:
      return 'n';
    case TypeKind::kNumeric:
      return 'N';
    case TypeKind::kDouble:
      return 'f';
    case TypeKind::kDate:
      return 'D';
    case TypeKind::kTimestamp:
      return 'T';
    case TypeKind::kTimestampTz:
      return 'Z';
    case TypeKind::kTime:
      return 'C';
    case TypeKind::kInterval:
      return 'I';
    case TypeKind::kUuid:
      return 'U';
    case TypeKind::kBytes:
      return 'B';
    default:
      return '?';
  }
}

const Signature* SignatureOf(Function function, std::span<const Type> arguments) {
  for (const Signature& signature : kSignatures) {
    if (signature.function == function && Fits(signature.arguments, arguments)) return &signature;
  }
  return nullptr;
}

bool IsStrict(Function function) {
  return kFirst[static_cast<size_t>(function)]->strict;
}

bool MakesNulls(Function function) {
  switch (function) {
    case F::kToChar:  // for an empty pattern
    case F::kMatchedPart:
    case F::kSimilarPart:
    case F::kNthMatch:
    case F::kNumericVarSamp:  // of one value
    case F::kNumericStddevSamp:
      return true;
    default:
      return false;
  }
}

bool NeverNull(Function function, std::span<const Slot> operands) {
  const auto present = [](const Slot& slot) { return !slot.nullable; };
  switch (function) {
    case F::kConcatAll:
      return true;
    case F::kConcatWith:
    case F::kFormatText:
      return present(operands[0]);
    case F::kOverlaps:
      return std::all_of(operands.begin(), operands.end(), present);
    default:  // GREATEST, LEAST
      return std::any_of(operands.begin(), operands.end(), present);
  }
}

const char* NameOf(Function function) {
  return kFirst[static_cast<size_t>(function)]->name;
}

const Expr* KeyedColumn(const Expr& e) {
  const bool key = e.op == Op::kFunction && FunctionOf(e) == F::kNumericKey;
  const Expr& column = key ? e.children[0] : e;
  return column.op == Op::kColumn ? &column : nullptr;
}

Type TypeOfLetter(char letter) {
  switch (letter) {
    case 'b':
      return Type::Bool();
    case 'i':
      return Type::Integer();
    case 'n':
      return Type::Decimal(0);
    case 'N':
      return Type::Numeric();
    case 'f':
      return Type::Double();
    case 'D':
      return Type::Date();
    case 'T':
      return Type::Timestamp();
    case 'Z':
      return Type::TimestampTz();
    case 'C':
      return Type::Time();
    case 'I':
      return Type::Interval();
    case 'U':
      return Type::Uuid();
    case 'B':
      return Type::Bytes();
    default:
      return Type::String();
  }
}

std::optional<Type> ResultType(Function function, std::span<const Expr> operands) {
  std::vector<Type> types;
  for (const Expr& operand : operands) types.push_back(operand.type);
  const Signature* signature = SignatureOf(function, types);
  if (signature == nullptr) return std::nullopt;
  if (function == F::kExtract) return ExtractType(operands);
  const bool to_decimals = (function == F::kRound || function == F::kTruncate) && operands.size() > 1;
  if (to_decimals && IsIntegerLiteral(operands[1])) return Type::Decimal(ResultScale(function, operands));
  switch (signature->result) {
    case '=':
      for (const Type& type : types) {
        if (type.kind != types[0].kind || type.scale != types[0].scale) return std::nullopt;
      }
      return types[0].kind == TypeKind::kString ? Type::String() : types[0];
    case 'n':
      return Type::Decimal(ResultScale(function, operands));
    default:
      return TypeOfLetter(signature->result);
  }
}

Bounds ResultBounds(const Expr& call) {
  switch (call.type.kind) {
    case TypeKind::kDate:
      return {kLeastDay, kGreatestDay, true};
    case TypeKind::kTime:
      return {0, kMicrosecondsPerDay, true};
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      return {__int128{kLeastDay} * kMicrosecondsPerDay, __int128{kGreatestDay + 1} * kMicrosecondsPerDay - 1,
              true};
    default:
      break;
  }
  switch (FunctionOf(call)) {
    case F::kLength:
    case F::kOctetLength:
    case F::kBitLength:
    case F::kPosition:
    case F::kAscii:
    case F::kCountMatches:
    case F::kMatchPlace:
    case F::kGreatestDivisor:
    case F::kLeastMultiple:
      return {0, INT64_MAX, true};
    case F::kBitsAnd:
    case F::kBitsOr:
    case F::kBitsXor:
    case F::kBitsNot:
    case F::kShiftLeft:
    case F::kShiftRight:
      return {INT64_MIN, INT64_MAX, true};
    case F::kNumericScale:
      return {0, kMaxNumericScale, true};
    case F::kDecimalLimb:
      return LimbBounds(call.children[1]);
    case F::kSign:
      return call.type.numeric() ? Bounds{-1, 1, true} : Bounds{};
    default:
      return {};
  }
}

absl::StatusOr<Value> Apply(const Expr& call, std::span<const Value> arguments) {
  const Function function = FunctionOf(call);
  if (function >= F::kEncode && function <= F::kSetBit) return ApplyToBytes(call, arguments);
  if (function >= F::kIntervalSpan && function <= F::kIntervalOfOrder)
    return ApplyToIntervals(call, arguments);
  const bool any = function == F::kConcatAll || function == F::kConcatWith;
  const bool of_bytes = (function <= F::kMatchesIgnoreCase && !any) || function == F::kOverlay;
  if (of_bytes && arguments[0].type.kind == TypeKind::kBytes) return ApplyToBytes(call, arguments);
  if (function <= F::kMatchesIgnoreCase) return ApplyToText(call, arguments);
  if (function <= F::kAtan2) return ApplyToNumbers(call, arguments);
  if (function >= F::kMatchedPart && function <= F::kMatchPlace) return ApplyToMatches(call, arguments);
  if (function == F::kOverlay || function == F::kFormatText) return ApplyToText(call, arguments);
  if (function >= F::kNumericKey) return ApplyToNumerics(call, arguments);
  if (function >= F::kGreatestDivisor && function <= F::kShiftRight) return ApplyToBits(call, arguments);
  return ApplyToTimes(call, arguments);
}

}  // namespace nam::plan
