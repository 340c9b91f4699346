#include "simulation/transactions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "txn/rsi/client_log.h"
#include "txn/transaction_state.h"

namespace nam::simulation {
namespace {

/// A customer whose session keeps failing gets a new one.
constexpr int kErrorsInARowMax = 4;
constexpr int kSessionsMax = 100;
/// How often lost tables are recreated after memory servers die.
constexpr int kLivesMax = 3;
/// Longer than a memory server without power stays suspect.
constexpr int64_t kTablesUsMax = 300'000'000;

/// Bytes left when all tables are dropped; an upper bound if memory servers have died.
uint64_t StateBytesOf(Client& client) {
  const auto state = client.attachment().catalog().GetTable(txn::kStateTable);
  uint64_t bytes = 0;
  if (!state.ok()) return bytes;
  for (const proto::RecordPart& part : (*state)->record().parts()) {
    const bool logs = part.kind() == proto::TRANSACTION_LOGS;
    bytes += static_cast<uint64_t>(part.extents_size()) * (logs ? txn::kLogExtentBytes : txn::kStateBytes);
  }
  return bytes;
}

/// Tells the parents of foreign keys from former tables of their names.
absl::Status NameParents(Client& client, proto::RecordStorage& child) {
  for (proto::ForeignKey& key : *child.mutable_foreign_keys()) {
    NAM_ASSIGN_OR_RETURN(const auto parent, client.attachment().catalog().GetTable(key.parent()));
    key.set_parent_allocation(parent->allocation());
  }
  return absl::OkStatus();
}

}  // namespace

TransactionWorkload::TransactionWorkload(Cluster& cluster, Adversary& adversary, Factory make,
                                         RandomStream random, RunResult& result)
    : cluster_(cluster),
      adversary_(adversary),
      make_(std::move(make)),
      random_(random),
      result_(result),
      examiner_(cluster, result) {
  auto harness = cluster.world().OpenFabric("harness", {});
  NAM_CHECK(harness.ok());
  harness_ = *std::move(harness);
}

TransactionWorkload::~TransactionWorkload() = default;

absl::Status TransactionWorkload::OnItsThread(Client& client, const std::function<absl::Status()>& body) {
  absl::Status status;
  client.fabric().StartThread("session", [&] { status = body(); }).reset();
  return status;
}

absl::Status TransactionWorkload::WithSession(Client& client, const txn::RsiOptions& options,
                                              const std::function<absl::Status(txn::Session&)>& body) {
  return OnItsThread(client, [&]() -> absl::Status {
    txn::ClusterTables tables(client.attachment());
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, txn::OpenRsiSession(tables, options));
    return body(*session);
  });
}

absl::Status TransactionWorkload::DropTables(Client& client) {
  catalog::Client& catalog = client.attachment().catalog();
  const std::vector<txn::RecordTableOptions> tables = application_->tables();
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {  // children before their parents
    const absl::Status dropped = catalog.DropTable(table->name);
    if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
  }
  // Like `nam reset-transactions`: refused unless the server with the transaction state has died.
  const absl::Status reset = catalog.DropTable(txn::kStateTable);
  return absl::IsNotFound(reset) || absl::IsFailedPrecondition(reset) ? absl::OkStatus() : reset;
}

absl::Status TransactionWorkload::MakeTables(Client& client) {
  NAM_RETURN_IF_ERROR(OnItsThread(client, [&] { return DropTables(client); }));
  application_ = make_(RandomStream(random_.Next()));
  NAM_RETURN_IF_ERROR(OnItsThread(client, [&]() -> absl::Status {
    for (txn::RecordTableOptions& table : application_->tables()) {
      if (table.table.has_record()) NAM_RETURN_IF_ERROR(NameParents(client, *table.table.mutable_record()));
      NAM_RETURN_IF_ERROR(txn::CreateTable(client.attachment(), table));
    }
    return absl::OkStatus();
  }));
  return WithSession(client, {}, [&](txn::Session& session) -> absl::Status {
    NAM_RETURN_IF_ERROR(application_->CreateIndexes(client.attachment(), session));
    NAM_RETURN_IF_ERROR(application_->Fill(session));
    // From here on every session's snapshot includes it.
    return session.AwaitCommits().status();
  });
}

void TransactionWorkload::MakeTables() {
  if (application_ == nullptr) application_ = make_(random_);
  Clock& clock = cluster_.world().clock();
  const Deadline deadline = clock.After(kTablesUsMax);
  for (int attempt = 0; !clock.Passed(deadline); ++attempt) {
    if (attempt > 0) examiner_.Pause(random_.Magnitude(1'000, 4'000'000));
    const std::unique_ptr<Client> client = examiner_.NewClient(absl::StrCat("client-", made_++ % 2));
    if (client == nullptr) break;
    const int deaths = cluster_.memory_deaths();
    adversary_.Expose(*client);
    const absl::Status made = MakeTables(*client);
    adversary_.Protect(*client);
    if (!made.ok()) {
      const bool lost = deaths != cluster_.memory_deaths();
      // A client killed in the middle may leave a table, or create one after the drop.
      const bool known = absl::IsAlreadyExists(made) || txn::AbortReasonOf(made).has_value();
      if (!known)
        examiner_.CheckClean("tables", made, {.replaced = lost, .killed = !examiner_.Alive(*client)});
    } else if (deaths == cluster_.memory_deaths()) {
      ++result_.loads;
      made_at_deaths_ = deaths;
      return;
    }
  }
  examiner_.Fail("the tables could not be made");
}

/// Successive customers, each in its own process, on a thread of the harness.
class TransactionWorkload::CustomerThread {
 public:
  CustomerThread(TransactionWorkload& workload, RandomStream random, int number)
      : workload_(workload), random_(random), host_(absl::StrCat("client-", number)) {}

  void Run(int transactions) {
    for (int sessions = 0; transactions > 0 && !workload_.TablesLost(); ++sessions) {
      if (sessions == kSessionsMax) return workload_.examiner_.Fail(host_ + " finds no session that works");
      const std::unique_ptr<Client> client = workload_.examiner_.NewClient(host_);
      if (client == nullptr) return;
      workload_.adversary_.Expose(*client);
      const absl::Status ended =
          workload_.WithSession(*client, workload_.application_->session_options(),
                                [&](txn::Session& session) { return Serve(*client, session, transactions); });
      workload_.adversary_.Protect(*client);
      if (!ended.ok()) Judge(*client, "session", ended);
      if (random_.OneIn(4)) workload_.examiner_.Pause(random_.Magnitude(100, 1'000'000));
    }
  }

 private:
  absl::Status Serve(Client& client, txn::Session& session, int& transactions) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Customer> customer,
                         workload_.application_->NewCustomer(session, RandomStream(random_.Next())));
    for (int errors = 0; transactions > 0 && errors < kErrorsInARowMax && !workload_.TablesLost();) {
      const int64_t began_ns = workload_.cluster_.world().NowNs();
      const absl::StatusOr<bool> done = customer->RunOne();
      workload_.examiner_.CheckDuration(host_, workload_.cluster_.world().NowNs() - began_ns);
      ++workload_.result_.statements;
      --transactions;
      if (done.ok()) {
        errors = 0;
        ++(*done ? workload_.result_.right : workload_.result_.aborts);
        // others do the work that it waits for
        if (!*done) workload_.examiner_.Pause(random_.Magnitude(1, 1'000));
        continue;
      }
      ++errors;
      Judge(client, "transaction", done.status());
      if (!workload_.examiner_.Alive(client) || !absl::IsUnavailable(done.status())) break;
      workload_.examiner_.Pause(random_.Magnitude(10, 1'000'000));
    }
    return absl::OkStatus();
  }

  void Judge(const Client& client, const char* what, const absl::Status& status) {
    ++workload_.result_.clean_errors;
    workload_.examiner_.CheckClean(
        absl::StrCat(host_, ": ", what), status,
        {.replaced = workload_.TablesLost(), .killed = !workload_.examiner_.Alive(client)});
  }

  TransactionWorkload& workload_;
  RandomStream random_;
  const std::string host_;
};

void TransactionWorkload::CheckHistories() {
  const std::vector<const txn::SessionHistory*> histories = application_->histories();
  txn::CheckOptions check = application_->check();
  check.ordered_locks = cluster_.options().timestamps == catalog::kDefaultTimestamps;
  for (const bool timestamps : {true, false}) {
    const txn::CheckReport report =
        timestamps ? txn::CheckTimestamps(histories, check) : txn::CheckDependencies(histories, check);
    if (!report.ok()) examiner_.Fail(report.ToString());
  }
  for (const std::string& wrong : application_->TakeWrong()) examiner_.Fail(wrong);
}

void TransactionWorkload::Run(int customers, int transactions) {
  for (int lives = 0; lives < kLivesMax && TablesLost(); ++lives) {
    MakeTables();
    if (TablesLost()) return;
    std::vector<std::unique_ptr<CustomerThread>> all;
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < customers; ++i) {
      all.push_back(std::make_unique<CustomerThread>(*this, RandomStream(random_.Next()), i));
      threads.push_back(
          harness_->StartThread(absl::StrCat("client-", i),
                                [&customer = *all.back(), transactions] { customer.Run(transactions); }));
    }
    threads.clear();
    CheckHistories();
  }
}

void TransactionWorkload::Conclude() {
  if (TablesLost()) {
    MakeTables();
    if (TablesLost()) return;
  }
  for (int attempt = 0; attempt < Examiner::kAttemptsMax; ++attempt) {
    if (attempt > 0) examiner_.Pause(Examiner::kAttemptPauseUs);
    const std::unique_ptr<Client> client = examiner_.NewClient("client-0");
    if (client == nullptr) return;
    const absl::Status audited = WithSession(*client, {}, [&](txn::Session& session) {
      return application_->Audit(session, client->fabric().clock());
    });
    if (audited.ok()) return CheckHistories();
    // The plan may still break single operations.
    if (!txn::AbortReasonOf(audited).has_value()) examiner_.CheckClean("audit", audited, {});
  }
  examiner_.Fail("all is mended, but no client can read all rows");
}

void TransactionWorkload::DropAll() {
  const std::unique_ptr<Client> client = examiner_.NewClient("client-0");
  if (client == nullptr) return;
  for (int attempt = 0; attempt < Examiner::kAttemptsMax; ++attempt) {
    if (attempt > 0) examiner_.Pause(Examiner::kAttemptPauseUs);
    const absl::Status dropped = DropTables(*client);
    if (dropped.ok()) return examiner_.AwaitFreed(StateBytesOf(*client));
    examiner_.CheckClean("drop", dropped, {});
  }
  examiner_.Fail("the tables could not be dropped");
}

}  // namespace nam::simulation
