#include "tests/session/reference_rows.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace nam::testing {
namespace {

using Fields = std::vector<std::optional<std::string>>;

class ReferenceReader {
 public:
  ReferenceReader(std::string_view bytes, const csv::Dialect& dialect, size_t columns)
      : bytes_(bytes),
        dialect_(dialect),
        text_(dialect.format == csv::Dialect::Format::kText),
        columns_(columns) {}

  ReferenceFile Read() {
    ReferenceFile file;
    if (bytes_.substr(0, 3) == "\xef\xbb\xbf") bytes_.remove_prefix(3);
    bool header = dialect_.header;
    for (uint64_t line = 1; !bytes_.empty();) {
      const uint64_t begins = line;
      std::string row(text_ ? TakeTextRow() : TakeCsvRow());
      line += static_cast<uint64_t>(std::count(row.begin(), row.end(), '\n'));
      const bool has_end = row_ended_;
      if (has_end) row.pop_back();
      if (row.ends_with('\r') && !last_is_data_) row.pop_back();
      if (row == "\\." && (text_ || (dialect_.has_quotes() && has_end))) {
        if (!bytes_.empty()) file.bad_line = begins;
        return file;
      }
      Fields fields;
      if (!(text_ ? SplitText(row, fields) : SplitCsv(row, fields))) {
        file.bad_line = begins;
        return file;
      }
      if (header) {
        header = false;
        continue;
      }
      if (row.empty() && columns_ > 1) continue;
      if (fields.size() == columns_ + 1 && dialect_.delimiter == '|' && row.ends_with('|') &&
          fields.back().value_or("").empty())
        fields.pop_back();
      if (fields.size() != columns_) {
        file.bad_line = begins;
        return file;
      }
      file.rows.push_back({begins, std::move(fields)});
    }
    return file;
  }

 private:
  std::string_view Take(size_t bytes) {
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }

  std::string_view TakeCsvRow() {
    bool quoted = false, escaped = false;
    size_t at = 0;
    for (; at < bytes_.size(); ++at) {
      const char c = bytes_[at];
      if (dialect_.has_quotes()) {
        const bool escape = dialect_.escape != dialect_.quote && c == dialect_.escape;
        if (quoted && escape) escaped = !escaped;
        if (c == dialect_.quote && !escaped) quoted = !quoted;
        if (!escape) escaped = false;
      }
      if (c == '\n' && !quoted) {
        ++at;
        break;
      }
    }
    last_is_data_ = quoted;
    row_ended_ = !quoted && at > 0 && bytes_[at - 1] == '\n';
    return Take(at);
  }

  std::string_view TakeTextRow() {
    last_is_data_ = row_ended_ = false;
    for (size_t at = 0; at < bytes_.size(); ++at) {
      row_ended_ = bytes_[at] == '\n';
      if (row_ended_) return Take(at + 1);
      if (bytes_[at] == '\\') {
        ++at;
        last_is_data_ = true;
      } else {
        last_is_data_ = false;
      }
    }
    return Take(bytes_.size());
  }

  bool SplitCsv(const std::string& row, Fields& fields) const {
    const char quote = dialect_.quote, escape = dialect_.escape;
    for (size_t at = 0;;) {
      std::string text;
      bool has_quotes = false, quoted = false, more = false;
      while (at < row.size() && !more) {
        const char c = row[at++];
        if (quoted) {
          const bool escapes = c == escape && at < row.size() && (row[at] == escape || row[at] == quote);
          if (escapes) {
            text += row[at++];
          } else if (c == quote) {
            quoted = false;
          } else {
            text += c;
          }
        } else if (c == dialect_.delimiter) {
          more = true;
        } else if (dialect_.has_quotes() && c == quote) {
          has_quotes = quoted = true;
        } else if (c == '\r') {
          return false;
        } else {
          text += c;
        }
      }
      if (quoted) return false;
      if (!has_quotes && text == dialect_.null_text) {
        fields.emplace_back();
      } else {
        fields.emplace_back(text);
      }
      if (!more) return true;
    }
  }

  static char Digits(const std::string& row, size_t& at, int base, int most) {
    int value = 0;
    for (int n = 0; n < most && at < row.size(); ++n, ++at) {
      const char* const found =
          std::strchr("0123456789abcdef", std::tolower(static_cast<unsigned char>(row[at])));
      const auto digit = found == nullptr || row[at] == '\0' ? 16 : found - &"0123456789abcdef"[0];
      if (digit >= base) break;
      value = base * value + static_cast<int>(digit);
    }
    return static_cast<char>(value);
  }

  bool SplitText(const std::string& row, Fields& fields) const {
    for (size_t at = 0;;) {
      std::string text, raw;
      bool more = false;
      while (at < row.size() && !more) {
        const size_t from = at;
        const char c = row[at++];
        if (c == dialect_.delimiter) {
          more = true;
          break;
        }
        if (c == '\r') return false;
        if (c != '\\') {
          text += c;
        } else if (at < row.size()) {
          const char next = row[at++];
          if (next == '.') return false;
          if (next >= '0' && next <= '7') {
            text += Digits(row, --at, 8, 3);
          } else if (next == 'x' && at < row.size() &&
                     std::isxdigit(static_cast<unsigned char>(row[at])) != 0) {
            text += Digits(row, at, 16, 2);
          } else {
            const char* const letter = std::strchr("bfnrtv", next);
            text += letter == nullptr || next == '\0' ? next : "\b\f\n\r\t\v"[letter - &"bfnrtv"[0]];
          }
        }
        raw += row.substr(from, at - from);
      }
      if (raw == dialect_.null_text) {
        fields.emplace_back();
      } else {
        fields.emplace_back(text);
      }
      if (!more) return true;
    }
  }

  std::string_view bytes_;  // that are left
  const csv::Dialect dialect_;
  const bool text_;
  const size_t columns_;
  bool row_ended_ = false;     // the last row, by a line end
  bool last_is_data_ = false;  // its last byte before that
};

std::optional<std::string> Gunzip(std::string_view packed) {
  std::string text;
  while (true) {
    z_stream stream = {};
    EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    int result = Z_OK;
    while (result == Z_OK) {
      char out[4096];
      stream.next_out = reinterpret_cast<Bytef*>(out);
      stream.avail_out = sizeof(out);
      result = inflate(&stream, Z_NO_FLUSH);
      text.append(out, sizeof(out) - stream.avail_out);
    }
    packed.remove_prefix(packed.size() - stream.avail_in);
    inflateEnd(&stream);
    if (result != Z_STREAM_END) return std::nullopt;
    if (packed.empty()) return text;
  }
}

std::optional<std::string> Unzstd(std::string_view packed) {
  ZSTD_DStream* const stream = ZSTD_createDStream();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::string text;
  size_t left = 1;
  bool full = false;
  while (in.pos < in.size || full) {
    char bytes[4096];
    ZSTD_outBuffer out{bytes, sizeof(bytes), 0};
    left = ZSTD_decompressStream(stream, &out, &in);
    if (ZSTD_isError(left) != 0) break;
    text.append(bytes, out.pos);
    full = out.pos == out.size && left != 0;
  }
  ZSTD_freeDStream(stream);
  if (left != 0) return std::nullopt;
  return text;
}

}  // namespace

ReferenceFile ReadReference(std::string_view bytes, const csv::Dialect& dialect, size_t columns) {
  return ReferenceReader(bytes, dialect, columns).Read();
}

std::optional<std::string> UnpackReference(std::string_view packed, csv::Compression compression) {
  if (compression == csv::Compression::kGzip) return Gunzip(packed);
  if (compression == csv::Compression::kZstd) return Unzstd(packed);
  return std::string(packed);
}

std::string Pack(std::string_view text, csv::Compression compression) {
  if (compression == csv::Compression::kNone) return std::string(text);
  std::string out;
  if (compression == csv::Compression::kZstd) {
    out.resize(ZSTD_compressBound(text.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
  }
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  out.resize(deflateBound(&stream, text.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

bool IsReferenceUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    if (first == 0) return false;
    if (first < 0x80) continue;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    if (more == 0 || first > 0xf7) return false;
    uint32_t point = first & (0x3fu >> more);
    for (int n = 0; n < more; ++n, ++at) {
      if (at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) return false;
      point = point << 6 | (static_cast<unsigned char>(text[at]) & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
  }
  return true;
}

}  // namespace nam::testing
