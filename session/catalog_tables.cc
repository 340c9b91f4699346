#include "session/catalog_tables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "csv/byte_source.h"
#include "types/sql_error.h"

namespace nam::session {

void CatalogTables::Begin() {
  asking_.reset();  // a statement without tables has not waited for it
  const bool likely = !of_statement_.empty();
  current_ = of_before_ = false;
  of_statement_.clear();
  if (likely) Ask();
}

void CatalogTables::Know(const std::vector<std::shared_ptr<const proto::Table>>& tables, uint64_t version) {
  if (asking_ == nullptr) Ask();
  of_statement_ = tables;
  of_before_ = true;
  seen_version_ = version;
}

void CatalogTables::Ask() {
  // Without a thread for it, Cluster asks.
  auto asking = fabric_.TryStartThread("nam-catalog", [this] { answer_ = catalog_.GetCluster(); });
  asking_ = asking.ok() ? *std::move(asking) : nullptr;
}

absl::StatusOr<bool> CatalogTables::Confirm() {
  if (!of_before_) return true;
  NAM_RETURN_IF_ERROR(Cluster().status());
  of_before_ = version_ != seen_version_;
  return !of_before_;
}

absl::StatusOr<const proto::Cluster*> CatalogTables::Cluster() {
  if (current_) return &cluster_;
  if (asking_ != nullptr) {
    asking_.reset();
  } else {
    answer_ = catalog_.GetCluster();
  }
  NAM_ASSIGN_OR_RETURN(cluster_, std::move(answer_));
  if (cluster_.version() != version_) seen_.clear();
  version_ = cluster_.version();
  current_ = true;
  return &cluster_;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> CatalogTables::Find(const std::string& name) {
  auto seen = seen_.find(name);
  if (asking_ != nullptr && seen != seen_.end()) {
    of_before_ = true;
    seen_version_ = version_;
  } else {
    NAM_RETURN_IF_ERROR(Cluster().status());
    seen = seen_.find(name);
  }
  if (seen == seen_.end()) {
    auto table = catalog_.GetTable(name);
    if (!table.ok() && !absl::IsNotFound(table.status())) return table.status();
    // It may be newer than version_, never older: then the next statement finds another version.
    seen = seen_.emplace(name, table.ok() ? *std::move(table) : nullptr).first;
  }
  std::shared_ptr<const proto::Table> table = seen->second;
  const auto kept = kept_.find(name);
  if (table == nullptr && kept == kept_.end())
    return absl::NotFoundError(absl::StrCat("there is no table `", name, "`"));
  if (kept != kept_.end()) {
    if (table == nullptr || catalog::CreationOf(*kept->second) != catalog::CreationOf(*table)) {
      return ToStatus(
          {.message = absl::StrCat("table ", Quote(name),
                                   " was dropped, renamed or emptied while the transaction read it"),
           .hint = "ROLLBACK, and run the transaction again",
           .sqlstate = sqlstate::kSerializationFailure});
    }
    table = kept->second;
  }
  if (!table->schema()) of_statement_.push_back(table);
  return table;
}

void CatalogTables::Keep() {
  for (const std::shared_ptr<const proto::Table>& table : of_statement_) {
    if (!table->has_record() && !table->has_view()) kept_.try_emplace(table->name(), table);
  }
}

std::vector<std::string> CatalogTables::Names() {
  std::vector<std::string> names;
  const auto entries = catalog_.ListEntries();
  if (!entries.ok()) return names;
  for (const proto::Table& entry : *entries) {
    if (!entry.schema() && !IsSystemName(entry.name())) names.push_back(entry.name());
  }
  return names;
}

absl::StatusOr<csv::SniffedFiles> CatalogTables::Sniff(const std::string& pattern,
                                                       const csv::SniffOptions& options,
                                                       csv::Dialect& dialect) {
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> files, csv::FilesOf(pattern));
  return csv::Sniff(files, options, dialect);
}

}  // namespace nam::session
