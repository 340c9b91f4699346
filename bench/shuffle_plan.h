#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/prepared_stage.h"
#include "execution/stage_inputs.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::bench {

/// Limits of the messages of a shuffle-based plan.
struct ShuffleMessages {
  uint32_t legs = 1;                // per query: its joins
  uint32_t batch_bytes = 16 << 10;  // per message, with its header
  uint32_t credits = 4;             // messages per leg that a server may send another one ahead
};

/// A leg moves rows of a build side, or probing rows.
struct ShuffleKind {
  enum : uint16_t { kBuild, kProbe };
};

/// The contents of one leg of a shuffle-based plan, and their layout in a message's payload: columns of codes
/// as in a block, one after the other.
///
///     ├ codes of column 0 ┼ codes of column 1 ┼ … ┤      each column 8-byte aligned, `rows` codes long
///
/// While a message is filled, its columns have the offsets of a full one.
struct ShuffleLeg {
  struct Column {
    /// A column of the pipeline's scan, or payload of one of its joins.
    execution::ScanOutput origin;
    uint8_t width = 0;  // bytes per code
  };
  std::vector<Column> columns;
  uint32_t key = 0;               // the column that determines a row's server
  int64_t key_base = 0;           // key = base + code
  std::vector<uint32_t> offsets;  // in a full message
  uint32_t capacity = 0;          // rows

  uint32_t BytesOf(uint32_t rows) const;
  /// The offset of each column in a message of `rows` rows; `at` has an element per column.
  void OffsetsOf(uint32_t rows, uint32_t* at) const;
};

/// The shuffle-based execution of a star join: both inputs of every join are repartitioned by its key among
/// the compute servers, join after join. Codes, build sides and the sink are the engine's; only the movement
/// of rows differs.
struct ShufflePlan {
  struct Join {
    uint32_t pipeline = 0;  // the build side's
    ShuffleLeg build;
    ShuffleLeg probe;
    /// Indexes into the columns of `probe`, then of the payload. They are the columns of the next leg or,
    /// after the last join, of the sink.
    std::vector<uint32_t> keep, fetch;
  };
  std::vector<Join> joins;

  /// The meaning of a column's codes, on the server that prepared the stage.
  static const execution::CodeMeaning* MeaningOf(const execution::PreparedStage& stage, uint32_t pipeline,
                                                 const execution::ScanOutput& column);

  /// INVALID_ARGUMENT unless the stage aggregates, every join is by a column of the driving table and a
  /// unique dense key, and nothing is filtered.
  static absl::StatusOr<ShufflePlan> Make(const execution::PreparedStage& stage, uint32_t batch_bytes);
};

/// A query for both models.
struct ShuffleQuery {
  std::vector<session::ResultSet::Column> columns;  // of the result
  /// Input for each server's own preparation. The whole driving table is its share: the exchange decides
  /// which rows it processes.
  execution::StageInputs stage;
  ShufflePlan plan;

  static absl::StatusOr<ShuffleQuery> Bind(const std::string& sql, sql::TableSource& tables,
                                           const execution::DictionaryLoader& load_dictionary,
                                           uint32_t batch_bytes, bool whole_tuples);
};

}  // namespace nam::bench
