#pragma once

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
  bool all_text = false;  // no types were given
  bool called = false;    // by read_csv
  int position = -1;

  /// Reads an item of a FROM; nullopt if it names no files. 22023 for arguments that read_csv does not take.
  static absl::StatusOr<std::optional<FileArguments>> Of(const Node& item);

  /// Names and types of the files' columns. Sets what the dialect leaves open.
  absl::StatusOr<std::vector<std::pair<std::string, Type>>> Sniff(TableSource& tables);
  /// The statement's table with their rows: `read_csv('people.csv')`.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Load(TableSource& tables, const StatementTime& time);
  /// The table's name without an alias: `people` for `/tmp/people.csv.gz`.
  std::string Alias() const;

 private:
  static absl::StatusOr<FileArguments> OfCall(const Node& call);
  static FileArguments OfPath(std::string path, int position);
  absl::Status BindArgument(const Node& argument);
};

}  // namespace nam::sql
