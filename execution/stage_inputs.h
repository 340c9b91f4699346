#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/table_sink.h"
#include "partitioner/pieces.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "proto/compute.pb.h"
#include "storage/known_blocks.h"
#include "storage/work_claims.h"
#include "txn/tables.h"

namespace nam::execution {

/// The dictionary of a table's text column, in one group of chains.
using DictionaryLoader = std::function<absl::StatusOr<std::shared_ptr<const storage::Dictionary>>(
    const proto::Table& table, uint32_t column, uint32_t group)>;

/// Takes the session's rows, or keys, of so many bytes each; READs those in scratch memory.
using RowLoader = std::function<absl::StatusOr<std::vector<std::string>>(const proto::RecordRows& rows,
                                                                         uint32_t row_bytes)>;

/// Makes the sink of a result, for rows of this schema. The budget outlives it.
using ClientSink =
    std::function<absl::StatusOr<std::unique_ptr<Sink>>(const plan::Schema& rows, MemoryBudget& budget)>;

/// Makes a source of files' rows, for so many tasks.
using FileRowsSource = std::function<absl::StatusOr<std::unique_ptr<Source>>(
    const plan::FileSource& files, const plan::Schema& rows, int tasks)>;

/// The inputs of a stage's run: from a server for an attempt, or from the session.
struct StageInputs {
  plan::PhysicalPlan plan;     // passed plan::Check and plan::CheckTables
  uint32_t stage = 0;          // in the plan
  plan::TableMetadata tables;  // the plan's; a stage of the session needs only those that it scans
  std::vector<std::shared_ptr<storage::KnownBlocks>> known;  // as tables; may be null
  proto::StreamSettings settings;
  std::vector<partitioner::Piece> pieces;       // of the claimed pipeline's table
  std::optional<storage::WorkCounter> counter;  // claims them; none: all of them are this server's
  DictionaryLoader load_dictionary;
  /// This member's way to record tables; outlives the stage. Null: it scans none.
  txn::Tables* records = nullptr;
  /// What the client's transaction adds to scans of record tables, and how that is READ.
  std::vector<proto::RecordInput> record_inputs;
  RowLoader load_rows;
  int threads = 1;
  /// The attempt's share of its server's memory; null, in the session: only the settings bound it.
  std::shared_ptr<MemoryGrant> memory;
  /// The claimed pipeline's rows leave in windows of about so many bytes, if they leave in any order; 0: all
  /// at the end.
  uint64_t window_bytes = 0;
  uint64_t attempt = 0;  // carried by pages in scratch memory and by messages
  /// For a streamed stage: this server's number among so many members. 0 of 0: the stage has no exchanges.
  uint32_t member = 0, members = 0;
  /// The attempt that its exchanges' messages carry: the first member's.
  uint64_t exchange_attempt() const { return attempt - member; }
  /// The scratch memory that this attempt writes by parts; null: none.
  std::shared_ptr<storage::ScratchSpace> scratch;
  std::vector<proto::Directory> directories;  // of attempts of earlier stages
  bool always_by_parts = false;               // for tests: groups go by parts however few they are
  SortScratch sort_scratch;                   // for a stage of the session: where its sorts write runs
  ClientSink client_sink;                     // for a stage of the session: the sink of its last pipeline
  FileRowsSource file_rows;                   // for a stage of the session
  /// For an attempt: the table that the claimed pipeline's rows are written into, instead of a result.
  std::optional<TableTarget> table_target;
};

/// The most bytes of an attempt's result on a server of so many threads: as the settings say, but at least
/// some pages for each thread.
uint64_t ResultBytesMax(const proto::StreamSettings& settings, int threads);

}  // namespace nam::execution
