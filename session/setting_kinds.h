#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "session/settings.h"

/// Kinds of settings: their values, how these are written, and where they are kept.
namespace nam::session {

/// The value of a SET. Errors name the setting, and point at the value.
struct GivenValue {
  std::string setting;
  std::string text;
  int position = -1;
  std::vector<std::string> words;  // a list's elements
};

enum class Unit : uint8_t { kNone, kMilliseconds, kMebibytes };

/// A whole number. One with a unit may be written with another, as in '5s', and is shown in the largest that
/// divides it.
struct IntegerSetting {
  int64_t SessionSettings::*field;
  int64_t least;
  int64_t most;  // at most 2^31 - 1
  Unit unit = Unit::kNone;

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings& settings) const;
};

/// on or off; or PostgreSQL's other booleans.
struct SwitchSetting {
  bool SessionSettings::*field;

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings& settings) const;
};

/// One word of several.
struct WordSetting {
  static constexpr size_t kWordsMax = 8;
  size_t (*get)(const SessionSettings&);
  void (*set)(SessionSettings&, size_t word);
  std::array<const char*, kWordsMax> words;  // null after the last

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings& settings) const;
};

/// An enumeration whose values count from 0; the words name them in order.
template <auto kField, typename... Words>
constexpr WordSetting Enumeration(Words... words) {
  using Value = std::remove_cvref_t<decltype(std::declval<SessionSettings>().*kField)>;
  static_assert(sizeof...(words) <= WordSetting::kWordsMax);
  return {.get = [](const SessionSettings& settings) { return static_cast<size_t>(settings.*kField); },
          .set = [](SessionSettings& settings, size_t word) { settings.*kField = static_cast<Value>(word); },
          .words = {words...}};
}

/// A time zone, or a number of hours to the east.
struct ZoneSetting {
  std::string SessionSettings::*field;

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings& settings) const { return settings.*field; }
};

/// Any text.
struct TextSetting {
  std::string SessionSettings::*field;

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings& settings) const { return settings.*field; }
};

/// nam.default_storage.
constexpr WordSetting StorageSetting() {
  return {
      .get =
          [](const SessionSettings& settings) { return static_cast<size_t>(settings.names.default_storage); },
      .set =
          [](SessionSettings& settings, size_t word) {
            settings.names.default_storage = static_cast<sql::NameSettings::Storage>(word);
          },
      .words = {"auto", "columnar", "record"}};
}

/// search_path: schemas, which need not exist.
struct PathSetting {
  static constexpr size_t kSchemasMax = 64;

  static absl::Status Set(const GivenValue& value, SessionSettings& settings);
  static std::string Show(const SessionSettings& settings);
};

template <auto kField, size_t kWords>
constexpr WordSetting Enumeration(const std::array<const char*, kWords>& words) {
  return std::apply([](const auto... word) { return Enumeration<kField>(word...); }, words);
}

/// One fixed value.
struct FixedSetting {
  enum class Change : uint8_t { kNever, kToItself, kToItsWords };
  const char* value;
  /// Whether SET may give it its own value, as clients do; or some words of its list.
  Change change = Change::kNever;

  absl::Status Set(const GivenValue& value, SessionSettings& settings) const;
  std::string Show(const SessionSettings&) const { return value; }
};

using SettingKind = std::variant<IntegerSetting, SwitchSetting, WordSetting, ZoneSetting, TextSetting,
                                 PathSetting, FixedSetting>;

}  // namespace nam::session
