#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "dataset/table.h"
#include "dataset/tbl_reader.h"
#include "fabric/fabric.h"

/// Loads a table's rows into a sink, such as a TableLoader's Append, with several threads. Batches come in no
/// particular order. On an error or CANCELLED the sink has seen some of the rows, and the owner of their
/// destination must drop them (an uncommitted TableLoader leaves nothing).
namespace nam::dataset {

/// Returns the number of rows.
absl::StatusOr<uint64_t> LoadGenerated(fabric::Fabric& fabric, const Generator& generator, size_t table,
                                       const Sink& sink, const WorkOptions& options);

/// `directory` holds dbgen's files; TblFile describes accepted formats and errors.
absl::StatusOr<uint64_t> LoadTbl(fabric::Fabric& fabric, const std::string& directory, const Table& table,
                                 const Sink& sink, const WorkOptions& options);

}  // namespace nam::dataset
