#include "terminal/text_width.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"

namespace nam {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

struct Range {
  uint32_t first, last;
};

// Combining marks and other zero-width characters, in order.
constexpr Range kZeroWidth[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x05BF, 0x05BF},
                                {0x05C1, 0x05C2}, {0x05C4, 0x05C5}, {0x0610, 0x061A},   {0x064B, 0x065F},
                                {0x0670, 0x0670}, {0x06D6, 0x06DC}, {0x06DF, 0x06E4},   {0x06E7, 0x06E8},
                                {0x06EA, 0x06ED}, {0x093C, 0x093C}, {0x0941, 0x0948},   {0x094D, 0x094D},
                                {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF},
                                {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E},   {0x2060, 0x2064},
                                {0x20D0, 0x20F0}, {0x302A, 0x302D}, {0x3099, 0x309A},   {0xFE00, 0xFE0F},
                                {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF}};

// East Asian wide and fullwidth characters and emoji, in order.
constexpr Range kDoubleWidth[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},  {0x23E9, 0x23EC},   {0x2614, 0x2615},   {0x2648, 0x2653},
    {0x26BD, 0x26BE},   {0x2705, 0x2705},  {0x2728, 0x2728},   {0x274C, 0x274C},   {0x2753, 0x2755},
    {0x2795, 0x2797},   {0x2B50, 0x2B50},  {0x2E80, 0x303E},   {0x3041, 0x3247},   {0x3250, 0x4DBF},
    {0x4E00, 0xA4C6},   {0xA960, 0xA97C},  {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6B},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
    {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool In(const Range (&ranges)[N], uint32_t c) {
  const Range* after = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                        [](uint32_t value, const Range& r) { return value < r.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->last;
}

}  // namespace

uint32_t NextCodePoint(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  size_t bytes = 1;
  uint32_t c = lead;
  if (lead >= 0x80) {
    bytes = lead >= 0xF0 && lead < 0xF5   ? 4
            : lead >= 0xE0 && lead < 0xF0 ? 3
            : lead >= 0xC2 && lead < 0xE0 ? 2
                                          : 0;
    c = bytes == 4 ? lead & 0x07 : bytes == 3 ? lead & 0x0F : lead & 0x1F;
    bool valid = bytes != 0 && text.size() >= bytes;
    for (size_t i = 1; valid && i < bytes; ++i) {
      valid = (byte(i) & 0xC0) == 0x80;
      c = c << 6 | (byte(i) & 0x3F);
    }
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!valid || c < kLeast[bytes] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
      c = kReplacement;
      bytes = 1;
    }
  }
  text.remove_prefix(bytes);
  return c;
}

void AppendUtf8(uint32_t c, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const uint32_t c = NextCodePoint(text);
    if (c < 0x20 || (c >= 0x7F && c < 0xA0) || In(kZeroWidth, c)) continue;
    width += In(kDoubleWidth, c) ? 2 : 1;
  }
  return width;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const uint32_t c = NextCodePoint(text);
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
          out += absl::StrFormat("\\x%02x", c);
        } else {
          AppendUtf8(c, out);
        }
    }
  }
  return out;
}

}  // namespace nam
