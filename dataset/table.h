#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "partitioner/table_schema.h"

/// Rows of benchmarks on their way into tables: what generators of different benchmarks share, `.tbl` files,
/// and the passes that drive them with several threads.
namespace nam::dataset {

/// One table of a benchmark's data, as loaders, readers and writers know it.
struct Table {
  partitioner::TableSchema schema;
  /// Names that its file has in some dbgen's output; it is written by the first.
  std::vector<std::string> file_names;
  /// Columns of integers yyyymmdd, which some builds of dbgen write as yyyy-mm-dd.
  std::vector<std::string> date_keys;
};

/// `part` with its file `part.tbl`.
inline Table MakeTable(partitioner::TableSchema schema) {
  std::string file_name = schema.name + ".tbl";
  return {.schema = std::move(schema), .file_names = {std::move(file_name)}};
}

}  // namespace nam::dataset
