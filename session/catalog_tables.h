#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "catalog/client.h"
#include "proto/catalog.pb.h"
#include "sql/bound_query.h"

namespace nam::session {

/// The catalog as one statement sees it: asked once who is there and which version all is at, and for the
/// tables that it has not seen at that version.
class CatalogTables final : public sql::TableSource {
 public:
  explicit CatalogTables(catalog::Client& catalog) : catalog_(catalog) {}
  /// A new statement, which must see what has happened since.
  void Begin() {
    cluster_.reset();
    of_statement_.clear();
  }
  /// Asks again who is there.
  void Refresh() { cluster_.reset(); }
  /// Those that the statement has looked up.
  const std::vector<std::shared_ptr<const proto::Table>>& of_statement() const { return of_statement_; }
  absl::StatusOr<const proto::Cluster*> Cluster() {
    if (!cluster_) {
      NAM_ASSIGN_OR_RETURN(cluster_, catalog_.GetCluster());
      if (cluster_->version() != version_) seen_.clear();
      version_ = cluster_->version();
    }
    return &*cluster_;
  }
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_RETURN_IF_ERROR(Cluster().status());
    auto seen = seen_.find(name);
    if (seen == seen_.end()) {
      NAM_ASSIGN_OR_RETURN(auto table, catalog_.GetTable(name));
      // It may be newer than version_, never older: then the next statement finds another version.
      seen = seen_.emplace(name, std::move(table)).first;
    }
    of_statement_.push_back(seen->second);
    return seen->second;
  }
  std::vector<std::string> Names() override {
    std::vector<std::string> names;
    const auto tables = catalog_.ListTables();
    if (!tables.ok()) return names;
    for (const proto::Table& table : *tables) names.push_back(table.name());
    return names;
  }

 private:
  catalog::Client& catalog_;
  std::optional<proto::Cluster> cluster_;
  uint64_t version_ = 0;
  std::map<std::string, std::shared_ptr<const proto::Table>> seen_;  // at version_
  std::vector<std::shared_ptr<const proto::Table>> of_statement_;
};

}  // namespace nam::session
