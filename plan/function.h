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

/// The functions that Op::kFunction calls: one table of names, types and strictness, which the binder, the
/// checks of plans and the printer read. The result depends on nothing but the arguments.
namespace nam::plan {

/// Plans carry these numbers: new ones are appended.
enum class Function : uint8_t {
  // Of text
  kConcat,      // a || b
  kConcatAll,   // concat(…): NULLs count as nothing
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
  kLike,               // [text, pattern]: patterns that are no constants; see Op::kLike
  kLikeEscape,         // [pattern, escape]: the pattern with backslashes instead
  kLikeIgnoreCase,     // ILIKE
  kMatches,            // text ~ expression
  kMatchesIgnoreCase,  // ~*
  // Of numbers
  kGreatest,  // [a, b, …] of one type: NULLs count as nothing
  kLeast,
  kAbs,
  kSign,
  kFloor,
  kCeiling,
  kTruncate,   // [x] or [x, decimals]
  kRound,      // likewise
  kDivide,     // div(a, b): the integral quotient
  kRemainder,  // of decimals
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
  // Of times
  kExtract,       // [field, date, time, timestamp or interval]: exact
  kDatePart,      // likewise, in double precision
  kTruncateTime,  // date_trunc(field, timestamp or interval) or (field, timestamptz, zone)
  kMoveForward,   // timestamp or time + interval; [timestamptz, interval, zone]
  kMoveBack,      // likewise with -
  kTimeBetween,   // timestamp - timestamp, both with a time zone or without; time - time
  kIntervalSum,   // [a, b]
  kIntervalDifference,
  kIntervalProduct,  // [interval, factor]
  kIntervalQuotient,
  kAge,       // [timestamp, timestamp]
  kMakeDate,  // [year, month, day]
  kToChar,    // [date, time, timestamp, interval or number, pattern]; [timestamptz, pattern, zone]
  // Of bytea, as those of text above that take it
  kEncode,       // [bytea, encoding]
  kDecode,       // [text, encoding]
  kConvertFrom,  // [bytea, encoding of characters]
  kConvertTo,    // [text, likewise]
  kSha224,
  kSha256,
  kSha384,
  kSha512,
  kGetByte,  // [bytea, n]
  kSetByte,  // [bytea, n, byte]
  kGetBit,   // [bytea, n]
  kSetBit,   // [bytea, n, bit]
  // Of intervals: what their groups, orders and aggregates are made of
  kIntervalSpan,     // [interval]: microseconds, as comparisons see it
  kIntervalMonths,   // [interval]: its part alone
  kIntervalDays,     // likewise
  kIntervalTime,     // likewise, in microseconds
  kIntervalOfParts,  // [months, days, microseconds]
  kIntervalOrder,    // [interval]: bytes in the order of spans, from which it can be had again
  kIntervalOfOrder,  // [bytea]
  // Of time zones
  kAtZone,             // timezone(zone, timestamptz or timestamp): the other one
  kTimestampTzOfText,  // [text, zone of texts without one]
  kTextOfTimestampTz,  // [timestamptz, zone]
  kToTimestamp,        // [seconds since 1970]
  // Of texts by regular expressions (plan/regular_expression.h); flags are i, c, g, s and t
  kMatchedPart,     // [text, expression]: substring(text from expression); NULL without a match
  kSimilarPart,     // [text, expression]: of the only group of one that is as long as the text
  kReplaceMatches,  // regexp_replace [text, expression, by (, flags) or (, start (, which (, flags)))]
  kCountMatches,    // regexp_count [text, expression (, start (, flags))]
  kHasMatch,        // regexp_like [text, expression (, flags)]
  kNthMatch,        // regexp_substr [text, expression (, start (, which (, flags (, group))))]
  kMatchPlace,      // regexp_instr [text, expression (, start (, which (, end (, flags (, group)))))]
  // Of text
  kOverlay,     // [text or bytea, by, from] or [text or bytea, by, from, characters]
  kFormatText,  // format(pattern, …): %s %I %L
  // Of integers
  kGreatestDivisor,  // gcd [a, b]
  kLeastMultiple,    // lcm [a, b]
  kBitsAnd,          // [a, b], of 64 bits, as those below
  kBitsOr,
  kBitsXor,
  kBitsNot,     // [a]
  kShiftLeft,   // [a, n]: by n modulo 64
  kShiftRight,  // likewise
  // Of times
  kJustifyDays,  // [interval]: 30 days become a month
  kJustifyHours,
  kJustifyInterval,
  kToDate,              // [text, pattern]
  kTimestampByPattern,  // likewise
  kOverlaps,  // [from, to, from, to] of timestamps, moments or times: whether the spans have something in
              // common
};
inline constexpr Function kLastFunction = Function::kOverlaps;

/// One way to call a function. Types of arguments are letters: t text, b boolean, i integer, n decimal,
/// f double precision, D date, T timestamp, Z timestamp with time zone, C time, I interval, U uuid, B bytea,
/// a any; a last `*` repeats the one before.
struct Signature {
  Function function;
  const char* name;
  const char* arguments;
  /// A letter as above, or = for the first argument's type.
  char result;
  /// NULL for any argument that is NULL, without evaluation.
  bool strict = true;
};
std::span<const Signature> Signatures();

/// The type of a letter, without decimals; text for t and a.
Type TypeOfLetter(char letter);
/// The letter of a type; ? if no function takes it.
char LetterOf(const Type& type);

/// Of an expression with Op::kFunction.
inline Function FunctionOf(const Expr& e) {
  return static_cast<Function>(e.index);
}
/// The signature that the operands fit exactly; nullptr if there is none.
const Signature* SignatureOf(Function function, std::span<const Type> arguments);
bool IsStrict(Function function);
/// Whether a strict one may be NULL where no argument is.
bool MakesNulls(Function function);
/// Of one that is not strict: whether it has a value for operands of these types.
bool NeverNull(Function function, std::span<const Slot> operands);
/// The name in SQL.
const char* NameOf(Function function);

/// The type of a call. Of operands it looks at types and, where the decimals of a result or the kind of
/// EXTRACT depend on them, at literals. Nothing if no signature fits.
std::optional<Type> ResultType(Function function, std::span<const Expr> operands);
/// Of the call's results, whatever its operands.
Bounds ResultBounds(const Expr& call);

/// A call with values that fit: of a strict function none is NULL.
absl::StatusOr<Value> Apply(const Expr& call, std::span<const Value> arguments);

/// 22008.
absl::Status TimestampOutOfRange(int position);

/// The decimals of what is computed from decimals but has no end: roots, logarithms, powers.
inline constexpr uint8_t kComputedScale = 16;
/// The longest text that a function makes; longer is 54000.
inline constexpr size_t kLongestResultBytes = size_t{16} << 20;

}  // namespace nam::plan
