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

/// The catalog as one statement sees it: asked once who is there and which version all is at, and for the
/// tables that it has not seen at that version.
///
/// The answer takes about as long as to bind a short query. So a statement that comes after one with tables
/// is bound to what that one saw while the catalog is asked; Confirm says whether that still holds:
///
///     Begin ──► ask ───────────────────► answer: its version
///         ├───► parse, bind (Find: as seen) ──┤
///         └───► a plan is known (Know) ───────┴─► Confirm: the same? run it : Begin anew, and bind (again)
///
/// Of the session's thread, which alone waits; a thread of its own asks.
class CatalogTables final : public sql::TableSource {
 public:
  CatalogTables(catalog::Client& catalog, fabric::Fabric& fabric) : catalog_(catalog), fabric_(fabric) {}
  /// What names mean, from now on.
  void Use(const sql::NameSettings& settings) { settings_ = settings; }
  const sql::NameSettings& settings() const override { return settings_; }
  /// A new statement, which must see what has happened since.
  void Begin();
  /// Right behind Begin: the statement uses these tables, which were seen at this version.
  void Know(const std::vector<std::shared_ptr<const proto::Table>>& tables, uint64_t version);
  /// Before anything that the statement has looked up has an effect: false if the catalog has changed since
  /// it was seen. Then the statement begins anew, and sees it as it is.
  absl::StatusOr<bool> Confirm();
  /// Nothing has been looked up since that is still to be confirmed.
  bool confirmed() const { return !of_before_; }
  /// The columnar tables that the statement has looked up, confirmed, stay as they are until LetGo: further
  /// statements of the transaction find the same rows.
  void Keep();
  void LetGo() { kept_.clear(); }
  /// Asks again who is there.
  void Refresh() { current_ = false; }
  /// Those that the statement has looked up.
  const std::vector<std::shared_ptr<const proto::Table>>& of_statement() const { return of_statement_; }
  /// Which all of it is of, once it is confirmed.
  uint64_t version() const { return version_; }
  /// As it was told last, which may be before the statement; without servers if it never was.
  const proto::Cluster& last_seen() const { return cluster_; }
  /// As it is during the statement.
  absl::StatusOr<const proto::Cluster*> Cluster();
  /// 40001 if a table that is kept has been dropped or emptied, and there is another one.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override;
  std::vector<std::string> Names() override;
  /// By the first of the files.
  absl::StatusOr<std::vector<csv::SniffedColumn>> Sniff(const std::string& pattern,
                                                        const csv::SniffOptions& options,
                                                        csv::Dialect& dialect) override;
  absl::StatusOr<std::shared_ptr<const proto::Table>> Load(const sql::CopyStatement& files) override {
    return load_(files);
  }
  using LoadFiles =
      std::function<absl::StatusOr<std::shared_ptr<const proto::Table>>(const sql::CopyStatement&)>;
  /// Who makes tables of files. Before the first statement.
  void LoadBy(LoadFiles load) { load_ = std::move(load); }

 private:
  void Ask();

  catalog::Client& catalog_;
  fabric::Fabric& fabric_;
  LoadFiles load_;
  proto::Cluster cluster_;  // the last answer
  bool current_ = false;    // it is of this statement
  sql::NameSettings settings_;
  uint64_t version_ = 0;
  std::map<std::string, std::shared_ptr<const proto::Table>> seen_;  // at version_; null: there is none
  std::vector<std::shared_ptr<const proto::Table>> of_statement_;
  std::map<std::string, std::shared_ptr<const proto::Table>> kept_;
  /// Some of of_statement_ were seen at seen_version_, before the catalog has answered; not confirmed yet.
  bool of_before_ = false;
  uint64_t seen_version_ = 0;
  absl::StatusOr<proto::Cluster> answer_;
  std::unique_ptr<fabric::Thread> asking_;  // fills answer_; last: joined first
};

}  // namespace nam::session
