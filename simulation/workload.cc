#include "simulation/workload.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::simulation {
namespace {

constexpr int kAttemptsMax = Examiner::kAttemptsMax;
constexpr int64_t kAttemptPauseUs = Examiner::kAttemptPauseUs;

}  // namespace

Workload::Workload(Cluster& cluster, Adversary& adversary, const BenchmarkAnswers& answers,
                   const LoadShape& shape, RunResult& result)
    : cluster_(cluster),
      adversary_(adversary),
      world_(cluster.world()),
      answers_(answers),
      shape_(shape),
      result_(result),
      examiner_(cluster, result) {
  auto harness = world_.OpenFabric("harness", {});
  NAM_CHECK(harness.ok());
  harness_ = *std::move(harness);
}

Workload::~Workload() = default;

void Workload::Load(RandomStream random) {
  replacing_ = true;
  ++replacements_;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) examiner_.Pause(random.Magnitude(1'000, 4'000'000));
    const std::unique_ptr<Client> client = examiner_.NewClient("client-0");
    if (client == nullptr) break;
    const int deaths = cluster_.memory_deaths();
    adversary_.Expose(*client);
    const absl::Status loaded = LoadTables(client->attachment(), answers_, shape_);
    adversary_.Protect(*client);
    if (!loaded.ok()) {
      examiner_.CheckClean("load", loaded, {.replaced = false, .killed = !examiner_.Alive(*client)});
    } else if (deaths == cluster_.memory_deaths()) {
      ++result_.loads;
      loaded_at_deaths_ = deaths;
      replacing_ = false;
      return;
    }
  }
  replacing_ = false;
  examiner_.Fail("the tables could not be loaded");
}

/// One client's statements, on its own thread.
class Workload::QueryClient {
 public:
  QueryClient(Workload& workload, RandomStream random, int number)
      : workload_(workload), random_(random), number_(number), host_(absl::StrCat("client-", number)) {}

  void Run(int statements) {
    for (int i = 0; i < statements; ++i) {
      if (number_ == 0 && workload_.TablesLost()) {
        Detach();
        workload_.Load(random_);
        random_.Next();
      }
      if (client_ == nullptr || !workload_.examiner_.Alive(*client_)) {
        Detach();
        client_ = workload_.examiner_.NewClient(host_);
        if (client_ == nullptr) return;
        workload_.adversary_.Expose(*client_);
      }
      if (random_.OneIn(3)) Set();
      Query();
      if (random_.OneIn(4)) workload_.examiner_.Pause(random_.Magnitude(100, 4'000'000));
    }
    Detach();
  }

 private:
  void Detach() {
    if (client_ == nullptr) return;
    workload_.adversary_.Protect(*client_);
    client_.reset();
  }

  // Runs on a thread of the client's process, so that it stops when the process does.
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql) {
    absl::StatusOr<session::ResultSet> result;
    client_->fabric().StartThread("session", [&] { result = client_->session().Execute(sql); }).reset();
    return result;
  }

  void Set() {
    static constexpr const char* kModes[] = {"auto", "off", "on", "on"};
    const std::string choices[] = {absl::StrCat("SET nam.prefetch_window = ", random_.Between(1, 64)),
                                   absl::StrCat("SET nam.compute_servers = ", random_.Between(0, 3)),
                                   absl::StrCat("SET nam.multicast = ", kModes[random_.Below(4)]),
                                   absl::StrCat("SET nam.work_queue = ", kModes[random_.Below(4)])};
    const std::string& statement = choices[random_.Below(4)];
    const auto result = Execute(statement);
    if (!result.ok()) workload_.examiner_.Fail(absl::StrCat(statement, ": ", result.status().ToString()));
  }

  void Query() {
    const auto& queries = workload_.answers_.queries();
    const BenchmarkAnswers::Query& query = queries[random_.Below(queries.size())];
    const bool cancelled = random_.OneIn(12);
    const int64_t cancel_us = random_.Magnitude(10, 20'000);
    const int replacements = workload_.replacements_;
    const bool replacing = workload_.replacing_;
    const int64_t started_ns = workload_.world_.NowNs();
    std::unique_ptr<fabric::Thread> canceller;
    if (cancelled) {
      canceller = workload_.harness_->StartThread("canceller", [this, cancel_us] {
        workload_.examiner_.Pause(cancel_us);
        client_->session().Cancel();
      });
    }
    const auto result = Execute(query.sql);
    const int64_t took_ns = workload_.world_.NowNs() - started_ns;
    canceller.reset();
    // A late cancel ends the next statement: this one.
    if (cancelled) Execute("SET nam.multicast = auto").status().IgnoreError();
    const std::string what = absl::StrCat(host_, ": ", query.id);
    RunResult& report = workload_.result_;
    ++report.statements;
    workload_.examiner_.CheckDuration(what, took_ns);
    if (!result.ok()) {
      ++report.clean_errors;
      workload_.examiner_.CheckClean(what, result.status(),
                                     {.cancelled = cancelled,
                                      .replaced = replacing || replacements != workload_.replacements_,
                                      .killed = !workload_.examiner_.Alive(*client_)});
    } else if (workload_.answers_.AreRight(query, result->rows)) {
      ++report.right;
    } else {
      workload_.examiner_.Fail(absl::StrCat(what, ": WRONG ANSWER of ", result->rows.size(),
                                            " rows; right are ", query.rows.size()));
    }
  }

  Workload& workload_;
  RandomStream random_;
  const int number_;
  const std::string host_;
  std::unique_ptr<Client> client_;
};

void Workload::RunClients(RandomStream random, int clients, int statements) {
  std::vector<std::unique_ptr<QueryClient>> all;
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<QueryClient>(*this, RandomStream(random.Next()), i));
    threads.push_back(harness_->StartThread(absl::StrCat("client-", i),
                                            [&client = *all.back(), statements] { client.Run(statements); }));
  }
}

void Workload::RunAllQueries() {
  if (TablesLost()) Load(RandomStream(1));
  const std::unique_ptr<Client> client = examiner_.NewClient("client-0");
  if (client == nullptr) return;
  for (const BenchmarkAnswers::Query& query : answers_.queries()) {
    ++result_.statements;
    for (int attempt = 0;; ++attempt) {
      const auto result = client->session().Execute(query.sql);
      if (result.ok() && answers_.AreRight(query, result->rows)) {
        ++result_.right;
        break;
      }
      if (result.ok()) {
        examiner_.Fail(absl::StrCat(query.id, ": WRONG ANSWER when all was mended"));
        break;
      }
      examiner_.CheckClean(query.id, result.status(), {});
      if (attempt == kAttemptsMax) {
        examiner_.Fail(
            absl::StrCat(query.id, " does not succeed though all is mended: ", result.status().ToString()));
        return;
      }
      examiner_.Pause(kAttemptPauseUs);
    }
  }
}

void Workload::DropAll() {
  const std::unique_ptr<Client> client = examiner_.NewClient("client-0");
  if (client == nullptr) return;
  for (const dataset::Table& table : answers_.benchmark().tables()) {
    const absl::Status dropped = client->attachment().catalog().DropTable(table.schema.name);
    if (!dropped.ok() && !absl::IsNotFound(dropped))
      examiner_.Fail(absl::StrCat("drop: ", dropped.ToString()));
  }
  examiner_.AwaitFreed(0);
}

}  // namespace nam::simulation
