#include "types/bytes.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace nam {
namespace {

constexpr size_t kUuidBytes = 16;
constexpr char kBase64Digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kBase64Line = 76;

/// The sign bit of a two's complement number.
constexpr auto kHighestBit = static_cast<unsigned __int128>(1) << 127;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Blanks as in PostgreSQL's decoders.
bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// The byte that `\ooo` at `at` denotes; -1 if it is not that form.
int OctalAt(std::string_view text, size_t at) {
  if (at + 4 > text.size() || text[at + 1] < '0' || text[at + 1] > '3') return -1;
  int byte = 0;
  for (size_t i = at + 1; i < at + 4; ++i) {
    if (text[i] < '0' || text[i] > '7') return -1;
    byte = byte * 8 + (text[i] - '0');
  }
  return byte;
}

/// The character at `at` with all of its bytes, for messages.
std::string CharacterAt(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) ++end;
  return std::string(text.substr(at, end - at));
}

}  // namespace

__int128 UuidOfBytes(std::string_view bytes) {
  NAM_CHECK(bytes.size() == kUuidBytes);
  unsigned __int128 n = 0;
  for (const char c : bytes) n = n << 8 | static_cast<uint8_t>(c);
  return static_cast<__int128>(n ^ kHighestBit);
}

std::string BytesOfUuid(__int128 number) {
  auto n = static_cast<unsigned __int128>(number) ^ kHighestBit;
  std::string bytes(kUuidBytes, '\0');
  for (size_t i = kUuidBytes; i-- > 0; n >>= 8) bytes[i] = static_cast<char>(static_cast<uint8_t>(n & 0xff));
  return bytes;
}

absl::StatusOr<__int128> ParseUuid(std::string_view text) {
  const auto bad = [] { return absl::InvalidArgumentError("no uuid"); };
  const bool braces = text.starts_with('{');
  if (braces && !text.ends_with('}')) return bad();
  if (braces) text = text.substr(1, text.size() - 2);
  std::string bytes;
  size_t at = 0;
  while (bytes.size() < kUuidBytes) {
    const int high = at + 1 < text.size() ? HexDigit(text[at]) : -1;
    const int low = high < 0 ? -1 : HexDigit(text[at + 1]);
    if (low < 0) return bad();
    bytes.push_back(static_cast<char>(high << 4 | low));
    at += 2;
    const bool group_ends = bytes.size() % 2 == 0 && bytes.size() < kUuidBytes;
    if (group_ends && at < text.size() && text[at] == '-') ++at;
  }
  if (at != text.size()) return bad();
  return UuidOfBytes(bytes);
}

absl::StatusOr<std::string> ParseBytes(std::string_view text) {
  return text.starts_with("\\x") ? BytesOfHex(text.substr(2)) : BytesOfEscaped(text);
}

std::string HexOfBytes(std::string_view bytes) {
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

absl::StatusOr<std::string> BytesOfHex(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    if (IsBlank(text[at])) {
      ++at;
      continue;
    }
    if (HexDigit(text[at]) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid hexadecimal digit: \"", CharacterAt(text, at), "\""));
    }
    if (at + 1 == text.size())
      return absl::InvalidArgumentError("invalid hexadecimal data: odd number of digits");
    if (HexDigit(text[at + 1]) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid hexadecimal digit: \"", CharacterAt(text, at + 1), "\""));
    }
    bytes.push_back(static_cast<char>(HexDigit(text[at]) << 4 | HexDigit(text[at + 1])));
    at += 2;
  }
  return bytes;
}

std::string EscapedBytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (byte == 0 || byte >= 0x80) {
      const char octal[] = {'\\', static_cast<char>('0' + (byte >> 6)),
                            static_cast<char>('0' + (byte >> 3 & 7)), static_cast<char>('0' + (byte & 7))};
      text.append(octal, sizeof(octal));
    } else {
      text.push_back(c);
    }
  }
  return text;
}

absl::StatusOr<std::string> BytesOfEscaped(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      bytes.push_back(text[at++]);
    } else if (const int byte = OctalAt(text, at); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      at += 4;
    } else if (at + 1 < text.size() && text[at + 1] == '\\') {
      bytes.push_back('\\');
      at += 2;
    } else {
      return absl::InvalidArgumentError("a backslash is doubled, or begins three octal digits");
    }
  }
  return bytes;
}

std::string Base64OfBytes(std::string_view bytes) {
  std::string text;
  size_t line = 0;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < n ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text.push_back(i <= n ? kBase64Digits[bits >> (18 - 6 * i) & 0x3f] : '=');
    line += 4;
    if (line == kBase64Line) text.push_back('\n');
    line %= kBase64Line;
  }
  return text;
}

absl::StatusOr<std::string> BytesOfBase64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int digits = 0;
  int last = 3;  // bytes of four digits: the digits before the first =, less one
  for (size_t at = 0; at < text.size(); ++at) {
    if (IsBlank(text[at])) continue;
    const bool end = text[at] == '=';
    const int digit = end ? 0 : Base64Digit(text[at]);
    if (digit < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid symbol \"", CharacterAt(text, at), "\" in a base64 sequence"));
    }
    if (end && last == 3) {
      if (digits < 2) return absl::InvalidArgumentError("unexpected \"=\" in a base64 sequence");
      last = digits - 1;
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (++digits < 4) continue;
    for (int i = 0; i < last; ++i)
      bytes.push_back(static_cast<char>(static_cast<uint8_t>(bits >> (16 - 8 * i) & 0xff)));
    bits = 0;
    digits = 0;
  }
  if (digits != 0) return absl::InvalidArgumentError("invalid end of a base64 sequence: padding is missing");
  return bytes;
}

}  // namespace nam
