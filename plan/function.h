#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "types/text_bytes.h"

/// The functions that Op::kFunction calls: one table of names, types and strictness, for the binder, the
/// checks of plans and the printer. The result depends on the arguments alone.
namespace nam::plan {

/// Plans hold these numbers: append new ones.
enum class Function : uint8_t {
  // Text
  kConcat,      // a || b
  kConcatAll,   // concat(…): NULLs are skipped
  kConcatWith,  // concat_ws(separator, …)
  kUpper,
  kLower,
  kInitcap,
  kLength,
  kOctetLength,
  kBitLength,
  kSubstring,          // [text, from] or [text, from, characters]
  kPosition,           // strpos(text, part)
  kReplace,            // [text, from, to]
  kTranslate,          // [text, from, to]
  kLeft,               // [text, n]
  kRight,              // [text, n]
  kPadLeft,            // [text, n] or [text, n, fill]
  kPadRight,           // likewise
  kRepeat,             // [text, n]
  kReverse,            // [text]
  kSplitPart,          // [text, delimiter, n]
  kStartsWith,         // [text, prefix]
  kAscii,              // [text]
  kChr,                // [integer]
  kMd5,                // [text]
  kTrim,               // [text] or [text, characters]
  kTrimLeft,           // likewise
  kTrimRight,          // likewise
  kLike,               // [text, pattern]: patterns that are not constant; see Op::kLike
  kLikeEscape,         // [pattern, escape]: the pattern with backslashes instead
  kLikeIgnoreCase,     // ILIKE
  kMatches,            // text ~ expression
  kMatchesIgnoreCase,  // ~*
  // Numbers
  kGreatest,  // [a, b, …] of one type: NULLs are skipped
  kLeast,
  kAbs,
  kSign,
  kFloor,
  kCeiling,
  kTruncate,   // [x] or [x, decimals]
  kRound,      // likewise
  kDivide,     // div(a, b): the integral quotient
  kRemainder,  // for decimals
  kPower,
  kSquareRoot,
  kExp,
  kLn,
  kLog10,
  kLog,  // [base, x]
  kCubeRoot,
  kDegrees,
  kRadians,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kAtan2,
  // Times
  kExtract,       // [field, date, time, timestamp or interval]: exact
  kDatePart,      // likewise, in double precision
  kTruncateTime,  // date_trunc(field, timestamp or interval) or (field, timestamptz, zone)
  kMoveForward,   // timestamp or time + interval; [timestamptz, interval, zone]
  kMoveBack,      // likewise with -
  kTimeBetween,   // timestamp - timestamp, both with a time zone or both without; time - time
  kIntervalSum,   // [a, b]
  kIntervalDifference,
  kIntervalProduct,  // [interval, factor]
  kIntervalQuotient,
  kAge,       // [timestamp, timestamp]
  kMakeDate,  // [year, month, day]
  kToChar,    // [date, time, timestamp, interval or number, pattern]; [timestamptz, pattern, zone]
  // bytea, beside the functions of text above that take it
  kEncode,       // [bytea, encoding]
  kDecode,       // [text, encoding]
  kConvertFrom,  // [bytea, encoding of characters]
  kConvertTo,    // [text, encoding of characters]
  kSha224,
  kSha256,
  kSha384,
  kSha512,
  kGetByte,  // [bytea, n]
  kSetByte,  // [bytea, n, byte]
  kGetBit,   // [bytea, n]
  kSetBit,   // [bytea, n, bit]
  // Intervals: the parts of their groups, orders and aggregates
  kIntervalSpan,     // [interval]: microseconds, as comparisons see it
  kIntervalMonths,   // [interval]: its months alone
  kIntervalDays,     // likewise
  kIntervalTime,     // likewise, in microseconds
  kIntervalOfParts,  // [months, days, microseconds]
  kIntervalOrder,    // [interval]: bytes in the order of spans, which restore it
  kIntervalOfOrder,  // [bytea]
  // Time zones
  kAtZone,             // timezone(zone, timestamptz or timestamp): the other type
  kTimestampTzOfText,  // [text, zone for texts without one]
  kTextOfTimestampTz,  // [timestamptz, zone]
  kToTimestamp,        // [seconds since 1970]
  // Texts by regular expressions (plan/regular_expression.h); flags are i, c, g, s and t
  kMatchedPart,     // [text, expression]: substring(text from expression); NULL without a match
  kSimilarPart,     // [text, expression]: the only group of a match of the whole text
  kReplaceMatches,  // regexp_replace [text, expression, by (, flags) or (, start (, which (, flags)))]
  kCountMatches,    // regexp_count [text, expression (, start (, flags))]
  kHasMatch,        // regexp_like [text, expression (, flags)]
  kNthMatch,        // regexp_substr [text, expression (, start (, which (, flags (, group))))]
  kMatchPlace,      // regexp_instr [text, expression (, start (, which (, end (, flags (, group)))))]
  // Text
  kOverlay,     // [text or bytea, by, from] or [text or bytea, by, from, characters]
  kFormatText,  // format(pattern, …): %s %I %L
  // Integers
  kGreatestDivisor,  // gcd [a, b]
  kLeastMultiple,    // lcm [a, b]
  kBitsAnd,          // [a, b], of 64 bits, as those below
  kBitsOr,
  kBitsXor,
  kBitsNot,     // [a]
  kShiftLeft,   // [a, n]: by n modulo 64
  kShiftRight,  // likewise
  // Times
  kJustifyDays,  // [interval]: 30 days become a month
  kJustifyHours,
  kJustifyInterval,
  kToDate,              // [text, pattern]
  kTimestampByPattern,  // likewise, and the zone
  kOverlaps,            // [from, to, from, to] of timestamps, moments or times: whether the spans intersect
  // Numerics (types/numeric.h): the parts of their groups, orders and aggregates
  kNumericKey,         // [numeric]: a number in the order of the values, equal for equal ones
  kNumericOrder,       // [numeric]: bytes in the order of the values, which restore it
  kNumericOfOrder,     // [bytea]
  kNumericScale,       // [numeric]: the decimals that it shows
  kNumericLimb,        // [numeric, which of 3]: sums of limbs are a sum's
  kNumericSquareLimb,  // [numeric, which of 6]: likewise of its square
  kNumericOfLimbs,     // [3 sums of limbs, scale]
  kNumericAverage,     // [3 sums of limbs, scale, count]
  kNumericVarPop,      // [3 sums of limbs, 6 of squares' limbs, scale, count], as the next three
  kNumericVarSamp,
  kNumericStddevPop,
  kNumericStddevSamp,
  // Decimals whose sums may have more than 38 digits
  kDecimalLimb,     // [decimal, which of 2]: sums of limbs are a sum's
  kDecimalOfLimbs,  // [2 sums of limbs, scale]: a numeric, as the next
  kDecimalAverage,  // [2 sums of limbs, scale, count]
};
inline constexpr Function kLastFunction = Function::kDecimalAverage;

/// One way to call a function. Letters are types of arguments: t text, b boolean, i integer, n decimal, N
/// numeric, f double precision, D date, T timestamp, Z timestamp with time zone, C time, I interval, U uuid,
/// B bytea, a any; a last `*` repeats the one before.
struct Signature {
  Function function;
  const char* name;
  const char* arguments;
  /// A letter as above, or = for the first argument's type.
  char result;
  /// A NULL argument makes the result NULL, without evaluation.
  bool strict = true;
};
std::span<const Signature> Signatures();

/// The type of a letter, without decimals; text for t and a.
Type TypeOfLetter(char letter);
/// The letter of a type; ? if no function takes it.
char LetterOf(const Type& type);

/// The function of an Op::kFunction expression.
inline Function FunctionOf(const Expr& e) {
  return static_cast<Function>(e.index);
}
/// The signature that the operands fit exactly; nullptr if there is none.
const Signature* SignatureOf(Function function, std::span<const Type> arguments);
bool IsStrict(Function function);
/// Whether a strict function may return NULL for arguments that are not NULL.
bool MakesNulls(Function function);
/// For one that is not strict: whether its result is never NULL over operands of these types.
bool NeverNull(Function function, std::span<const Slot> operands);
/// The name in SQL.
const char* NameOf(Function function);
/// The column that the expression is, or is the key of (kNumericKey); nullptr for others.
const Expr* KeyedColumn(const Expr& e);

/// The type of a call. Reads the operands' types and, where the decimals of a result or the kind of EXTRACT
/// depend on them, literals. nullopt if no signature fits.
std::optional<Type> ResultType(Function function, std::span<const Expr> operands);
/// Bounds of the call's results over any operands.
Bounds ResultBounds(const Expr& call);

/// Calls with matching values, none of them NULL for a strict function.
absl::StatusOr<Value> Apply(const Expr& call, std::span<const Value> arguments);

/// Returns 22008: the timestamp is out of range.
absl::Status TimestampOutOfRange(int position);

}  // namespace nam::plan
