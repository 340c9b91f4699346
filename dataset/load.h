#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "dataset/table.h"
#include "dataset/tbl_reader.h"
#include "fabric/fabric.h"

/// Drives a table's rows into a sink, a TableLoader's Append for one, with several threads. Batches come
/// in no particular order. On any error, or CANCELLED, the sink has seen some of the rows: whoever owns
/// what is behind it drops them (a TableLoader that is not committed leaves nothing).
namespace nam::dataset {

/// The number of rows.
absl::StatusOr<uint64_t> LoadGenerated(fabric::Fabric& fabric, const Generator& generator, size_t table,
                                       const Sink& sink, const WorkOptions& options);

/// `directory` holds dbgen's files; see TblFile for what is understood and how errors look.
absl::StatusOr<uint64_t> LoadTbl(fabric::Fabric& fabric, const std::string& directory, const Table& table,
                                 const Sink& sink, const WorkOptions& options);

}  // namespace nam::dataset
