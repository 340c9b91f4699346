#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "txn/rsi/recovery.h"

/// Finds a client's locks after its log was lost with a memory server:
///
///     tables ─▶ extents that are left ─▶ chunks that were ever used ─▶ headers ─▶ entries as a log has them
///
/// A locked header has lost its rollback count. The entry gets a random one: it only has to differ from the
/// count that a READ saw which began before the lock. A header does not tell either whether its deleted row
/// was being reclaimed. Such a row stays deleted, perhaps without its key, until it is reclaimed again. Nor
/// does it tell a row that was only locked: that loses its oldest version, as one that was being written
/// does, and snapshots that need the version fail as too old.
namespace nam::txn {

using storage::RecordHeader;

absl::StatusOr<std::vector<LogEntry>> Recovery::SearchRecords(uint32_t client) {
  std::vector<LogEntry> found;
  NAM_ASSIGN_OR_RETURN(const std::vector<TableDescription> all, tables_.All());
  for (const TableDescription& description : all) {
    NAM_ASSIGN_OR_RETURN(RecordTable* const table, table_of_(description));
    const absl::Status looked = table->FindLost();
    if (absl::IsNotFound(looked)) continue;  // dropped meanwhile
    NAM_RETURN_IF_ERROR(looked);
    const RecordLayout& layout = table->layout();
    for (uint64_t extent = 0; extent < table->space().extents(); ++extent) {
      if (table->space().Lost(layout.ChunkPosition(layout.ChunkNumber(extent, 0)))) continue;
      const size_t kept = batch_.scratch_used();
      NAM_ASSIGN_OR_RETURN(const auto read, table->allocator().ReadWords(batch_, extent));
      const std::vector<uint64_t> words(read.begin(), read.end());
      batch_.Reset(kept);
      for (uint64_t chunk = 0; chunk < words.size(); ++chunk) {
        if (words[chunk] == 0) continue;  // never used
        NAM_RETURN_IF_ERROR(SearchChunk(*table, layout.ChunkNumber(extent, chunk), client, found));
      }
    }
  }
  tables_.Report(absl::StrFormat(
      "the log of a dead client (number %d) is lost with its memory server; a search of all rows found %d "
      "that it had locked",
      client, found.size()));
  return found;
}

absl::Status Recovery::SearchChunk(RecordTable& table, uint64_t chunk, uint32_t client,
                                   std::vector<LogEntry>& found) {
  const size_t kept = batch_.scratch_used();
  auto* const headers = batch_.Words(kChunkRecords);
  const uint64_t first = chunk * kChunkRecords;
  for (uint64_t i = 0; i < kChunkRecords; ++i) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, table.Block(first + i));
    batch_.Read(block, reinterpret_cast<std::byte*>(headers + i), 8);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (uint64_t i = 0; i < kChunkRecords; ++i) {
    const RecordHeader header(headers[i]);
    if (!header.locked() || header.client() != client) continue;
    const uint64_t drawn = tables_.fabric().Random();
    LogEntry entry{.allocation = table.description().allocation.value(),
                   .record = first + i,
                   .header = RecordHeader::Unlocked(header.timestamp(), drawn).word()};
    if (header.timestamp() == 0) {
      entry.record |= LogEntry::kInsert;
      entry.header = 0;
      NAM_ASSIGN_OR_RETURN(entry.key_hash, HashOfNewRow(table, first + i));
    }
    found.push_back(entry);
  }
  batch_.Reset(kept);
  return absl::OkStatus();
}

// A row that the client died writing has no entry in the index: removing that is harmless.
absl::StatusOr<uint64_t> Recovery::HashOfNewRow(RecordTable& table, uint64_t record) {
  const uint32_t key_bytes = table.description().key_bytes;
  std::byte* const key = batch_.Scratch(key_bytes);
  NAM_ASSIGN_OR_RETURN(storage::Channel::Target at, table.Block(record));
  at.address.offset += table.geometry().row_offset(0);
  batch_.Read(at, key, key_bytes);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  return table.HashOf({key, key_bytes});
}

}  // namespace nam::txn
