#include "session/saved_records.h"

#include <sys/random.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/missing_servers.h"
#include "session/record_engine.h"
#include "session/record_file.h"
#include "storage/checksum.h"

namespace nam::session {
namespace {

constexpr int kSnapshotsMax = 3;  // until no commit came meanwhile, and none was too old
constexpr size_t kRowsBytesMax = 1 << 20;
/// Rows of one transaction.
constexpr size_t kRowsAtOnceMax = 4'096;

/// The table as in CREATE TABLE, without memory. Parts are the ordered indexes.
proto::Table DefinitionOf(const proto::Table& table) {
  proto::Table definition = table;
  definition.clear_allocation();
  definition.clear_version();
  definition.clear_usage();
  proto::RecordStorage& record = *definition.mutable_record();
  record.clear_parts();
  record.clear_referenced_by();
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.kind() != proto::ORDERED_INDEX || part.leaving() || part.usable_from() == 0) continue;
    proto::RecordPart& index = *record.add_parts();
    index = part;
    index.clear_extents();
    index.clear_usable_from();
  }
  return definition;
}

/// Parents before their children: only CREATE TABLE makes foreign keys, so there is no cycle.
std::vector<std::shared_ptr<const proto::Table>> InOrder(
    std::vector<std::shared_ptr<const proto::Table>> tables) {
  std::vector<std::shared_ptr<const proto::Table>> ordered;
  std::set<std::string> done;
  while (!tables.empty()) {
    const auto ready = std::find_if(tables.begin(), tables.end(), [&](const auto& table) {
      const auto& keys = table->record().foreign_keys();
      return std::all_of(keys.begin(), keys.end(), [&](const proto::ForeignKey& key) {
        const bool waits = std::any_of(tables.begin(), tables.end(),
                                       [&](const auto& other) { return other->name() == key.parent(); });
        return !waits || key.parent() == table->name();
      });
    });
    const auto next = ready == tables.end() ? tables.begin() : ready;
    done.insert((*next)->name());
    ordered.push_back(*next);
    tables.erase(next);
  }
  return ordered;
}

uint64_t UsedBytes(const proto::Table& table) {
  uint64_t bytes = 0;
  for (const proto::ServerUsage& usage : table.usage()) bytes += usage.bytes();
  return bytes;
}

/// Whole tables, parents first; the others' names go to `lost`. FAILED_PRECONDITION: a memory server is
/// silent.
absl::StatusOr<std::vector<std::shared_ptr<const proto::Table>>> RecordTables(
    catalog::Attachment& attachment, std::vector<std::string>& lost) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> listed, attachment.catalog().ListTables());
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
  std::vector<std::shared_ptr<const proto::Table>> tables;
  for (const proto::Table& table : listed) {
    if (!table.has_record() || IsSystemName(table.name())) continue;
    const std::vector<catalog::MissingServer> missing = catalog::MissingServersOf(table, cluster);
    const auto silent = std::ranges::find_if_not(missing, &catalog::MissingServer::buried);
    if (silent != missing.end()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "memory server %d, where rows of table %s lie, is silent; it may come back with them",
          silent->member.id(), table.name()));
    }
    if (!missing.empty()) {
      lost.push_back(table.name());
      continue;
    }
    NAM_ASSIGN_OR_RETURN(std::shared_ptr<const proto::Table> whole,
                         attachment.catalog().GetTable(table.name()));
    tables.push_back(std::move(whole));
  }
  // Small tables first: rows that are changed again and again outlive a snapshot for the shortest time.
  std::ranges::stable_sort(tables, {}, [](const auto& table) { return UsedBytes(*table); });
  return InOrder(std::move(tables));
}

/// For numbered columns: a number that none of them has handed out.
absl::StatusOr<std::string> NumbersOf(const proto::Table& table, RecordAccess& access) {
  std::vector<std::string> numbers;
  for (int column = 0; column < table.columns_size(); ++column) {
    if (table.columns(column).numbering() == proto::NOT_NUMBERED) continue;
    NAM_ASSIGN_OR_RETURN(const uint64_t next, access.NextNumber(table, column));
    numbers.push_back(absl::StrCat(column, ":", next));
  }
  return absl::StrJoin(numbers, ",");
}

/// Whose rows they are, and which.
struct Head {
  uint64_t store = 0;
  uint64_t number = 0;    // of the file
  uint64_t snapshot = 0;  // whose rows these are
  std::string cluster;    // a name, for people

  std::string ToString() const { return absl::StrCat(store, " ", number, " ", snapshot, " ", cluster); }
  static std::optional<Head> Parse(const RecordFileReader::Section& section) {
    const std::vector<std::string> words = absl::StrSplit(section.bytes, absl::MaxSplits(' ', 3));
    Head head;
    const bool read = section.kind == RecordSection::kHead && words.size() == 4 &&
                      absl::SimpleAtoi(words[0], &head.store) && absl::SimpleAtoi(words[1], &head.number) &&
                      absl::SimpleAtoi(words[2], &head.snapshot);
    if (!read) return std::nullopt;
    head.cluster = words[3];
    return head;
  }
};

/// Reads the head of a file that was just opened.
absl::StatusOr<Head> ReadHead(RecordFileReader& file, const std::string& path) {
  NAM_ASSIGN_OR_RETURN(const RecordFileReader::Section section, file.Next());
  std::optional<Head> head = Head::Parse(section);
  if (head.has_value()) return *std::move(head);
  return absl::DataLossError(absl::StrCat("`", path, "` is damaged: it does not name its cluster"));
}

uint64_t DrawNumber() {
  uint64_t number = 0;
  NAM_CHECK(getrandom(&number, sizeof number, 0) == ssize_t{sizeof number}, "no randomness");
  return std::max<uint64_t>(number, 1);
}

absl::Status SaveTable(const proto::Table& table, RecordAccess& access, RecordFileWriter& file,
                       const SaveOptions& options, SavedRecords& saved) {
  NAM_RETURN_IF_ERROR(file.Add(RecordSection::kTable, DefinitionOf(table).SerializeAsString()));
  NAM_ASSIGN_OR_RETURN(const std::string numbers, NumbersOf(table, access));
  if (!numbers.empty()) NAM_RETURN_IF_ERROR(file.Add(RecordSection::kNumbers, numbers));
  std::string bytes;
  SavedTable& counted = saved.tables.emplace_back(SavedTable{.name = table.name()});
  NAM_RETURN_IF_ERROR(access.Scan(table, [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size());
    ++counted.rows;
    ++saved.rows;
    if (bytes.size() < kRowsBytesMax) return true;
    NAM_RETURN_IF_ERROR(file.Add(RecordSection::kRows, bytes));
    bytes.clear();
    if (options.progress) options.progress(saved.rows, file.bytes());
    // Where memory is in its place nothing waits, and so nothing else looks.
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    return true;
  }));
  return bytes.empty() ? absl::OkStatus() : file.Add(RecordSection::kRows, bytes);
}

/// Ends its transaction in any case.
class Transaction {
 public:
  explicit Transaction(RecordAccess& access) : access_(access) {}
  ~Transaction() { access_.Abort(); }

 private:
  RecordAccess& access_;
};

/// Begins a transaction that sees all commits which were acknowledged before.
absl::Status BeginBehindAll(RecordAccess& access) {
  NAM_RETURN_IF_ERROR(access.NewestCommit().status());
  const absl::Status begun = access.Begin();
  if (!absl::IsUnavailable(begun)) return begun;
  // The cluster answers, so it must not be taken for one that has ended.
  return absl::FailedPreconditionError(
      absl::StrCat("commits that are under way hide later ones: ", std::string(begun.message())));
}

absl::StatusOr<SavedRecords> SaveOnce(catalog::Attachment& attachment, RecordAccess& access,
                                      const std::string& path, const SaveOptions& options, bool& overtaken) {
  SavedRecords saved;
  NAM_ASSIGN_OR_RETURN(const auto tables, RecordTables(attachment, saved.lost));
  if (tables.empty()) return saved;
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
  NAM_ASSIGN_OR_RETURN(const auto file, RecordFileWriter::Create(path));
  Head head{.store = cluster.store(), .number = DrawNumber(), .cluster = cluster.name()};
  {
    NAM_RETURN_IF_ERROR(BeginBehindAll(access));
    const Transaction transaction(access);
    head.snapshot = access.snapshot();
    NAM_RETURN_IF_ERROR(file->Add(RecordSection::kHead, head.ToString()));
    for (const auto& table : tables) NAM_RETURN_IF_ERROR(SaveTable(*table, access, *file, options, saved));
  }
  if (!options.allow_later_commits) {
    // A second snapshot would not tell: a commit under way hides later ones.
    NAM_ASSIGN_OR_RETURN(const uint64_t newest, access.NewestCommit());
    overtaken = newest > head.snapshot;
    if (overtaken) return saved;
  }
  NAM_RETURN_IF_ERROR(file->Finish());
  saved.bytes = file->bytes();
  saved.checksum = file->checksum();
  saved.number = head.number;
  return saved;
}

/// Loads from the file's first table on.
class Loading {
 public:
  Loading(catalog::Attachment& attachment, RecordAccess& access, RecordFileReader& file)
      : attachment_(attachment), access_(access), file_(file) {}

  absl::StatusOr<SavedRecords> Run() {
    const absl::Status status = ReadAll();
    if (status.ok()) return std::move(loaded_);
    // Drops children before their parents; the first error matters.
    for (auto table = loaded_.tables.rbegin(); table != loaded_.tables.rend(); ++table)
      access_.DropTable(table->name).IgnoreError();
    return status;
  }

 private:
  absl::Status ReadAll() {
    while (true) {
      NAM_ASSIGN_OR_RETURN(const RecordFileReader::Section section, file_.Next());
      switch (section.kind) {
        case RecordSection::kTable:
          NAM_RETURN_IF_ERROR(MakeTable(section.bytes));
          break;
        case RecordSection::kNumbers:
          NAM_RETURN_IF_ERROR(SkipAll(section.bytes));
          break;
        case RecordSection::kRows:
          NAM_RETURN_IF_ERROR(InsertRows(section.bytes));
          break;
        case RecordSection::kEnd:
          return MarkSaved(attachment_.catalog(), 0);  // from here on rows may change
        default:
          return absl::DataLossError("a saved table is out of its place");
      }
    }
  }

  absl::Status MakeTable(const std::string& bytes) {
    proto::Table table;
    if (!table.ParseFromString(bytes)) return absl::DataLossError("a saved table cannot be read");
    std::vector<proto::RecordPart> indexes(table.record().parts().begin(), table.record().parts().end());
    table.mutable_record()->clear_parts();
    for (proto::ForeignKey& key : *table.mutable_record()->mutable_foreign_keys()) {
      key.clear_parent_allocation();
      if (key.parent() == table.name()) continue;
      NAM_ASSIGN_OR_RETURN(const auto parent, attachment_.catalog().GetTable(key.parent()));
      key.set_parent_allocation(parent->allocation());
    }
    NAM_RETURN_IF_ERROR(access_.CreateTable(table, indexes));
    NAM_ASSIGN_OR_RETURN(table_, attachment_.catalog().GetTable(table.name()));
    loaded_.tables.push_back({.name = table.name()});
    return absl::OkStatus();
  }

  absl::Status SkipAll(const std::string& text) {
    if (table_ == nullptr) return absl::DataLossError("numbers of no table");
    for (const absl::string_view one : absl::StrSplit(text, ',')) {
      const std::vector<std::string> pair = absl::StrSplit(one, ':');
      int column = 0;
      uint64_t next = 0;
      const bool read =
          pair.size() == 2 && absl::SimpleAtoi(pair[0], &column) && absl::SimpleAtoi(pair[1], &next);
      if (!read || column < 0 || column >= table_->columns_size())
        return absl::DataLossError("saved numbers cannot be read");
      NAM_RETURN_IF_ERROR(SkipNumbers(attachment_, *table_, column, next).status());
    }
    return absl::OkStatus();
  }

  absl::Status InsertRows(const std::string& bytes) {
    if (table_ == nullptr) return absl::DataLossError("rows of no table");
    const size_t row_bytes = table_->record().row_bytes();
    if (bytes.size() % row_bytes != 0)
      return absl::DataLossError("saved rows are of another size than their table's");
    std::vector<std::string> rows;
    for (size_t at = 0; at < bytes.size(); at += row_bytes) {
      rows.push_back(bytes.substr(at, row_bytes));
      if (rows.size() < kRowsAtOnceMax && at + row_bytes < bytes.size()) continue;
      NAM_RETURN_IF_ERROR(access_.Begin());
      size_t taken = 0;
      absl::Status inserted = access_.Insert(*table_, rows, &taken);
      if (inserted.ok()) inserted = access_.Commit();
      if (!inserted.ok()) {
        access_.Abort();
        return inserted;
      }
      loaded_.rows += rows.size();
      loaded_.tables.back().rows += rows.size();
      rows.clear();
    }
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  RecordAccess& access_;
  RecordFileReader& file_;
  std::shared_ptr<const proto::Table> table_;
  SavedRecords loaded_;
};

}  // namespace

std::string SavedRecords::TableNames() const {
  std::vector<std::string> names;
  for (const SavedTable& table : tables) names.push_back(table.name);
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<SavedRecords> SaveRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path, const SaveOptions& options) {
  absl::Status too_old;
  for (int i = 0; i < kSnapshotsMax; ++i) {
    bool overtaken = false;
    absl::StatusOr<SavedRecords> saved = SaveOnce(attachment, access, path, options, overtaken);
    if (absl::IsAborted(saved.status())) {
      too_old = saved.status();
      continue;
    }
    if (!saved.ok() || !overtaken) return saved;
  }
  if (options.allow_later_commits) {
    return absl::FailedPreconditionError(
        absl::StrCat("clients change rows of record tables faster than they can be saved at one snapshot (",
                     std::string(too_old.message()), "); try again in a quieter moment"));
  }
  return absl::FailedPreconditionError(
      "clients go on changing record tables: commits after the saved snapshot would be "
      "lost; end them "
      "first");
}

absl::StatusOr<SavedRecords> LoadRecords(catalog::Attachment& attachment, RecordAccess& access,
                                         const std::string& path) {
  NAM_ASSIGN_OR_RETURN(const auto file, RecordFileReader::Open(path));
  NAM_ASSIGN_OR_RETURN(const Head head, ReadHead(*file, path));
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
  if (head.store != cluster.store()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("`%s` has record tables of the cluster `%s` on another catalog store; move it away",
                        path, head.cluster));
  }
  if (head.number != cluster.saved_records()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("`%s` does not have the record tables as they were when the cluster ended: it is a "
                        "copy of an earlier file, or the cluster went on after it was written",
                        path));
  }
  const absl::StatusOr<SavedRecords> loaded = Loading(attachment, access, *file).Run();
  if (loaded.ok() || !absl::IsDataLoss(loaded.status())) return loaded;
  return absl::DataLossError(
      absl::StrCat("record tables cannot be loaded from `", path, "`: ", loaded.status().message()));
}

absl::Status MarkSaved(catalog::Client& catalog, uint64_t number, MemberId closed_by) {
  proto::ChangeCatalogRequest request;
  request.mutable_saved()->set_number(number);
  request.mutable_saved()->set_closed_by(closed_by.value());
  return catalog.ChangeCatalog(request).status();
}

absl::StatusOr<SavedRecords> CheckSavedRecords(const std::string& path) {
  NAM_ASSIGN_OR_RETURN(const auto file, RecordFileReader::Open(path));
  SavedRecords found;
  while (true) {
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    NAM_ASSIGN_OR_RETURN(const RecordFileReader::Section section, file->Next());
    if (const std::optional<Head> head = Head::Parse(section); head.has_value()) found.number = head->number;
    if (section.kind != RecordSection::kEnd) continue;
    found.bytes = file->bytes();
    found.checksum = file->checksum();
    return found;
  }
}

absl::Status CopySavedRecords(const std::string& from, const std::string& to, uint64_t store,
                              const std::string& cluster) {
  NAM_ASSIGN_OR_RETURN(const auto reader, RecordFileReader::Open(from));
  NAM_ASSIGN_OR_RETURN(Head head, ReadHead(*reader, from));
  NAM_ASSIGN_OR_RETURN(const auto writer, RecordFileWriter::Create(to));
  head.store = store;
  head.cluster = cluster;
  NAM_RETURN_IF_ERROR(writer->Add(RecordSection::kHead, head.ToString()));
  while (true) {
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    NAM_ASSIGN_OR_RETURN(const RecordFileReader::Section section, reader->Next());
    if (section.kind == RecordSection::kEnd) return writer->Finish();
    NAM_RETURN_IF_ERROR(writer->Add(section.kind, section.bytes));
  }
}

}  // namespace nam::session
