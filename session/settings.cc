#include "session/settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "session/setting_kinds.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using S = SessionSettings;
using Change = FixedSetting::Change;

struct Setting {
  const char* name;
  SettingKind kind;
  const char* description;
};

constexpr int64_t kMebibytesMax = 1 << 20;
constexpr int64_t kMillisecondsMax = 2'147'483'647;

/// All settings, by name.
constexpr Setting kSettings[] = {
    {"application_name", TextSetting{&S::application_name}, "the client's name for itself"},
    {"client_encoding", FixedSetting{"UTF8", Change::kToItself}, "the encoding of texts"},
    {"DateStyle", FixedSetting{"ISO, MDY", Change::kToItsWords}, "how dates are printed and read"},
    {"default_transaction_isolation", FixedSetting{"repeatable read", Change::kToItself},
     "the isolation of transactions: they are under snapshot isolation"},
    {"integer_datetimes", FixedSetting{"on"}, "times are counted in microseconds"},
    {"IntervalStyle", FixedSetting{"postgres", Change::kToItself}, "how intervals are printed"},
    {"lock_timeout", IntegerSetting{&S::lock_timeout_ms, 0, kMillisecondsMax, Unit::kMilliseconds},
     "how long a statement waits for rows that others have locked; 0: it fails at once"},
    {"nam.aggregate", Enumeration<&S::aggregate>(plan::kAggregateAlgorithms),
     "how the groups of several compute servers are merged"},
    {"nam.build_mib_max", IntegerSetting{&S::build_mib_max, 1, kMebibytesMax, Unit::kMebibytes},
     "memory for the join tables of one server; larger build sides are joined by parts"},
    {"nam.compaction", SwitchSetting{&S::compaction},
     "whether small groups of rows of the columnar tables that the session appends to are merged"},
    {"nam.compute_servers", IntegerSetting{&S::compute_servers, 0, 1 << 16},
     "the most compute servers for a query; 0: all"},
    {"nam.default_storage", StorageSetting(),
     "the storage of new tables; auto: records, but columnar if made from a query or files"},
    {"nam.exchange", Enumeration<&S::exchange>("auto", "fabric", "sockets"),
     "the transport of rows that compute servers stream to each other; auto: the fabric"},
    {"nam.in_place", SwitchSetting{&S::in_place}, "whether blocks are read in place, if the fabric can"},
    {"nam.join", Enumeration<&S::join>(plan::kJoinAlgorithms), "the algorithm of distributed joins"},
    {"nam.load_mib_max", IntegerSetting{&S::load_mib_max, 1, kMebibytesMax, Unit::kMebibytes},
     "memory of the client for the rows of a load into a columnar table"},
    {"nam.multicast", Enumeration<&S::multicast>("auto", "off", "on"),
     "whether build sides that all compute servers need come by multicast"},
    {"nam.prefetch_window", IntegerSetting{&S::prefetch_window, 1, 64}, "blocks in flight for each thread"},
    {"nam.result_mib_max", IntegerSetting{&S::result_mib_max, 1, kMebibytesMax, Unit::kMebibytes},
     "memory of a query's result on each compute server, and of what its client holds for it"},
    {"nam.server_writes", Enumeration<&S::server_writes>("auto", "off", "on"),
     "whether compute servers themselves write a query's rows into columnar tables"},
    {"nam.sorts_by_runs", Enumeration<&S::sorts_by_runs>("auto", "off", "on"),
     "whether sorts write sorted runs to scratch memory"},
    {"nam.transaction_mib_max", IntegerSetting{&S::transaction_mib_max, 4, kMebibytesMax, Unit::kMebibytes},
     "memory of the client for what one transaction reads and writes"},
    {"nam.verify_checksums", SwitchSetting{&S::verify_checksums}, "whether blocks are checked as they come"},
    {"nam.whole_tuples", SwitchSetting{&S::whole_tuples},
     "whether all columns of the table that is streamed are moved, needed or not"},
    {"nam.work_queue", Enumeration<&S::work_queue>("auto", "off", "on"),
     "whether compute servers claim partitions, so that others can take some over"},
    {"search_path", PathSetting{}, "the schemas in which names are looked up"},
    {"server_encoding", FixedSetting{"UTF8"}, "the encoding of stored texts"},
    {"server_version", FixedSetting{"15.0"}, "the PostgreSQL version whose dialect is supported"},
    {"server_version_num", FixedSetting{"150000"}, "the same as a number"},
    {"standard_conforming_strings", FixedSetting{"on", Change::kToItself},
     "whether a backslash in a string is literal"},
    {"statement_timeout", IntegerSetting{&S::statement_timeout_ms, 0, kMillisecondsMax, Unit::kMilliseconds},
     "a statement that takes longer is ended; 0: none is"},
    {"TimeZone", ZoneSetting{&S::time_zone}, "the zone of timestamps that are written or printed"},
    {"transaction_isolation", FixedSetting{"repeatable read", Change::kToItself},
     "the isolation of the transaction that is open"},
};

std::string ShowValue(const Setting& setting, const SessionSettings& settings) {
  return std::visit([&](const auto& kind) { return kind.Show(settings); }, setting.kind);
}

absl::Status SetValue(const Setting& setting, const GivenValue& value, SessionSettings& settings) {
  return std::visit([&](const auto& kind) { return kind.Set(value, settings); }, setting.kind);
}

absl::Status Unrecognized(const std::string& name, int position) {
  std::vector<std::string> names;
  const std::string in_namespace = absl::StrCat("nam.", name);
  std::string hint;
  for (const Setting& setting : kSettings) {
    names.emplace_back(setting.name);
    if (absl::EqualsIgnoreCase(setting.name, in_namespace))
      hint = absl::StrCat("did you mean ", Quote(setting.name), "?");
  }
  if (hint.empty()) hint = DidYouMean(name, names);
  return UserError(sqlstate::kUndefinedObject,
                   absl::StrCat("unrecognized configuration parameter ", Quote(name)), position,
                   hint.empty() ? "SHOW ALL lists the settings" : hint);
}

absl::StatusOr<const Setting*> Find(const std::string& name, int position) {
  for (const Setting& setting : kSettings) {
    if (absl::EqualsIgnoreCase(setting.name, name)) return &setting;
  }
  return Unrecognized(name, position);
}

/// DateStyle and search_path are lists.
bool IsList(const Setting& setting) {
  if (std::holds_alternative<PathSetting>(setting.kind)) return true;
  const auto* const fixed = std::get_if<FixedSetting>(&setting.kind);
  return fixed != nullptr && fixed->change == Change::kToItsWords;
}

/// As RESET, and SET … TO DEFAULT.
absl::Status Reset(const Setting& setting, const SessionSettings& defaults, int position,
                   SessionSettings& settings) {
  if (std::holds_alternative<PathSetting>(setting.kind)) {
    settings.names.search_path = defaults.names.search_path;
    return absl::OkStatus();
  }
  return SetValue(setting, {setting.name, ShowValue(setting, defaults), position, {}}, settings);
}

}  // namespace

Settings::Settings(SessionSettings defaults)
    : defaults_(std::move(defaults)), now_(defaults_), kept_(defaults_), before_(defaults_) {}

absl::Status Settings::Set(const sql::SetStatement& statement) {
  if (statement.name.empty()) {
    ResetAll();
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(const Setting* const setting, Find(statement.name, statement.position));
  if (statement.values.size() > 1 && !IsList(*setting)) {
    return UserError(sqlstate::kBadParameter, absl::StrCat("SET ", setting->name, " takes only one argument"),
                     statement.value_position, "write one value, in quotes if it holds commas");
  }
  const GivenValue value{setting->name, absl::StrJoin(statement.values, ", "), statement.value_position,
                         statement.values};
  const auto set = [&](SessionSettings& settings) {
    return statement.values.empty() ? Reset(*setting, defaults_, statement.position, settings)
                                    : SetValue(*setting, value, settings);
  };
  if (statement.local) {
    SessionSettings changed = now_;
    NAM_RETURN_IF_ERROR(set(changed));
    if (in_transaction_) now_ = std::move(changed);
    return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(set(now_));
  return set(kept_);
}

void Settings::ResetAll() {
  now_ = kept_ = defaults_;
}

absl::StatusOr<Settings::Shown> Settings::Show(const sql::ShowStatement& statement) const {
  NAM_ASSIGN_OR_RETURN(const Setting* const setting, Find(statement.name, statement.position));
  return Shown{setting->name, ShowValue(*setting, now_), setting->description};
}

std::vector<Settings::Shown> Settings::ShowAll() const {
  std::vector<Shown> all;
  for (const Setting& setting : kSettings)
    all.push_back({setting.name, ShowValue(setting, now_), setting.description});
  return all;
}

void Settings::BeginTransaction() {
  before_ = kept_;
  in_transaction_ = true;
}

void Settings::EndTransaction(bool committed) {
  if (!committed) kept_ = before_;
  now_ = kept_;
  in_transaction_ = false;
  savepoints_.clear();
}

void Settings::RollBackTo(size_t savepoints) {
  Release(savepoints);
  now_ = savepoints_.back().now;
  kept_ = savepoints_.back().kept;
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
