#include "session/settings.h"

#include <gtest/gtest.h>
#include <strings.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/setting_kinds.h"
#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

class NoTables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string&) override {
    return absl::NotFoundError("no such table");
  }
  std::vector<std::string> Names() override { return {}; }
};

class SettingsTest : public ::testing::Test {
 protected:
  /// The value that SHOW prints, the SQLSTATE, or an empty text for SET.
  std::string Run(const std::string& text) {
    NoTables tables;
    const auto bound = sql::Bind(text, tables);
    if (!bound.ok()) return Failed(bound.status());
    if (const auto* const set = std::get_if<sql::SetStatement>(&*bound)) {
      const absl::Status status = settings_->Set(*set);
      return status.ok() ? "" : Failed(status);
    }
    const auto shown = settings_->Show(std::get<sql::ShowStatement>(*bound));
    return shown.ok() ? shown->value : Failed(shown.status());
  }
  std::string Failed(const absl::Status& status) {
    error_ = SqlErrorOf(status).value_or(SqlError{});
    return error_.sqlstate;
  }

  std::optional<Settings> settings_ = Settings(SessionSettings());
  SqlError error_;
};

TEST_F(SettingsTest, AllAreByNameAndHaveADescription) {
  const std::vector<Settings::Shown> all = settings_->ShowAll();
  EXPECT_GE(all.size(), 25u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].description.empty()) << all[i].name;
    if (i == 0) continue;
    EXPECT_LT(strcasecmp(all[i - 1].name.c_str(), all[i].name.c_str()), 0) << all[i].name;
  }
}

/// RESET relies on it.
TEST_F(SettingsTest, WhatIsShownCanBeSet) {
  for (const char* const set :
       {"set nam.multicast = off", "set nam.in_place = off", "set statement_timeout = '90s'",
        "set nam.build_mib_max = '3GB'", "set timezone = -3.5", "set application_name = 'a, b'"})
    EXPECT_EQ(Run(set), "");
  for (const Settings::Shown& setting : settings_->ShowAll()) {
    const std::string state = Run("set " + setting.name + " = '" + setting.value + "'");
    EXPECT_TRUE(state.empty() || state == "55P02") << setting.name << " " << state;
    EXPECT_EQ(Run("show " + setting.name), setting.value);
  }
}

TEST_F(SettingsTest, IntegersAndTheirUnits) {
  EXPECT_EQ(Run("show statement_timeout"), "0");
  const std::vector<std::pair<std::string, std::string>> values = {{"5", "5ms"},
                                                                   {"'5s'", "5s"},
                                                                   {"'1min'", "1min"},
                                                                   {"60000", "1min"},
                                                                   {"'1.5s'", "1500ms"},
                                                                   {"' 2 h '", "2h"},
                                                                   {"'1d'", "1d"},
                                                                   {"'2600us'", "3ms"},
                                                                   {"1.4", "1ms"},
                                                                   {"'0.5min'", "30s"},
                                                                   {"default", "0"},
                                                                   {"'+7'", "7ms"},
                                                                   {"2147483647", "2147483647ms"}};
  for (const auto& [value, shown] : values) {
    EXPECT_EQ(Run("set statement_timeout = " + value), "") << value;
    EXPECT_EQ(Run("show statement_timeout"), shown) << value;
  }
  EXPECT_EQ(settings_->now().statement_timeout_ms, 2147483647);
  EXPECT_EQ(Run("set nam.build_mib_max to '2GB'"), "");
  EXPECT_EQ(settings_->now().build_mib_max, 2048);
  EXPECT_EQ(Run("set nam.prefetch_window = 64"), "");
  EXPECT_EQ(Run("show nam.prefetch_window"), "64");
}

/// What SHOW tells can be written behind SET.
TEST_F(SettingsTest, TheSearchPathIsShownAsItIsWritten) {
  const std::vector<std::pair<std::string, std::string>> paths = {
      {"a, b_1", "a, b_1"},
      {"\"$user\", public", "\"$user\", public"},
      {"'a b', \"C\", x", "\"a b\", \"C\", x"},
      {"\"a, b\", \"q\"\"q\", \"1a\"", "\"a, b\", \"q\"\"q\", \"1a\""},
      {"\"select\", \"default\", data", "\"select\", \"default\", data"}};
  for (const auto& [written, shown] : paths) {
    EXPECT_EQ(Run("set search_path = " + written), "") << written;
    const std::vector<std::string> path = settings_->now().names.search_path;
    EXPECT_EQ(Run("show search_path"), shown);
    EXPECT_EQ(Run("set search_path = " + shown), "") << shown;
    EXPECT_EQ(settings_->now().names.search_path, path);
  }
  EXPECT_EQ(Run("set search_path = ''"), "");
  EXPECT_EQ(Run("show search_path"), "\"\"");
}

TEST_F(SettingsTest, BooleansAndWordsAsPostgresWritesThem) {
  for (const char* const off : {"off", "FALSE", "'f'", "no", "n", "0", "'of'"}) {
    EXPECT_EQ(Run("set nam.in_place to true"), "");
    EXPECT_EQ(Run(std::string("set nam.in_place to ") + off), "") << off;
    EXPECT_FALSE(settings_->now().in_place) << off;
  }
  EXPECT_EQ(Run("set nam.in_place = 'y'"), "");
  EXPECT_TRUE(settings_->now().in_place);
  EXPECT_EQ(Run("set nam.multicast = 'ON'"), "");
  EXPECT_EQ(settings_->now().multicast, Choice::kOn);
}

TEST_F(SettingsTest, AlgorithmsByTheirNames) {
  for (size_t a = 0; a < plan::kJoinAlgorithms.size(); ++a) {
    const std::string name = plan::kJoinAlgorithms[a];
    EXPECT_EQ(Run("set nam.join = '" + name + "'"), "") << name;
    EXPECT_EQ(settings_->now().join, static_cast<plan::JoinAlgorithm>(a));
    EXPECT_EQ(Run("show nam.join"), name);
  }
  for (size_t a = 0; a < plan::kAggregateAlgorithms.size(); ++a) {
    const std::string name = plan::kAggregateAlgorithms[a];
    EXPECT_EQ(Run("set nam.aggregate to " + name), "") << name;
    EXPECT_EQ(settings_->now().aggregate, static_cast<plan::AggregateAlgorithm>(a));
    EXPECT_EQ(Run("show nam.aggregate"), name);
  }
  EXPECT_EQ(Run("set nam.join = radix"), "22023");
  EXPECT_EQ(error_.hint, "Available values: auto, pipelined, rrj, rdma_ghj, ghj, ghj_bloom.");
  EXPECT_EQ(Run("set nam.aggregate = on"), "22023");
  EXPECT_EQ(error_.hint, "Available values: auto, rdma, dist.");
}

/// JOIN is a reserved word, which PostgreSQL wants in quotes.
TEST_F(SettingsTest, JoinNeedsNoQuotes) {
  for (const char* const set :
       {"set nam.join = rrj", "SET NAM.JOIN TO 'rrj'", "set session nam.join = rrj", "set nam.\"join\" = rrj",
        " /* a */ set -- b\n nam /* join */ . Join = RRJ;"}) {
    EXPECT_EQ(Run("reset nam.join"), "");
    EXPECT_EQ(settings_->now().join, plan::JoinAlgorithm::kAuto);
    EXPECT_EQ(Run(set), "") << set;
    EXPECT_EQ(settings_->now().join, plan::JoinAlgorithm::kRrj) << set;
  }
  EXPECT_EQ(Run("set local nam.join = 'ghj'"), "");
  EXPECT_EQ(Run("set nam.join to default"), "");
  EXPECT_EQ(Run("show Nam.Join"), "auto");
  EXPECT_EQ(Run("set nam.join = 'loop'"), "22023");
  EXPECT_EQ(error_.position, 15);
  EXPECT_EQ(Run("set nam.join"), "42601");
  EXPECT_EQ(Run("set nam.join.x = 1"), "42704");
  EXPECT_EQ(Run("set nam.joi_ = rrj"), "42704") << "what stands in for it is no name of it";
  EXPECT_EQ(Run("set join = rrj"), "42601");
  EXPECT_EQ(Run("set nam.on = rrj"), "42601");
}

TEST_F(SettingsTest, DefaultsComeBack) {
  SessionSettings defaults;
  defaults.prefetch_window = 33;
  settings_.emplace(defaults);
  EXPECT_EQ(Run("show nam.prefetch_window"), "33");
  for (const char* const back :
       {"reset nam.prefetch_window", "set nam.prefetch_window to default", "reset all"}) {
    EXPECT_EQ(Run("set nam.prefetch_window = 1"), "");
    EXPECT_EQ(Run(back), "");
    EXPECT_EQ(Run("show nam.prefetch_window"), "33") << back;
  }
  EXPECT_EQ(Run("set time zone 2"), "");
  EXPECT_EQ(Run("show timezone"), "<+02>-02");
  EXPECT_EQ(Run("set time zone local"), "");
  EXPECT_EQ(Run("show timezone"), "UTC");
}

/// Runs each of `steps` inside a transaction that is then committed, or rolled back.
TEST_F(SettingsTest, TransactionsTakeSettingsBack) {
  struct Case {
    std::vector<std::string> steps;
    std::string inside, committed, rolled_back;
  };
  const std::string set = "set nam.prefetch_window = ", local = "set local nam.prefetch_window = ";
  const std::vector<Case> cases = {{{set + "2"}, "2", "2", "1"},
                                   {{local + "2"}, "2", "1", "1"},
                                   {{set + "2", local + "3"}, "3", "2", "1"},
                                   {{local + "3", set + "2"}, "2", "2", "1"},
                                   {{local + "3", "reset nam.prefetch_window"}, "10", "10", "1"},
                                   {{"reset all"}, "10", "10", "1"},
                                   {{set + "2", "set local nam.prefetch_window to default"}, "10", "2", "1"}};
  for (const bool commits : {true, false}) {
    for (const Case& one : cases) {
      EXPECT_EQ(Run(set + "1"), "");
      EXPECT_EQ(Run(local + "9"), "") << "no effect outside";
      EXPECT_EQ(Run("show nam.prefetch_window"), "1");
      settings_->BeginTransaction();
      for (const std::string& step : one.steps) EXPECT_EQ(Run(step), "") << step;
      EXPECT_EQ(Run("show nam.prefetch_window"), one.inside) << one.steps[0];
      settings_->EndTransaction(commits);
      EXPECT_EQ(Run("show nam.prefetch_window"), commits ? one.committed : one.rolled_back) << one.steps[0];
    }
  }
}

TEST_F(SettingsTest, SavepointsTakeSettingsBack) {
  const std::string set = "set nam.prefetch_window = ", local = "set local nam.prefetch_window = ";
  const auto shown = [&] { return Run("show nam.prefetch_window"); };
  for (const bool commits : {true, false}) {
    EXPECT_EQ(Run(set + "1"), "");
    settings_->BeginTransaction();
    EXPECT_EQ(Run(set + "2"), "");
    settings_->AddSavepoint();
    EXPECT_EQ(Run(local + "3"), "");
    settings_->AddSavepoint();
    EXPECT_EQ(Run(set + "4"), "");
    settings_->AddSavepoint();
    EXPECT_EQ(Run(set + "5"), "");
    settings_->RollBackTo(2);
    EXPECT_EQ(shown(), "3");
    EXPECT_EQ(Run(local + "6"), "");
    settings_->Release(1);
    EXPECT_EQ(shown(), "6") << "RELEASE keeps what was set";
    settings_->RollBackTo(1);
    EXPECT_EQ(shown(), "2");
    settings_->RollBackTo(1);
    EXPECT_EQ(shown(), "2") << "the savepoint stays";
    settings_->EndTransaction(commits);
    EXPECT_EQ(shown(), commits ? "2" : "1");
  }
}

}  // namespace
}  // namespace nam::session
