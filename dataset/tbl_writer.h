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
  size_t table;  // index in the generator
  std::string path;
  uint64_t rows;
  uint64_t bytes;
};

struct TblWriteOptions {
  WorkOptions work;
  bool replace = false;  // replace existing files; otherwise ALREADY_EXISTS
};

/// Writes tables of the generator as `<table>.tbl` in dbgen's format (`a|b|c|` and \n) into a directory,
/// which is created if missing. The files do not depend on the number of threads. They get their names
/// together, at the end: after an error or CANCELLED none exists, and none was replaced.
absl::StatusOr<std::vector<WrittenTable>> WriteTbl(fabric::Fabric& fabric, const Generator& generator,
                                                   std::span<const size_t> tables,
                                                   const std::string& directory,
                                                   const TblWriteOptions& options);

/// Appends a batch's rows to `text` in the same format.
void AppendTbl(const Table& table, const partitioner::ColumnBatch& batch, std::string& text);

}  // namespace nam::dataset
