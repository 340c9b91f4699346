#include "tests/sql/logical_results.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::logical::Column;
using plan::logical::testing::Row;
using plan::logical::testing::Rows;

Type TypeOfWord(const std::string& word) {
  if (word == "integer") return Type::Integer();
  if (word == "decimal2") return Type::Decimal(2);
  if (word == "date") return Type::Date();
  if (word == "boolean") return Type::Bool();
  EXPECT_EQ(word, "varchar10");
  return Type::String(10);
}

std::shared_ptr<proto::Table> TableOf(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  auto table = std::make_shared<proto::Table>();
  table->set_name(words.at(0));
  for (size_t i = 1; i < words.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(words[i], ':');
    proto::Column* column = table->add_columns();
    column->set_name(parts.at(0));
    std::string type = parts.at(1);
    column->set_nullable(type.back() == '?');
    if (type.back() == '?') type.pop_back();
    *column->mutable_type() = ToProto(TypeOfWord(type));
  }
  return table;
}

/// The value as psql shows it, for a column of this type.
Value ValueOfText(const std::string& text, const Type& type) {
  Value value{type, false, 0, {}};
  if (text == "\\N") return Value::Null(type);
  if (type.kind == TypeKind::kString) {
    value.text = text;
  } else if (type.kind == TypeKind::kBool) {
    value.number = text == "t";
  } else if (type.kind == TypeKind::kDate) {
    value.number = ParseDate(text).value_or(INT64_MIN);
  } else if (type.kind == TypeKind::kTimestamp) {
    value.number = ParseTimestamp(text).value_or(INT64_MIN);
  } else if (type.real()) {
    const auto number = ParseReal(text, type.kind == TypeKind::kReal);
    EXPECT_TRUE(number.ok()) << text;
    if (number.ok()) value = type.kind == TypeKind::kReal ? Value::Real(*number) : Value::Double(*number);
  } else if (type.kind == TypeKind::kNumeric) {
    const auto number = ParseNumericText(text);
    EXPECT_TRUE(number.ok()) << text;
    if (number.ok()) value = Value::OfNumeric(*number);
  } else if (type.numeric()) {
    const auto number = ParseNumeric(text);
    EXPECT_TRUE(number.ok()) << text;
    if (number.ok())
      value.number = Rescale(number->number, number->type.scale, type.scale).value_or(INT64_MIN);
  } else {
    ADD_FAILURE() << "no values of this type: " << TypeName(type);
  }
  return value;
}

std::string RowText(const Row& row) {
  return absl::StrJoin(row, "|", [](std::string* out, const Value& value) {
    absl::StrAppend(out, value.null ? "\\N" : value.ToString());
  });
}

}  // namespace

LogicalResults LogicalResults::Read(const std::string& path) {
  LogicalResults results;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  proto::Table* table = nullptr;
  for (std::string line; std::getline(file, line);) {
    const auto rest = [&](size_t word) { return line.size() > word ? line.substr(word + 1) : std::string(); };
    if (absl::StartsWith(line, "table ")) {
      auto next = TableOf(rest(5));
      table = next.get();
      results.contents[table->name()];
      results.tables[table->name()] = std::move(next);
    } else if (line[0] == '=' || line[0] == '~' || line[0] == '!') {
      results.queries.push_back({rest(1), line[0], "", {}});
    } else if (absl::StartsWith(line, "error ")) {
      results.queries.back().error = rest(5);
    } else if (absl::StartsWith(line, "row") && !results.queries.empty()) {
      results.queries.back().rows.push_back(rest(3));
    } else {
      const std::vector<std::string> fields = absl::StrSplit(rest(3), '|');
      Row row;
      for (int i = 0; i < table->columns_size(); ++i)
        row.push_back(ValueOfText(fields.at(static_cast<size_t>(i)), ColumnTypeOf(table->columns(i).type())));
      results.contents[table->name()].push_back(std::move(row));
    }
  }
  return results;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> ResultTables::Find(const std::string& name) {
  const auto found = results_.tables.find(name);
  if (found == results_.tables.end()) return absl::NotFoundError("no such table");
  return found->second;
}

std::vector<std::string> ResultTables::Names() {
  std::vector<std::string> names;
  for (const auto& [name, table] : results_.tables) names.push_back(name);
  return names;
}

std::string Difference(const LogicalResults::Query& query, const std::vector<Column>& columns, Rows rows) {
  Rows expected;
  for (const std::string& line : query.rows) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (!columns.empty() && fields.size() != columns.size())
      return absl::StrCat(columns.size(), " columns instead of ", fields.size());
    Row row;
    for (size_t i = 0; i < columns.size(); ++i) row.push_back(ValueOfText(fields[i], columns[i].type));
    expected.push_back(std::move(row));
  }
  if (query.mark != '=') {
    std::sort(rows.begin(), rows.end(), plan::logical::testing::Before);
    std::sort(expected.begin(), expected.end(), plan::logical::testing::Before);
  }
  std::vector<std::string> mine, theirs;
  for (const Row& row : rows) mine.push_back(RowText(row));
  for (const Row& row : expected) theirs.push_back(RowText(row));
  if (mine == theirs) return "";
  return absl::StrCat("rows\n", absl::StrJoin(mine, "\n"), "\ninstead of\n", absl::StrJoin(theirs, "\n"));
}

}  // namespace nam::sql
