#include "dataset/tbl_reader.h"

#include "dataset/load.h"
#include "gtest/gtest.h"
#include "ssb/generator.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/dataset/rows.h"

/// Over SSB's tables: there are some of two file names, and keys that are dates.
namespace nam::dataset {
namespace {

class TblReaderTest : public ::testing::Test {
 protected:
  absl::StatusOr<uint64_t> Read(size_t table, const std::string& text, Collected& collected,
                                const WorkOptions& options = {}) {
    directory_.Write(ssb::Tables()[table].schema.name + ".tbl", text);
    return LoadTbl(fabric_, directory_.path(), ssb::Tables()[table], collected.sink(), options);
  }
  /// The message of reading this lineorder.tbl.
  std::string Error(const std::string& text, const WorkOptions& options = {}) {
    Collected collected(ssb::Tables()[ssb::kLineorder]);
    const auto rows = Read(ssb::kLineorder, text, collected, options);
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << rows.status().ToString();
    return std::string(rows.status().message());
  }

  fabric::FakeFabric fabric_;
  TestDirectory directory_;
  ssb::Generator generator_{{.scale_factor = 0.001}};
};

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// A correct line, with one field (counted from 1) replaced.
std::string LineWith(size_t column, const std::string& value) {
  std::vector<std::string> fields = {"1",       "1",     "2",  "3",        "4",      "19960102",
                                     "5-LOW",   "0",     "17", "2116823",  "173665", "4",
                                     "2032150", "74711", "2",  "19960212", "TRUCK"};
  if (column > 0) fields[column - 1] = value;
  std::string line;
  for (const std::string& field : fields) line += field + "|";
  return line + "\n";
}

TEST_F(TblReaderTest, WhatTheWriterWroteInAnyChunksWithAnyThreads) {
  for (size_t table : ssb::kAllTables) {
    const std::string text = GeneratedText(generator_, table);
    const std::vector<std::string> expected = Sorted(Lines(text));
    for (uint32_t read_bytes : {1u, 7u, 100u, 1000u, 1u << 20}) {
      if (read_bytes < 100 && table != ssb::kSupplier && table != ssb::kCustomer) continue;
      for (int threads : {1, 4}) {
        Collected collected(ssb::Tables()[table]);
        const auto rows =
            Read(table, text, collected, {.threads = threads, .batch_rows = 50, .read_bytes = read_bytes});
        ASSERT_TRUE(rows.ok()) << rows.status().ToString();
        EXPECT_EQ(*rows, generator_.Rows(table));
        ASSERT_EQ(collected.sorted(), expected)
            << ssb::Tables()[table].schema.name << " in pieces of " << read_bytes;
      }
    }
  }
}

TEST_F(TblReaderTest, LineEndsOfEveryKind) {
  const std::string text = GeneratedText(generator_, ssb::kCustomer);
  const std::vector<std::string> expected = Sorted(Lines(text));
  const std::string open = Replace(text, "|\n", "\n");
  const std::string variants[] = {text,
                                  open,
                                  Replace(text, "\n", "\r\n"),
                                  Replace(open, "\n", "\r\n"),
                                  text.substr(0, text.size() - 1),
                                  open.substr(0, open.size() - 1),
                                  Replace(text, "\n", "\r\n").substr(0, text.size() + expected.size() - 1)};
  for (const std::string& variant : variants) {
    for (uint32_t read_bytes : {3u, 64u, 1u << 20}) {
      Collected collected(ssb::Tables()[ssb::kCustomer]);
      const auto rows = Read(ssb::kCustomer, variant, collected, {.threads = 2, .read_bytes = read_bytes});
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      ASSERT_EQ(collected.sorted(), expected);
    }
  }
}

TEST_F(TblReaderTest, DatesFileByItsOtherNameAndWithMoreOrFewerDays) {
  const std::string text = GeneratedText(generator_, ssb::kDate);
  const std::string shorter = text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  const std::string longer =
      text +
      "19981231|December 31, 1998|Thursday|December|1998|199812|Dec1998|5|31|365|12|53|Christmas|0|1|0|1|\n";
  for (const auto& [days, rows] :
       {std::pair(shorter, 2555u), std::pair(text, 2556u), std::pair(longer, 2557u)}) {
    directory_.Write("dates.tbl", days);
    Collected collected(ssb::Tables()[ssb::kDate]);
    EXPECT_EQ(LoadTbl(fabric_, directory_.path(), ssb::Tables()[ssb::kDate], collected.sink(), {}).value(),
              rows);
  }
}

TEST_F(TblReaderTest, DatesWithDashesBecomeKeys) {
  Collected collected(ssb::Tables()[ssb::kLineorder]);
  const std::string line = LineWith(6, "1996-01-02") + LineWith(16, "1996-02-29");
  ASSERT_TRUE(Read(ssb::kLineorder, line, collected).ok());
  EXPECT_EQ(collected.sorted(), Sorted(Lines(LineWith(0, "") + LineWith(16, "19960229"))));
  EXPECT_EQ(Error(LineWith(6, "1995-02-29")),
            "lineorder.tbl:1: column 6 (lo_orderdate): \"1995-02-29\" is not an integer");
}

TEST_F(TblReaderTest, SignsAndUnicodeText) {
  Collected collected(ssb::Tables()[ssb::kLineorder]);
  const std::string umlauts = LineWith(17, "ÄÖÜäöüßéèê");  // ten characters, twenty bytes
  const std::string text =
      umlauts + LineWith(13, "-5") + LineWith(1, "9223372036854775807") + LineWith(7, "");
  ASSERT_TRUE(Read(ssb::kLineorder, text, collected).ok());
  EXPECT_EQ(collected.sorted(), Sorted(Lines(text)));
}

TEST_F(TblReaderTest, MalformedFields) {
  const std::tuple<size_t, std::string, std::string> cases[] = {
      {9, "x", "column 9 (lo_quantity): \"x\" is not an integer"},
      {9, "1.5", "column 9 (lo_quantity): \"1.5\" is not an integer"},
      {9, " 1", "column 9 (lo_quantity): \" 1\" is not an integer"},
      {9, "-", "column 9 (lo_quantity): \"-\" is not an integer"},
      {1, "", "column 1 (lo_orderkey): empty instead of an integer"},
      {16, "", "column 16 (lo_commitdate): empty instead of an integer"},
      {1, "9223372036854775808",
       "column 1 (lo_orderkey): \"9223372036854775808\" is out of range for a 64-bit integer"},
      {1, "-9223372036854775809",
       "column 1 (lo_orderkey): \"-9223372036854775809\" is out of range for a 64-bit integer"},
      {8, "00", "column 8 (lo_shippriority): \"00\" has 2 characters, more than varchar(1) holds"},
      {17, "ÄÖÜäöüßéèêx",
       "column 17 (lo_shipmode): "
       "\"\\xc3\\x84\\xc3\\x96\\xc3\\x9c\\xc3\\xa4\\xc3\\xb6\\xc3\\xbc\\xc3\\x9f\\xc3\\xa9\\xc3"
       "\\xa8\\xc3\\xaax\" has 11 characters, more than varchar(10) holds"},
      {17, std::string("A\0R", 3),
       "column 17 (lo_shipmode): \"A\\x00R\" is not valid text: it has a zero byte"},
      {17, std::string("ABCDEFG\0", 8),
       "column 17 (lo_shipmode): \"ABCDEFG\\x00\" is not valid text: it has a zero byte"},
      {17, "A\xffR", "column 17 (lo_shipmode): \"A\\xffR\" is not valid UTF-8"},
      {17, "\xc3", "column 17 (lo_shipmode): \"\\xc3\" is not valid UTF-8"},
      {17, "\xed\xa0\x80", "column 17 (lo_shipmode): \"\\xed\\xa0\\x80\" is not valid UTF-8"},
      {17, "\xc0\xaf", "column 17 (lo_shipmode): \"\\xc0\\xaf\" is not valid UTF-8"},
  };
  for (const auto& [column, value, reason] : cases) {
    std::string text;
    for (int i = 0; i < 16; ++i) text += LineWith(0, "");
    text += LineWith(column, value) + LineWith(0, "");
    EXPECT_EQ(Error(text), "lineorder.tbl:17: " + reason);
  }
}

TEST_F(TblReaderTest, LongFieldsAreCutInMessages) {
  EXPECT_EQ(Error(LineWith(9, std::string(1000, 'y'))),
            "lineorder.tbl:1: column 9 (lo_quantity): \"" + std::string(40, 'y') + "\" … is not an integer");
}

TEST_F(TblReaderTest, WrongNumberOfFields) {
  const std::string good = LineWith(0, "");
  EXPECT_EQ(Error(good + "1|2|3|\n" + good),
            "lineorder.tbl:2: column 4 (lo_partkey): missing, the line has 3 fields instead of 17");
  EXPECT_EQ(Error(good + "1|2|3\n" + good),
            "lineorder.tbl:2: column 4 (lo_partkey): missing, the line has 3 fields instead of 17");
  const std::string open = good.substr(0, good.size() - 2);  // without |\n
  EXPECT_EQ(Error(open.substr(0, open.rfind('|')) + "|\n"),
            "lineorder.tbl:1: column 17 (lo_shipmode): missing, the line has 16 fields instead of 17");
  EXPECT_EQ(Error(open + "|18|\n"),
            "lineorder.tbl:1: column 18: unexpected, the line has 18 fields instead of 17");
  EXPECT_EQ(Error(open + "||\n"),
            "lineorder.tbl:1: column 18: unexpected, the line has 18 fields instead of 17");
  EXPECT_EQ(Error(open + "|18\n"),
            "lineorder.tbl:1: column 18: unexpected, the line has 18 fields instead of 17");
  EXPECT_EQ(Error(good + "\n" + good), "lineorder.tbl:2: column 1 (lo_orderkey): missing, the line is empty");
  EXPECT_EQ(Error(good + "\r\n"), "lineorder.tbl:2: column 1 (lo_orderkey): missing, the line is empty");
}

TEST_F(TblReaderTest, FilesThatWereCutOff) {
  const std::string good = LineWith(0, "");
  EXPECT_EQ(Error(good + good.substr(0, 6)),
            "lineorder.tbl:2: column 4 (lo_partkey): missing, the line has 3 fields instead of 17");
  EXPECT_EQ(Error(good + good.substr(0, 7)),
            "lineorder.tbl:2: column 5 (lo_suppkey): missing, the line has 4 fields instead of 17; the file "
            "ends here, "
            "was it cut off?");
  EXPECT_EQ(
      Error(good + good.substr(0, good.size() - 4)),
      "lineorder.tbl:2: column 17 (lo_shipmode): the file ends here without the \"|\" that other lines end "
      "with, was it cut off?");
}

TEST_F(TblReaderTest, LinesWithoutEnd) {
  EXPECT_EQ(Error(LineWith(0, "") + std::string(200'000, '1')),
            "lineorder.tbl:2: the line is longer than 65536 bytes");
  EXPECT_EQ(Error(LineWith(0, "") + std::string(200'000, '1'), {.threads = 3, .read_bytes = 10}),
            "lineorder.tbl:2: the line is longer than 65536 bytes");
}

// The error is always that of the first bad line, with its exact number, whichever thread finds one first.
TEST_F(TblReaderTest, TheFirstBadLineIsNamedInAnyChunksWithAnyThreads) {
  std::string text;
  for (int line = 1; line <= 2000; ++line) {
    text += line == 777                     ? LineWith(9, "x")
            : line % 100 == 0 && line > 777 ? LineWith(3, "bad")
                                            : LineWith(0, "");
  }
  for (uint32_t read_bytes : {50u, 1000u, 4096u, 1u << 20}) {
    for (int threads : {1, 2, 8}) {
      EXPECT_EQ(Error(text, {.threads = threads, .batch_rows = 10, .read_bytes = read_bytes}),
                "lineorder.tbl:777: column 9 (lo_quantity): \"x\" is not an integer");
    }
  }
}

TEST_F(TblReaderTest, MissingFiles) {
  const auto date = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kDate]);
  EXPECT_EQ(date.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(date.status().message().find("no date.tbl or dates.tbl in " + directory_.path()),
            absl::string_view::npos)
      << date.status().ToString();
  const auto nowhere = TblFile::Open(directory_.path() + "/nowhere", ssb::Tables()[ssb::kPart]);
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(nowhere.status().message().find("/nowhere: No such file or directory"), absl::string_view::npos);
  directory_.Write("part.tbl.1", "x");
  const auto pieces = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kPart]);
  EXPECT_EQ(pieces.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(pieces.status().message().find("cat part.tbl.* > part.tbl"), absl::string_view::npos);
}

TEST_F(TblReaderTest, EmptyFilesAndOtherThings) {
  directory_.Write("part.tbl", "");
  const auto empty = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kPart]);
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(empty.status().message(), directory_.path() + "/part.tbl is empty");
  std::filesystem::create_directory(directory_.path() + "/customer.tbl");
  EXPECT_EQ(TblFile::Open(directory_.path(), ssb::Tables()[ssb::kCustomer]).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TblReaderTest, EstimatesItsRows) {
  directory_.Write("lineorder.tbl", GeneratedText(ssb::Generator({.scale_factor = 0.01}), ssb::kLineorder));
  const auto large = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kLineorder]);
  ASSERT_TRUE(large.ok());
  EXPECT_NEAR(static_cast<double>(large->estimated_rows()), 60'175, 3'000);
  EXPECT_EQ(large->name(), "lineorder.tbl");
  directory_.Write("supplier.tbl", GeneratedText(generator_, ssb::kSupplier));
  EXPECT_EQ(TblFile::Open(directory_.path(), ssb::Tables()[ssb::kSupplier])->estimated_rows(), 2u);
}

TEST_F(TblReaderTest, AFileThatShrinksIsAnError) {
  directory_.Write("lineorder.tbl", GeneratedText(ssb::Generator({.scale_factor = 0.01}), ssb::kLineorder));
  const auto file = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kLineorder]);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(file->path(), 1000);
  Collected collected(ssb::Tables()[ssb::kLineorder]);
  const auto rows = ReadTbl(fabric_, *file, collected.sink(), {});
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TblReaderTest, ErrorsOfTheSinkAndCancellation) {
  directory_.Write("lineorder.tbl", GeneratedText(generator_, ssb::kLineorder));
  const auto file = TblFile::Open(directory_.path(), ssb::Tables()[ssb::kLineorder]);
  const auto full = ReadTbl(fabric_, *file, [](const auto&) { return absl::ResourceExhaustedError("full"); },
                            {.read_bytes = 999});
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  std::atomic<bool> cancelled = false;
  const Sink cancelling = [&](const auto&) {
    cancelled = true;
    return absl::OkStatus();
  };
  const auto stopped = ReadTbl(fabric_, *file, cancelling, {.read_bytes = 999, .cancelled = &cancelled});
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace nam::dataset
