#include "types/time_zone.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "types/characters.h"
#include "types/value.h"

namespace nam {
namespace {

constexpr int32_t kSecondsPerMinute = 60, kSecondsPerHour = 3600;
constexpr int32_t kGreatestOffset = 16 * kSecondsPerHour - 1;  // as in PostgreSQL

struct NamedOffset {
  std::string_view name;
  int32_t minutes;
};
/// PostgreSQL's default abbreviations that have a single offset and are in common use.
constexpr NamedOffset kAbbreviations[] = {
    {"utc", 0},     {"gmt", 0},     {"z", 0},      {"zulu", 0},   {"uct", 0},    {"wet", 0},    {"west", 60},
    {"bst", 60},    {"cet", 60},    {"cest", 120}, {"met", 60},   {"mest", 120}, {"eet", 120},  {"eest", 180},
    {"sast", 120},  {"eat", 180},   {"jst", 540},  {"kst", 540},  {"hkt", 480},  {"acst", 570}, {"aest", 600},
    {"aedt", 660},  {"nzst", 720},  {"nzdt", 780}, {"est", -300}, {"edt", -240}, {"cst", -360}, {"cdt", -300},
    {"mst", -420},  {"mdt", -360},  {"pst", -480}, {"pdt", -420}, {"hst", -600}, {"ast", -240}, {"adt", -180},
    {"akst", -540}, {"akdt", -480},
};

int64_t FloorSeconds(int64_t us) {
  return us / kMicrosecondsPerSecond - (us % kMicrosecondsPerSecond < 0);
}

/// Parses `2`, `02`, `0230`, `02:30`, `02:30:15` as seconds; nothing otherwise.
std::optional<int32_t> ParseOffset(std::string_view text) {
  int32_t parts[3] = {0, 0, 0};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 4 || (digits > 2 && digits != text.size())) return std::nullopt;
  if (digits > 2) {
    const int n = std::atoi(std::string(text).c_str());
    return n / 100 * kSecondsPerHour + n % 100 * kSecondsPerMinute;
  }
  for (size_t i = 0; i < std::size(parts); ++i) {
    const size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    if (n == 0 || n > 2) return std::nullopt;
    parts[i] = std::atoi(std::string(text.substr(0, n)).c_str());
    text.remove_prefix(n);
    if (text.empty()) break;
    if (text[0] != ':') return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty() || parts[1] > 59 || parts[2] > 59) return std::nullopt;
  return parts[0] * kSecondsPerHour + parts[1] * kSecondsPerMinute + parts[2];
}

/// `+02`, `UTC-05:30`, `<+02>-02`: an optional name, then the offset to the west.
std::optional<TimeZone> FindPosix(std::string_view name) {
  std::string abbreviation;
  if (name.starts_with('<')) {
    const size_t end = name.find('>');
    if (end == std::string_view::npos) return std::nullopt;
    abbreviation = name.substr(1, end - 1);
    name.remove_prefix(end + 1);
  } else {
    const auto letters =
        static_cast<size_t>(std::find_if_not(name.begin(), name.end(), IsLetter) - name.begin());
    if (letters > 0 && letters < 3) return std::nullopt;
    abbreviation = absl::AsciiStrToUpper(std::string(name.substr(0, letters)));
    name.remove_prefix(letters);
  }
  const bool east = name.starts_with('-');
  if (east || name.starts_with('+')) name.remove_prefix(1);
  const std::optional<int32_t> offset = ParseOffset(name);
  if (!offset || *offset > kGreatestOffset) return std::nullopt;
  return TimeZone::Fixed(east ? *offset : -*offset, std::move(abbreviation));
}

/// `europe/berlin` as `Europe/Berlin`.
std::string Capitalized(std::string_view name) {
  std::string out = absl::AsciiStrToLower(std::string(name));
  bool first = true;
  for (char& c : out) {
    if (first) c = absl::ascii_toupper(static_cast<unsigned char>(c));
    first = c == '/' || c == '_' || c == '-';
  }
  return out;
}

/// The start of an offset at the end of a text. A sign belongs to the zone after the first colon, and,
/// without a time, where no date continues: `2024-01-02+02`, `2024-01-02 -05`, `2024/01/02-05`.
size_t FindOffset(std::string_view text) {
  const size_t sign = text.find_last_of("+-");
  if (sign == std::string_view::npos || sign == 0) return std::string_view::npos;
  if (text.find(':') < sign || text[sign] == '+') return sign;
  const std::string_view before = text.substr(0, sign);
  const size_t t = before.find_first_of("Tt");
  const bool timed = t != std::string_view::npos && t > 0 && IsDigit(before[t - 1]);
  const bool apart = timed || before.ends_with(' ') || std::count(before.begin(), before.end(), '/') == 2;
  return apart && ParseOffset(text.substr(sign + 1)) ? sign : std::string_view::npos;
}

/// True for names of zone files. Other names could denote any file.
bool MayBePlace(std::string_view name) {
  constexpr size_t kLongestName = 64;
  const auto fits = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '/' || c == '_' || c == '+' || c == '-';
  };
  return !name.empty() && name.size() <= kLongestName && IsLetter(name[0]) &&
         std::all_of(name.begin(), name.end(), fits) && name != "localtime" && name != "posixrules";
}

void AppendOffset(int32_t offset, std::string& out) {
  const int32_t ahead = std::abs(offset);
  absl::StrAppendFormat(&out, "%c%02d", offset < 0 ? '-' : '+', ahead / kSecondsPerHour);
  if (ahead % kSecondsPerHour != 0) absl::StrAppendFormat(&out, ":%02d", ahead / kSecondsPerMinute % 60);
  if (ahead % kSecondsPerMinute != 0) absl::StrAppendFormat(&out, ":%02d", ahead % kSecondsPerMinute);
}

}  // namespace

std::optional<TimeZone> TimeZone::Find(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  for (const NamedOffset& known : kAbbreviations) {
    if (lower != known.name) continue;
    return Fixed(known.minutes * kSecondsPerMinute, lower == "z" ? kUtc : absl::AsciiStrToUpper(lower));
  }
  if (!MayBePlace(name)) return FindPosix(name);
  TimeZone zone;
  zone.fixed_ = false;
  const bool found = absl::LoadTimeZone(std::string(name), &zone.zone_) ||
                     absl::LoadTimeZone(Capitalized(name), &zone.zone_) ||
                     absl::LoadTimeZone(absl::AsciiStrToUpper(std::string(name)), &zone.zone_);
  return found ? std::optional(zone) : FindPosix(name);
}

const TimeZone* TimeZone::OfThread(std::string_view name) {
  thread_local std::string last_name;
  thread_local std::optional<TimeZone> last;
  if (last && last_name == name) return &*last;
  last = Find(name);
  last_name = name;
  return last ? &*last : nullptr;
}

TimeZone TimeZone::Fixed(int32_t offset_seconds, std::string abbreviation) {
  TimeZone zone;
  zone.offset_ = offset_seconds;
  zone.abbreviation_ = std::move(abbreviation);
  return zone;
}

int32_t TimeZone::OffsetSeconds(int64_t utc_us) const {
  return fixed_ ? offset_ : zone_.At(absl::FromUnixMicros(utc_us)).offset;
}

int64_t TimeZone::LocalOf(int64_t utc_us) const {
  return utc_us + OffsetSeconds(utc_us) * kMicrosecondsPerSecond;
}

int64_t TimeZone::UtcOf(int64_t local_us) const {
  if (fixed_) return local_us - offset_ * kMicrosecondsPerSecond;
  const int64_t seconds = FloorSeconds(local_us);
  const absl::TimeZone::TimeInfo info = zone_.At(absl::CivilSecond(1970, 1, 1) + seconds);
  const absl::Time utc = info.kind == absl::TimeZone::TimeInfo::REPEATED ? info.post : info.pre;
  return absl::ToUnixMicros(utc) + (local_us - seconds * kMicrosecondsPerSecond);
}

std::string TimeZone::Abbreviation(int64_t utc_us) const {
  return fixed_ ? abbreviation_ : zone_.At(absl::FromUnixMicros(utc_us)).zone_abbr;
}

std::string NameOfOffset(int32_t offset_seconds) {
  std::string east, west;
  AppendOffset(offset_seconds, east);
  AppendOffset(-offset_seconds, west);
  return absl::StrCat("<", east, ">", west);
}

std::string TimestampTzText(int64_t utc_us, const TimeZone& zone) {
  std::string text = Value::Timestamp(zone.LocalOf(utc_us)).ToString();
  AppendOffset(zone.OffsetSeconds(utc_us), text);
  return text;
}

ZonedText SplitZone(std::string_view whole) {
  ZonedText out{TrimBlanks(whole)};
  const std::string_view text = out.text;
  const size_t sign = FindOffset(text);
  const std::string_view last = text.substr(text.find_last_of(" \t") + 1);
  if (!last.empty() && IsLetter(last[0]) && last.size() < text.size()) {
    // Midnight, UTC.
    const bool allballs =
        absl::AsciiStrToLower(std::string(last)) == "allballs" && text.find(':') == text.npos;
    out.zone = TimeZone::Find(allballs ? kUtc : last);
    if (out.zone) {
      out.text = TrimBlanks(text.substr(0, text.size() - last.size()));
    } else if (last.find('/') != std::string_view::npos) {
      out.fault = ZonedText::Fault::kUnknownZone;
    }
  } else if (sign != std::string_view::npos) {
    const std::optional<int32_t> offset = ParseOffset(text.substr(sign + 1));
    if (!offset) return out;
    if (*offset > kGreatestOffset) {
      out.fault = ZonedText::Fault::kOffsetOutOfRange;
      return out;
    }
    out.zone = TimeZone::Fixed(text[sign] == '-' ? -*offset : *offset);
    out.text = TrimBlanks(text.substr(0, sign));
  } else {
    size_t letters = text.size();
    while (letters > 0 && IsLetter(text[letters - 1])) --letters;
    if (letters > 0 && letters < text.size() && IsDigit(text[letters - 1])) {
      out.zone = TimeZone::Find(text.substr(letters));
      if (out.zone) out.text = text.substr(0, letters);
    }
  }
  return out;
}

absl::StatusOr<int64_t> ParseTime(std::string_view text) {
  text = TrimBlanks(text);
  const size_t colon = text.find(':');
  const std::string_view before = text.substr(0, std::min(colon, text.size()));
  const bool dated = before.find_first_of("-/") != std::string_view::npos;
  std::string spelled(text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (colon == std::string_view::npos && (digits == 4 || digits == 6)) {
    spelled.insert(2, ":");
    if (digits == 6) spelled.insert(5, ":");
  }
  constexpr int64_t kSomeDay = 10957 * kMicrosecondsPerDay;  // 2000-01-01
  const absl::StatusOr<int64_t> us = ParseTimestamp(dated ? spelled : absl::StrCat("2000-01-01 ", spelled));
  if (!us.ok()) return us.status();
  if (!dated) {
    // A date alone is not a time.
    return spelled.empty() ? absl::InvalidArgumentError("no time") : absl::StatusOr<int64_t>(*us - kSomeDay);
  }
  return *us - (*us / kMicrosecondsPerDay - (*us % kMicrosecondsPerDay < 0)) * kMicrosecondsPerDay;
}

}  // namespace nam
