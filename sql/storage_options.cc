#include "sql/storage_options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "partitioner/assigned_value.h"
#include "partitioner/table_schema.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

constexpr int64_t kMostVersions = 16;
constexpr uint64_t kMostPartitions = 1 << 16;
constexpr int64_t kLeastBlockBytes = 2 << 10, kMostBlockBytes = 1 << 20;
constexpr char kUseRecords[] = "WITH (storage = record) makes a table that has it";

std::string OptionWord(const Node& option) {
  const Node value = option.Field("arg");
  const std::vector<std::string> words = value.Names("names");
  return words.empty() ? value.Text("sval") : words.back();
}

absl::StatusOr<int64_t> NumberOf(const Node& option, const std::string& name, int64_t least, int64_t most,
                                 const char* hint) {
  const Node value = option.Field("arg");
  const int64_t number = value.Is("Integer") ? value.Integer("ival") : least - 1;
  if (number >= least && number <= most) return number;
  return UserError(sqlstate::kBadParameter,
                   absl::StrCat(name, " must be a whole number from ", least, " to ", most),
                   option.position(), hint);
}

absl::Status NoColumnOfOption(const std::string& name, const char* option, int position) {
  return UserError(sqlstate::kUndefinedColumn,
                   absl::StrCat("column ", Quote(name), " named in ", option, " does not exist"), position);
}

const proto::Column* ColumnNamed(const proto::Table& table, const std::string& name) {
  const auto& columns = table.columns();
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const proto::Column& column) { return column.name() == name; });
  return found == columns.end() ? nullptr : &*found;
}

absl::Status AddPartitions(const StorageOptions& options, proto::Table& table) {
  if (options.partition_by.empty()) return absl::OkStatus();
  uint64_t partitions = 1;
  const std::vector<std::string> pieces = absl::StrSplit(options.partition_by, ',');
  for (const std::string& piece : pieces) {
    const std::vector<std::string> words = absl::StrSplit(absl::StripAsciiWhitespace(piece), ':');
    uint32_t parts = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &parts) || parts == 0) {
      return UserError(sqlstate::kBadParameter, absl::StrCat("partition_by has no part ", Quote(piece)),
                       options.partition_position, "write 'column:parts, …', as 'orderkey:8'");
    }
    const proto::Column* const column = ColumnNamed(table, words[0]);
    if (column == nullptr) return NoColumnOfOption(words[0], "partition_by", options.partition_position);
    if (partitioner::FormOf(TypeOf(column->type()).value_or(Type::Null())) == partitioner::Form::kWide) {
      return Refusal(
          absl::StrCat("partition_by a ", partitioner::ColumnTypeName(column->type()), " is not supported"),
          options.partition_position, "numbers of up to 18 digits, dates, times and texts can be");
    }
    partitions *= parts;
    if (partitions > kMostPartitions) {
      return UserError(sqlstate::kBadParameter,
                       absl::StrCat("partition_by makes more than ", kMostPartitions, " partitions"),
                       options.partition_position, "their number is the product of all parts");
    }
    proto::PartitionKey& key = *table.add_partitioning();
    key.set_column(words[0]);
    key.set_parts(parts);
    key.set_function(ColumnTypeOf(column->type()).kind == TypeKind::kInteger ? proto::MODULO : proto::XXH3);
  }
  return absl::OkStatus();
}

absl::Status CheckColumn(const proto::Column& column, int position) {
  const auto refuse = [&](const std::string& what) {
    return Refusal(absl::StrCat(what, " of a columnar table is not supported: column ", Quote(column.name())),
                   position, kUseRecords);
  };
  if (column.numbering() != proto::NOT_NUMBERED) return refuse("numbering");
  if (!column.default_expression().empty()) return refuse("DEFAULT");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StorageOptions> StorageOptions::From(const std::vector<Node>& options, Storage otherwise) {
  StorageOptions out;
  std::string storage, record_option, columnar_option;
  int storage_position = -1;
  for (const Node& option : options) {
    NAM_RETURN_IF_ERROR(option.Only({"defname", "arg", "defaction"}));
    const std::string name = option.Text("defname");
    if (name == "storage") {
      storage = OptionWord(option);
      storage_position = option.position();
    } else if (name == "versions") {
      record_option = name;
      NAM_ASSIGN_OR_RETURN(const int64_t versions,
                           NumberOf(option, name, 1, kMostVersions,
                                    "it is how many versions a record keeps for older snapshots"));
      out.versions = static_cast<uint32_t>(versions);
    } else if (name == "partition_by" || name == "sort_by") {
      columnar_option = name;
      (name == "sort_by" ? out.sort_by : out.partition_by) = OptionWord(option);
      (name == "sort_by" ? out.sort_position : out.partition_position) = option.position();
    } else if (name == "block_bytes") {
      columnar_option = name;
      NAM_ASSIGN_OR_RETURN(const int64_t bytes, NumberOf(option, name, kLeastBlockBytes, kMostBlockBytes,
                                                         "a block is what is READ at once"));
      out.block_bytes = static_cast<uint32_t>(bytes);
    } else {
      return Refusal(absl::StrCat("table option ", Quote(name), " is not supported"), option.position(),
                     "options are storage, versions, partition_by, sort_by and block_bytes");
    }
  }
  if (!storage.empty() && storage != "record" && storage != "columnar") {
    return UserError(sqlstate::kBadParameter, absl::StrCat("storage ", Quote(storage), " does not exist"),
                     storage_position, "write storage = record or storage = columnar");
  }
  const bool columnar = storage == "columnar" ||
                        (storage.empty() && (!columnar_option.empty() ||
                                             (otherwise == Storage::kColumnar && record_option.empty())));
  const std::string& foreign = columnar ? record_option : columnar_option;
  if (!foreign.empty()) {
    return UserError(sqlstate::kBadParameter,
                     absl::StrCat("option ", Quote(foreign), " is not one of ",
                                  columnar ? "columnar" : "record", " tables"),
                     storage_position, "leave it out, or choose the other storage");
  }
  out.storage = columnar ? Storage::kColumnar : Storage::kRecord;
  return out;
}

absl::Status LayOutColumnar(const StorageOptions& options, int position, proto::Table& table) {
  if (table.columns_size() == 0) {
    return UserError(sqlstate::kInvalidTableDefinition, "a columnar table has at least one column", position,
                     kUseRecords);
  }
  for (const proto::Column& column : table.columns()) NAM_RETURN_IF_ERROR(CheckColumn(column, position));
  NAM_RETURN_IF_ERROR(AddPartitions(options, table));
  if (!options.sort_by.empty() && ColumnNamed(table, options.sort_by) == nullptr)
    return NoColumnOfOption(options.sort_by, "sort_by", options.sort_position);
  table.set_sort_column(options.sort_by);
  table.set_block_bytes(options.block_bytes > 0 ? options.block_bytes
                                                : DefaultBlockBytes(table.columns_size()));
  return absl::OkStatus();
}

}  // namespace nam::sql
