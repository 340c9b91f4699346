#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"
#include "csv/inflated_source.h"
#include "tests/base/seeds.h"
#include "tests/session/file_session.h"
#include "tests/session/reference_rows.h"
#include "types/text_bytes.h"

/// Malformed files: whatever bytes a file has, COPY loads what the reference finds in it, or refuses it with
/// the place, and leaves the table as it was. One mutation a seed; NAM_SEED=N runs one again, NAM_SEEDS=N so
/// many.
namespace nam::testing {
namespace {

using csv::Compression;
using csv::Dialect;

constexpr char kNull[] = "<null>";  // longer than a text of these columns that looks like it may be

struct WholeFile {
  const char* name;
  const char* options;
  Dialect dialect;
  bool one_column;  // a text; otherwise kFiveColumns
  std::string text;
};
constexpr char kFiveColumns[] = "id int not null, name text, born date, amount decimal(9,2), note varchar(8)";

Dialect Tbl() {
  Dialect tbl{.delimiter = '|', .quote = Dialect::kNoQuote, .escape = Dialect::kNoQuote};
  return tbl;
}

const std::vector<WholeFile>& Corpus() {
  static const std::string csv =
      "id,name,born,amount,note\n1,Ada,1815-12-10,12.50,x\n2,\"Grace, "
      "\"\"Amazing\"\"\nHopper\",1906-12-09,-0.05,\n"
      "3,,,,\"\"\n\n4,\"\",2024-02-29,7,\"a\nb\"\n5,Jürgen Müller 日本,1999-12-31,1234567.89,ä\n6, blank "
      ",,0,\"  \"\n";
  static const std::string tbl =
      "1|Customer#1|1992-01-02|711.56|BUILDING|\n2|it\"s|1993-05-06|-121.65||\n3||||AUTO|\n4|Zürich|1994-07-"
      "08|0.01|x|\n";
  static const std::string text =
      "1\tAda\t1815-12-10\t12.5\t\\N\n2\ttab\\tand\\\\\t\\N\t\\N\t\n3\tline\\\nend\t1999-01-01\t-"
      "3\t\\x41\\101\n"
      "4\t\t2000-02-29\t99999.99\tö\n\\.\n";
  static const std::vector<WholeFile> corpus = {
      {"header.csv", "header", {.header = true}, false, csv},
      {"bom.csv",
       "header",
       {.header = true},
       false,
       "\xef\xbb\xbf" + absl::StrReplaceAll(csv, {{"\n", "\r\n"}})},
      {"packed.csv.gz", "header", {.header = true}, false, csv},
      {"packed.csv.zst", "header", {.header = true}, false, csv},
      {"null.csv",
       "null 'NULL'",
       {.null_text = "NULL"},
       false,
       "1,NULL,1815-12-10,NULL,\"NULL\"\n\"2\",\"\",\"1906-12-09\",\"-0.05\",NULL\n3,null,NULL,1,\n"},
      {"other.csv",
       "delimiter ';', quote '''', escape E'\\\\', null '-'",
       {.delimiter = ';', .quote = '\'', .escape = '\\', .null_text = "-"},
       false,
       "1;'it\\'s; \\\\';1815-12-10;1.5;-\n2;\"x\";-;-;'-'\n3;'a\n\\'b';2001-01-01;2;c\\d\n"},
      {"bars.csv",
       "delimiter '|'",
       {.delimiter = '|'},
       false,
       "1|\"a|b\"|1815-12-10|1|x\n2|c||-2.5|\"\"\n3|d|1999-09-09|3|y|\n"},
      {"plain.tbl", "", Tbl(), false, tbl},
      {"crlf.tbl",
       "null '?'",
       {.delimiter = '|', .quote = Dialect::kNoQuote, .escape = Dialect::kNoQuote, .null_text = "?"},
       false,
       "1|a|1992-01-02|1|?\r\n2|?|?|?|\r\n3|b|1993-01-02|-7.25|c\r\n"},
      {"packed.tbl.gz", "", Tbl(), false, tbl},
      {"plain.txt", "", Dialect::Text(), false, text},
      {"bars.txt.zst",
       "delimiter '|', null 'nil', header",
       {.format = Dialect::Format::kText, .delimiter = '|', .null_text = "nil", .header = true},
       false,
       "id|name|born|amount|note\n1|a\\|b|1815-12-10|nil|nil\n2|\\\\|nil|1|\n"},
      {"one.csv", "", {}, true, "a\n\n\"\"\n\"\\.\"\nb\\.\n \"quoted\" \nlong text of one column\n"},
      {"one.tbl",
       "",
       {.delimiter = '|', .quote = Dialect::kNoQuote, .escape = Dialect::kNoQuote},
       true,
       "a\n\n\\.\n\"b\"|\nc\n"},
      {"one.txt", "", Dialect::Text(), true, "a\n\\N\n\n\\\\.\n\\x41\n\\.\n"},
  };
  return corpus;
}

/// Wrong bytes in a file.
class Mutator {
 public:
  Mutator(std::mt19937_64& random, const Dialect& dialect) : random_(random), dialect_(dialect) {}

  void Change(std::string& bytes) {
    switch (Below(16)) {
      case 0:
        if (!bytes.empty()) bytes[Below(bytes.size())] ^= static_cast<char>(1 << Below(8));
        return;
      case 1:
        if (!bytes.empty()) bytes[Below(bytes.size())] = Special()[0];
        return;
      case 2:
        return (void)bytes.insert(At(bytes), std::string(1, dialect_.delimiter));
      case 3:
        return bytes.resize(At(bytes));
      case 4:
        return (void)bytes.erase(At(bytes), 1 + Below(30));
      case 5:
        return (void)bytes.insert(At(bytes), Piece(bytes));
      case 6: {  // a piece goes elsewhere
        const size_t from = At(bytes);
        const std::string piece = bytes.substr(from, 1 + Below(40));
        bytes.erase(from, piece.size());
        return (void)bytes.insert(At(bytes), piece);
      }
      case 7:
        return Swap(bytes, dialect_.delimiter, ",;|\t"[Below(4)]);
      case 8:
        return Replace(bytes, "\n", Below(3) == 0 ? "\r" : "\r\n");
      case 9:
        return (void)bytes.insert(At(bytes), std::string(1 + Below(2'000), 'x'));
      case 10:
        return InsertLine(bytes);
      case 11:
        return Swap(bytes, '\n', dialect_.delimiter);
      case 12:
        return Reencode(bytes);
      case 13:  // of one row, many
        for (int n = 0; n < 3; ++n) bytes += Piece(bytes);
        return;
      default:
        bytes.insert(At(bytes), Special());
    }
  }
  /// Portions end within the file then: by a long field, or by blank lines where they are no rows.
  void Lengthen(std::string& bytes, bool by_lines) {
    constexpr size_t kMoreThanAPortion = 1'200'000;
    if (!by_lines || Below(3) == 0) return (void)bytes.insert(At(bytes), std::string(kMoreThanAPortion, 'x'));
    const size_t line = bytes.find('\n', At(bytes));
    bytes.insert(line == std::string::npos ? 0 : line + 1, std::string(kMoreThanAPortion, '\n'));
  }
  size_t Below(size_t n) { return random_() % n; }

 private:
  size_t At(const std::string& bytes) { return Below(bytes.size() + 1); }
  std::string Piece(const std::string& bytes) { return bytes.substr(At(bytes), 1 + Below(60)); }

  std::string Special() {
    const std::string all[] = {std::string(1, dialect_.delimiter),
                               std::string(1, dialect_.quote),
                               std::string(1, dialect_.escape),
                               dialect_.null_text.empty() ? "\"\"" : dialect_.null_text,
                               "\"",
                               "'",
                               "\\",
                               "\n",
                               "\r",
                               "\r\n",
                               "\\.",
                               "\\N",
                               "\\x",
                               "\\7",
                               "|",
                               ",",
                               "-",
                               ".",
                               " ",
                               "0",
                               "9",
                               std::string(1, '\0'),
                               "\xff",
                               "\xc3",
                               "\xed\xa0\x80",
                               "\xf0\x9f\x98\x80",
                               "\xef\xbb\xbf",
                               "NULL",
                               "e5",
                               "99999999999"};
    return all[Below(std::size(all))];
  }
  void InsertLine(std::string& bytes) {
    const char* const lines[] = {"\n", "\\.\n", "\"\"\n", "\"\n", "\r\n", " \n", "\\\n", "1\n", "||||\n"};
    const size_t line = bytes.find('\n', At(bytes));
    bytes.insert(line == std::string::npos ? bytes.size() : line + 1, lines[Below(std::size(lines))]);
  }
  void Swap(std::string& bytes, char a, char b) {
    const bool all = Below(2) == 0;
    for (char& c : bytes) {
      if (!all && Below(4) != 0) continue;
      c = c == a ? b : c == b ? a : c;
    }
  }
  static void Replace(std::string& bytes, const char* from, const char* to) {
    bytes = absl::StrReplaceAll(bytes, {{from, to}});
  }
  /// As Latin-1, or as UTF-16.
  void Reencode(std::string& bytes) {
    if (Below(2) == 0) return Replace(bytes, "\xc3\xbc", "\xfc");
    std::string wide = "\xff\xfe";
    for (const char c : bytes) wide += std::string{c, '\0'};
    bytes = wide;
  }

  std::mt19937_64& random_;
  const Dialect& dialect_;
};

class CopyMutationTest : public FileSession {
 protected:
  struct Expected {
    TextRows rows;
    std::string refused;  // how the error begins; empty: it is loaded
  };

  void SetUp() override {
    Command("set nam.compaction = off");
    for (const char* const storage : {"columnar", "record"}) {
      Command(absl::StrCat("create table ", storage, "_five (", kFiveColumns, ") with (storage = ", storage,
                           ")"));
      Command(absl::StrCat("create table ", storage, "_one (a text) with (storage = ", storage, ")"));
    }
  }

  /// The text of a field of kFiveColumns as a query shows it; nothing if it is none of its column's type.
  /// What is not written in the usual way is read as INSERT reads it.
  std::optional<std::string> Shown(size_t column, const std::string& text) {
    static const char* const kTypes[] = {"int", "text", "date", "decimal(9,2)", "varchar(8)"};
    if (!IsReferenceUtf8(text)) return std::nullopt;
    if (column == 1) return text;
    if (column == 4) {
      const size_t end = EndOfCharacters(text, 8);
      if (text.find_first_not_of(' ', end) != std::string::npos) return std::nullopt;
      return text.substr(0, end);
    }
    const auto [shown, fresh] = shown_.try_emplace({column, text});
    if (fresh) {
      const std::string literal = absl::StrReplaceAll(text, {{"'", "''"}});
      const auto result = Run(absl::StrCat("select '", literal, "'::", kTypes[column]));
      if (result.ok()) shown->second = ToText(*result)[0][0];
    }
    return shown->second;
  }

  Expected ExpectationOf(const WholeFile& file, const std::string& bytes, bool record) {
    const std::optional<std::string> text = UnpackReference(bytes, csv::CompressionOf(file.name));
    // Of a file of several portions a row before the damage may be met first.
    if (!text.has_value()) return {{}, absl::StrCat(file.name, ":")};
    const ReferenceFile read = ReadReference(*text, file.dialect, file.one_column ? 1 : 5);
    Expected expected;
    const auto at = [&](uint64_t line) { return absl::StrCat(file.name, ":", line, ": "); };
    for (const ReferenceRow& row : read.rows) {
      std::vector<std::string>& shown = expected.rows.emplace_back();
      for (size_t c = 0; c < row.fields.size(); ++c) {
        const bool null = !row.fields[c].has_value();
        const std::optional<std::string> field =
            null ? std::string(kNull) : Shown(file.one_column ? 1 : c, *row.fields[c]);
        const bool too_long =
            field.has_value() && field->size() > (record ? kRecordTextBytes : kTextBytesMax);
        if (!field.has_value() || too_long || (null && c == 0 && !file.one_column)) return {{}, at(row.line)};
        shown.push_back(*field);
      }
    }
    if (read.bad_line.has_value()) return {{}, at(*read.bad_line)};
    return expected;
  }

  TextRows RowsOf(const std::string& table) {
    const auto result = Run("select * from " + table);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    TextRows rows = ToText(*result);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t c = 0; c < rows[r].size(); ++c) {
        if (result->rows[r][c].null) rows[r][c] = kNull;
      }
    }
    return Sorted(std::move(rows));
  }

  /// Loads the file, and compares.
  void Check(const WholeFile& file, const std::string& bytes, bool record) {
    const std::string table =
        absl::StrCat(record ? "record" : "columnar", file.one_column ? "_one" : "_five");
    const Expected expected = ExpectationOf(file, bytes, record);
    const auto result = Run(absl::StrCat("copy ", table, " from '", Write(file.name, bytes), "'",
                                         *file.options == '\0' ? "" : absl::StrCat(" (", file.options, ")")));
    if (!result.ok()) return CheckRefused(expected, result.status(), table);
    ASSERT_EQ(expected.refused, "") << "is loaded: " << result->command;
    ASSERT_EQ(result->command, absl::StrCat("COPY ", expected.rows.size()));
    CheckLoaded(expected.rows, table);
  }

  void CheckRefused(const Expected& expected, const absl::Status& status, const std::string& table) {
    ++refused_;
    ASSERT_FALSE(expected.refused.empty()) << "is refused: " << status;
    const SqlError error = SqlErrorOf(status).value_or(SqlError{});
    ASSERT_TRUE(absl::StartsWith(error.message, expected.refused))
        << error.message.substr(0, 500) << "\ninstead of " << expected.refused;
    ASSERT_TRUE(absl::StartsWith(error.sqlstate, "22") || error.sqlstate == "23502" ||
                error.sqlstate == "54000")
        << error.sqlstate;
    // What others were to leave behind is found with these, and wherever one is loaded.
    if (refused_ % 4 != 0) return;
    ASSERT_EQ(RowsOf(table), present_[table]);
  }

  void CheckLoaded(const TextRows& rows, const std::string& table) {
    ++loaded_;
    TextRows& present = present_[table];
    present.insert(present.end(), rows.begin(), rows.end());
    present = Sorted(std::move(present));
    ASSERT_EQ(RowsOf(table), present);
    if (present.size() < kRowsKept) return;
    Command("truncate " + table);
    present.clear();
  }

  void Mutate(uint64_t seed) {
    std::mt19937_64 random(seed);
    const WholeFile& file = Corpus()[random() % Corpus().size()];
    const bool record = random() % 8 == 0;
    Mutator mutator(random, file.dialect);
    std::string bytes = file.text;
    const Compression compression = csv::CompressionOf(file.name);
    const bool of_packed = compression != Compression::kNone && mutator.Below(2) == 0;
    if (of_packed) bytes = Pack(bytes, compression);
    for (size_t n = mutator.Below(3) == 0 ? 3 : 1; n > 0; --n) mutator.Change(bytes);
    // A record's texts are short.
    if (!record && random() % 32 == 0) mutator.Lengthen(bytes, !file.one_column);
    if (compression != Compression::kNone && !of_packed) bytes = Pack(bytes, compression);
    SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed, ": ", file.name, " (", file.options, ") into ",
                              record ? "record" : "columnar", " table: \"",
                              absl::CEscape(bytes.substr(0, 2'000)), "\""));
    Check(file, bytes, record);
  }

  static constexpr size_t kRowsKept = 100;
  /// Of rows without their texts, as bounds on rows count them.
  static constexpr size_t kRecordTextBytes = 1000;  // of a text of a record table
  std::map<std::pair<size_t, std::string>, std::optional<std::string>> shown_;
  std::map<std::string, TextRows> present_;  // by table
  uint64_t loaded_ = 0, refused_ = 0;
};

/// `text` with up to two bytes inserted, replaced or left out.
std::string Mutated(std::string text, std::mt19937_64& random) {
  constexpr std::string_view kBytes = "0123456789-:. TtefE+";
  for (uint64_t changes = random() % 3; changes > 0; --changes) {
    const size_t at = random() % (text.size() + 1);
    const char byte = kBytes[random() % kBytes.size()];
    if (const uint64_t kind = random() % 3; kind == 0 || at == text.size()) {
      text.insert(at, 1, byte);
    } else if (kind == 1) {
      text[at] = byte;
    } else {
      text.erase(at, 1);
    }
  }
  return text;
}

/// Columnar tables read common forms by themselves, record tables read every form as a cast does.
TEST_F(FileSession, BothStoragesReadTheSameTexts) {
  const uint64_t seed = FromEnvironment("NAM_SEED", 1);
  SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed));
  std::mt19937_64 random(seed);
  constexpr size_t kRows = 400;
  const std::map<std::string, std::vector<std::string>> texts_of = {
      {"timestamp", {"2024-02-29 23:59:59", "1969-12-31T00:00:00.5", "0001-01-01 00:00:00.123456"}},
      {"date", {"2024-02-29", "1900-02-28", "9999-12-31"}},
      {"boolean", {"true", "false", "t", "f", "yes", "0"}},
      {"double precision", {"1.5", "-0", "-12e-3", "1e308", "0.1e-320", "123456789012345678", "nan", "-inf"}},
      {"decimal(9,2)", {"1234567.89", "-0.5", "12", "0.005"}},
      {"smallint", {"-32768", "32767", "7"}}};
  for (const auto& [type, texts] : texts_of) {
    std::string file;
    for (size_t id = 0; id < kRows; ++id)
      absl::StrAppend(&file, id, ",", Mutated(texts[random() % texts.size()], random), "\n");
    const std::string path = Write("texts.csv", file);
    for (const char* storage : {"columnar", "record"}) {
      Command(absl::StrCat("create table ", storage, "_texts (id int, x ", type,
                           ") with (storage = ", storage, ")"));
      Command(absl::StrCat("copy ", storage, "_texts from '", path, "' with (on_error ignore)"));
    }
    const TextRows columnar = Rows("select id, x from columnar_texts order by id");
    EXPECT_EQ(columnar, Rows("select id, x from record_texts order by id")) << type;
    EXPECT_GT(columnar.size(), kRows / 4) << type;
    EXPECT_LT(columnar.size(), kRows) << type << ": some are refused";
    Command("drop table columnar_texts");
    Command("drop table record_texts");
  }
}

TEST_F(CopyMutationTest, WholeFilesAreLoaded) {
  for (const WholeFile& file : Corpus()) {
    for (const bool record : {false, true}) {
      SCOPED_TRACE(file.name);
      Check(file, Pack(file.text, csv::CompressionOf(file.name)), record);
    }
  }
  EXPECT_EQ(loaded_, 2 * Corpus().size());
}

TEST_F(CopyMutationTest, MutatedFilesAreLoadedRightOrRefusedWithThePlace) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 500);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Mutate(seed);
    if (HasFatalFailure()) return;
  }
  std::cerr << count << " mutations: " << loaded_ << " loaded, " << refused_ << " refused\n";
  if (count < 100) return;
  EXPECT_GT(loaded_, count / 8) << "a test that loads nothing compares nothing";
  EXPECT_GT(refused_, count / 8);
}

}  // namespace
}  // namespace nam::testing
