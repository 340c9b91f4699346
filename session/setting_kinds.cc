#include "session/setting_kinds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

constexpr int64_t kMostOfAnyInteger = std::numeric_limits<int32_t>::max();

absl::Status BadValue(const GivenValue& value, std::string hint = {}) {
  return UserError(
      sqlstate::kBadParameter,
      absl::StrCat("invalid value for parameter ", Quote(value.setting), ": ", Quote(value.text)),
      value.position, std::move(hint));
}

/// A unit in which values may be written.
struct Scale {
  const char* name;
  double times;  // in the setting's own unit
};
/// From small to large. PostgreSQL's.
constexpr Scale kTimes[] = {{"us", 0.001}, {"ms", 1}, {"s", 1e3}, {"min", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
constexpr Scale kSizes[] = {
    {"B", 1.0 / 1048576}, {"kB", 1.0 / 1024}, {"MB", 1}, {"GB", 1024}, {"TB", 1048576}};

std::span<const Scale> ScalesOf(Unit unit) {
  if (unit == Unit::kMilliseconds) return kTimes;
  if (unit == Unit::kMebibytes) return kSizes;
  return {};
}

const char* UnitName(Unit unit) {
  for (const Scale& scale : ScalesOf(unit)) {
    if (scale.times == 1) return scale.name;
  }
  return "";
}

std::string ValidUnits(Unit unit) {
  std::string names;
  const std::span<const Scale> scales = ScalesOf(unit);
  for (const Scale& scale : scales) {
    const bool last = &scale == &scales.back();
    absl::StrAppend(&names, names.empty() ? "" : last ? ", and " : ", ", Quote(scale.name));
  }
  return names.empty() ? "" : absl::StrCat("Valid units for this parameter are ", names, ".");
}

/// Parses a number and an optional unit, with blanks around them; nullopt if it is malformed.
std::optional<double> ParseNumber(std::string given, Unit unit) {
  absl::StripAsciiWhitespace(&given);
  std::string_view text = given;
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text[0]))) text.remove_prefix(1);
  if (text.empty()) return number;
  for (const Scale& scale : ScalesOf(unit)) {
    if (text == scale.name) return number * scale.times;
  }
  return std::nullopt;
}

}  // namespace

absl::Status IntegerSetting::Set(const GivenValue& value, SessionSettings& settings) const {
  const std::optional<double> number = ParseNumber(value.text, unit);
  if (!number.has_value()) return BadValue(value, ValidUnits(unit));
  const double rounded = std::nearbyint(*number);
  if (std::abs(rounded) > static_cast<double>(kMostOfAnyInteger))
    return BadValue(value, "Value exceeds integer range.");
  const auto whole = static_cast<int64_t>(rounded);
  if (whole < least || whole > most) {
    const char* const name = UnitName(unit);
    return UserError(
        sqlstate::kBadParameter,
        absl::StrCat(whole, *name == '\0' ? "" : " ", name, " is outside the valid range for parameter ",
                     Quote(value.setting), " (", least, " .. ", most, ")"),
        value.position);
  }
  settings.*field = whole;
  return absl::OkStatus();
}

std::string IntegerSetting::Show(const SessionSettings& settings) const {
  const int64_t number = settings.*field;
  std::string shown = absl::StrCat(number);
  if (number == 0) return shown;
  for (const Scale& scale : ScalesOf(unit)) {
    const auto times = static_cast<int64_t>(scale.times);
    if (times >= 1 && number % times == 0) shown = absl::StrCat(number / times, scale.name);
  }
  return shown;
}

absl::Status SwitchSetting::Set(const GivenValue& value, SessionSettings& settings) const {
  // A prefix of a word is the word, unless it is a prefix of two.
  struct Word {
    const char* word;
    size_t letters_min;
    bool on;
  };
  constexpr Word kWords[] = {{"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false},
                             {"on", 2, true},   {"off", 2, false},   {"1", 1, true},   {"0", 1, false}};
  const std::string text = absl::AsciiStrToLower(value.text);
  for (const Word& word : kWords) {
    if (text.size() < word.letters_min || !absl::StartsWith(word.word, text)) continue;
    settings.*field = word.on;
    return absl::OkStatus();
  }
  return UserError(sqlstate::kBadParameter,
                   absl::StrCat("parameter ", Quote(value.setting), " requires a Boolean value"),
                   value.position, "write on or off");
}

std::string SwitchSetting::Show(const SessionSettings& settings) const {
  return settings.*field ? "on" : "off";
}

absl::Status WordSetting::Set(const GivenValue& value, SessionSettings& settings) const {
  std::vector<std::string> known;
  for (size_t word = 0; word < words.size() && words[word] != nullptr; ++word) {
    if (!absl::EqualsIgnoreCase(value.text, words[word])) {
      known.emplace_back(words[word]);
      continue;
    }
    set(settings, word);
    return absl::OkStatus();
  }
  return BadValue(value, absl::StrCat("Available values: ", absl::StrJoin(known, ", "), "."));
}

std::string WordSetting::Show(const SessionSettings& settings) const {
  return words[get(settings)];
}

/// A number of hours counts to the east, as in PostgreSQL; in a zone's name it counts to the west.
absl::Status ZoneSetting::Set(const GivenValue& value, SessionSettings& settings) const {
  constexpr double kMostHours = 16;
  double hours;
  std::string zone = value.text;
  if (absl::SimpleAtod(zone, &hours) && hours > -kMostHours && hours < kMostHours)
    zone = NameOfOffset(static_cast<int32_t>(hours * 3600));
  if (absl::AsciiStrToUpper(zone) == kUtc) zone = kUtc;
  // PostgreSQL uses the rules of a place for these as a session's zone, and one offset for them in a text: a
  // name here is the same everywhere.
  for (const char* const twofold : {"CET", "EET", "MET", "WET"}) {
    if (absl::AsciiStrToUpper(zone) == twofold)
      return BadValue(value, "it has summer time in some places: write Europe/Berlin, Europe/Athens, …");
  }
  if (!TimeZone::Find(zone)) return BadValue(value, "zones are written UTC, Europe/Berlin or +02");
  settings.*field = zone;
  return absl::OkStatus();
}

absl::Status TextSetting::Set(const GivenValue& value, SessionSettings& settings) const {
  settings.*field = value.text;
  return absl::OkStatus();
}

absl::Status FixedSetting::Set(const GivenValue& given, SessionSettings&) const {
  const auto words = [](const std::string& text) {
    std::vector<std::string> out;
    for (const auto& word : absl::StrSplit(text, ',')) {
      out.push_back(absl::AsciiStrToLower(absl::StripAsciiWhitespace(word)));
    }
    return out;
  };
  const std::vector<std::string> known = words(value), wanted = words(given.text);
  const bool same = change == Change::kToItself && wanted == known;
  const bool part = change == Change::kToItsWords &&
                    std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
                      return std::find(known.begin(), known.end(), word) != known.end();
                    });
  if (same || part) return absl::OkStatus();
  return UserError(sqlstate::kCannotBeChanged,
                   absl::StrCat("parameter ", Quote(given.setting), " cannot be changed"), given.position,
                   absl::StrCat("it is always ", value));
}

absl::Status PathSetting::Set(const GivenValue& value, SessionSettings& settings) {
  std::vector<std::string> path;
  for (const std::string& schema : value.words) {
    if (!schema.empty()) path.push_back(schema);
  }
  if (path.size() > kSchemasMax) {
    return UserError(sqlstate::kBadParameter, "search_path has too many schemas", value.position,
                     absl::StrCat("at most ", kSchemasMax));
  }
  settings.names.search_path = std::move(path);
  return absl::OkStatus();
}

std::string PathSetting::Show(const SessionSettings& settings) {
  if (settings.names.search_path.empty()) return "\"\"";
  return absl::StrJoin(settings.names.search_path, ", ", [](std::string* out, const std::string& schema) {
    absl::StrAppend(out, sql::WrittenIdentifier(schema));
  });
}

}  // namespace nam::session
