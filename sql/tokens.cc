#include "sql/tokens.h"

#include <pg_query.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace nam::sql {
namespace {

// Token numbers of pg_query.proto (libpg_query 15).
constexpr int kUnicodeName = 259, kFloat = 260, kString = 261, kUnicodeString = 262, kBitString = 263,
              kHexString = 264, kInteger = 266;
constexpr int kSqlComment = 275, kCComment = 276;
constexpr int kReservedKeyword = 4;

/// The two wire types of protobuf in pg_query_scan's answer: ScanResult {int32 version = 1; repeated
/// ScanToken tokens = 2}, ScanToken {start = 1, end = 2, token = 4, keyword_kind = 5}. The library's own
/// decoder would need its 3,000-line schema.
class WireReader {
 public:
  WireReader(const char* data, size_t size) : at_(data), end_(data + size) {}

  bool done() const { return at_ == end_; }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  WireReader Message() {
    const size_t size = std::min<size_t>(Varint(), static_cast<size_t>(end_ - at_));
    WireReader inner(at_, size);
    at_ += size;
    return inner;
  }

 private:
  const char* at_;
  const char* end_;
};

Token ReadToken(WireReader reader) {
  Token token;
  while (!reader.done()) {
    const uint64_t field = reader.Varint() >> 3;
    const auto value = static_cast<int>(reader.Varint());
    if (field == 1) token.start = value;
    if (field == 2) token.end = value;
    if (field == 4) token.kind = value;
    if (field == 5) token.reserved = value == kReservedKeyword;
  }
  return token;
}

/// The scanner gives U&'…' and U&"…" ends before their quotes. They end before the blanks in front of the
/// next token.
void MendUnicodeEnds(std::string_view text, std::vector<Token>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != kUnicodeName && tokens[i].kind != kUnicodeString) continue;
    size_t end = i + 1 < tokens.size() ? static_cast<size_t>(tokens[i + 1].start) : text.size();
    while (end > 0 && absl::ascii_isspace(static_cast<unsigned char>(text[end - 1]))) --end;
    tokens[i].end = static_cast<int>(end);
  }
}

}  // namespace

bool Token::comment() const {
  return kind == kSqlComment || kind == kCComment;
}

bool Token::flat() const {
  return kind == ',' || kind == kFloat || kind == kString || kind == kBitString || kind == kHexString ||
         kind == kInteger;
}

int ByteOffset(std::string_view text, int cursor) {
  if (cursor <= 0) return -1;
  size_t i = 0;
  for (int left = cursor - 1; left > 0 && i < text.size(); --left) {
    // Counts like the scanner, which trusts a character's first byte even if the rest does not fit it.
    const auto first = static_cast<unsigned char>(text[i]);
    i += first >= 0xf8 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  }
  return static_cast<int>(std::min(i, text.size()));
}

ScanResult Scan(const std::string& text) {
  ScanResult result;
  const PgQueryScanResult scan = pg_query_scan(text.c_str());
  if (scan.error != nullptr) {
    result.error.push_back({scan.error->message, ByteOffset(text, scan.error->cursorpos)});
  } else {
    WireReader reader(scan.pbuf.data, scan.pbuf.len);
    while (!reader.done()) {
      if (reader.Varint() >> 3 == 2) {
        result.tokens.push_back(ReadToken(reader.Message()));
      } else {
        reader.Varint();  // the version
      }
    }
  }
  pg_query_free_scan_result(scan);
  MendUnicodeEnds(text, result.tokens);
  return result;
}

SqlText::SqlText(std::string text, std::vector<Token> tokens) : text_(std::move(text)) {
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(tokens_),
               [](const Token& token) { return !token.comment(); });
}

std::string_view SqlText::Spelling(size_t token) const {
  const Token& t = tokens_[token];
  return std::string_view(text_).substr(static_cast<size_t>(t.start), static_cast<size_t>(t.end - t.start));
}

bool SqlText::Spells(size_t token, std::string_view word) const {
  const std::string_view spelling = Spelling(token);
  return std::equal(spelling.begin(), spelling.end(), word.begin(), word.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == static_cast<unsigned char>(b); });
}

int SqlText::Start() const {
  return tokens_.empty() ? 0 : tokens_.front().start;
}

int SqlText::Find(std::initializer_list<std::string_view> words, int from) const {
  for (size_t i = 0; i < tokens_.size() && i + words.size() <= tokens_.size(); ++i) {
    if (tokens_[i].start < from) continue;
    size_t k = i;
    if (std::all_of(words.begin(), words.end(), [&](std::string_view word) { return Spells(k++, word); })) {
      return tokens_[i].start;
    }
  }
  return -1;
}

int SqlText::FindBefore(std::string_view word, int before) const {
  for (size_t i = tokens_.size(); i-- > 0;) {
    if (tokens_[i].start < before && Spells(i, word)) return tokens_[i].start;
  }
  return -1;
}

int SqlText::EndOfItem(int from) const {
  int depth = 0;
  for (const Token& token : tokens_) {
    if (token.start < from) continue;
    if (token.kind == '(' || token.kind == '[') ++depth;
    if (depth == 0 && (token.kind == ',' || token.kind == ')' || token.kind == ';')) return token.start;
    if (token.kind == ')' || token.kind == ']') --depth;
  }
  return static_cast<int>(text_.size());
}

std::string SqlText::Excerpt(int from, int to, const std::map<int, std::string>& instead) const {
  std::string out;
  int end = from;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.start < from || token.start >= to) continue;
    if (!out.empty() && token.start > end) out += ' ';
    end = token.end;
    const auto found = instead.find(token.start);
    if (found == instead.end()) {
      out += Spelling(i);
    } else {
      absl::StrAppend(&out, "'", found->second, "'");
    }
  }
  return out;
}

int SettingPosition(const SqlText& text) {
  const int first = text.Find({}, text.Start() + 1);
  for (const char* const scope : {"session", "local"}) {
    if (text.Find({scope}, first) == first && text.Find({scope, "."}, first) != first)
      return text.Find({}, first + 1);
  }
  return first;
}

int64_t SqlText::IntegerAt(int position) const {
  const auto first = std::lower_bound(tokens_.begin(), tokens_.end(), position,
                                      [](const Token& token, int start) { return token.start < start; });
  bool negative = false;
  for (auto i = static_cast<size_t>(first - tokens_.begin()); i < tokens_.size(); ++i) {
    if (tokens_[i].kind == kInteger) {
      int64_t value = 0;
      for (const char c : Spelling(i)) {
        if (c >= '0' && c <= '9') value = value * 10 + (c - '0');  // at most 2^31, as the scanner ensures
      }
      return negative ? -value : value;
    }
    if (tokens_[i].kind == '-') {
      negative = !negative;
    } else if (tokens_[i].kind != '(') {
      break;
    }
  }
  return 0;
}

}  // namespace nam::sql
