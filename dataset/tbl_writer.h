#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "dataset/table.h"
#include "fabric/fabric.h"

namespace nam::dataset {

struct WrittenTable {
  size_t table;  // of the generator
  std::string path;
  uint64_t rows;
  uint64_t bytes;
};

struct TblWriteOptions {
  WorkOptions work;
  bool replace = false;  // files that are there already; otherwise ALREADY_EXISTS
};

/// Writes tables of the generator as `<table>.tbl` in dbgen's format (`a|b|c|` and \n) into a directory, made
/// if it is not there. Row for row the same file for any number of threads. All files get their names at the
/// end, together: after an error, or CANCELLED, none of them is there (nor was one replaced).
absl::StatusOr<std::vector<WrittenTable>> WriteTbl(fabric::Fabric& fabric, const Generator& generator,
                                                   std::span<const size_t> tables,
                                                   const std::string& directory,
                                                   const TblWriteOptions& options);

/// Appends a batch's rows to `text`, as in those files.
void AppendTbl(const Table& table, const partitioner::ColumnBatch& batch, std::string& text);

}  // namespace nam::dataset
