#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/client.h"
#include "fabric/fabric.h"
#include "proto/catalog.pb.h"
#include "sql/bound_query.h"

namespace nam::session {

/// One statement's view of the catalog: asks it once for the cluster's members and its version, and for
/// tables that the session has not seen at that version.
///
/// The answer takes about as long as binding a short query. So a statement that follows one with tables is
/// bound to the tables that that one saw while the catalog is asked; Confirm tells whether they still hold:
///
///     Begin ──► ask ───────────────────► answer: its version
///         ├───► parse, bind (Find: as seen) ──┤
///         └───► a plan is known (Know) ───────┴─► Confirm: the same? run it : Begin anew, and bind (again)
///
/// Belongs to the session's thread, the only one that waits; another thread asks the catalog.
class CatalogTables final : public sql::TableSource {
 public:
  CatalogTables(catalog::Client& catalog, fabric::Fabric& fabric) : catalog_(catalog), fabric_(fabric) {}
  /// Sets the meaning of names from now on.
  void Use(const sql::NameSettings& settings) { settings_ = settings; }
  const sql::NameSettings& settings() const override { return settings_; }
  /// Begins a statement, which must see all earlier changes.
  void Begin();
  /// Called right after Begin: the statement uses these tables, which were seen at this version.
  void Know(const std::vector<std::shared_ptr<const proto::Table>>& tables, uint64_t version);
  /// Called before the statement takes effect: false if the catalog has changed since the statement looked it
  /// up. Then the statement begins again, with the current catalog.
  absl::StatusOr<bool> Confirm();
  /// Whether all look-ups are confirmed.
  bool confirmed() const { return !of_before_; }
  /// Keeps the columnar tables that the statement has looked up and confirmed until LetGo: further statements
  /// of the transaction see the same rows.
  void Keep();
  void LetGo() { kept_.clear(); }
  /// Asks again for the cluster's members.
  void Refresh() { current_ = false; }
  /// The tables that the statement has looked up.
  const std::vector<std::shared_ptr<const proto::Table>>& of_statement() const { return of_statement_; }
  /// Their version, once it is confirmed.
  uint64_t version() const { return version_; }
  /// The last answer, perhaps from before the statement; without servers if there is none.
  const proto::Cluster& last_seen() const { return cluster_; }
  /// The cluster during the statement.
  absl::StatusOr<const proto::Cluster*> Cluster();
  /// 40001 if a kept table has been dropped or renamed, or emptied and replaced.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override;
  std::vector<std::string> Names() override;
  /// Of all files that the pattern names.
  absl::StatusOr<csv::SniffedFiles> Sniff(const std::string& pattern, const csv::SniffOptions& options,
                                          csv::Dialect& dialect) override;
  uint32_t AddFiles(const sql::CopyStatement& files) override { return add_files_(files); }
  /// Sets the keeper of a statement's files. Called before the first statement.
  void AddFilesBy(std::function<uint32_t(const sql::CopyStatement&)> add) { add_files_ = std::move(add); }

 private:
  void Ask();

  catalog::Client& catalog_;
  fabric::Fabric& fabric_;
  std::function<uint32_t(const sql::CopyStatement&)> add_files_;
  proto::Cluster cluster_;  // the last answer
  bool current_ = false;    // it belongs to this statement
  sql::NameSettings settings_;
  uint64_t version_ = 0;
  std::map<std::string, std::shared_ptr<const proto::Table>> seen_;  // at version_; null: does not exist
  std::vector<std::shared_ptr<const proto::Table>> of_statement_;
  std::map<std::string, std::shared_ptr<const proto::Table>> kept_;
  /// Some of of_statement_ were seen at seen_version_, before the catalog answered; not confirmed yet.
  bool of_before_ = false;
  uint64_t seen_version_ = 0;
  absl::StatusOr<proto::Cluster> answer_;
  std::unique_ptr<fabric::Thread> asking_;  // fills answer_; last: joined first
};

}  // namespace nam::session
