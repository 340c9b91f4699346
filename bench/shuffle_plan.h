#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/shuffle_exchange.h"
#include "computeserver/query_shape.h"
#include "optimizer/plan.h"
#include "sql/bound_query.h"

namespace nam::bench {

/// What travels on one leg of a shuffle-based plan, and how it lies in a message: columns of codes, as in a
/// block, one after the other.
///
///     ├ header ┼ key codes ┼ codes of the next column ┼ … ┤      each column 8-byte aligned, `rows` codes
///     long
///
/// While a message is filled, its columns lie where they do when it is full.
struct ShuffleLeg {
  struct Column {
    plan::ColumnRef ref;
    uint8_t width = 0;
    /// Where it comes from: the columns of the leg before (of the first leg: those that the plan reads of the
    /// table), or what the build side of the join before has to say.
    bool from_build = false;
    uint32_t from = 0;
  };
  std::vector<Column> columns;    // the key first
  std::vector<uint32_t> offsets;  // in a full message
  uint32_t capacity = 0;          // rows
  int64_t key_base = 0;           // key = base + code

  uint32_t BytesOf(uint32_t rows) const;
  /// Where each column lies among `rows` rows; `at` has a place for each.
  void OffsetsOf(uint32_t rows, uint32_t* at) const;
};

/// The shuffle-based execution of a star join: both inputs of every join are repartitioned by its key among
/// the compute servers, join after join. Codes, join tables and sinks are those of the pipelined plan.
struct ShufflePlan {
  std::shared_ptr<const computeserver::QueryShape> shape;
  std::vector<ShuffleLeg> build;  // of each join's build side
  std::vector<ShuffleLeg> probe;  // to each join

  /// INVALID_ARGUMENT unless every join is by a column of the driving table and a unique dense key, and
  /// nothing is filtered.
  static absl::StatusOr<ShufflePlan> Make(std::shared_ptr<const computeserver::QueryShape> shape,
                                          uint32_t batch_bytes);
};

/// A query that both models run.
struct ShuffleQuery {
  sql::BoundQuery query;
  ShufflePlan plan;

  static absl::StatusOr<ShuffleQuery> Bind(const std::string& sql, sql::TableSource& tables,
                                           const computeserver::DictionaryLoader& load_dictionary,
                                           uint32_t batch_bytes, bool whole_tuples);
};

}  // namespace nam::bench
