#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/dialect.h"
#include "csv/sniffer.h"
#include "sql/bound_query.h"
#include "sql/parse_tree.h"
#include "types/type.h"

namespace nam::sql {

/// Files in a FROM: `read_csv('people.csv', header => true)`, or their path alone, `'people.csv'`.
struct FileArguments {
  std::string pattern;
  csv::Dialect dialect;
  csv::SniffOptions options;
  bool all_text = false;
  std::vector<std::pair<std::string, Type>> types;  // of columns by name, where they are given
  bool called = false;                              // by read_csv
  bool file_name = false;                           // a further column, filename, has each row's file
  int position = -1;

  /// Reads an item of a FROM; nullopt if it names no files. 22023 for arguments that read_csv does not take.
  static absl::StatusOr<std::optional<FileArguments>> Of(const Node& item);

  /// Names and types of the files' columns. Sets what the dialect leaves open.
  absl::StatusOr<std::vector<std::pair<std::string, Type>>> Sniff(TableSource& tables);
  /// Behind Sniff: the statement that copies the files into a table with those columns.
  absl::StatusOr<CopyStatement> Copy(std::shared_ptr<const proto::Table> table,
                                     const StatementTime& time) const;
  /// A description of their rows as those of a table, `read_csv('people.csv')`, and the statement's number of
  /// the files.
  struct Described {
    std::shared_ptr<const proto::Table> table;
    uint32_t files = 0;
  };
  absl::StatusOr<Described> Add(TableSource& tables, const StatementTime& time);
  /// Behind Sniff: the columns' names as the files write them.
  std::vector<std::string> WrittenNames() const;
  /// The table's name without an alias: `people` for `/tmp/people.csv.gz`.
  std::string Alias() const;

 private:
  static absl::StatusOr<FileArguments> OfCall(const Node& call);
  static FileArguments OfPath(std::string path, int position);
  absl::Status BindArgument(const Node& argument);
  absl::Status BindText(const std::string& name, const Node& argument);
  absl::Status BindNumber(const std::string& name, const Node& argument);
  absl::Status BindTypes(const std::string& columns, int at);
  /// Sets the given types, and how their fields are read.
  absl::Status GiveTypes(std::vector<std::pair<std::string, Type>>& columns);

  csv::SniffedFiles sniffed_;
};

}  // namespace nam::sql
