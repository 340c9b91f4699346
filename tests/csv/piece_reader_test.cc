#include "csv/piece_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/catalog/temp_folder.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

class PieceReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.File(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::vector<Piece> All(PieceReader& reader) {
    std::vector<Piece> pieces;
    Piece piece;
    while (true) {
      const absl::StatusOr<bool> more = reader.Next(piece);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return pieces;
      pieces.push_back(piece);
    }
  }
  static std::string StateOf(const absl::Status& status) {
    return SqlErrorOf(status).has_value() ? SqlErrorOf(status)->sqlstate : "";
  }

  const TempFolder folder_;
};

TEST_F(PieceReaderTest, FilesComeOneAfterTheOther) {
  const std::vector<std::string> paths = {Write("a.csv", "x,y\n1,2\n3,\"4\n4\"\n5,6"), Write("b.csv", ""),
                                          Write("c.csv", "\xef\xbb\xbfx,y\n7,8\n")};
  Dialect dialect;
  dialect.header = true;
  PieceReader reader(paths, dialect, /*piece_bytes=*/4);
  std::string text;
  std::vector<uint64_t> lines;
  int headers = 0;
  for (const Piece& piece : All(reader)) {
    EXPECT_EQ(piece.number, lines.size());
    text += piece.text + "|";
    lines.push_back(piece.first_line);
    headers += piece.header;
    EXPECT_EQ(piece.source, lines.size() <= 4 ? "a.csv" : "c.csv");
  }
  EXPECT_EQ(text, "x,y\n|1,2\n|3,\"4\n4\"\n|5,6|x,y\n|7,8\n|");
  EXPECT_EQ(lines, (std::vector<uint64_t>{1, 2, 3, 5, 1, 2}));
  EXPECT_EQ(headers, 2);
  EXPECT_EQ(reader.bytes(), reader.bytes_read());
}

TEST_F(PieceReaderTest, PatternsNameFiles) {
  const std::string second = Write("part-2.csv", "2\n"), first = Write("part-1.csv", "1\n");
  EXPECT_EQ(*FilesOf(folder_.File("part-*.csv")), (std::vector<std::string>{first, second}));
  EXPECT_EQ(*FilesOf(first), std::vector<std::string>{first});
  EXPECT_EQ(StateOf(FilesOf(folder_.File("x*")).status()), "58P01");
  const std::string odd = Write("odd[1].csv", "");
  EXPECT_EQ(*FilesOf(odd), std::vector<std::string>{odd});
}

TEST_F(PieceReaderTest, AMissingFileIsNamed) {
  PieceReader reader({folder_.File("none.csv")}, {});
  Piece piece;
  EXPECT_EQ(StateOf(reader.Next(piece).status()), "58P01");
  EXPECT_FALSE(*reader.Next(piece)) << "nothing comes behind an error";
  PieceReader folder({folder_.File("")}, {});
  EXPECT_EQ(StateOf(folder.Next(piece).status()), "42809");
}

TEST_F(PieceReaderTest, ARowWithoutEndIsRefused) {
  PieceReader reader({Write("a.csv", "\"" + std::string(PieceReader::kRowBytesMax + (4 << 20), '\n'))}, {});
  Piece piece;
  const absl::Status refused = reader.Next(piece).status();
  EXPECT_EQ(StateOf(refused), "54000") << refused;
}

}  // namespace
}  // namespace nam::csv
