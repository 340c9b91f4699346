#include <openssl/evp.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "types/bytes.h"
#include "types/sql_error.h"

/// Functions of bytea: they count bytes where those of text count characters.
namespace nam::plan {
namespace {

absl::Status TooLong(int position) {
  return UserError(sqlstate::kLimitExceeded, "requested length too large", position,
                   "a function makes values of up to 16 MiB");
}

absl::StatusOr<std::string_view> PartOf(const Expr& call, std::span<const Value> a) {
  const std::string_view bytes = a[0].text;
  if (a.size() > 2 && a[2].number < 0)
    return UserError(sqlstate::kBadSubstring, "negative substring length not allowed", call.position);
  const auto size = static_cast<__int128>(bytes.size());
  const __int128 first = std::clamp<__int128>(a[1].number - 1, 0, size);
  const __int128 end = a.size() > 2 ? std::clamp<__int128>(a[1].number - 1 + a[2].number, first, size) : size;
  return bytes.substr(static_cast<size_t>(first), static_cast<size_t>(end - first));
}

/// overlay: `a[1]` replaces some bytes, as many as it has itself if the call does not say.
absl::StatusOr<std::string> OverlaidBytes(const Expr& call, std::span<const Value> a) {
  const std::string& bytes = a[0].text;
  if (a[2].number <= 0)
    return UserError(sqlstate::kBadSubstring, "negative substring length not allowed", call.position);
  const auto size = static_cast<__int128>(bytes.size());
  const __int128 from = a[2].number - 1;
  const __int128 count = a.size() > 3 ? a[3].number : static_cast<__int128>(a[1].text.size());
  const auto first = static_cast<size_t>(std::min(from, size));
  const auto behind = static_cast<size_t>(std::clamp<__int128>(from + count, 0, size));
  return absl::StrCat(bytes.substr(0, first), a[1].text, bytes.substr(behind));
}

std::string_view Trimmed(std::string_view bytes, std::string_view set, bool left, bool right) {
  const size_t first = left ? bytes.find_first_not_of(set) : 0;
  if (first == std::string_view::npos) return {};
  bytes.remove_prefix(first);
  return right ? bytes.substr(0, bytes.find_last_not_of(set) + 1) : bytes;
}

std::string Digest(std::string_view bytes, const EVP_MD* kind) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  NAM_CHECK(EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                       kind, nullptr) == 1,
            "no digest");
  digest.resize(size);
  return digest;
}

enum class Encoding : uint8_t { kHex, kEscape, kBase64 };

absl::StatusOr<Encoding> EncodingOf(const Expr& call, std::string_view name) {
  const std::string small = absl::AsciiStrToLower(std::string(name));
  if (small == "hex") return Encoding::kHex;
  if (small == "escape") return Encoding::kEscape;
  if (small == "base64") return Encoding::kBase64;
  return UserError(sqlstate::kBadParameter, absl::StrCat("unrecognized encoding: ", Quote(small)),
                   call.position, "encodings are hex, escape and base64");
}

absl::StatusOr<Value> Encode(const Expr& call, std::span<const Value> a) {
  NAM_ASSIGN_OR_RETURN(const Encoding encoding, EncodingOf(call, a[1].text));
  constexpr size_t kMostTimesLonger = 4;
  if (a[0].text.size() > kTextBytesMax / kMostTimesLonger) return TooLong(call.position);
  return Value::String(encoding == Encoding::kHex      ? HexOfBytes(a[0].text)
                       : encoding == Encoding::kEscape ? EscapedBytes(a[0].text)
                                                       : Base64OfBytes(a[0].text));
}

absl::StatusOr<Value> DecodeBytes(const Expr& call, std::span<const Value> a) {
  NAM_ASSIGN_OR_RETURN(const Encoding encoding, EncodingOf(call, a[1].text));
  absl::StatusOr<std::string> bytes = encoding == Encoding::kHex      ? BytesOfHex(a[0].text)
                                      : encoding == Encoding::kEscape ? BytesOfEscaped(a[0].text)
                                                                      : BytesOfBase64(a[0].text);
  if (bytes.ok()) return BytesValue(*std::move(bytes));
  const bool escape = encoding == Encoding::kEscape;
  return UserError(escape ? sqlstate::kBadText : sqlstate::kBadParameter,
                   std::string(bytes.status().message()), call.position);
}

/// Accepts the names of UTF-8, the encoding of all text.
absl::Status CheckUtf8Name(const Expr& call, std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)))
      plain.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  if (plain == "utf8" || plain == "unicode") return absl::OkStatus();
  return Refusal(absl::StrCat("encoding ", Quote(std::string(name)), " is not supported"), call.position,
                 "texts are UTF8");
}

absl::StatusOr<Value> FromUtf8(const Expr& call, std::span<const Value> a) {
  NAM_RETURN_IF_ERROR(CheckUtf8Name(call, a[1].text));
  int bad = 0;
  if (!IsCleanUtf8(a[0].text, &bad)) {
    return UserError(sqlstate::kBadEncoding, "invalid byte sequence for encoding \"UTF8\"", call.position,
                     "encode(x, 'escape') shows any bytes");
  }
  return Value::String(a[0].text);
}

absl::Status OutsideOf(const Expr& call, __int128 index, size_t size) {
  return UserError(sqlstate::kBadArraySubscript,
                   absl::StrCat("index ", Int128ToString(index), " out of valid range, 0..",
                                static_cast<int64_t>(size) - 1),
                   call.position);
}

/// get_byte, set_byte, get_bit, set_bit; bits are counted from the lowest of the first byte.
absl::StatusOr<Value> ByteOrBit(const Expr& call, std::span<const Value> a) {
  const Function function = FunctionOf(call);
  const bool bit = function == F::kGetBit || function == F::kSetBit;
  const size_t size = a[0].text.size() * (bit ? 8 : 1);
  if (a[1].number < 0 || a[1].number >= static_cast<__int128>(size))
    return OutsideOf(call, a[1].number, size);
  const auto n = static_cast<size_t>(a[1].number);
  const size_t at = bit ? n / 8 : n;
  const auto byte = static_cast<uint8_t>(a[0].text[at]);
  if (function == F::kGetByte) return Value::Integer(byte);
  if (function == F::kGetBit) return Value::Integer(byte >> (n % 8) & 1);
  Value out = BytesValue(a[0].text);
  if (function == F::kSetByte) {
    out.text[at] = static_cast<char>(static_cast<uint8_t>(a[2].number & 0xff));
    return out;
  }
  if (a[2].number != 0 && a[2].number != 1)
    return UserError(sqlstate::kBadParameter, "new bit must be 0 or 1", call.position);
  const auto mask = static_cast<uint8_t>(1 << (n % 8));
  out.text[at] = static_cast<char>(static_cast<uint8_t>(a[2].number != 0 ? byte | mask : byte & ~mask));
  return out;
}

Value BytesOf(std::string_view bytes) {
  return BytesValue(std::string(bytes));
}

}  // namespace

absl::StatusOr<Value> ApplyToBytes(const Expr& call, std::span<const Value> a) {
  const std::string& bytes = a[0].text;
  switch (FunctionOf(call)) {
    case F::kConcat:
      if (bytes.size() + a[1].text.size() > kTextBytesMax) return TooLong(call.position);
      return BytesOf(bytes + a[1].text);
    case F::kLength:
    case F::kOctetLength:
      return UnsignedValue(bytes.size());
    case F::kBitLength:
      return UnsignedValue(8 * bytes.size());
    case F::kSubstring: {
      const absl::StatusOr<std::string_view> part = PartOf(call, a);
      if (!part.ok()) return part.status();
      return BytesOf(*part);
    }
    case F::kOverlay: {
      absl::StatusOr<std::string> overlaid = OverlaidBytes(call, a);
      if (!overlaid.ok()) return overlaid.status();
      if (overlaid->size() > kTextBytesMax) return TooLong(call.position);
      return BytesValue(*std::move(overlaid));
    }
    case F::kPosition: {
      const size_t found = bytes.find(a[1].text);
      return UnsignedValue(found == std::string::npos ? 0 : found + 1);
    }
    case F::kTrim:
      return BytesOf(Trimmed(bytes, a[1].text, true, true));
    case F::kTrimLeft:
      return BytesOf(Trimmed(bytes, a[1].text, true, false));
    case F::kTrimRight:
      return BytesOf(Trimmed(bytes, a[1].text, false, true));
    case F::kMd5:
      return Value::String(HexOfBytes(Digest(bytes, EVP_md5())));
    case F::kSha224:
      return BytesValue(Digest(bytes, EVP_sha224()));
    case F::kSha256:
      return BytesValue(Digest(bytes, EVP_sha256()));
    case F::kSha384:
      return BytesValue(Digest(bytes, EVP_sha384()));
    case F::kSha512:
      return BytesValue(Digest(bytes, EVP_sha512()));
    case F::kEncode:
      return Encode(call, a);
    case F::kDecode:
      return DecodeBytes(call, a);
    case F::kConvertFrom:
      return FromUtf8(call, a);
    case F::kConvertTo:
      NAM_RETURN_IF_ERROR(CheckUtf8Name(call, a[1].text));
      return BytesOf(bytes);
    default:
      return ByteOrBit(call, a);
  }
}

}  // namespace nam::plan
