#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "ssb/chunk_run.h"
#include "ssb/generator.h"
#include "ssb/schema.h"

namespace nam::ssb {

struct WrittenTable {
  Table table;
  std::string path;
  uint64_t rows;
  uint64_t bytes;
};

struct TblWriteOptions {
  WorkOptions work;
  bool replace = false;  // files that are there already; otherwise ALREADY_EXISTS
};

/// Writes tables as `<table>.tbl` in dbgen's format (`a|b|c|` and \n) into a directory, made if it is not
/// there. Row for row the same file for any number of threads. All files get their names at the end,
/// together: after an error, or CANCELLED, none of them is there (nor was one replaced).
absl::StatusOr<std::vector<WrittenTable>> WriteTbl(fabric::Fabric& fabric, const Generator& generator,
                                                   std::span<const Table> tables,
                                                   const std::string& directory,
                                                   const TblWriteOptions& options);

/// Appends a batch's rows to `text`, as in those files.
void AppendTbl(Table table, const partitioner::ColumnBatch& batch, std::string& text);

}  // namespace nam::ssb
