// load_tables CATALOG SECRET_FILE: loads the columnar tables that standard input describes into a cluster.
//
//     table NAME BLOCK_BYTES POINTER_GROUP
//     column NAME TYPE SCALE_OR_LENGTH NULLABLE
//                                        of types integer, decimal, date, string, boolean, timestamp,
//                                        timestamptz, time, double
//     partition COLUMN PARTS             any number of them
//     rows COUNT                         then COUNT lines of values as storage holds them, between
//                                        tabs; \N is NULL
//
// tests/oracle/tables.py writes this.

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "localcluster/connect.h"
#include "partitioner/loader.h"

namespace nam {
namespace {

struct TableOnInput {
  partitioner::TableSchema schema;
  partitioner::LoadOptions options;
  size_t rows = 0;
};

absl::StatusOr<Type> TypeOfWords(const std::string& kind, uint32_t modifier) {
  static const std::map<std::string, Type> plain = {{"integer", Type::Integer()},
                                                    {"date", Type::Date()},
                                                    {"boolean", Type::Bool()},
                                                    {"timestamp", Type::Timestamp()},
                                                    {"timestamptz", Type::TimestampTz()},
                                                    {"time", Type::Time()},
                                                    {"double", Type::Double()}};
  if (kind == "decimal") return Type::Decimal(static_cast<uint8_t>(modifier));
  if (kind == "string") return Type::String(modifier);
  const auto found = plain.find(kind);
  if (found == plain.end()) return absl::InvalidArgumentError(absl::StrCat("no type ", kind));
  return found->second;
}

/// Reads up to the line `rows`; NOT_FOUND at the end of the input.
absl::StatusOr<TableOnInput> ReadSchema(std::istream& input) {
  TableOnInput table;
  std::string line, word;
  while (std::getline(input, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "table") {
      table.options.replace = true;
      words >> table.schema.name >> table.options.block_bytes >> table.options.pointer_group;
    } else if (word == "column") {
      std::string name, kind;
      uint32_t modifier = 0;
      bool nullable = false;
      words >> name >> kind >> modifier >> nullable;
      NAM_ASSIGN_OR_RETURN(const Type type, TypeOfWords(kind, modifier));
      table.schema.columns.push_back({name, type, nullable});
    } else if (word == "partition") {
      partitioner::PartitionSchema partition;
      words >> partition.column >> partition.parts;
      table.schema.partitioning.push_back(partition);
    } else if (word == "rows") {
      words >> table.rows;
      return table;
    }
    if (words.fail()) return absl::InvalidArgumentError(absl::StrCat("not understood: ", line));
  }
  return absl::NotFoundError("the end of the input");
}

absl::Status AppendRow(const TableOnInput& table, const std::string& line, partitioner::ColumnBatch& batch) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
  if (fields.size() != table.schema.columns.size())
    return absl::InvalidArgumentError(absl::StrCat("a row of ", fields.size(), " fields: ", line));
  for (size_t i = 0; i < fields.size(); ++i) {
    auto& column = batch.column(i);
    const bool null = fields[i] == "\\N";
    column.nulls.push_back(null);
    if (table.schema.columns[i].type.kind == TypeKind::kString) {
      column.strings.push_back(
          batch.Keep(null ? std::string_view() : std::string_view(fields[i].data(), fields[i].size())));
      continue;
    }
    int64_t number = 0;
    if (!null && !absl::SimpleAtoi(fields[i], &number))
      return absl::InvalidArgumentError(absl::StrCat("not a number: ", fields[i]));
    column.numbers.push_back(number);
  }
  return absl::OkStatus();
}

absl::Status LoadTable(catalog::Attachment& attachment, const TableOnInput& table, std::istream& input) {
  constexpr size_t kBatchRows = 1000;
  NAM_ASSIGN_OR_RETURN(auto loader, partitioner::BeginLoad(attachment, table.schema, table.options));
  std::string line;
  for (size_t first = 0; first < table.rows; first += kBatchRows) {
    const size_t rows = std::min(kBatchRows, table.rows - first);
    partitioner::ColumnBatch batch(table.schema.columns.size());
    batch.set_rows(rows);
    for (size_t row = 0; row < rows; ++row) {
      if (!std::getline(input, line)) return absl::InvalidArgumentError("the input ends within a table");
      NAM_RETURN_IF_ERROR(AppendRow(table, line, batch));
    }
    NAM_RETURN_IF_ERROR(loader->Append(batch));
  }
  return loader->Commit().status();
}

absl::Status Run(const std::string& catalog, const std::string& secret_file) {
  NAM_ASSIGN_OR_RETURN(const auto attachment,
                       AttachToCluster({.catalog = catalog, .secret_file = secret_file}));
  while (true) {
    const auto table = ReadSchema(std::cin);
    if (absl::IsNotFound(table.status())) return absl::OkStatus();
    if (!table.ok()) return table.status();
    NAM_RETURN_IF_ERROR(LoadTable(*attachment, *table, std::cin));
  }
}

}  // namespace
}  // namespace nam

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: load_tables CATALOG SECRET_FILE < TABLES\n";
    return EXIT_FAILURE;
  }
  const absl::Status status = nam::Run(argv[1], argv[2]);
  if (!status.ok()) std::cerr << "load_tables: " << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
