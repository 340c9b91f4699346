#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "types/value.h"

/// The texts of uuid and bytea in PostgreSQL's formats, and those of encode() and decode().
namespace nam {

inline Value UuidValue(__int128 number) {
  return {Type::Uuid(), false, number, {}};
}
inline Value BytesValue(std::string bytes) {
  return {Type::Bytes(), false, 0, std::move(bytes)};
}

/// Converts a uuid's 16 bytes to its number (types/type.h), and back.
__int128 UuidOfBytes(std::string_view bytes);
std::string BytesOfUuid(__int128 number);

/// Parses 32 hexadecimal digits, optionally in braces and with hyphens after any group of four.
/// INVALID_ARGUMENT otherwise.
absl::StatusOr<__int128> ParseUuid(std::string_view text);

/// Parses `\xdeadbeef` with blanks between bytes, or bytes with a doubled backslash and `\ooo` escapes.
/// INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::string> ParseBytes(std::string_view text);

/// Two lower-case digits per byte.
std::string HexOfBytes(std::string_view bytes);
/// The bytes of hexadecimal digits; blanks between bytes are skipped. INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::string> BytesOfHex(std::string_view text);
/// Doubles backslashes; writes NUL and bytes from 128 on as `\ooo`.
std::string EscapedBytes(std::string_view bytes);
/// Reverses EscapedBytes, and accepts any byte as `\ooo`. INVALID_ARGUMENT if a backslash begins neither
/// form.
absl::StatusOr<std::string> BytesOfEscaped(std::string_view text);
/// Base 64, 76 digits per line.
std::string Base64OfBytes(std::string_view bytes);
/// Skips blanks between digits. INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::string> BytesOfBase64(std::string_view text);

}  // namespace nam
