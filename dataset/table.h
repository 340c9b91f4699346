#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "partitioner/table_schema.h"

/// Benchmark rows on their way into tables: the shared parts of the generators, `.tbl` files, and
/// multi-threaded passes.
namespace nam::dataset {

/// One table of a benchmark's data, for loaders, readers and writers.
struct Table {
  partitioner::TableSchema schema;
  /// File names in the output of various dbgens; the first one is used for writing.
  std::vector<std::string> file_names;
  /// Columns with integers yyyymmdd, which some builds of dbgen write as yyyy-mm-dd.
  std::vector<std::string> date_keys;
};

/// A table `part` with the file `part.tbl`.
inline Table MakeTable(partitioner::TableSchema schema) {
  std::string file_name = schema.name + ".tbl";
  return {.schema = std::move(schema), .file_names = {std::move(file_name)}};
}

}  // namespace nam::dataset
