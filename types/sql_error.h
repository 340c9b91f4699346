#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace nam {

/// An error in the user's text. A payload of absl::Status, so that it passes through layers.
struct SqlError {
  std::string message;  // ToStatus shortens long ones
  int position = -1;    // byte offset in the statement; -1: unknown
  std::string hint;
  std::string sqlstate;  // five characters
};
absl::Status ToStatus(const SqlError& error);
/// The SqlError in a status, if it carries one.
std::optional<SqlError> SqlErrorOf(const absl::Status& status);

/// SQLSTATEs as PostgreSQL uses them.
namespace sqlstate {
inline constexpr const char* kSuccess = "00000";  // for notices
inline constexpr const char* kNotSupported = "0A000";
inline constexpr const char* kBadText = "22P02";  // invalid number or boolean text
inline constexpr const char* kBadDate = "22007";
inline constexpr const char* kDateOutOfRange = "22008";
inline constexpr const char* kNumberOutOfRange = "22003";
inline constexpr const char* kDivisionByZero = "22012";
inline constexpr const char* kBadEncoding = "22021";
inline constexpr const char* kBadParameter = "22023";
inline constexpr const char* kBadEscape = "22025";
inline constexpr const char* kBadSubstring = "22011";
inline constexpr const char* kIntervalFieldOverflow = "22015";
inline constexpr const char* kBadLogarithm = "2201E";
inline constexpr const char* kBadPower = "2201F";
inline constexpr const char* kBadExpression = "2201B";  // regular expressions
inline constexpr const char* kBadLimit = "2201W";
inline constexpr const char* kBadOffset = "2201X";
inline constexpr const char* kSyntaxError = "42601";
inline constexpr const char* kGroupingError = "42803";
inline constexpr const char* kTypeMismatch = "42804";
inline constexpr const char* kNoSuchOperator = "42883";
inline constexpr const char* kCannotCast = "42846";
inline constexpr const char* kWrongObjectType = "42809";
inline constexpr const char* kUndefinedColumn = "42703";
inline constexpr const char* kAmbiguousColumn = "42702";
inline constexpr const char* kAmbiguousFunction = "42725";
inline constexpr const char* kDuplicateAlias = "42712";
inline constexpr const char* kUndefinedTable = "42P01";
inline constexpr const char* kUndefinedObject = "42704";
inline constexpr const char* kBadColumnReference = "42P10";
inline constexpr const char* kUnknownType = "42P18";
inline constexpr const char* kWindowingError = "42P20";
inline constexpr const char* kTooComplex = "54001";
inline constexpr const char* kLimitExceeded = "54000";
inline constexpr const char* kTextTooLong = "22001";
inline constexpr const char* kCardinalityViolation = "21000";
inline constexpr const char* kNotNullViolation = "23502";
inline constexpr const char* kUniqueViolation = "23505";
inline constexpr const char* kCheckViolation = "23514";
inline constexpr const char* kActiveTransaction = "25001";
inline constexpr const char* kNoActiveTransaction = "25P01";
inline constexpr const char* kFailedTransaction = "25P02";
inline constexpr const char* kSerializationFailure = "40001";
inline constexpr const char* kConnectionFailure = "08006";
inline constexpr const char* kInvalidAuthorization = "28000";
inline constexpr const char* kNoPrivilege = "42501";
inline constexpr const char* kInsufficientResources = "53000";
inline constexpr const char* kDiskFull = "53100";
inline constexpr const char* kOutOfMemory = "53200";
inline constexpr const char* kTooManyConnections = "53300";
inline constexpr const char* kWrongState = "55000";
inline constexpr const char* kCannotBeChanged = "55P02";  // a setting
inline constexpr const char* kCancelled = "57014";
inline constexpr const char* kDataCorrupted = "XX001";
inline constexpr const char* kInternalError = "XX000";
inline constexpr const char* kDuplicateColumn = "42701";
inline constexpr const char* kDuplicateObject = "42710";
inline constexpr const char* kDuplicateTable = "42P07";
inline constexpr const char* kInvalidTableDefinition = "42P16";
inline constexpr const char* kInvalidObjectDefinition = "42P17";
inline constexpr const char* kUndefinedSchema = "3F000";
inline constexpr const char* kDuplicateSchema = "42P06";
inline constexpr const char* kInvalidName = "42602";
inline constexpr const char* kDependentObjects = "2BP01";  // still exist
inline constexpr const char* kWarning = "01000";
inline constexpr const char* kConnectionError = "08000";
inline constexpr const char* kCannotConnect = "08001";
inline constexpr const char* kOutcomeUnknown = "08007";  // of a COMMIT: it may have taken effect or not
inline constexpr const char* kNullNotAllowed = "22004";
inline constexpr const char* kBadZoneOffset = "22009";
inline constexpr const char* kBadEscapeUse = "2200C";
inline constexpr const char* kSequenceLimit = "2200H";
inline constexpr const char* kBadFrameOffset = "22013";
inline constexpr const char* kBadNtileArgument = "22014";
inline constexpr const char* kBadNthValueArgument = "22016";
inline constexpr const char* kBadArraySubscript = "2202E";
inline constexpr const char* kBadCopyFormat = "22P04";
inline constexpr const char* kForeignKeyViolation = "23503";
inline constexpr const char* kNoSuchPreparedStatement = "26000";
inline constexpr const char* kNoSuchSavepoint = "3B001";
inline constexpr const char* kInvalidForeignKey = "42830";
inline constexpr const char* kGeneratedAlways = "428C9";
inline constexpr const char* kReservedName = "42939";
inline constexpr const char* kUndefinedParameter = "42P02";
inline constexpr const char* kDuplicatePreparedStatement = "42P05";
inline constexpr const char* kAmbiguousParameter = "42P08";
inline constexpr const char* kConfigurationLimit = "53400";
inline constexpr const char* kTooManyArguments = "54023";
inline constexpr const char* kLockNotAvailable = "55P03";
inline constexpr const char* kAdminShutdown = "57P01";     // `nam down`
inline constexpr const char* kCannotConnectNow = "57P03";  // a server of the cluster is away
inline constexpr const char* kIoError = "58030";
inline constexpr const char* kNoSuchFile = "58P01";
}  // namespace sqlstate

absl::Status UserError(const char* state, std::string message, int position, std::string hint = {});

/// A feature that the grammar accepts and the engine lacks: SQLSTATE 0A000.
absl::Status Refusal(std::string message, int position, std::string hint = {});

/// Results outside their type's range; the same from every evaluator.
absl::Status NumberOutOfRange(int position);  // more than 38 digits
absl::Status SumOutOfRange();                 // more than 38 digits
/// A number with a scale of its own: more than 36 digits before its point.
absl::Status NumericOutOfRange(int position);
/// A number as it is given, which has more than `digits` digits before its point.
absl::Status NumberTooLong(std::string_view number, int digits, int position);
absl::Status DateOutOfRange(int position);
/// The hint is NULLIF.
absl::Status DivisionByZero(int position);
/// An integer type of 2, 4 or 8 bytes.
absl::Status IntegerOutOfRange(int bytes, int position);

/// Adds a SQLSTATE to an error: keeps an existing one, else derives it from the code or the exhausted
/// resource (base/exhausted.h). Code and message stay. Every error that leaves a session has passed through
/// this.
absl::Status WithSqlState(const absl::Status& error);

/// `"name"`, as messages show identifiers.
std::string Quote(std::string_view name);

/// `did you mean "x"?` for the nearest candidate, or empty if none is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace nam
