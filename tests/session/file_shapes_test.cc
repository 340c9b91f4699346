#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/session/file_session.h"

/// Files of real-life shapes beside what DuckDB reads of them: tests/csv/shapes/README.md.
namespace nam::testing {
namespace {

constexpr char kShapes[] = "tests/csv/shapes/";

/// By file: its lines between `== FILE` and the next one.
std::map<std::string, std::string> BlocksOf(const std::string& name) {
  std::ifstream file(kShapes + name);
  std::map<std::string, std::string> blocks;
  std::string* block = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      block = &blocks[line.substr(3)];
    } else if (block != nullptr && !line.empty()) {
      absl::StrAppend(block, line, "\n");
    }
  }
  return blocks;
}

std::string TypeWord(const Type& type) {
  switch (type.kind) {
    case TypeKind::kBool:
      return "boolean";
    case TypeKind::kInteger:
      return "bigint";
    case TypeKind::kDecimal:
      return "decimal";
    case TypeKind::kDouble:
      return "double";
    case TypeKind::kDate:
      return "date";
    case TypeKind::kTime:
      return "time";
    case TypeKind::kTimestamp:
      return "timestamp";
    case TypeKind::kTimestampTz:
      return "timestamptz";
    default:
      return "text";
  }
}

std::string ShownValue(const Value& value) {
  if (value.null) return "NULL";
  std::string text = value.ToString();
  // As DuckDB casts it to a text.
  if (value.type.kind == TypeKind::kBool) text = value.number != 0 ? "true" : "false";
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

class FileShapesTest : public FileSession {
 protected:
  /// Names and types, and the first rows.
  std::string Read(const std::string& file) {
    const auto result = Run(absl::StrCat("select * from '", kShapes, file, "' limit 3"));
    if (!result.ok()) return "error\n";
    std::string out;
    for (const auto& column : result->columns)
      absl::StrAppend(&out, out.empty() ? "" : ", ", column.name, " ", TypeWord(column.type));
    out = absl::StrReplaceAll(out, {{"\n", "\\n"}}) + "\n";
    for (const auto& row : result->rows) {
      const auto shown = [](std::string* to, const Value& value) { to->append(ShownValue(value)); };
      absl::StrAppend(&out, absl::StrJoin(row, " ", shown), "\n");
    }
    return out;
  }
};

TEST_F(FileShapesTest, FilesAreReadAsDuckDbReadsThemButForListedReasons) {
  const std::map<std::string, std::string> others = BlocksOf("duckdb.txt");
  std::map<std::string, std::string> differences = BlocksOf("differences.txt");
  ASSERT_GE(others.size(), 200u);
  for (const auto& [file, other] : others) {
    const std::string own = Read(file);
    const auto differs = differences.find(file);
    if (differs == differences.end()) {
      EXPECT_EQ(own, other) << file;
      continue;
    }
    const size_t reason_end = differs->second.find('\n') + 1;
    EXPECT_TRUE(absl::StartsWith(differs->second, "because: ")) << file;
    EXPECT_EQ(own, differs->second.substr(reason_end)) << file;
    EXPECT_NE(own, other) << file << " differs no more";
    differences.erase(differs);
  }
  for (const auto& [file, block] : differences) ADD_FAILURE() << file << " is no file of DuckDB's list";
}

}  // namespace
}  // namespace nam::testing
