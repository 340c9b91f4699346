#include "partitioner/loader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "catalog/attachment.h"
#include "catalog/chain_groups.h"
#include "partitioner/appended_table.h"
#include "partitioner/compaction.h"
#include "partitioner/group_writer.h"
#include "types/sql_error.h"

namespace nam::partitioner {
namespace {

/// Tries of an append that concurrent appends overtake: beyond this something is wrong.
constexpr int kAppendTries = 1'000;

bool IsFull(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error.has_value() && error->sqlstate == sqlstate::kLimitExceeded;
}

GroupOptions GroupOptionsOf(const LoadOptions& options) {
  return {.block_bytes = options.block_bytes,
          .pointer_group = options.pointer_group,
          .expected_rows = options.expected_rows,
          .staged_bytes_max = options.staged_bytes_max,
          .threads = options.threads,
          .cancel = options.cancel};
}

/// Alone they are too many: VACUUM would not help.
absl::Status TooManyGroups(const std::string& table, size_t groups) {
  return ToStatus({.message = absl::StrFormat("the rows would be %d groups of table \"%s\", for which its "
                                              "description has no room",
                                              groups, table),
                   .hint = "SET nam.server_writes = off makes one group",
                   .sqlstate = sqlstate::kLimitExceeded});
}

/// Without the thread's Interruption: the catalog may have begun a load whose id the call did not wait for,
/// and keeps it until the lease is over.
absl::StatusOr<AllocationId> BeginAllocation(catalog::Attachment& attachment, const std::string& table,
                                             const LoadOptions& options) {
  const Interruption none(nullptr);
  if (options.empties) return attachment.catalog().BeginToEmpty(attachment.member(), table);
  if (options.append) return attachment.catalog().BeginExtend(attachment.member(), table);
  return attachment.catalog().BeginLoad(attachment.member(), table, options.replace);
}

class Loader final : public TableLoader {
 public:
  Loader(catalog::Attachment& attachment, const TableSchema& schema, const LoadOptions& options,
         AllocationId allocation)
      : attachment_(attachment),
        options_(options),
        table_(schema.name),
        allocation_(allocation),
        under_way_{allocation},
        own_(attachment, schema, GroupOptionsOf(options), allocation) {}
  ~Loader() override;

  absl::Status Append(const ColumnBatch& rows) override { return own_.Append(rows); }
  absl::StatusOr<AllocationId> BeginExtraAllocation() override;
  void Take(AllocationId allocation, WrittenGroups written) override {
    taken_.emplace_back(allocation, std::move(written));
  }
  void AbortExtraAllocation(AllocationId allocation) override;
  void DropTaken() override;
  absl::StatusOr<proto::Table> Commit() override;
  absl::StatusOr<proto::Table> WriteOnly() override { return own_.Write(); }

 private:
  absl::Status CheckNotCancelled() const {
    const bool cancelled = options_.cancel != nullptr && *options_.cancel;
    return cancelled ? absl::CancelledError("cancelled") : absl::OkStatus();
  }
  /// Whether the table's description has room for the groups, as far as this is known before the commit.
  absl::Status CheckRoom(const std::vector<proto::Table>& groups) const;
  /// The table of these groups alone.
  absl::StatusOr<proto::Table> New(const std::vector<proto::Table>& groups) const;
  absl::StatusOr<proto::Table> CommitNew(const std::vector<proto::Table>& groups);
  absl::StatusOr<proto::Table> CommitAppended(const std::vector<proto::Table>& groups);
  /// `table` with the groups, or with one in the place of those that it replaces.
  absl::StatusOr<proto::Table> With(proto::Table table, const std::vector<proto::Table>& groups) const;

  catalog::Attachment& attachment_;
  const LoadOptions options_;
  const std::string table_;
  const AllocationId allocation_;
  std::set<AllocationId> under_way_;  // begun, not committed and not aborted
  GroupWriter own_;
  std::vector<std::pair<AllocationId, WrittenGroups>> taken_;
};

Loader::~Loader() {
  const Interruption none(nullptr);  // untold, the catalog keeps the loads until the lease is over
  const bool own = under_way_.contains(allocation_);
  // Aborts first, because memory servers free nothing that the catalog considers a load in progress. Stops at
  // a catalog that does not answer.
  for (const AllocationId allocation : under_way_) {
    if (catalog::Unanswered(attachment_.catalog().AbortLoad(allocation))) break;
  }
  if (own) own_.ReleaseAll();
}

absl::StatusOr<AllocationId> Loader::BeginExtraAllocation() {
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation, BeginAllocation(attachment_, table_, options_));
  under_way_.insert(allocation);
  return allocation;
}

void Loader::AbortExtraAllocation(AllocationId allocation) {
  const Interruption none(nullptr);
  // Without an answer it is aborted at the end.
  if (attachment_.catalog().AbortLoad(allocation).ok()) under_way_.erase(allocation);
}

void Loader::DropTaken() {
  for (const auto& [allocation, written] : std::exchange(taken_, {})) AbortExtraAllocation(allocation);
}

absl::StatusOr<proto::Table> Loader::Commit() {
  NAM_RETURN_IF_ERROR(CheckNotCancelled());
  std::vector<proto::Table> groups;
  std::vector<LoadedMemory> memory;
  std::set<AllocationId> committed;
  const auto add = [&](AllocationId allocation, const WrittenGroups& written) {
    groups.insert(groups.end(), written.groups.begin(), written.groups.end());
    for (const auto& [member, bytes] : written.bytes) memory.push_back({member, allocation, bytes});
    committed.insert(allocation);
  };
  for (const auto& [allocation, written] : taken_) {
    if (!written.groups.empty()) add(allocation, written);
  }
  if (own_.rows() > 0 || (groups.empty() && !options_.append)) {
    NAM_ASSIGN_OR_RETURN(proto::Table group, own_.Write());
    add(allocation_, {{std::move(group)}, own_.written_bytes()});
  }
  if (groups.empty()) {
    NAM_ASSIGN_OR_RETURN(const auto now, attachment_.catalog().GetTable(table_));
    return *now;  // the load ends with the loader
  }
  if (!taken_.empty()) NAM_RETURN_IF_ERROR(CheckRoom(groups));
  // Seals before the catalog takes the table: an acknowledged load must outlive all processes.
  NAM_RETURN_IF_ERROR(SealAll(attachment_, memory, options_.cancel));
  NAM_RETURN_IF_ERROR(CheckNotCancelled());
  NAM_ASSIGN_OR_RETURN(proto::Table table, options_.append ? CommitAppended(groups) : CommitNew(groups));
  for (const AllocationId allocation : committed) under_way_.erase(allocation);
  return table;
}

absl::StatusOr<proto::Table> Loader::With(proto::Table table, const std::vector<proto::Table>& groups) const {
  if (!options_.replaced_groups.empty())
    return CompactedTable(table, groups.back(), options_.replaced_groups);
  for (const proto::Table& group : groups) {
    NAM_ASSIGN_OR_RETURN(table, AppendedTable(table, group));
  }
  return table;
}

absl::Status Loader::CheckRoom(const std::vector<proto::Table>& groups) const {
  NAM_RETURN_IF_ERROR(New(groups).status());
  if (!options_.append || options_.await_room) return absl::OkStatus();  // or there may be room by then
  NAM_ASSIGN_OR_RETURN(const auto table, attachment_.catalog().GetTable(table_));
  const absl::Status with = With(*table, groups).status();
  return IsFull(with) ? with : absl::OkStatus();
}

absl::StatusOr<proto::Table> Loader::New(const std::vector<proto::Table>& groups) const {
  absl::StatusOr<proto::Table> table = With(groups[0], {groups.begin() + 1, groups.end()});
  if (IsFull(table.status())) return TooManyGroups(table_, groups.size());
  return table;
}

absl::StatusOr<proto::Table> Loader::CommitNew(const std::vector<proto::Table>& groups) {
  NAM_ASSIGN_OR_RETURN(proto::Table table, New(groups));
  NAM_ASSIGN_OR_RETURN(const uint64_t version, attachment_.catalog().CommitLoad(table, options_.replaces));
  table.set_version(version);
  return table;
}

/// Other sessions may append or compact meanwhile: then retries after theirs.
absl::StatusOr<proto::Table> Loader::CommitAppended(const std::vector<proto::Table>& groups) {
  for (int tries = 1;; ++tries) {
    NAM_RETURN_IF_ERROR(CheckNotCancelled());
    NAM_ASSIGN_OR_RETURN(const auto table, attachment_.catalog().GetTable(table_));
    if (options_.appends_to != 0 && catalog::CreationOf(*table) != options_.appends_to) {
      return absl::FailedPreconditionError(
          absl::StrFormat("table `%s` was dropped, and another one has its name", table_));
    }
    proto::CommitExtendRequest request;
    request.set_allocation(groups.back().allocation());
    request.set_expected_version(table->version());
    request.mutable_replaced()->Add(options_.replaced_groups.begin(), options_.replaced_groups.end());
    auto with = With(*table, groups);
    if (IsFull(with.status()) && options_.await_room) {
      NAM_RETURN_IF_ERROR(options_.await_room(*table, with.status()));
      tries = 0;
      continue;
    }
    NAM_ASSIGN_OR_RETURN(*request.mutable_appended(), std::move(with));
    const auto version = attachment_.catalog().CommitExtend(request);
    if (absl::IsAborted(version.status()) && tries < kAppendTries) continue;
    NAM_RETURN_IF_ERROR(version.status());
    proto::Table appended = std::move(*request.mutable_appended());
    appended.set_version(*version);
    return appended;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableLoader>> BeginLoad(catalog::Attachment& attachment,
                                                       const TableSchema& schema,
                                                       const LoadOptions& options) {
  NAM_RETURN_IF_ERROR(CheckGroup(schema, GroupOptionsOf(options)));
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation, BeginAllocation(attachment, schema.name, options));
  return std::make_unique<Loader>(attachment, schema, options, allocation);
}

}  // namespace nam::partitioner
