#include "csv/portion_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

class PortionReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.File(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::vector<Portion> All(PortionReader& reader) {
    std::vector<Portion> portions;
    Portion portion;
    while (true) {
      const absl::StatusOr<bool> more = reader.Next(portion);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return portions;
      portions.push_back(portion);
    }
  }
  static std::string StateOf(const absl::Status& status) {
    return SqlErrorOf(status).has_value() ? SqlErrorOf(status)->sqlstate : "";
  }

  const TempFolder folder_;
};

TEST_F(PortionReaderTest, AFileThatChangesIsAnError) {
  const std::string rows = "1\n2\n3\n4\n5\n6\n7\n8\n";
  const std::vector<std::string> paths = {Write("a.csv", rows), Write("b.csv", rows)};
  const std::vector<FileVersion> versions = {VersionOf(paths[0]), VersionOf(paths[1])};
  const auto end = [&](const std::function<void()>& meanwhile) {
    PortionReader reader(paths, Dialect::Csv(), 4);
    reader.Expect(versions);
    Portion portion;
    EXPECT_TRUE(*reader.Next(portion));
    meanwhile();
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = reader.Next(portion);
    return more.status();
  };
  EXPECT_EQ(end([] {}), absl::OkStatus());
  const absl::Status longer = end([&] { Write("b.csv", rows + "9\n"); });
  EXPECT_EQ(StateOf(longer), "55000") << "before it is opened";
  EXPECT_EQ(SqlErrorOf(longer)->message, "b.csv has changed since the statement began to read it");
  Write("b.csv", rows);
  EXPECT_EQ(StateOf(end([] {})), "55000") << "of the same size, but written again";
  PortionReader any(paths, Dialect::Csv(), 4);
  EXPECT_EQ(All(any).size(), 8u) << "COPY has not looked at the files before";
}

TEST_F(PortionReaderTest, AFileThatIsCutWhileItIsReadIsAnError) {
  std::string rows;
  while (rows.size() < 64 << 10) rows += "1234567\n";
  const std::vector<std::string> paths = {Write("a.csv", rows)};
  for (const bool expected : {true, false}) {
    Write("a.csv", rows);
    PortionReader reader(paths, Dialect::Csv(), 1 << 10);
    if (expected) reader.Expect({VersionOf(paths[0])});
    Portion portion;
    EXPECT_TRUE(*reader.Next(portion));
    std::filesystem::resize_file(paths[0], 16 << 10);
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = reader.Next(portion);
    EXPECT_EQ(StateOf(more.status()), "55000") << "COPY, too, would take a part of a row for a row";
  }
}

TEST_F(PortionReaderTest, FilesComeOneAfterTheOther) {
  const std::vector<std::string> paths = {Write("a.csv", "x,y\n1,2\n3,\"4\n4\"\n5,6"), Write("b.csv", ""),
                                          Write("c.csv", "\xef\xbb\xbfx,y\n7,8\n")};
  Dialect dialect;
  dialect.header = true;
  PortionReader reader(paths, dialect, /*portion_bytes=*/4);
  std::string text;
  std::vector<uint64_t> lines;
  int headers = 0;
  std::string lasts;
  for (const Portion& portion : All(reader)) {
    EXPECT_EQ(portion.number, lines.size());
    text += portion.text + "|";
    lines.push_back(portion.first_line);
    headers += portion.header;
    lasts += portion.last ? 'l' : '-';
    EXPECT_EQ(portion.source, lines.size() <= 4 ? "a.csv" : "c.csv");
  }
  EXPECT_EQ(text, "x,y\n|1,2\n|3,\"4\n4\"\n|5,6|x,y\n|7,8\n|");
  EXPECT_EQ(lines, (std::vector<uint64_t>{1, 2, 3, 5, 1, 2}));
  EXPECT_EQ(headers, 2);
  EXPECT_EQ(lasts, "---l-l") << "of their files";
  EXPECT_EQ(reader.bytes(), reader.bytes_read());
}

TEST_F(PortionReaderTest, WithoutPathsTheInputIsRead) {
  const std::string path = Write("input.csv", "1,2\n3,4\n");
  int opened = 0;
  PortionReader reader({}, {}, [&] {
    ++opened;
    return OpenFile(path).value();
  });
  std::string text;
  for (const Portion& portion : All(reader)) text += portion.text;
  EXPECT_EQ(text, "1,2\n3,4\n");
  EXPECT_EQ(opened, 1);
}

TEST_F(PortionReaderTest, PatternsNameFiles) {
  const std::string second = Write("part-2.csv", "2\n"), first = Write("part-1.csv", "1\n");
  EXPECT_EQ(*FilesOf(folder_.File("part-*.csv")), (std::vector<std::string>{first, second}));
  EXPECT_EQ(*FilesOf(first), std::vector<std::string>{first});
  EXPECT_EQ(StateOf(FilesOf(folder_.File("x*")).status()), "58P01");
  const std::string odd = Write("odd[1].csv", "");
  EXPECT_EQ(*FilesOf(odd), std::vector<std::string>{odd});
}

TEST_F(PortionReaderTest, AMissingFileIsNamed) {
  PortionReader reader({folder_.File("none.csv")}, {});
  Portion portion;
  EXPECT_EQ(StateOf(reader.Next(portion).status()), "58P01");
  EXPECT_FALSE(*reader.Next(portion)) << "nothing comes behind an error";
  PortionReader folder({folder_.File("")}, {});
  EXPECT_EQ(StateOf(folder.Next(portion).status()), "42809");
}

TEST_F(PortionReaderTest, ARowWithoutEndIsRefused) {
  PortionReader reader({Write("a.csv", "\"" + std::string(PortionReader::kRowBytesMax + (4 << 20), '\n'))},
                       {});
  Portion portion;
  const absl::Status refused = reader.Next(portion).status();
  EXPECT_EQ(StateOf(refused), "54000") << refused;
}

}  // namespace
}  // namespace nam::csv
