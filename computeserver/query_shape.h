#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "computeserver/batch.h"
#include "computeserver/join_table.h"
#include "optimizer/assignment.h"
#include "optimizer/plan.h"
#include "partitioner/pieces.h"
#include "proto/compute.pb.h"
#include "storage/known_blocks.h"

namespace nam::computeserver {

/// Loads a column's dictionary; the query's allocation names the table's version.
using DictionaryLoader = std::function<absl::StatusOr<std::shared_ptr<const storage::Dictionary>>(
    const proto::Table&, uint32_t column)>;

/// What all threads of a fragment know of the query; immutable once made.
struct QueryShape {
  struct Join {
    std::vector<uint32_t> partitions;  // of the build side, ascending: those that are needed here
    std::vector<uint64_t> first_row;   // number of the first row of each of them
    JoinTable::Options table;
    std::vector<uint32_t> payload;     // columns copied into the join table
    std::vector<int64_t> translation;  // text keys: probe side's entry → build side's, -1 for none
    // Build side's entry → the one that stands for it; empty: each for itself.
    std::vector<int64_t> build_translation;
    bool row_numbers_needed = false;  // later steps look at the build side's columns
    bool always_in_domain = false;    // every probe key is within the direct table's keys
    bool by_driving_key = false;      // decided by look-ups of the driving table's own keys: see RowSelector
  };

  optimizer::Plan plan;
  optimizer::TableRefs tables;
  std::vector<std::shared_ptr<storage::KnownBlocks>> known;  // of the tables; shared with other queries
  proto::StreamSettings settings;
  std::vector<partitioner::Piece> pieces;  // of the driving table
  std::vector<Join> joins;
  ColumnSpace columns{0};              // meanings; sources unset
  std::vector<std::vector<int>> live;  // per level: tables whose rows are kept there
  int sort_column(int table) const;    // by which rows of a chain are in order, -1 for none

  static absl::StatusOr<std::shared_ptr<const QueryShape>> Make(
      optimizer::Plan plan, optimizer::TableRefs tables,
      std::vector<std::shared_ptr<storage::KnownBlocks>> known, const proto::StreamSettings& settings,
      std::vector<partitioner::Piece> pieces, const DictionaryLoader& load_dictionary);
};

}  // namespace nam::computeserver
