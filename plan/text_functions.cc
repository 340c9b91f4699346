#include "plan/text_functions.h"

#include <openssl/evp.h>

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "plan/regular_expression.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

/// PostgreSQL's letters in a database of C.UTF-8. Never freed.
locale_t CharacterLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

constexpr char32_t kNoCharacter = 0xffffffff;

/// The code point of the character at `at`; kNoCharacter if its bytes are invalid.
char32_t CodePointAt(std::string_view text, size_t at) {
  const size_t bytes = CharacterBytes(text, at);
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  if (bytes == 1) return byte(0) < 0x80 ? byte(0) : kNoCharacter;
  char32_t c = byte(0) & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kNoCharacter;
    c = c << 6 | (byte(i) & 0x3f);
  }
  return c;
}

void AppendCodePoint(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

/// Maps each character by `map` from code point to code point; invalid bytes stay.
template <typename Map>
std::string Mapped(std::string_view text, Map&& map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    const char32_t c = CodePointAt(text, at);
    if (c == kNoCharacter)
      out.append(text.substr(at, bytes));
    else
      AppendCodePoint(out, map(c));
    at += bytes;
  }
  return out;
}

char32_t Upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return CharacterLocale() == nullptr ? c : static_cast<char32_t>(towupper_l(c, CharacterLocale()));
}
char32_t Lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return CharacterLocale() == nullptr ? c : static_cast<char32_t>(towlower_l(c, CharacterLocale()));
}
bool IsAlphanumeric(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (Upper(c) >= 'A' && Upper(c) <= 'Z');
  return CharacterLocale() != nullptr && iswalnum_l(c, CharacterLocale()) != 0;
}

std::string InitialCapitals(std::string_view text) {
  bool inside = false;
  return Mapped(text, [&](char32_t c) {
    const char32_t out = inside ? Lower(c) : Upper(c);
    inside = IsAlphanumeric(c);
    return out;
  });
}

/// The byte at which character `n` begins, or the end.
size_t ByteOf(std::string_view text, __int128 n) {
  if (n <= 0) return 0;
  if (n >= static_cast<__int128>(text.size())) return text.size();
  return EndOfCharacters(text, static_cast<size_t>(n));
}

std::string Replace(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out.append(text.substr(at, found - at));
    if (found == std::string_view::npos) return out;
    out.append(to);
    at = found + from.size();
  }
}

std::vector<std::string_view> CharactersOf(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size(); at += characters.back().size())
    characters.push_back(text.substr(at, CharacterBytes(text, at)));
  return characters;
}

std::string Translate(std::string_view text, std::string_view from, std::string_view to) {
  const std::vector<std::string_view> sources = CharactersOf(from), targets = CharactersOf(to);
  std::string out;
  for (const std::string_view c : CharactersOf(text)) {
    const auto found = std::find(sources.begin(), sources.end(), c);
    const auto at = static_cast<size_t>(found - sources.begin());
    if (found == sources.end()) {
      out.append(c);
    } else if (at < targets.size()) {
      out.append(targets[at]);
    }
  }
  return out;
}

std::string_view TrimOf(std::string_view text, std::string_view characters, bool left, bool right) {
  const std::vector<std::string_view> set = CharactersOf(characters);
  const auto in_set = [&](std::string_view c) { return std::find(set.begin(), set.end(), c) != set.end(); };
  while (left && !text.empty()) {
    const size_t bytes = CharacterBytes(text, 0);
    if (!in_set(text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  while (right && !text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xc0) == 0x80) --last;
    if (!in_set(text.substr(last))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string Reversed(std::string_view text) {
  const std::vector<std::string_view> characters = CharactersOf(text);
  std::string out;
  for (auto c = characters.rbegin(); c != characters.rend(); ++c) out.append(*c);
  return out;
}

std::string Md5(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  NAM_CHECK(EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_md5(), nullptr) == 1, "no MD5");
  std::string out;
  for (unsigned int i = 0; i < bytes; ++i) absl::StrAppendFormat(&out, "%02x", digest[i]);
  return out;
}

absl::StatusOr<std::string> PaddedText(const Expr& call, std::span<const Value> a, bool left) {
  const std::string_view text = a[0].text, fill = a.size() > 2 ? std::string_view(a[2].text) : " ";
  if (a[1].number <= 0) return std::string();
  const auto characters = static_cast<__int128>(CountCharacters(text));
  if (a[1].number <= characters || fill.empty())
    return std::string(text.substr(0, ByteOf(text, a[1].number)));
  if (a[1].number > static_cast<__int128>(kTextBytesMax)) return TextTooLong(call.position);
  const auto wanted = static_cast<size_t>(a[1].number - characters);
  const size_t each = CountCharacters(fill);
  if (wanted / each * fill.size() > kTextBytesMax) return TextTooLong(call.position);
  std::string padding;
  for (size_t i = 0; i < wanted / each; ++i) padding.append(fill);
  padding.append(fill.substr(0, EndOfCharacters(fill, wanted % each)));
  return left ? padding + std::string(text) : std::string(text) + padding;
}

absl::StatusOr<std::string> Repeated(const Expr& call, std::span<const Value> a) {
  if (a[1].number <= 0 || a[0].text.empty()) return std::string();
  if (a[1].number > static_cast<__int128>(kTextBytesMax / a[0].text.size()))
    return TextTooLong(call.position);
  std::string out;
  for (auto n = static_cast<size_t>(a[1].number); n > 0; --n) out += a[0].text;
  return out;
}

absl::StatusOr<std::string> SplitPart(const Expr& call, std::span<const Value> a) {
  const std::string_view text = a[0].text, delimiter = a[1].text;
  const __int128 n = a[2].number;
  if (n == 0) return UserError(sqlstate::kBadParameter, "field position must not be zero", call.position);
  if (delimiter.empty()) return n == 1 || n == -1 ? std::string(text) : std::string();
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t found = text.find(delimiter, at);
    parts.push_back(text.substr(at, found - at));
    if (found == std::string_view::npos) break;
    at = found + delimiter.size();
  }
  const auto count = static_cast<__int128>(parts.size());
  const __int128 at = n > 0 ? n - 1 : count + n;
  return at < 0 || at >= count ? std::string() : std::string(parts[static_cast<size_t>(at)]);
}

absl::StatusOr<std::string> Chr(const Expr& call, __int128 n) {
  const auto bad = [&](std::string what) {
    return UserError(sqlstate::kLimitExceeded, std::move(what), call.position);
  };
  if (n < 0) return UserError(sqlstate::kBadParameter, "character number must be positive", call.position);
  if (n == 0) return bad("null character not permitted");
  if (n > 0x10ffff) return bad("requested character too large for encoding: " + Int128ToString(n));
  if (n >= 0xd800 && n <= 0xdfff)
    return bad("requested character not valid for encoding: " + Int128ToString(n));
  std::string out;
  AppendCodePoint(out, static_cast<char32_t>(n));
  return out;
}

absl::StatusOr<std::string_view> SubstringOf(const Expr& call, std::span<const Value> a) {
  if (a.size() == 2) return Substring(a[0].text, a[1].number, static_cast<__int128>(1) << 80);
  if (a[2].number < 0)
    return UserError(sqlstate::kBadSubstring, "negative substring length not allowed", call.position);
  return Substring(a[0].text, a[1].number, a[2].number);
}

/// Replaces so many characters of the text from `from` on.
absl::StatusOr<std::string> OverlaidText(const Expr& call, std::span<const Value> a) {
  const __int128 from = a[2].number;
  const __int128 characters = a.size() > 3 ? a[3].number : static_cast<__int128>(CountCharacters(a[1].text));
  if (from <= 0)
    return UserError(sqlstate::kBadSubstring, "negative substring length not allowed", call.position);
  const std::string_view text = a[0].text;
  const std::string_view behind = Substring(text, from + characters, static_cast<__int128>(1) << 80);
  return absl::StrCat(std::string(text.substr(0, ByteOf(text, from - 1))), a[1].text, std::string(behind));
}

std::string_view LeftOf(std::string_view text, __int128 n) {
  if (n < 0) n += static_cast<__int128>(CountCharacters(text));
  return text.substr(0, ByteOf(text, n));
}
std::string_view RightOf(std::string_view text, __int128 n) {
  const auto characters = static_cast<__int128>(CountCharacters(text));
  return text.substr(ByteOf(text, n < 0 ? -n : characters - n));
}

/// LIKE's pattern with the backslash as its escape.
absl::StatusOr<std::string> WithBackslashes(const Expr& call, std::string_view pattern,
                                            std::string_view escape) {
  if (escape.size() > 1 && CountCharacters(escape) > 1) {
    return UserError(sqlstate::kBadEscape, "invalid escape string", call.position,
                     "an escape string is empty or one character");
  }
  if (escape == "\\") return std::string(pattern);
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const std::string_view c = pattern.substr(at, CharacterBytes(pattern, at));
    at += c.size();
    if (c == escape) {
      // At the end it escapes nothing, and the match reports that.
      out += "\\";
      if (at == pattern.size()) break;
      const std::string_view next = pattern.substr(at, CharacterBytes(pattern, at));
      out.append(next);
      at += next.size();
    } else {
      out.append(c == "\\" ? "\\\\" : c);
    }
  }
  return out;
}

absl::StatusOr<Value> Like(const Expr& call, std::string_view text, std::string_view pattern) {
  const size_t plain = pattern.find_last_not_of('\\');
  const size_t backslashes = pattern.size() - (plain == std::string_view::npos ? 0 : plain + 1);
  if (backslashes % 2 == 1) {
    return UserError(sqlstate::kBadEscape, "LIKE pattern must not end with the escape character",
                     call.position, "write \\\\ for a backslash");
  }
  return Value::Bool(MatchesLike(text, pattern));
}

absl::StatusOr<Value> Matches(const Expr& call, std::span<const Value> a, bool ignore_case) {
  NAM_ASSIGN_OR_RETURN(const auto expression, CachedRegularExpression(a[1].text, ignore_case, call.position,
                                                                      RegularExpression::Purpose::kTest));
  return Value::Bool(expression->Matches(a[0].text));
}

std::string JoinedText(std::span<const Value> values, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const Value& value : values) {
    if (value.null) continue;
    if (!first) out.append(separator);
    first = false;
    out += value.ToString();
  }
  return out;
}

Value TextOf(std::string_view text) {
  return Value::String(std::string(text));
}
absl::StatusOr<Value> Checked(absl::StatusOr<std::string> text) {
  if (!text.ok()) return text.status();
  return Value::String(*std::move(text));
}

absl::StatusOr<Value> TextOrError(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kConcat:
      return TextOf(JoinedText(a, ""));
    case F::kConcatAll:
      return TextOf(JoinedText(a, ""));
    case F::kConcatWith:
      if (a[0].null) return Value::Null(call.type);
      return TextOf(JoinedText(a.subspan(1), a[0].text));
    case F::kUpper:
      return TextOf(UpperCase(a[0].text));
    case F::kLower:
      return TextOf(LowerCase(a[0].text));
    case F::kInitcap:
      return TextOf(InitialCapitals(a[0].text));
    case F::kSubstring: {
      const absl::StatusOr<std::string_view> part = SubstringOf(call, a);
      if (!part.ok()) return part.status();
      return TextOf(*part);
    }
    case F::kReplace:
      // At most every byte becomes `to`.
      if (!a[1].text.empty() && a[0].text.size() / a[1].text.size() * a[2].text.size() > kTextBytesMax)
        return TextTooLong(call.position);
      return TextOf(Replace(a[0].text, a[1].text, a[2].text));
    case F::kTranslate:
      return TextOf(Translate(a[0].text, a[1].text, a[2].text));
    case F::kLeft:
      return TextOf(LeftOf(a[0].text, a[1].number));
    case F::kRight:
      return TextOf(RightOf(a[0].text, a[1].number));
    case F::kPadLeft:
    case F::kPadRight:
      return Checked(PaddedText(call, a, FunctionOf(call) == F::kPadLeft));
    case F::kRepeat:
      return Checked(Repeated(call, a));
    case F::kReverse:
      return TextOf(Reversed(a[0].text));
    case F::kSplitPart:
      return Checked(SplitPart(call, a));
    case F::kChr:
      return Checked(Chr(call, a[0].number));
    case F::kMd5:
      return TextOf(Md5(a[0].text));
    case F::kOverlay:
      return Checked(OverlaidText(call, a));
    case F::kFormatText:
      if (a[0].null) return Value::Null(call.type);
      return Checked(FormatText(call, a));
    case F::kLikeEscape:
      return Checked(WithBackslashes(call, a[0].text, a[1].text));
    default: {
      const bool left = FunctionOf(call) != F::kTrimRight, right = FunctionOf(call) != F::kTrimLeft;
      return TextOf(TrimOf(a[0].text, a.size() > 1 ? std::string_view(a[1].text) : " ", left, right));
    }
  }
}

}  // namespace

absl::Status TextTooLong(int position) {
  return UserError(sqlstate::kLimitExceeded, "requested length too large", position,
                   "a function makes texts of up to 16 MiB");
}

std::string UpperCase(std::string_view text) {
  return Mapped(text, Upper);
}

std::string LowerCase(std::string_view text) {
  return Mapped(text, Lower);
}

std::string_view Substring(std::string_view text, __int128 from, __int128 characters) {
  const __int128 end = from + characters;
  if (end <= 1) return {};
  const size_t first = ByteOf(text, from - 1), last = ByteOf(text, end - 1);
  return first < last ? text.substr(first, last - first) : std::string_view();
}

absl::StatusOr<Value> ApplyToText(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kLength:
      return UnsignedValue(CountCharacters(a[0].text));
    case F::kOctetLength:
      return UnsignedValue(a[0].text.size());
    case F::kBitLength:
      return UnsignedValue(8 * a[0].text.size());
    case F::kPosition: {
      const size_t found = a[0].text.find(a[1].text);
      if (found == std::string::npos) return UnsignedValue(0);
      return UnsignedValue(CountCharacters(std::string_view(a[0].text).substr(0, found)) + 1);
    }
    case F::kStartsWith:
      return Value::Bool(a[0].text.starts_with(a[1].text));
    case F::kAscii: {
      const char32_t c = a[0].text.empty() ? 0 : CodePointAt(a[0].text, 0);
      return UnsignedValue(c == kNoCharacter ? static_cast<uint8_t>(a[0].text[0]) : c);
    }
    case F::kLike:
      return Like(call, a[0].text, a[1].text);
    case F::kLikeIgnoreCase:
      return Like(call, LowerCase(a[0].text), LowerCase(a[1].text));
    case F::kMatches:
    case F::kMatchesIgnoreCase:
      return Matches(call, a, FunctionOf(call) == F::kMatchesIgnoreCase);
    default:
      break;
  }
  NAM_ASSIGN_OR_RETURN(Value text, TextOrError(call, a));
  if (text.text.size() > kTextBytesMax) return TextTooLong(call.position);
  return text;
}

}  // namespace nam::plan
