// Reading any line ends in a row that is written back unchanged, or in an error that names the line and a
// column.
#include <rapidcheck.h>

#include <regex>

#include "dataset/load.h"
#include "dataset/tbl_line.h"
#include "gtest/gtest.h"
#include "ssb/generator.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/dataset/rows.h"

/// Over SSB's tables: there are some of two file names, and keys that are dates.
namespace nam::dataset {
namespace {

std::string Mutated(std::string line) {
  const int mutations = *rc::gen::inRange(0, 6);
  for (int i = 0; i < mutations; ++i) {
    const auto at = static_cast<size_t>(*rc::gen::inRange<int>(0, static_cast<int>(line.size()) + 1));
    const char byte =
        *rc::gen::element('|', '0', '9', '-', ' ', 'x', '\r', '\0', '\xc3', '\xa4', '\xff', '"');
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        line.insert(at, 1, byte);
        break;
      case 1:
        if (at < line.size()) line[at] = byte;
        break;
      case 2:
        line.erase(at, *rc::gen::inRange(1, 12));
        break;
      default:
        line.insert(at, line.substr(at / 2, *rc::gen::inRange(0, 30)));
    }
  }
  return line;
}

TEST(TblLinePropertyTest, ParsesOrNamesTheColumn) {
  const ssb::Generator generator({.scale_factor = 0.0005});
  ASSERT_TRUE(rc::check("a mutated line parses or is explained", [&] {
    const size_t table =
        *rc::gen::elementOf(std::vector<size_t>(ssb::kAllTables.begin(), ssb::kAllTables.end()));
    static const std::vector<std::string> lines[] = {Lines(GeneratedText(generator, ssb::kAllTables[0])),
                                                     Lines(GeneratedText(generator, ssb::kAllTables[1])),
                                                     Lines(GeneratedText(generator, ssb::kAllTables[2])),
                                                     Lines(GeneratedText(generator, ssb::kAllTables[3])),
                                                     Lines(GeneratedText(generator, ssb::kAllTables[4]))};
    const std::string original = *rc::gen::elementOf(lines[static_cast<size_t>(table)]);
    const std::string line = Mutated(original);
    const TblLineParser parser(ssb::Tables()[table]);
    partitioner::ColumnBatch batch(parser.column_count());
    const auto reason = parser.Parse(line, batch);
    if (line == original) RC_ASSERT(!reason);
    if (reason) {
      RC_ASSERT(std::regex_search(*reason, std::regex("^column [0-9]+( \\([a-z]+_[a-z0-9]+\\))?: ")));
      return;
    }
    RC_ASSERT(batch.rows() == 1u);
    // Written back it may differ in leading zeros and the closing separator only; and reads as itself.
    std::string written;
    AppendTbl(ssb::Tables()[table], batch, written);
    written.pop_back();
    partitioner::ColumnBatch again(parser.column_count());
    RC_ASSERT(!parser.Parse(written, again));
    for (size_t i = 0; i < parser.column_count(); ++i) {
      RC_ASSERT(again.column(i).numbers == batch.column(i).numbers);
      RC_ASSERT(again.column(i).strings == batch.column(i).strings);
    }
  }));
}

TEST(TblLinePropertyTest, AFileOfMutatedLinesLoadsOrNamesALine) {
  fabric::FakeFabric fabric;
  const ssb::Generator generator({.scale_factor = 0.0005});
  const std::vector<std::string> lines = Lines(GeneratedText(generator, ssb::kLineorder));
  const TestDirectory directory;
  ASSERT_TRUE(rc::check("a file loads or the first bad line is named", [&] {
    const int count = *rc::gen::inRange(1, 20);
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string line = *rc::gen::elementOf(lines);
      text += (*rc::gen::inRange(0, 8) == 0 ? Mutated(line) : line) + "\n";
    }
    // The result of reading line by line.
    const TblLineParser parser(ssb::Tables()[ssb::kLineorder]);
    std::string expected;
    size_t number = 0;
    for (std::string line : Lines(text)) {
      ++number;
      if (line.ends_with('\r')) line.pop_back();
      partitioner::ColumnBatch batch(parser.column_count());
      if (const auto reason = parser.Parse(line, batch)) {
        expected = "lineorder.tbl:" + std::to_string(number) + ": " + *reason;
        break;
      }
    }
    directory.Write("lineorder.tbl", text);
    Collected collected(ssb::Tables()[ssb::kLineorder]);
    const auto rows = LoadTbl(fabric, directory.path(), ssb::Tables()[ssb::kLineorder], collected.sink(),
                              {.threads = 2, .read_bytes = static_cast<uint32_t>(*rc::gen::inRange(1, 300))});
    RC_ASSERT(rows.ok() == expected.empty());
    if (!rows.ok()) RC_ASSERT(std::string(rows.status().message()) == expected);
    if (rows.ok()) RC_ASSERT(*rows == static_cast<uint64_t>(count));
  }));
}

}  // namespace
}  // namespace nam::dataset
