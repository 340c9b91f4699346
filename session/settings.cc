#include "session/settings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

SqlError BadValue(const sql::SetStatement& statement, const std::string& wanted) {
  return {.message = absl::StrFormat("\"%s\" is no value for nam.%s", statement.value, statement.name),
          .position = statement.position,
          .hint = "it takes " + wanted,
          .sqlstate = sqlstate::kBadParameter};
}

absl::Status SetNumber(const sql::SetStatement& statement, int64_t least, int64_t most, int64_t& out) {
  int64_t value;
  if (!absl::SimpleAtoi(statement.value, &value) || value < least || value > most) {
    return ToStatus(BadValue(statement, absl::StrFormat("a number from %d to %d", least, most)));
  }
  out = value;
  return absl::OkStatus();
}

absl::Status SetSwitch(const sql::SetStatement& statement, bool& out) {
  if (statement.value != "on" && statement.value != "off" && statement.value != "true" &&
      statement.value != "false") {
    return ToStatus(BadValue(statement, "on or off"));
  }
  out = statement.value == "on" || statement.value == "true";
  return absl::OkStatus();
}

constexpr const char* kModes[] = {"auto", "off", "on"};  // by Choice

absl::Status SetMode(const sql::SetStatement& statement, Choice& out) {
  for (size_t mode = 0; mode < std::size(kModes); ++mode) {
    if (statement.value != kModes[mode]) continue;
    out = static_cast<Choice>(mode);
    return absl::OkStatus();
  }
  return ToStatus(BadValue(statement, "auto, off or on"));
}

/// A number of hours counts to the east, as in PostgreSQL; in a zone's name it counts to the west.
absl::Status SetZone(const sql::SetStatement& statement, std::string& out) {
  constexpr double kMostHours = 16;
  double hours;
  std::string zone = statement.value;
  if (absl::SimpleAtod(zone, &hours) && hours > -kMostHours && hours < kMostHours)
    zone = NameOfOffset(static_cast<int32_t>(hours * 3600));
  if (absl::AsciiStrToUpper(zone) == kUtc) zone = kUtc;
  if (!TimeZone::Find(zone)) {
    return ToStatus({.message = absl::StrFormat("invalid value for parameter \"TimeZone\": \"%s\"", zone),
                     .position = statement.position,
                     .hint = "zones are written UTC, Europe/Berlin or +02",
                     .sqlstate = sqlstate::kBadParameter});
  }
  out = zone;
  return absl::OkStatus();
}

}  // namespace

absl::Status SessionSettings::Set(const sql::SetStatement& statement) {
  if (statement.name == sql::kTimeZoneSetting) return SetZone(statement, time_zone);
  if (statement.name == "prefetch_window") return SetNumber(statement, 1, 64, prefetch_window);
  if (statement.name == "in_place") return SetSwitch(statement, in_place);
  if (statement.name == "verify_checksums") return SetSwitch(statement, verify_checksums);
  if (statement.name == "whole_tuples") return SetSwitch(statement, whole_tuples);
  if (statement.name == "result_mib_max") return SetNumber(statement, 1, 1 << 20, result_mib_max);
  if (statement.name == "build_mib_max") return SetNumber(statement, 1, 1 << 20, build_mib_max);
  if (statement.name == "compute_servers") return SetNumber(statement, 0, 1 << 16, compute_servers);
  if (statement.name == "multicast") return SetMode(statement, multicast);
  if (statement.name == "work_queue") return SetMode(statement, work_queue);
  if (statement.name == "groups_by_parts") return SetMode(statement, groups_by_parts);
  if (statement.name == "sorts_by_runs") return SetMode(statement, sorts_by_runs);
  if (statement.name == "joins_by_parts") return SetMode(statement, joins_by_parts);
  std::string names;
  for (const auto& [name, value] : All()) absl::StrAppend(&names, names.empty() ? "" : ", ", "nam.", name);
  return ToStatus({.message = absl::StrFormat("there is no setting nam.%s", statement.name),
                   .position = statement.position,
                   .hint = "settings: " + names,
                   .sqlstate = "42704"});
}

std::map<std::string, std::string> SessionSettings::All() const {
  return {{"prefetch_window", absl::StrCat(prefetch_window)},
          {"in_place", in_place ? "on" : "off"},
          {"verify_checksums", verify_checksums ? "on" : "off"},
          {"whole_tuples", whole_tuples ? "on" : "off"},
          {"result_mib_max", absl::StrCat(result_mib_max)},
          {"build_mib_max", absl::StrCat(build_mib_max)},
          {"compute_servers", absl::StrCat(compute_servers)},
          {"multicast", kModes[static_cast<size_t>(multicast)]},
          {"work_queue", kModes[static_cast<size_t>(work_queue)]},
          {"groups_by_parts", kModes[static_cast<size_t>(groups_by_parts)]},
          {"sorts_by_runs", kModes[static_cast<size_t>(sorts_by_runs)]},
          {"joins_by_parts", kModes[static_cast<size_t>(joins_by_parts)]}};
}

proto::StreamSettings SessionSettings::ForStreams() const {
  proto::StreamSettings settings;
  settings.set_window(static_cast<uint32_t>(prefetch_window));
  settings.set_in_place(in_place);
  settings.set_verify(verify_checksums);
  settings.set_result_bytes_max(result_bytes_max());
  settings.set_build_bytes_max(build_bytes_max());
  return settings;
}

}  // namespace nam::session
