#include "txn/cluster_tables.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "catalog/record_extents.h"
#include "storage/record_block.h"
#include "storage/row_bytes.h"
#include "txn/index/hash_index.h"
#include "txn/record_layout.h"
#include "txn/rsi/client_log.h"
#include "txn/table_extents.h"
#include "txn/transaction_state.h"

namespace nam::txn {
namespace {

constexpr uint64_t kExtentBytesMin = uint64_t{1} << 20;
constexpr uint64_t kExtentBytesMax = uint64_t{64} << 20;
constexpr uint64_t kExtentsWanted = 16;
constexpr uint32_t kKeyBytesMax = 1'024;
constexpr int64_t kRecoverPauseUs = 1'000'000;
constexpr size_t kLogExtentsAtFirst = 16;

// Few extents for the expected rows, and each has room for some chunks.
uint64_t ExtentBytesFor(const storage::RecordGeometry& geometry, uint64_t rows) {
  const uint64_t chunk_bytes = kChunkRecords * geometry.block_bytes();
  const uint64_t wanted =
      std::clamp(rows * geometry.block_bytes() / kExtentsWanted, kExtentBytesMin, kExtentBytesMax);
  return std::bit_ceil(std::max(wanted, 2 * chunk_bytes));
}

/// Most tables are small, so what is expected to be empty begins with one chunk of rows and few roots. Deeper
/// tries make up for these in larger tables.
constexpr int kRootBitsAtFirst = 4;
constexpr uint64_t kPageBytes = 4'096;

/// Of the rows, and of the hash index.
std::vector<FirstExtents> SmallExtents(const RecordLayout& layout) {
  const auto pages = [](uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; };
  return {{1, pages(layout.first_block + kChunkRecords * layout.block_bytes)},
          {1, pages(HashIndex::BytesOfRoots(kRootBitsAtFirst))}};
}
std::vector<FirstExtents> ExtentsFor(uint64_t rows, const RecordLayout& layout, int root_bits,
                                     uint64_t index_extent_bytes) {
  return {static_cast<uint32_t>((rows + layout.records_per_extent - 1) / layout.records_per_extent),
          HashIndex::ExtentsOfRoots(root_bits, index_extent_bytes)};
}

int RootBitsOf(const proto::RecordStorage& record) {
  for (const proto::RecordPart& part : record.parts()) {
    if (part.kind() == proto::HASH_INDEX && part.has_root_bits())
      return std::clamp(static_cast<int>(part.root_bits()), 0, HashIndex::kRootBitsMax);
  }
  return HashIndex::RootBitsThatFit(record.extent_bytes());
}

constexpr char kLeasedName[] = "leased";
constexpr char kBitVectorName[] = "bitvector";

absl::StatusOr<TimestampKind> ParseTimestampKind(const std::string& name) {
  if (name == kLeasedName) return TimestampKind::kLeased;
  if (name == kBitVectorName) return TimestampKind::kBitVector;
  return absl::UnimplementedError(
      absl::StrFormat("this program does not know this cluster's kind of timestamps, `%s`: run the cluster's "
                      "release",
                      name));
}

absl::Status Check(const RecordTableOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrFormat("table %s: %s", options.name, why));
  };
  if (options.row_bytes == 0 || options.row_bytes > storage::kRowBytesMax) {
    return refuse(
        absl::StrFormat("a row has %d bytes; at most %d", options.row_bytes, storage::kRowBytesMax));
  }
  if (options.key_bytes == 0 || options.key_bytes > std::min(options.row_bytes, kKeyBytesMax)) {
    return refuse(absl::StrFormat("a key has %d bytes; at most %d", options.key_bytes,
                                  std::min(options.row_bytes, kKeyBytesMax)));
  }
  if (options.versions == 0 || options.versions > storage::kVersionsMax) {
    return refuse(absl::StrFormat("versions = %d; 1 to %d", options.versions, storage::kVersionsMax));
  }
  return absl::OkStatus();
}

std::vector<IndexDescription::KeyField> FieldsOf(
    const google::protobuf::RepeatedPtrField<proto::KeyPiece>& from) {
  std::vector<IndexDescription::KeyField> fields;
  for (const proto::KeyPiece& field : from)
    fields.push_back({field.offset(), field.bytes(), field.nullable(), field.null_bit()});
  return fields;
}

const proto::RecordPart* FindIndex(const proto::Table& table, const std::string& name) {
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.kind() == proto::ORDERED_INDEX && part.name() == name) return &part;
  }
  return nullptr;
}

absl::Status CheckNoConstraintNeeds(const proto::Table& table, const std::string& index) {
  const auto refuse = [&](const std::string& constraint, const std::string& of) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot drop index %s because constraint %s on table %s requires it", index,
                        BareName(constraint), of));
  };
  for (const std::string& unique : table.record().unique_constraints()) {
    if (unique == index) return refuse(unique, table.name());
  }
  for (const proto::ForeignKey& key : table.record().foreign_keys()) {
    if (key.index() == index) return refuse(key.name(), table.name());
  }
  for (const proto::ReferencingKey& reference : table.record().referenced_by()) {
    if (reference.key().parent_index() == index) return refuse(reference.key().name(), reference.child());
  }
  return absl::OkStatus();
}

// Releases the memory only after no commit can change it any more.
absl::Status RemoveIndex(catalog::Attachment& attachment, Session& session,
                         proto::ChangePartRequest request) {
  const Interruption none(nullptr);  // even after a CREATE INDEX that was cancelled
  request.set_leaving(true);
  NAM_RETURN_IF_ERROR(attachment.catalog().ChangePart(request).status());
  NAM_RETURN_IF_ERROR(session.AwaitCommits().status());
  request.set_remove(true);
  const absl::Status removed = attachment.catalog().ChangePart(request).status();
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

/// The change of an index with its extents, which a list of tables omits; nullopt: it has gone meanwhile.
absl::StatusOr<std::optional<proto::ChangePartRequest>> ChangeOfIndex(catalog::Attachment& attachment,
                                                                      const std::string& table,
                                                                      const std::string& index) {
  const auto found = attachment.catalog().GetTable(table);
  if (absl::IsNotFound(found.status())) return std::nullopt;
  NAM_RETURN_IF_ERROR(found.status());
  const proto::RecordPart* const part = FindIndex(**found, index);
  if (part == nullptr || part->extents().empty()) return std::nullopt;
  proto::ChangePartRequest request;
  request.set_table(table);
  request.set_part(index);
  request.set_allocation(part->extents(0).allocation());
  return request;
}

/// Removes an index of this name that leaves, because its builder or the member that dropped it has died.
/// False: there is none.
absl::StatusOr<bool> RemoveLeaving(catalog::Attachment& attachment, Session& session,
                                   const std::string& name) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, attachment.catalog().ListTables());
  for (const proto::Table& table : tables) {
    const proto::RecordPart* const part = FindIndex(table, name);
    if (part == nullptr || !part->leaving() || !CheckNoConstraintNeeds(table, name).ok()) continue;
    NAM_ASSIGN_OR_RETURN(std::optional<proto::ChangePartRequest> change,
                         ChangeOfIndex(attachment, table.name(), name));
    if (change.has_value()) NAM_RETURN_IF_ERROR(RemoveIndex(attachment, session, *std::move(change)));
    return true;
  }
  return false;
}

}  // namespace

absl::Status CreateTable(catalog::Attachment& attachment, const RecordTableOptions& options) {
  NAM_RETURN_IF_ERROR(Check(options));
  const auto geometry = storage::RecordGeometry::Of(options.row_bytes, options.versions);
  const uint64_t extent_bytes = ExtentBytesFor(geometry, options.expected_rows);
  const RecordLayout layout = RecordLayout::Of(geometry, extent_bytes);
  proto::Table table = options.table;
  table.set_name(options.name);
  proto::RecordStorage& record = *table.mutable_record();
  record.set_row_bytes(options.row_bytes);
  record.set_key_bytes(options.key_bytes);
  record.set_versions(options.versions);
  record.set_extent_bytes(extent_bytes);
  record.clear_loaded_at();  // of a table that was saved: in another cluster's timestamps
  record.clear_closed_by();
  proto::RecordPart& rows = *record.add_parts();
  rows.set_name(kRecordsPart);
  rows.set_kind(proto::RECORDS);
  proto::RecordPart& key = *record.add_parts();
  key.set_name(kKeyPart);
  key.set_kind(proto::HASH_INDEX);
  key.set_key_bytes(options.key_bytes);
  const int root_bits =
      options.expected_rows == 0 ? kRootBitsAtFirst : HashIndex::RootBitsThatFit(extent_bytes);
  key.set_root_bits(static_cast<uint32_t>(root_bits));
  std::vector<FirstExtents> extents_of_parts =
      options.expected_rows == 0 ? SmallExtents(layout)
                                 : ExtentsFor(options.expected_rows, layout, root_bits,
                                              catalog::ExtentBytesOf(record, proto::HASH_INDEX));
  const auto numbered = [](const proto::Column& column) { return column.numbering() != proto::NOT_NUMBERED; };
  if (std::any_of(table.columns().begin(), table.columns().end(), numbered)) {
    proto::RecordPart& numbers = *record.add_parts();
    numbers.set_name(kNumbersPart);
    numbers.set_kind(proto::COLUMN_NUMBERS);
    extents_of_parts.emplace_back(1);
  }
  return CreateRecordTable(attachment, table, extents_of_parts);
}

absl::Status CreateIndex(catalog::Attachment& attachment, Session& session, const std::string& table,
                         const proto::RecordPart& part) {
  absl::StatusOr<AllocationId> added = AddPart(attachment, table, part);
  if (absl::IsAlreadyExists(added.status())) {
    NAM_ASSIGN_OR_RETURN(const bool removed, RemoveLeaving(attachment, session, part.name()));
    if (removed) added = AddPart(attachment, table, part);
  }
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation, std::move(added));
  proto::ChangePartRequest request;
  request.set_table(table);
  request.set_part(part.name());
  request.set_allocation(allocation.value());
  const absl::StatusOr<TableHandle> handle = session.OpenTable(table);
  const absl::StatusOr<uint64_t> usable_from =
      handle.ok() ? session.FillIndex(*handle, allocation) : handle.status();
  if (usable_from.ok()) {
    request.set_usable_from(*usable_from);
    const Interruption none(nullptr);  // the index may exist although the call is cancelled
    return attachment.catalog().ChangePart(request).status();
  }
  RemoveIndex(attachment, session, std::move(request)).IgnoreError();  // the first error matters
  if (!absl::IsAlreadyExists(usable_from.status())) return usable_from.status();
  return absl::FailedPreconditionError(usable_from.status().message());
}

absl::Status CheckIndexIsComplete(catalog::Attachment& attachment, const std::string& name) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> entries, attachment.catalog().ListEntries());
  for (const proto::Table& entry : entries) {
    if (entry.name() == name) return absl::OkStatus();
    const proto::RecordPart* const index = FindIndex(entry, name);
    if (index == nullptr) continue;
    if (index->leaving()) return absl::NotFoundError(absl::StrFormat("index `%s` is being dropped", name));
    if (index->usable_from() != 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrFormat("index `%s` is being filled by member %d", name, index->builder()));
  }
  return absl::NotFoundError(absl::StrFormat("there is no index `%s`", name));
}

absl::Status DropIndex(catalog::Attachment& attachment, Session& session, const std::string& name) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, attachment.catalog().ListTables());
  for (const proto::Table& table : tables) {
    if (FindIndex(table, name) == nullptr) continue;
    NAM_RETURN_IF_ERROR(CheckNoConstraintNeeds(table, name));
    NAM_ASSIGN_OR_RETURN(std::optional<proto::ChangePartRequest> change,
                         ChangeOfIndex(attachment, table.name(), name));
    if (change.has_value()) return RemoveIndex(attachment, session, *std::move(change));
  }
  return absl::NotFoundError(absl::StrFormat("there is no index `%s`", name));
}

absl::Status DropTable(catalog::Attachment& attachment, Session& session, const std::string& name,
                       bool cascade) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table, attachment.catalog().GetTable(name));
  if (!table->record().foreign_keys().empty()) {
    const Interruption none(nullptr);  // after it leaves, no commit changes it any more
    NAM_RETURN_IF_ERROR(attachment.catalog().LeaveParents(name, cascade));
    NAM_RETURN_IF_ERROR(session.AwaitCommits().status());
  }
  return attachment.catalog().Drop(name, cascade).status();
}

absl::StatusOr<TableDescription> ClusterTables::Find(const std::string& name) {
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table, attachment_.catalog().GetTable(name));
  return Describe(*table);
}

absl::StatusOr<std::vector<TableDescription>> ClusterTables::FindAll(std::span<const std::string> names) {
  std::vector<TableDescription> found;
  if (names.empty()) return found;
  NAM_ASSIGN_OR_RETURN(const auto tables, attachment_.catalog().GetTables(names));
  for (const std::shared_ptr<const proto::Table>& table : tables) {
    if (table == nullptr) continue;
    absl::StatusOr<TableDescription> description = Describe(*table);
    if (absl::IsNotFound(description.status())) continue;
    if (!description.ok()) return description.status();
    found.push_back(*std::move(description));
  }
  return found;
}

absl::StatusOr<TableDescription> ClusterTables::Describe(const proto::Table& table) {
  if (!table.has_record() || table.name() == kStateTable) {
    return absl::NotFoundError(absl::StrFormat("%s is not a record table", table.name()));
  }
  NAM_ASSIGN_OR_RETURN(TableDescription description, DescribeStorage(table));
  description.closed = table.record().closed_by() != 0;
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.kind() != proto::ORDERED_INDEX || part.leaving() || part.extents().empty()) continue;
    NAM_ASSIGN_OR_RETURN(IndexDescription index, DescribeIndex(table, part));
    description.indexes.push_back(std::move(index));
  }
  for (const proto::ReferencingKey& reference : table.record().referenced_by())
    description.referenced_by.push_back(DescribeReference(reference));
  return description;
}

ClusterTables::~ClusterTables() {
  ended_->Set();
  recoverer_.reset();
}

void ClusterTables::RecoverLater(std::function<void()> attempt) {
  std::unique_ptr<fabric::Thread> former;  // ended, if there is one
  const MutexLock lock(mutex_);
  if (std::exchange(recovering_, true)) return;
  former = std::move(recoverer_);
  auto started = attachment_.fabric().TryStartThread("nam-recover", [this, attempt = std::move(attempt)] {
    Clock& clock = attachment_.fabric().clock();
    while (!ended_->Wait(clock.After(kRecoverPauseUs))) {
      attempt();
      const MutexLock over(mutex_);
      if (!lost_clients().empty()) continue;
      recovering_ = false;
      return;
    }
  });
  recovering_ = started.ok();  // otherwise the next one that meets a lost client tries again
  recoverer_ = started.ok() ? *std::move(started) : nullptr;
}

absl::StatusOr<TableDescription> ClusterTables::DescribeStorage(const proto::Table& table) {
  {
    const MutexLock lock(mutex_);
    const auto found = described_.find(table.allocation());
    if (found != described_.end()) return found->second;
  }
  const proto::RecordStorage& record = table.record();
  TableDescription description{.name = table.name(),
                               .allocation = AllocationId(table.allocation()),
                               .row_bytes = record.row_bytes(),
                               .key_bytes = record.key_bytes(),
                               .versions = record.versions(),
                               .extent_bytes = record.extent_bytes(),
                               .index_extent_bytes = catalog::ExtentBytesOf(record, proto::HASH_INDEX),
                               .index_root_bits = RootBitsOf(record)};
  NAM_ASSIGN_OR_RETURN(description.records, TableExtents::Open(attachment_, table.name(), kRecordsPart));
  NAM_ASSIGN_OR_RETURN(description.index, TableExtents::Open(attachment_, table.name(), kKeyPart));
  const MutexLock lock(mutex_);
  return described_.emplace(table.allocation(), std::move(description)).first->second;
}

ReferenceDescription ClusterTables::DescribeReference(const proto::ReferencingKey& reference) {
  return {.name = reference.key().name(),
          .child = reference.child(),
          .child_allocation = AllocationId(reference.child_allocation()),
          .index = reference.key().index(),
          .fields = FieldsOf(reference.key().parent_pieces())};
}

absl::StatusOr<IndexDescription> ClusterTables::DescribeIndex(const proto::Table& table,
                                                              const proto::RecordPart& part) {
  const uint64_t allocation = part.extents(0).allocation();
  IndexDescription description{.name = part.name(),
                               .allocation = AllocationId(allocation),
                               .key_bytes = part.key_bytes(),
                               .unique = part.unique(),
                               .usable_from = part.usable_from(),
                               .extent_bytes = catalog::ExtentBytesOf(table.record(), part.kind())};
  description.fields = FieldsOf(part.pieces());
  {
    const MutexLock lock(mutex_);
    const auto found = index_extents_.find({table.allocation(), allocation});
    if (found != index_extents_.end()) description.extents = found->second;
  }
  if (description.extents == nullptr) {
    NAM_ASSIGN_OR_RETURN(description.extents, TableExtents::Open(attachment_, table.name(), part.name()));
    const MutexLock lock(mutex_);
    description.extents =
        index_extents_.try_emplace({table.allocation(), allocation}, description.extents).first->second;
  }
  return description;
}

absl::StatusOr<std::vector<TableDescription>> ClusterTables::All() {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, attachment_.catalog().ListTables());
  std::vector<std::string> names;
  for (const proto::Table& table : tables) {
    if (table.has_record() && table.name() != kStateTable) names.push_back(table.name());
  }
  return FindAll(names);
}

void ClusterTables::Report(const std::string& what) {
  std::fprintf(stderr, "nam: %s\n", what.c_str());
}

absl::Status ClusterTables::MakeState() {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment_.catalog().GetCluster());
  proto::Table fresh;
  fresh.set_name(kStateTable);
  proto::RecordStorage& record = *fresh.mutable_record();
  record.set_extent_bytes(kStateBytes);
  record.set_row_bytes(8);
  record.set_key_bytes(8);
  record.set_versions(1);
  record.set_timestamps(cluster.timestamps().empty() ? kLeasedName : cluster.timestamps());
  proto::RecordPart& part = *record.add_parts();
  part.set_name(kRecordsPart);
  part.set_kind(proto::TRANSACTION_STATE);
  proto::RecordPart& logs = *record.add_parts();
  logs.set_name(kLogsPart);
  logs.set_kind(proto::TRANSACTION_LOGS);
  static_assert(kLogExtentBytes == catalog::kLogExtentBytes);
  // Starts with one on each memory server, up to a limit.
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment_.Members(proto::ROLE_MEMORY));
  const auto log_extents = static_cast<uint32_t>(std::clamp<size_t>(servers.size(), 1, kLogExtentsAtFirst));
  const absl::Status created = CreateRecordTable(attachment_, fresh, {1, log_extents});
  return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
}

absl::StatusOr<TransactionState> ClusterTables::State() {
  {
    const MutexLock lock(mutex_);
    if (state_.extents != nullptr) return state_;
  }
  auto table = attachment_.catalog().GetTable(kStateTable);
  if (absl::IsNotFound(table.status())) {
    NAM_RETURN_IF_ERROR(MakeState());
    table = attachment_.catalog().GetTable(kStateTable);
  }
  if (!table.ok()) return table.status();
  TransactionState state;
  NAM_ASSIGN_OR_RETURN(state.timestamps, ParseTimestampKind((*table)->record().timestamps()));
  NAM_ASSIGN_OR_RETURN(state.extents, TableExtents::Open(attachment_, kStateTable, kRecordsPart));
  NAM_ASSIGN_OR_RETURN(state.logs, TableExtents::Open(attachment_, kStateTable, kLogsPart));
  state.shared = std::make_shared<SharedTimestamps>();
  const MutexLock lock(mutex_);
  if (state_.extents == nullptr) state_ = std::move(state);
  return state_;
}

void ClusterTables::ForgetState(const TransactionState& lost) {
  const MutexLock lock(mutex_);
  if (state_.extents == lost.extents) state_ = {};
}

}  // namespace nam::txn
