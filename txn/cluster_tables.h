#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"
#include "txn/session.h"
#include "txn/tables.h"

namespace nam::txn {

/// The catalog's name of the transaction state.
inline constexpr char kStateTable[] = "nam.transactions";
inline constexpr char kRecordsPart[] = "rows";
inline constexpr char kLogsPart[] = "logs";  // part of the transaction state
inline constexpr char kKeyPart[] = "key";
inline constexpr char kNumbersPart[] = "numbers";  // part of tables with numbered columns only

/// Describes a new record table. `table` may carry what SQL keeps in the catalog (columns, record().checks
/// …); CreateTable fills in the storage.
struct RecordTableOptions {
  std::string name;
  uint32_t row_bytes = 0;
  uint32_t key_bytes = 0;
  uint32_t versions = 1;
  uint64_t expected_rows = 0;  // initial memory; the table grows beyond
  proto::Table table;
};
/// ALREADY_EXISTS; INVALID_ARGUMENT names the value out of range; RESOURCE_EXHAUSTED if no memory server has
/// room. An error leaves nothing behind.
absl::Status CreateTable(catalog::Attachment& attachment, const RecordTableOptions& options);

/// Creates an ordered index and fills it with the existing rows while others commit. `part` has no extents.
/// The session has no transaction under way. ALREADY_EXISTS: a table or an index has this name;
/// FAILED_PRECONDITION: it is unique, and two rows have the same key. Only a dead client leaves something: an
/// unused index that leaves. The next call with its name, or DropIndex, removes it.
absl::Status CreateIndex(catalog::Attachment& attachment, Session& session, const std::string& table,
                         const proto::RecordPart& part);
/// OK: the index is complete, or the name is not an index's. NOT_FOUND: there is none, or it leaves.
/// UNAVAILABLE: a living member is filling it.
absl::Status CheckIndexIsComplete(catalog::Attachment& attachment, const std::string& name);
/// NOT_FOUND: there is no such index; FAILED_PRECONDITION: it belongs to a constraint. Concurrent readers get
/// ABORTED and retry.
absl::Status DropIndex(catalog::Attachment& attachment, Session& session, const std::string& name);

/// NOT_FOUND: there is no such table. `cascade` drops the views that read it, too. A table with foreign keys
/// is first removed from its parents, so that no commit reads it once its memory is released. The session has
/// no transaction under way.
absl::Status DropTable(catalog::Attachment& attachment, Session& session, const std::string& name,
                       bool cascade = false);

/// txn::Tables of a real cluster. The attachment outlives it.
class ClusterTables final : public Tables {
 public:
  explicit ClusterTables(catalog::Attachment& attachment)
      : attachment_(attachment), ended_(attachment.fabric().CreateEvent()) {}
  ~ClusterTables() override;

  fabric::Fabric& fabric() override { return attachment_.fabric(); }
  fabric::RegionDirectory& directory() override { return attachment_; }
  MemberId member() override { return attachment_.member(); }
  absl::StatusOr<TableDescription> Find(const std::string& name) override;
  absl::StatusOr<std::vector<TableDescription>> FindAll(std::span<const std::string> names) override;
  absl::StatusOr<std::vector<TableDescription>> All() override;
  absl::StatusOr<TransactionState> State() override;
  void ForgetState(const TransactionState& lost) override;
  absl::Status Fence(MemberId member) override { return attachment_.Fence(member); }
  absl::Status KeepMembership() override { return attachment_.Rejoin(); }
  void RecoverLater(std::function<void()> attempt) override;
  /// Writes to standard error.
  void Report(const std::string& what) override;

 private:
  absl::Status MakeState();
  /// NOT_FOUND: it is no record table.
  absl::StatusOr<TableDescription> Describe(const proto::Table& table);
  absl::StatusOr<TableDescription> DescribeStorage(const proto::Table& table);
  static ReferenceDescription DescribeReference(const proto::ReferencingKey& reference);
  absl::StatusOr<IndexDescription> DescribeIndex(const proto::Table& table, const proto::RecordPart& part);

  catalog::Attachment& attachment_;
  Mutex mutex_;  // not held during calls
  // By allocation; without indexes.
  absl::flat_hash_map<uint64_t, TableDescription> described_ ABSL_GUARDED_BY(mutex_);
  /// By the table's allocation and its own: a load may give an index to another table.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, std::shared_ptr<ExtentSource>> index_extents_
      ABSL_GUARDED_BY(mutex_);
  TransactionState state_ ABSL_GUARDED_BY(mutex_);
  bool recovering_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<fabric::Event> ended_;
  std::unique_ptr<fabric::Thread> recoverer_;  // last: joined first
};

}  // namespace nam::txn
