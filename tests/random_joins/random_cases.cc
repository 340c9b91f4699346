#include "tests/random_joins/random_cases.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/random_joins/drawn_cluster.h"
#include "tests/random_joins/random_query.h"
#include "tests/random_joins/random_tables.h"
#include "tests/random_joins/sqlite_peer.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

using WallClock = std::chrono::steady_clock;

constexpr uint64_t kClusterUse = 2, kSettingsUse = 3, kQueryUse = 1'000;  // of Draw
constexpr uint64_t kSqliteStepsMax = 1'000'000;
constexpr uint64_t kDrawsMax = 100, kDrawsForRows = 3;
constexpr int kShrinkTriesMax = 150;
constexpr char kTimedOut[] = "error 57014";
constexpr uint64_t kCasesOfATimeout = 1'000;  // more than one in this many is a failure
constexpr size_t kRowsShown = 8;

double Since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

/// Errors with which the engine may end a query that SQLite answers: its bounds on memory, and unsupported
/// features.
bool IsRefusal(const std::string& sqlstate) {
  return sqlstate == "53200" || sqlstate == "53400" || sqlstate == "54000" || sqlstate == "0A000";
}

using Settings = std::vector<const char*>;  // a value of each of DrawnSettings

/// The failure of a case.
struct Wrong {
  std::string kind;  // empty: no failure; an SQLSTATE, or `rows`
  std::string text;
};

/// A set's cluster and SQLite, with the same tables.
class Peers {
 public:
  Peers(uint64_t seed, uint64_t set, const std::vector<fabric::Kind>& fabrics) : tables_(seed, set) {
    Draw draw(seed, kClusterUse, set);
    shape_ = DrawnShape(draw, draw.Of(fabrics));
  }

  absl::Status Start() {
    auto cluster = TestedCluster::Start(shape_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = *std::move(cluster);
    if (const absl::Status loaded = tables_.LoadInto(cluster_->attachment()); !loaded.ok()) return loaded;
    tables_.LoadInto(sqlite_);
    return cluster_->session().Execute("set statement_timeout = '60s'").status();
  }

  absl::Status Set(const Settings& settings) {
    for (size_t i = 0; i < settings.size(); ++i) {
      if (i < settings_.size() && settings_[i] == settings[i]) continue;
      const auto set = cluster_->session().Execute(
          absl::StrCat("set ", DrawnSettings()[i].name, " = '", settings[i], "'"));
      if (!set.ok()) return set.status();
    }
    settings_ = settings;
    return absl::OkStatus();
  }

  const RandomTables& tables() const { return tables_; }
  const ClusterShape& shape() const { return shape_; }
  SqlitePeer& sqlite() { return sqlite_; }
  TestedCluster& cluster() { return *cluster_; }

 private:
  const RandomTables tables_;
  ClusterShape shape_;
  std::unique_ptr<TestedCluster> cluster_;
  SqlitePeer sqlite_;
  Settings settings_;
};

class Runner {
 public:
  Runner(const RandomCasesOptions& options, std::ostream& out) : options_(options), out_(out) {}

  RandomCasesResult Run() {
    const uint64_t end = options_.first + options_.cases;
    for (uint64_t number = options_.first; number < end && !Over(); ++number) {
      const uint64_t set = number / options_.cases_of_a_set;
      // A set without its cluster has no cases: one failure.
      if ((peers_ == nullptr || set != set_) && !StartSet(set)) {
        number = (set + 1) * options_.cases_of_a_set - 1;
        continue;
      }
      RunCase(number);
      SayHowFar(end);
    }
    EndSet();
    return result_;
  }

 private:
  bool Over() const { return result_.failures >= options_.failures_max; }

  bool StartSet(uint64_t set) {
    EndSet();
    const auto start = WallClock::now();
    set_ = set;
    peers_ = std::make_unique<Peers>(options_.seed, set, options_.fabrics);
    const absl::Status started = peers_->Start();
    result_.setup_s += Since(start);
    if (started.ok()) return true;
    Fail(set * options_.cases_of_a_set, absl::StrCat("the set does not start: ", started.ToString()));
    peers_.reset();
    return false;
  }

  void EndSet() {
    if (peers_ == nullptr) return;
    const auto start = WallClock::now();
    if (const uint64_t left = peers_->cluster().ScratchLeftBehind(); left != 0)
      Fail(set_ * options_.cases_of_a_set,
           absl::StrCat(left, " bytes of scratch memory are left behind by a case of the set"));
    peers_.reset();
    result_.setup_s += Since(start);
  }

  /// SQLite's answer to a query that it answers in time. After many that it does not answer, nullopt.
  std::optional<TextRows> DrawAnswered(uint64_t number, RandomQuery& query) {
    for (uint64_t attempt = 0; attempt < kDrawsMax; ++attempt) {
      Draw draw(options_.seed, kQueryUse + attempt, number);
      query = DrawQuery(draw, peers_->tables().tables());
      const auto start = WallClock::now();
      auto rows = peers_->sqlite().Run(query.Text(), kSqliteStepsMax);
      result_.sqlite_s += Since(start);
      // Few cases without rows: they tell less.
      if (rows.ok() && rows->empty() && attempt < kDrawsForRows) continue;
      if (rows.ok()) return *std::move(rows);
      // SQLite 3.40 makes some unions beside RIGHT and FULL JOIN one with the query around them, and then
      // says `ON clause references tables to its right`.
      ++(absl::IsInvalidArgument(rows.status()) ? result_.not_understood : result_.too_slow);
    }
    Fail(number, "SQLite answers none of the queries that are drawn");
    return std::nullopt;
  }

  Settings DrawSettings(uint64_t number) {
    Draw draw(options_.seed, kSettingsUse, number);
    Settings settings;
    for (const DrawnSetting& setting : DrawnSettings()) settings.push_back(draw.Of(setting.values));
    return settings;
  }

  void RunCase(uint64_t number) {
    RandomQuery query;
    const std::optional<TextRows> answer = DrawAnswered(number, query);
    if (!answer.has_value()) return;
    const TextRows& expected = *answer;
    const Settings settings = DrawSettings(number);
    if (options_.verbose)
      out_ << number << ": " << query.Text() << "; -- " << expected.size() << " rows\n" << std::flush;
    ++result_.cases;
    ++result_.by_fabric[std::string(fabric::KindName(peers_->shape().fabric))];
    result_.rows += expected.size();
    result_.empty += expected.empty();
    const Wrong wrong = WhatIsWrong(query, settings, expected, &result_.refused);
    if (wrong.kind == kTimedOut) {
      // Joins in another order than SQLite's may multiply rows for minutes; such a query is not made smaller.
      ++result_.timed_out;
      out_ << "timed out: case " << number << "\n" << std::flush;
      if (result_.timed_out * kCasesOfATimeout > result_.cases + kCasesOfATimeout) {
        Fail(number, "statements take too long too often");
      }
      return;
    }
    if (!wrong.kind.empty()) FailCase(number, query, settings, wrong);
  }

  /// nullopt if the engine gives the same rows, or refuses.
  Wrong WhatIsWrong(const RandomQuery& query, const Settings& settings, const TextRows& expected,
                    std::map<std::string, uint64_t>* refused) {
    const auto start = WallClock::now();
    const absl::Status set = peers_->Set(settings);
    const auto actual = set.ok() ? peers_->cluster().session().Execute(query.Text()) : set;
    result_.engine_s += Since(start);
    if (!actual.ok()) {
      const std::string state = SqlErrorOf(actual.status()).value_or(SqlError{}).sqlstate;
      if (!IsRefusal(state)) return {absl::StrCat("error ", state), std::string(actual.status().message())};
      if (refused != nullptr) ++(*refused)[state];
      return {};
    }
    const TextRows rows = Canonical(*actual);
    const bool same = query.ordered ? rows == expected : SameRows(rows, expected, query.Approximate());
    if (same) return {};
    return {"rows", Differences(expected, rows, kRowsShown)};
  }

  Wrong WhatIsWrong(const RandomQuery& query, const Settings& settings) {
    const auto rows = peers_->sqlite().Run(query.Text(), 10 * kSqliteStepsMax);
    return rows.ok() ? WhatIsWrong(query, settings, *rows, nullptr) : Wrong();
  }

  void FailCase(uint64_t number, const RandomQuery& query, const Settings& settings, const Wrong& wrong) {
    std::string again = "not a second time";
    if (WhatIsWrong(query, settings).kind == wrong.kind) {
      const RandomQuery small = Shrink(query, kShrinkTriesMax, [&](const RandomQuery& q) {
        return WhatIsWrong(q, settings).kind == wrong.kind;
      });
      // The settings that the failure needs: the others have the value that stands first.
      Settings needed = settings;
      for (size_t i = 0; i < needed.size(); ++i) {
        Settings fewer = needed;
        fewer[i] = DrawnSettings()[i].values[0];
        if (WhatIsWrong(small, fewer).kind == wrong.kind) needed = fewer;
      }
      again = absl::StrCat("smaller:\n", small.Text(), ";\n", Statements(needed),
                           WhatIsWrong(small, needed).text);
    }
    Fail(number,
         absl::StrCat(wrong.kind, ": ", wrong.text, "\n", query.Text(), ";\n", Statements(settings), again));
  }

  static std::string Statements(const Settings& settings) {
    std::string text;
    for (size_t i = 0; i < settings.size(); ++i)
      absl::StrAppend(&text, "set ", DrawnSettings()[i].name, " = '", settings[i], "'; ");
    return text + "\n";
  }

  void SayHowFar(uint64_t end) {
    if (Since(said_) < 10) return;
    said_ = WallClock::now();
    out_ << absl::StrFormat("%d of %d cases, %.0f/s\n", result_.cases, end - options_.first,
                            static_cast<double>(result_.cases) / Since(start_))
         << std::flush;
  }

  void Fail(uint64_t number, const std::string& what) {
    ++result_.failures;
    const std::string again = absl::StrFormat(
        "./run test joins --seed=%d --set=%d%s", options_.seed, options_.cases_of_a_set,
        options_.fabrics.size() > 1 ? "" : " --fabric=" + std::string(fabric::KindName(options_.fabrics[0])));
    out_ << absl::StrFormat(
                "FAILED: case %d. Again: %s --case=%d; behind the cases of its set: %s --first=%d "
                "--cases=%d\n",
                number, again, number, again, set_ * options_.cases_of_a_set,
                number % options_.cases_of_a_set + 1)
         << peers_->shape().Describe() << "\n"
         << peers_->tables().Describe() << what << "\n\n"
         << std::flush;
  }

  const RandomCasesOptions options_;
  std::ostream& out_;
  RandomCasesResult result_;
  uint64_t set_ = 0;
  std::unique_ptr<Peers> peers_;
  const WallClock::time_point start_ = WallClock::now();
  WallClock::time_point said_ = start_;
};

}  // namespace

std::string RandomCasesResult::Summary() const {
  const auto counts = [](const std::map<std::string, uint64_t>& of) {
    return absl::StrJoin(of, ", ", absl::PairFormatter(": "));
  };
  return absl::StrFormat(
      "%d cases (%s), %d failures; %d rows compared, %d cases without any; %d queries too slow for SQLite, "
      "%d that it "
      "does not understand; %d timed out; refused: %s; "
      "%.1f s in the engine, %.1f s in SQLite, %.1f s for clusters and tables",
      cases, counts(by_fabric), failures, rows, empty, too_slow, not_understood, timed_out,
      refused.empty() ? "none" : counts(refused), engine_s, sqlite_s, setup_s);
}

RandomCasesResult RunRandomCases(const RandomCasesOptions& options, std::ostream& out) {
  return Runner(options, out).Run();
}

}  // namespace nam::testing
