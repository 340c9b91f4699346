#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/prepared_stage.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::bench {

/// How the servers of a shuffle-based plan send each other rows.
struct ShuffleMessages {
  uint32_t legs = 1;                // of a query: its joins
  uint32_t batch_bytes = 16 << 10;  // of a message, with its header
  uint32_t credits = 4;             // messages of a leg that one server may have sent another one ahead
};

/// A leg moves rows of a build side, or rows that probe.
struct ShuffleKind {
  enum : uint16_t { kBuild, kProbe };
};

/// What travels on one leg of a shuffle-based plan, and how it lies in a message's payload: columns of codes,
/// as in a block, one after the other.
///
///     ├ codes of column 0 ┼ codes of column 1 ┼ … ┤      each column 8-byte aligned, `rows` codes long
///
/// While a message is filled, its columns lie where they do when it is full.
struct ShuffleLeg {
  struct Column {
    /// A column of the pipeline's scan, or payload of one of its joins.
    execution::ScanOutput origin;
    uint8_t width = 0;  // bytes of a code
  };
  std::vector<Column> columns;
  uint32_t key = 0;               // the column that rows are dealt out by
  int64_t key_base = 0;           // key = base + code
  std::vector<uint32_t> offsets;  // in a full message
  uint32_t capacity = 0;          // rows

  uint32_t BytesOf(uint32_t rows) const;
  /// Where each column lies among `rows` rows; `at` has a place for each.
  void OffsetsOf(uint32_t rows, uint32_t* at) const;
};

/// The shuffle-based execution of a star join: both inputs of every join are repartitioned by its key among
/// the compute servers, join after join. Codes, build sides and the sink are the engine's; what is replaced
/// is how rows come to them.
struct ShufflePlan {
  struct Join {
    uint32_t pipeline = 0;  // of the build side
    ShuffleLeg build;
    ShuffleLeg probe;
    /// Columns of `probe`, then of the payload: these are the columns of the next leg, or behind the last
    /// join those of the sink.
    std::vector<uint32_t> keep, fetch;
  };
  std::vector<Join> joins;

  /// What the codes of a column stand for, on the server that prepared the stage.
  static const execution::CodeMeaning* MeaningOf(const execution::PreparedStage& stage, uint32_t pipeline,
                                                 const execution::ScanOutput& column);

  /// INVALID_ARGUMENT unless the stage aggregates, every join is by a column of the driving table and a
  /// unique dense key, and nothing is filtered.
  static absl::StatusOr<ShufflePlan> Make(const execution::PreparedStage& stage, uint32_t batch_bytes);
};

/// A query that both models run.
struct ShuffleQuery {
  std::vector<session::ResultSet::Column> columns;  // of the result
  /// What each server prepares for itself. All of the driving table is its share: which rows it works on, the
  /// exchange decides.
  execution::StageInputs stage;
  ShufflePlan plan;

  static absl::StatusOr<ShuffleQuery> Bind(const std::string& sql, sql::TableSource& tables,
                                           const execution::DictionaryLoader& load_dictionary,
                                           uint32_t batch_bytes, bool whole_tuples);
};

}  // namespace nam::bench
