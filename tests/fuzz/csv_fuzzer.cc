// CSV and text files: rows are the same however the text is cut into portions.

#include <string>

#include "base/check.h"
#include "csv/row_end.h"
#include "csv/row_splitter.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

constexpr int kDialects = 7;

csv::Dialect DialectOf(uint8_t number) {
  csv::Dialect dialect = csv::Dialect::Csv();
  if (number % kDialects == 1) return csv::Dialect::Text();
  if (number % kDialects == 2) dialect.escape = '\\';
  if (number % kDialects == 3) {
    dialect.delimiter = '|';
    dialect.quote = dialect.escape = '\'';
  }
  // Those of files in queries.
  if (number % kDialects >= 4) dialect.quotes_begin_fields = true;
  if (number % kDialects == 5) dialect.escape = '\\';
  if (number % kDialects == 6) {
    dialect.delimiter = '\t';
    dialect.comment = '#';
  }
  return dialect;
}

/// All rows, one after the other, up to the first invalid one; false if there is such a one.
bool Split(std::string_view text, bool last, const csv::Dialect& dialect, std::string& rows) {
  csv::RowSplitter splitter(dialect);
  splitter.Begin(text, last);
  std::vector<csv::Field> fields;
  while (true) {
    const absl::StatusOr<bool> more = splitter.Next(fields);
    if (!more.ok()) return false;
    if (!*more) return true;
    for (const csv::Field& field : fields) {
      rows += field.null ? 'n' : 'f';
      rows += std::to_string(field.text.size());
      rows += field.text;
    }
    rows += ';';
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string rows[] = {
      "a,b\n\"c,\nd\",e\n",   "1\tx\\ty\n\\N\t\\\n2\n\\.\n",          "\"a\\\"b\",c\n",
      "'it''s'|\r\n2|3|\r\n", "5 ft 11\", \"c,\nd\" \n\"x\"y,\"\"\n", "\"a\\\"b\", c\"\n",
      " \"a\tb\"\t\"c\n"};
  std::vector<std::string> seeds;
  for (uint8_t dialect = 0; dialect < kDialects; ++dialect) {
    std::string seed;
    Append(seed, dialect);
    Append(seed, uint8_t{7});
    seeds.push_back(seed + rows[dialect] + rows[dialect]);
  }
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  fuzz::Input input(data, size);
  const csv::Dialect dialect = fuzz::DialectOf(input.Byte());
  const size_t step = 1 + input.Byte();
  const std::span<const std::byte> rest = input.Rest();
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  std::string whole, portions;
  const bool good = fuzz::Split(text, /*last=*/true, dialect, whole);
  bool all_good = true;
  for (size_t at = 0; at < text.size() && all_good;) {
    size_t end = 0;
    for (size_t bytes = step; end == 0; bytes += step) {
      end = csv::EndOfLastRow(text.substr(at, bytes), dialect);
      NAM_CHECK(end <= text.size() - at);
      if (at + bytes >= text.size() && end == 0) end = text.size() - at;
    }
    all_good = fuzz::Split(text.substr(at, end), at + end == text.size(), dialect, portions);
    at += end;
  }
  NAM_CHECK(good == all_good && whole == portions, "rows depend on how the text is cut");
  return 0;
}
