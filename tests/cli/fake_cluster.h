#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "catalog/client.h"
#include "csv/byte_source.h"
#include "session/session.h"
#include "types/sql_error.h"

namespace nam::cli {

/// Answers statements from a table of answers and remembers what was asked.
class FakeSession final : public session::Session {
 public:
  using Session::Execute;
  absl::StatusOr<session::ResultSet> Execute(const std::string& statement,
                                             session::RowReceiver& receiver) override {
    if (absl::StartsWithIgnoreCase(statement, "copy")) return Copy(statement, receiver);
    NAM_ASSIGN_OR_RETURN(session::ResultSet result, Answer(statement));
    if (result.rows.empty()) return result;
    NAM_RETURN_IF_ERROR(receiver.Begin(result.columns));
    for (int batch = 0; batch < batches; ++batch) {
      if (on_batch) on_batch(batch);
      NAM_RETURN_IF_ERROR(receiver.Add(session::ResultBatch(result.rows)));
      if (receiver.bytes_held() > bytes_held_max)
        return ToStatus({.message = "the result needs more", .hint = "add a LIMIT", .sqlstate = "53200"});
    }
    result.rows.clear();
    return result;
  }
  /// `copy bad` fails before it reads a row.
  absl::StatusOr<session::ResultSet> Copy(const std::string& statement, session::RowReceiver& receiver) {
    executed.push_back(statement);
    if (statement.find("bad") != std::string::npos)
      return ToStatus({.message = "there is no table bad", .hint = "", .sqlstate = "42P01"});
    const std::unique_ptr<csv::ByteSource> input = receiver.Input();
    std::string& rows = copied.emplace_back();
    while (true) {
      char some[5];
      if (on_execute) on_execute();
      NAM_ASSIGN_OR_RETURN(const size_t n, input->Read(some, sizeof(some)));
      if (n == 0) break;
      rows.append(some, n);
    }
    return session::CommandResult("COPY 2");
  }
  absl::StatusOr<session::ResultSet> Answer(const std::string& statement) {
    executed.push_back(statement);
    if (on_execute) on_execute();
    if (cancelled) {
      cancelled = false;
      return UserError(sqlstate::kCancelled, "canceling statement due to user request", -1);
    }
    if (statement.starts_with("bad")) {
      return ToStatus({.message = "syntax error", .position = 4, .hint = "try good", .sqlstate = "42601"});
    }
    if (statement.starts_with("full"))
      return ToStatus({.message = "no room", .hint = "", .sqlstate = "53200"});
    if (statement.starts_with("lost")) return absl::UnavailableError("compute server 3 is gone");
    if (statement.starts_with("commit")) {
      return session::ResultSet{.command = "COMMIT", .warnings = {{"there is nothing to end", "25P01"}}};
    }
    if (statement.starts_with("insert")) return session::CommandResult("INSERT 0 2");
    if (statement == "select from t") return session::ResultSet{.rows = {{}}, .command = "SELECT 1"};
    if (statement.starts_with("set")) return session::ResultSet{.command = "SET", .elapsed_ms = 0.5};
    return session::ResultSet{.columns = {{"n", Type::Integer()}},
                              .rows = {{Value::Integer(static_cast<int>(executed.size()))}},
                              .command = "SELECT 1",
                              .elapsed_ms = 12.3451};
  }
  void Cancel() override { cancelled = true; }
  void OnProgress(std::function<void(const session::QueryProgress&)> report) override {
    on_progress = std::move(report);
  }
  /// With the search path s, public.
  absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const std::string& schema,
                                                                   const std::string& name) override {
    absl::StatusOr<std::shared_ptr<const proto::Table>> found = absl::NotFoundError("no such table");
    if (name.find('.') != std::string::npos) return found;
    for (const std::string& searched :
         schema.empty() ? std::vector<std::string>{"s", "public"} : std::vector<std::string>{schema}) {
      if (!found.ok()) found = catalog->GetTable(QualifiedName(searched, name));
    }
    return found;
  }
  std::map<std::string, std::string> Settings() const override { return {{"nam.window", "16"}}; }

  catalog::Client* catalog = nullptr;  // where FindRelation looks
  std::vector<std::string> executed;
  std::vector<std::string> copied;  // the rows of each COPY
  std::function<void()> on_execute;
  int batches = 1;  // of the same row, in each result
  std::function<void(int batch)> on_batch;
  uint64_t bytes_held_max = UINT64_MAX;  // what the receiver may hold
  std::function<void(const session::QueryProgress&)> on_progress;
  std::atomic<bool> cancelled = false;
};

/// A catalog that returns what a test puts into `cluster` and `tables`. It has no membership and no loads.
class FakeCatalog final : public catalog::Client {
 public:
  absl::StatusOr<proto::Cluster> GetCluster() override { return cluster; }
  absl::StatusOr<std::shared_ptr<const proto::Table>> GetTable(const std::string& name) override {
    for (const proto::Table& table : tables) {
      if (table.name() == name) return std::make_shared<const proto::Table>(table);
    }
    return absl::NotFoundError("no such table");
  }
  absl::StatusOr<std::vector<std::shared_ptr<const proto::Table>>> GetTables(
      std::span<const std::string>) override {
    return Refuse();
  }
  absl::StatusOr<proto::Table> GetTableOf(const std::string&, uint64_t) override { return Refuse(); }
  uint64_t KnownVersion() override { return cluster.version(); }
  absl::StatusOr<std::vector<proto::Table>> ListEntries() override {
    ++lists;
    return tables;
  }
  absl::StatusOr<proto::JoinReply> Join(const proto::Member&) override { return Refuse(); }
  absl::StatusOr<proto::RenewReply> Renew(const proto::RenewRequest&) override { return Refuse(); }
  absl::Status Leave(MemberId, const std::string&) override { return Refuse(); }
  absl::Status Bury(MemoryServerId) override { return Refuse(); }
  absl::StatusOr<AllocationId> BeginLoad(MemberId, const std::string&, bool) override { return Refuse(); }
  absl::StatusOr<AllocationId> BeginToEmpty(MemberId, const std::string&) override { return Refuse(); }
  absl::StatusOr<uint64_t> CommitLoad(const proto::Table&, AllocationId) override { return Refuse(); }
  absl::Status AbortLoad(AllocationId) override { return Refuse(); }
  absl::Status DropTable(const std::string&) override { return Refuse(); }
  absl::StatusOr<std::vector<std::string>> Drop(const std::string&, bool) override { return Refuse(); }
  absl::Status LeaveParents(const std::string&, bool) override { return Refuse(); }
  absl::StatusOr<uint64_t> ChangeCatalog(const proto::ChangeCatalogRequest&) override { return Refuse(); }
  absl::StatusOr<std::vector<std::string>> BeginQuiet(MemberId) override { return Refuse(); }
  absl::Status EndQuiet(MemberId) override { return Refuse(); }
  absl::StatusOr<std::vector<MemberId>> EndClients(MemberId, const std::string&) override { return Refuse(); }
  absl::StatusOr<AllocationId> BeginExtend(MemberId, const std::string&) override { return Refuse(); }
  absl::StatusOr<uint64_t> CommitExtend(const proto::CommitExtendRequest&) override { return Refuse(); }
  absl::StatusOr<uint64_t> ChangePart(const proto::ChangePartRequest&) override { return Refuse(); }
  absl::StatusOr<std::vector<uint32_t>> AllocateGroups(MemberId, uint32_t) override { return Refuse(); }
  absl::Status ReleaseGroups(MemberId, const std::vector<uint32_t>&) override { return Refuse(); }
  absl::Status Calibrate(const proto::FabricConstants&) override { return Refuse(); }

  proto::Cluster cluster;
  std::vector<proto::Table> tables;
  int lists = 0;

 private:
  static absl::Status Refuse() { return absl::UnimplementedError("not in this catalog"); }
};

}  // namespace nam::cli
