#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "types/value.h"

/// The texts of uuid and bytea as PostgreSQL reads them, and those that encode() and decode() know.
namespace nam {

inline Value UuidValue(__int128 number) {
  return {Type::Uuid(), false, number, {}};
}
inline Value BytesValue(std::string bytes) {
  return {Type::Bytes(), false, 0, std::move(bytes)};
}

/// A uuid's number (types/type.h) of its 16 bytes, and back.
__int128 UuidOfBytes(std::string_view bytes);
std::string BytesOfUuid(__int128 number);

/// 32 hexadecimal digits, with or without braces around and hyphens behind any four of them. INVALID_ARGUMENT
/// if it is written otherwise.
absl::StatusOr<__int128> ParseUuid(std::string_view text);

/// `\xdeadbeef` with blanks between bytes, or bytes of which a backslash is doubled and others may be written
/// `\ooo`. INVALID_ARGUMENT, and what is wrong.
absl::StatusOr<std::string> ParseBytes(std::string_view text);

/// Two small digits a byte.
std::string HexOfBytes(std::string_view bytes);
/// The bytes that hexadecimal digits write, blanks between them apart. INVALID_ARGUMENT, and what is wrong.
absl::StatusOr<std::string> BytesOfHex(std::string_view text);
/// Backslashes are doubled; NUL and bytes of 128 and more are `\ooo`.
std::string EscapedBytes(std::string_view bytes);
/// What EscapedBytes makes, and any byte as `\ooo`. INVALID_ARGUMENT if a backslash begins neither.
absl::StatusOr<std::string> BytesOfEscaped(std::string_view text);
/// Base 64, 76 digits a line.
std::string Base64OfBytes(std::string_view bytes);
/// Blanks between digits are skipped. INVALID_ARGUMENT, and what is wrong.
absl::StatusOr<std::string> BytesOfBase64(std::string_view text);

}  // namespace nam
