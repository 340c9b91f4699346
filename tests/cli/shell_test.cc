#include "cli/shell.h"

#include <signal.h>

#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "cli/completion.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "terminal/exit_codes.h"
#include "tests/cli/fake_cluster.h"
#include "types/wire.h"

namespace nam::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ShellTest : public testing::Test {
 protected:
  int Run(const std::string& script, ShellOptions options = {}, const std::string& name = "") {
    Shell shell(session_, catalog_, interrupts_, out_, err_, options);
    return shell.RunScript(script, name);
  }

  static std::string TempFile(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path) << text;
    return path;
  }

  void AddTable() {
    proto::Table& table = catalog_.tables.emplace_back();
    table.set_name("supplier");
    table.set_rows(2000);
    table.set_sort_column("s_city");
    auto* key = table.add_partitioning();
    key->set_column("s_suppkey");
    key->set_parts(8);
    proto::Column& column = *table.add_columns();
    column.set_name("s_suppkey");
    *column.mutable_type() = ToProto(Type::Integer());
    proto::Column& city = *table.add_columns();
    city.set_name("s_city");
    *city.mutable_type() = ToProto(Type::String(10));
    proto::ServerUsage& usage = *table.add_usage();
    usage.set_server(1);
    usage.set_blocks(8);
    usage.set_bytes(64 * 1024);
    // The storage of memory server 7.
    proto::Member& server = *catalog_.cluster.add_members();
    server.set_id(7);
    server.set_storage(1);
    server.set_role(proto::ROLE_MEMORY);
    server.set_alive(true);
  }
  void AddNamed(const std::string& name, const std::string& column) {
    proto::Table& table = catalog_.tables.emplace_back();
    table.set_name(name);
    proto::Column& only = *table.add_columns();
    only.set_name(column);
    *only.mutable_type() = ToProto(Type::Integer());
  }

  FakeSession session_;
  FakeCatalog catalog_;
  Interrupts interrupts_;
  std::ostringstream out_, err_;

  ShellTest() { session_.catalog = &catalog_; }
};

TEST(ProgressText, SaysHowFarAQueryIsAndWhatIsLeft) {
  EXPECT_EQ(
      ProgressText({.table = "lineorder", .rows_done = 1'500'000, .rows = 6'001'215, .elapsed_ms = 2'000}),
      "lineorder: 1,500,000 of 6,001,215 rows (24 %), 0:06 left");
  EXPECT_EQ(ProgressText({.table = "", .rows_done = 1'500'000, .elapsed_ms = 2'000}),
            "finishing: 1,500,000 rows so far, 0:02");
  EXPECT_EQ(ProgressText({.table = "t", .rows = 10, .elapsed_ms = 500}), "t: 0 of 10 rows (0 %)");
  EXPECT_EQ(ProgressText({.table = "t", .elapsed_ms = 500}), "t: 0 of 0 rows (0 %)");
  EXPECT_EQ(ProgressText({.table = "t", .rows_done = 10, .rows = 10, .elapsed_ms = 500}),
            "t: 10 of 10 rows (99 %), 0:00 left");
}

TEST_F(ShellTest, RunsEveryStatementOfAScript) {
  EXPECT_EQ(Run("select 1; select\n  2;\n\n-- a remark;\nselect ';' -- and ;\n, 3\n"), kExitOk);
  EXPECT_THAT(session_.executed, ElementsAre("select 1", "select\n  2", HasSubstr("';'")));
  EXPECT_THAT(session_.executed[2], HasSubstr(", 3"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ShellTest, RowsStandBehindCopyInAScript) {
  const std::string script =
      "select 1;\nCopy t (a)\n  FROM stdin; select 2;\n1\tone;\n\\N\tcopy u from stdin;\n\\.\nbad;\ncopy u "
      "from stdin "
      "csv;\n\\.\r\ncopy v from stdin;\nlast";
  std::istringstream input(script);
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  Shell of_input(session_, catalog_, interrupts_, out_, err_, {.keep_going = true});
  EXPECT_EQ(of_input.RunStream(std::cin, ""), kExitFailed);
  std::cin.rdbuf(before);
  const auto executed = ElementsAre("select 1", HasSubstr("FROM stdin"), "select 2", "bad",
                                    "copy u from stdin csv", "copy v from stdin");
  const auto copied = ElementsAre("1\tone;\n\\N\tcopy u from stdin;\n", "", "last");
  EXPECT_THAT(session_.executed, executed);
  EXPECT_THAT(session_.copied, copied);
  session_.executed.clear();
  session_.copied.clear();
  Shell of_file(session_, catalog_, interrupts_, out_, err_, {.keep_going = true});
  EXPECT_EQ(of_file.RunFile(TempFile("rows.sql", script)), kExitFailed);
  EXPECT_THAT(session_.executed, executed);
  EXPECT_THAT(session_.copied, copied);
  EXPECT_THAT(err_.str(), HasSubstr("rows.sql:7: ERROR")) << "lines of rows count";
}

TEST_F(ShellTest, RowsOfAFailedCopyAreNoStatements) {
  const std::string path =
      TempFile("bad_rows.sql",
               "copy bad from stdin;\ndrop table t;\n\\.\n\\copy bad from stdin csv\ndrop "
               "table u;\n\\.\nselect 1;\n");
  Shell shell(session_, catalog_, interrupts_, out_, err_, {.keep_going = true});
  EXPECT_EQ(shell.RunFile(path), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("copy bad from stdin", "COPY bad from STDIN csv", "select 1"));
}

TEST_F(ShellTest, AnInterruptedCopyDoesNotEndEarly) {
  session_.on_execute = [&] {
    if (session_.copied.back().empty()) return;
    raise(SIGINT);
  };
  std::istringstream input("copy t from stdin;\n123456789\n123456789\n\\.\nselect 1;\n");
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunStream(input, ""), kExitInterrupted);
  EXPECT_THAT(session_.executed, ElementsAre("copy t from stdin")) << "no COPY of half of the rows";
}

TEST_F(ShellTest, ResultsOfSeveralStatementsAreOneJsonDocument) {
  ShellOptions options{.print = {.format = OutputFormat::kJson}, .json_list = true, .keep_going = true};
  Shell shell(session_, catalog_, interrupts_, out_, err_, options);
  EXPECT_EQ(shell.RunScript("select 1; set a = 1; bad; select from t; select 2", ""), kExitFailed);
  EXPECT_EQ(shell.RunScript("\\dn\n", ""), kExitOk);
  shell.EndScripts();
  const nlohmann::json document = nlohmann::json::parse(out_.str());
  EXPECT_EQ(document, nlohmann::json::parse(R"([
    {"rows": [{"n": 1}], "command": "SELECT 1", "count": 1},
    {"command": "SET"},
    {"error": {"sqlstate": "42601", "message": "syntax error"}},
    {"command": "SELECT 1", "count": 1},
    {"rows": [{"n": 5}], "command": "SELECT 1", "count": 1},
    {"rows": [{"schema": "public"}]}])"))
      << out_.str();
}

TEST_F(ShellTest, AJsonDocumentEndsWithTheErrorOfItsRows) {
  ShellOptions options{.print = {.format = OutputFormat::kJson}, .json_list = true};
  session_.batches = 3;
  session_.on_batch = [](int batch) {
    if (batch == 1) raise(SIGINT);
  };
  Shell shell(session_, catalog_, interrupts_, out_, err_, options);
  EXPECT_EQ(shell.RunScript("select 1; select 2", ""), kExitInterrupted);
  shell.EndScripts();
  const nlohmann::json document = nlohmann::json::parse(out_.str());
  ASSERT_EQ(document.size(), 1u);
  EXPECT_EQ(document[0]["rows"], nlohmann::json::parse(R"([{"n": 1}])"));
  EXPECT_EQ(document[0]["error"]["sqlstate"], "57014");
}

TEST_F(ShellTest, ADocumentOfNothingIsAList) {
  Shell shell(session_, catalog_, interrupts_, out_, err_,
              {.print = {.format = OutputFormat::kJson}, .json_list = true});
  EXPECT_EQ(shell.RunScript("-- nothing\n", ""), kExitOk);
  shell.EndScripts();
  EXPECT_EQ(out_.str(), "[]\n");
}

TEST_F(ShellTest, AStatementWithoutRowsTellsItsCountInJson) {
  EXPECT_EQ(Run("set nam.window = 4; insert", {.print = {.format = OutputFormat::kJson}}), kExitOk);
  EXPECT_EQ(out_.str(), "{\"command\": \"SET\"}\n{\"command\": \"INSERT 0 2\", \"count\": 2}\n");
}

TEST_F(ShellTest, PrintsResultsAndTags) {
  EXPECT_EQ(Run("select 1; set nam.window = 4;"), kExitOk);
  EXPECT_EQ(out_.str(), " n\n---\n 1\n(1 row)\nSET\n");
}

TEST_F(ShellTest, RowsWithoutColumnsAreOnlyCounted) {
  EXPECT_EQ(Run("select from t"), kExitOk);
  EXPECT_EQ(out_.str(), "SELECT 1\n");
  for (const OutputFormat format : {OutputFormat::kCsv, OutputFormat::kJson, OutputFormat::kMarkdown}) {
    out_.str("");
    EXPECT_EQ(Run("select from t; select 1", {.print = {.format = format}}), kExitOk);
    EXPECT_THAT(out_.str(), Not(HasSubstr("{}")));
    EXPECT_THAT(out_.str(), HasSubstr("n"));
  }
}

TEST_F(ShellTest, OtherFormatsPrintNothingButRows) {
  EXPECT_EQ(Run("select 1; set nam.window = 4;", {.print = {.format = OutputFormat::kCsv}, .timing = true}),
            kExitOk);
  EXPECT_EQ(out_.str(), "n\n1\n");
  EXPECT_EQ(err_.str(), "Time: 12.345 ms\nTime: 0.500 ms\n");
}

/// Takes this many bytes; after that its reader is gone.
class ClosingBuffer final : public std::streambuf {
 public:
  explicit ClosingBuffer(size_t bytes) : left_(bytes) {}
  std::function<void()> on_close;

 protected:
  std::streamsize xsputn(const char*, std::streamsize bytes) override {
    if (static_cast<size_t>(bytes) > left_) {
      if (on_close) on_close();
      return 0;
    }
    left_ -= static_cast<size_t>(bytes);
    return bytes;
  }
  int overflow(int) override { return traits_type::eof(); }

 private:
  size_t left_;
};

TEST_F(ShellTest, RowsArePrintedAsTheyCome) {
  session_.batches = 5;
  session_.on_batch = [this](int batch) {
    std::string expected = batch == 0 ? "" : "n\n";
    for (int i = 0; i < batch; ++i) expected += "1\n";
    EXPECT_EQ(out_.str(), expected);
  };
  EXPECT_EQ(Run("select 1", {.print = {.format = OutputFormat::kCsv}}), kExitOk);
  EXPECT_EQ(out_.str(), "n\n1\n1\n1\n1\n1\n");
}

TEST_F(ShellTest, AnErrorComesBehindTheRowsBeforeIt) {
  session_.batches = 3;
  session_.on_batch = [this](int batch) {
    if (batch == 2) raise(SIGINT);
  };
  EXPECT_EQ(Run("select 1; select 2", {.print = {.format = OutputFormat::kJson}}), kExitInterrupted);
  EXPECT_EQ(out_.str(), "[\n  {\"n\": 1},\n  {\"n\": 1}");
  EXPECT_THAT(err_.str(), HasSubstr("canceling statement due to user request"));
  EXPECT_THAT(session_.executed, ElementsAre("select 1"));
}

TEST_F(ShellTest, AClosedOutputEndsTheShellQuietly) {
  session_.batches = 100;
  int batches = 0;
  session_.on_batch = [&](int) { ++batches; };
  for (const OutputFormat format : {OutputFormat::kCsv, OutputFormat::kJson, OutputFormat::kMarkdown}) {
    batches = 0;
    ClosingBuffer buffer(50);
    std::ostream out(&buffer);
    Shell shell(session_, catalog_, interrupts_, out, err_, {.print = {.format = format}});
    session_.executed.clear();
    EXPECT_EQ(shell.RunScript("select 1; select 2;\nselect 3", ""), kExitOk);
    EXPECT_EQ(err_.str(), "");
    EXPECT_THAT(session_.executed, ElementsAre("select 1"));
    EXPECT_LT(batches, 50);
  }
}

/// The terminal takes no more output, and the user does not wait.
TEST_F(ShellTest, AnInterruptEndsWhatIsBeingWritten) {
  session_.batches = 100;
  ClosingBuffer buffer(50);
  buffer.on_close = [] { raise(SIGINT); };
  std::ostream out(&buffer);
  Shell shell(session_, catalog_, interrupts_, out, err_, {.print = {.format = OutputFormat::kCsv}});
  EXPECT_EQ(shell.RunScript("select 1; select 2", ""), kExitInterrupted);
  EXPECT_THAT(err_.str(), HasSubstr("canceling statement due to user request"));
  EXPECT_TRUE(out.good());
}

/// The statement has been executed when the interrupt comes; only its tag is not printed.
TEST_F(ShellTest, AnInterruptBehindAChangeSaysThatItIsDone) {
  ClosingBuffer buffer(0);
  buffer.on_close = [] { raise(SIGINT); };
  std::ostream out(&buffer);
  Shell shell(session_, catalog_, interrupts_, out, err_, {});
  EXPECT_EQ(shell.RunScript("set nam.window = 4", ""), kExitInterrupted);
  EXPECT_THAT(session_.executed, ElementsAre("set nam.window = 4"));
  EXPECT_THAT(err_.str(), HasSubstr("the statement itself is done"));
  EXPECT_TRUE(out.good());
}

/// An aligned table is printed at its end.
TEST_F(ShellTest, ATableBeyondTheBoundSaysWhatToDo) {
  session_.batches = 10'000;
  session_.bytes_held_max = 10'000;
  EXPECT_EQ(Run("select 1"), kExitFailed);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("add a LIMIT; --format=csv"));
  err_.str("");
  EXPECT_EQ(Run("full"), kExitFailed);
  EXPECT_THAT(err_.str(), Not(HasSubstr("--format")))
      << "no row is there: the table is not what lacks memory";
  session_.executed.clear();
  EXPECT_EQ(Run("select 1", {.print = {.format = OutputFormat::kCsv}}), kExitOk);
  EXPECT_EQ(Run("select 1", {.print = {.format = OutputFormat::kTable, .expanded = true}}), kExitOk);
}

TEST_F(ShellTest, StopsAtTheFirstError) {
  EXPECT_EQ(Run("select 1;\nbad 2; select 3;\nselect 4;"), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("select 1", "bad 2"));
  EXPECT_THAT(err_.str(), HasSubstr("syntax error"));
  EXPECT_THAT(err_.str(), HasSubstr("try good"));
}

TEST_F(ShellTest, KeepGoingRunsTheRestButStillFails) {
  EXPECT_EQ(Run("bad 1; select 2;\nselect 3", {.keep_going = true}), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("bad 1", "select 2", "select 3"));
}

TEST_F(ShellTest, ErrorsNameFileAndLine) {
  EXPECT_EQ(Run("select 1; -- bad 3\n\n/* bad 3 */ select 2;\n  bad 3;", {}, "q.sql"), kExitFailed);
  EXPECT_THAT(err_.str(), StartsWith("q.sql:4: "));
  EXPECT_THAT(err_.str(), HasSubstr("^"));
}

TEST_F(ShellTest, ErrorsWithoutPositionArePlain) {
  EXPECT_EQ(Run("lost;"), kExitFailed);
  EXPECT_EQ(err_.str(), "ERROR:  compute server 3 is gone\n");
}

TEST_F(ShellTest, WarningsGoToTheOtherStream) {
  EXPECT_EQ(Run("commit; select 1"), kExitOk);
  EXPECT_EQ(out_.str(), "COMMIT\n n\n---\n 2\n(1 row)\n");
  EXPECT_EQ(err_.str(), "WARNING:  there is nothing to end (SQLSTATE 25P01)\n");
}

TEST_F(ShellTest, LastStatementNeedsNoSemicolon) {
  EXPECT_EQ(Run("select 1"), kExitOk);
  EXPECT_EQ(Run("bad 1"), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("select 1", "bad 1"));
}

TEST_F(ShellTest, OpenStringIsHandedToTheParser) {
  Run("select 'abc;\nmore");
  ASSERT_EQ(session_.executed.size(), 1u);
  EXPECT_EQ(session_.executed[0], "select 'abc;\nmore\n");
}

TEST_F(ShellTest, NothingToDo) {
  EXPECT_EQ(Run(""), kExitOk);
  EXPECT_EQ(Run(" ;; -- nothing\n/* /* nested */ */ ;\n"), kExitOk);
  EXPECT_THAT(session_.executed, IsEmpty());
}

TEST_F(ShellTest, NulByteIsRefused) {
  EXPECT_EQ(Run(std::string("select 1;\nselect \0 2;", 21)), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("select 1"));
  EXPECT_THAT(err_.str(), HasSubstr("NUL"));
}

TEST_F(ShellTest, InterruptCancelsTheStatementAndEndsAScript) {
  session_.on_execute = [] { raise(SIGINT); };
  EXPECT_EQ(Run("select 1; select 2;\nselect 3;", {.keep_going = true}), kExitInterrupted);
  EXPECT_EQ(session_.executed.size(), 1u);
  EXPECT_THAT(err_.str(), HasSubstr("canceling statement due to user request"));
}

TEST_F(ShellTest, AnInterruptThatReachesNoStatementIsTold) {
  raise(SIGINT);
  EXPECT_EQ(Run("select 1; select 2"), kExitInterrupted);
  EXPECT_TRUE(session_.executed.empty());
  EXPECT_EQ(err_.str(), "nam: interrupted\n");
}

TEST_F(ShellTest, MetaCommandsOnlyStartStatements) {
  EXPECT_EQ(Run("\\x on\nselect\n\\x\n;"), kExitOk);
  EXPECT_THAT(session_.executed, ElementsAre("select\n\\x"));
  EXPECT_THAT(out_.str(), StartsWith("-[ RECORD 1 ]-"));
}

TEST_F(ShellTest, TimingTogglesAndPrints) {
  EXPECT_EQ(Run("\\timing\nselect 1;\n\\timing off\nselect 2;"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("Time: 12.345 ms\n"));
  EXPECT_EQ(out_.str().find("Time"), out_.str().rfind("Time"));
  EXPECT_EQ(Run("\\timing maybe"), kExitFailed);
}

TEST_F(ShellTest, DescribesTables) {
  AddTable();
  EXPECT_EQ(Run("\\d"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr(" supplier | 2000 |       2 |          8 |      1 |      8 | 64 KiB | 7: "
                                    "64 KiB        | ok\n(1 row)"));
  out_.str("");
  EXPECT_EQ(Run("\\d SUPPLIER;"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("varchar(10)"));
  EXPECT_THAT(out_.str(), HasSubstr("partition key (8)"));
  EXPECT_THAT(out_.str(), HasSubstr("sort key"));
  EXPECT_EQ(Run("\\d nothing"), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("there is no table \"nothing\""));
  EXPECT_EQ(Run("\\d \"SUPPLIER\""), kExitFailed);
}

/// Names are as psql reads them, and mean what they mean in a statement.
TEST_F(ShellTest, DescribesWhatANameMeans) {
  AddTable();
  AddNamed("k", "of_public");
  AddNamed("s.k", "of_s");
  AddNamed("Big", "of_big");
  AddNamed("MiXed.Tab le", "of_table");
  AddNamed("odd\"name", "of_odd");
  const std::vector<std::pair<std::string, std::string>> names = {{"k", "of_s"},
                                                                  {"S.K", "of_s"},
                                                                  {"public.k", "of_public"},
                                                                  {"\"public\".\"k\"", "of_public"},
                                                                  {"public.\"Big\"", "of_big"},
                                                                  {"\"MiXed\".\"Tab le\";", "of_table"},
                                                                  {"\"odd\"\"name\"", "of_odd"}};
  for (const auto& [name, column] : names) {
    out_.str("");
    EXPECT_EQ(Run("\\d " + name), kExitOk) << name << err_.str();
    EXPECT_THAT(out_.str(), HasSubstr(" " + column + " ")) << name;
  }
  for (const char* const name : {"Big", "\"K\"", "\"s.k\"", "nowhere.k", "mixed.\"Tab le\""})
    EXPECT_EQ(Run(std::string("\\d ") + name), kExitFailed) << name;
  out_.str("");
  EXPECT_EQ(Run("\\dt supplier"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("7: 64 KiB"));
  EXPECT_THAT(out_.str(), HasSubstr("(1 row)"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Big")));
  EXPECT_EQ(Run("\\dt nope"), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("there is no table \"nope\""));
}

TEST_F(ShellTest, ListsServers) {
  proto::Member& member = *catalog_.cluster.add_members();
  member.set_id(2);
  member.set_role(proto::ROLE_MEMORY);
  member.set_host("localhost");
  member.set_memory_bytes(1ull << 30);
  member.set_alive(true);
  EXPECT_EQ(Run("\\servers"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("memory |  2 | localhost"));
  EXPECT_THAT(out_.str(), HasSubstr("1 GiB"));
}

TEST_F(ShellTest, HelpNamesCommandsAndSettings) {
  EXPECT_EQ(Run("\\?"), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("\\timing"));
  EXPECT_THAT(out_.str(), HasSubstr("SHOW ALL"));
}

TEST_F(ShellTest, UnknownMetaCommandFails) {
  EXPECT_EQ(Run("\\frobnicate\nselect 1;"), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("\\frobnicate"));
  EXPECT_THAT(session_.executed, IsEmpty());
}

TEST_F(ShellTest, QuitEndsAScript) {
  EXPECT_EQ(Run("select 1;\n\\q\nselect 2;"), kExitOk);
  EXPECT_THAT(session_.executed, ElementsAre("select 1"));
}

TEST_F(ShellTest, IncludesFiles) {
  const std::string inner = TempFile("inner.sql", "select 'inner';\n\\q\nselect 'never';");
  const std::string broken = TempFile("broken.sql", "\n\nbad 1;");
  EXPECT_EQ(Run("\\i " + inner + "\nselect 2;\n\\i " + broken + "\nselect 3;"), kExitFailed);
  EXPECT_THAT(session_.executed, ElementsAre("select 'inner'", "select 2", "bad 1"));
  EXPECT_THAT(err_.str(), StartsWith(broken + ":3: "));
  EXPECT_EQ(Run("\\i /nonexistent/file"), kExitFailed);
}

TEST_F(ShellTest, ADirectoryIsNoScript) {
  const std::string directory = testing::TempDir();
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunFile(directory), kExitFailed);
  EXPECT_EQ(err_.str(), "ERROR:  cannot read " + directory + ": it is a directory\n");
  err_.str("");
  EXPECT_EQ(shell.RunFile(directory + "/nix"), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("No such file"));
  err_.str("");
  EXPECT_EQ(Run("\\i " + directory), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("it is a directory"));
}

TEST_F(ShellTest, FilesThatIncludeThemselvesEnd) {
  const std::string path = TempFile("loop.sql", "");
  std::ofstream(path) << "\\i " << path << "\n";
  EXPECT_EQ(Run("\\i " + path), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("too deeply"));
}

class FakeReader final : public LineReader {
 public:
  Result Read(const std::string& prompt, std::string& line) override {
    prompts.push_back(prompt);
    if (lines.empty()) return Result::kEnd;
    line = lines.front();
    lines.pop_front();
    return line == "^C" ? Result::kInterrupted : Result::kLine;
  }
  void AddToHistory(const std::string& statement) override { history.push_back(statement); }

  std::deque<std::string> lines;
  std::vector<std::string> prompts, history;
};

TEST_F(ShellTest, InteractiveGoesOnAfterErrors) {
  FakeReader reader;
  reader.lines = {"bad 1;", "select", " 2;", "select 3", "^C", "select 4;"};
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunInteractive(reader), kExitOk);
  EXPECT_THAT(session_.executed, ElementsAre("bad 1", "select\n 2", "select 4"));
  EXPECT_THAT(reader.prompts,
              ElementsAre("nam=> ", "nam=> ", "nam-> ", "nam=> ", "nam-> ", "nam=> ", "nam=> "));
  EXPECT_THAT(reader.history, ElementsAre("bad 1;", "select\n 2;", "select 4;"));
  EXPECT_THAT(err_.str(), Not(HasSubstr(":1:")));
}

TEST_F(ShellTest, InteractiveInterruptKeepsTheSession) {
  FakeReader reader;
  reader.lines = {"select 1;", "select 2;"};
  session_.on_execute = [this] {
    if (session_.executed.size() == 1) raise(SIGINT);
  };
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunInteractive(reader), kExitOk);
  EXPECT_THAT(session_.executed, ElementsAre("select 1", "select 2"));
  EXPECT_EQ(out_.str(), " n\n---\n 2\n(1 row)\n");
}

TEST_F(ShellTest, AnErrorAfterAnInterruptedWriteIsShown) {
  FakeReader reader;
  reader.lines = {"bad 1;", "bad 2;"};
  session_.on_execute = [this] {
    if (session_.executed.size() > 1) return;
    raise(SIGINT);
    err_.setstate(std::ios_base::badbit);
  };
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunInteractive(reader), kExitOk);
  EXPECT_THAT(err_.str(), HasSubstr("bad 2"));
}

TEST_F(ShellTest, InteractiveQuit) {
  FakeReader reader;
  reader.lines = {"\\q", "select 1;"};
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunInteractive(reader), kExitOk);
  EXPECT_THAT(session_.executed, IsEmpty());
}

TEST_F(ShellTest, InteractiveQuitAndHelpByWords) {
  FakeReader reader;
  reader.lines = {"help", "select", "quit;", "exit", "select 1;"};
  Shell shell(session_, catalog_, interrupts_, out_, err_, {});
  EXPECT_EQ(shell.RunInteractive(reader), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("\\q"));
  EXPECT_THAT(session_.executed, ElementsAre("select\nquit")) << "within a statement they are its words";
}

TEST_F(ShellTest, CompletesKeywordsAndNames) {
  AddTable();
  Completer completer(catalog_);
  EXPECT_THAT(completer.Complete("sel"), ElementsAre("select"));
  EXPECT_THAT(completer.Complete("SEL"), ElementsAre("SELECT"));
  EXPECT_THAT(completer.Complete("select s_"), ElementsAre("s_city", "s_suppkey"));
  EXPECT_THAT(completer.Complete("select sum(s_s"), ElementsAre("s_suppkey"));
  EXPECT_THAT(completer.Complete("\\ser"), ElementsAre("\\servers"));
  EXPECT_THAT(completer.Complete("xyzzy"), IsEmpty());
  EXPECT_THAT(completer.Complete(""), IsEmpty());
  EXPECT_EQ(catalog_.lists, 1);
  EXPECT_EQ(Completer::CommonPrefix({"s_city", "s_suppkey"}), "s_");
}

TEST(IsBlankSqlTest, CommentsAndSemicolons) {
  EXPECT_TRUE(IsBlankSql(" \n;-- x\n/* y /* z */ */"));
  EXPECT_FALSE(IsBlankSql("-- x\nselect"));
  EXPECT_FALSE(IsBlankSql("/* open"));
  EXPECT_FALSE(IsBlankSql("-1"));
}

}  // namespace
}  // namespace nam::cli
