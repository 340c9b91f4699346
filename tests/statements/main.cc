// The cases of the *.test files of this folder, each over every fabric: sim/ForeignKey.ParentsStay. With
// NAM_REGENERATE=1 they run over sim alone, and the files get their results (./run expected).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "catalog/attachment.h"
#include "proto/catalog.pb.h"
#include "session/session.h"
#include "tests/catalog/temp_folder.h"
#include "tests/cluster/tested_cluster.h"
#include "tests/statements/script.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::testing {
namespace {

constexpr char kFolder[] = "tests/statements", kWrite[] = "write ";

bool Regenerates() {
  return std::getenv("NAM_REGENERATE") != nullptr;
}

std::string InOneLine(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\n", "\\n"}});
}

std::string Described(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  if (!error.has_value()) return InOneLine(absl::StrCat("error ", status.ToString()));
  return InOneLine(absl::StrCat(
      "error ", error->sqlstate, error->position < 0 ? " " : absl::StrCat(" at ", error->position, ": "),
      error->message, error->hint.empty() ? "" : absl::StrCat(" (", error->hint, ")")));
}

/// In the form of an expectation with all details.
std::string Described(const absl::StatusOr<session::ResultSet>& result) {
  if (!result.ok()) return Described(result.status());
  std::string command = result->command, notes;
  for (const session::ResultSet::Warning& warning : result->warnings) {
    const bool is_note = warning.sqlstate == sqlstate::kSuccess;
    absl::StrAppend(is_note ? &notes : &command, is_note ? " notes " : " warns ",
                    is_note ? warning.message : warning.sqlstate);
  }
  std::vector<std::string> parts;
  if (result->rows.empty() || !notes.empty() || command != absl::StrCat("SELECT ", result->rows.size()))
    parts.push_back(InOneLine(absl::StrCat(command, notes.empty() ? " notes none" : notes)));
  for (const std::vector<Value>& row : result->rows) {
    const std::string values =
        InOneLine(absl::StrJoin(row, ",", [](std::string* out, const Value& v) { *out += v.ToString(); }));
    const bool is_plain = !values.empty() && absl::StripAsciiWhitespace(values) == values;
    parts.push_back(is_plain ? values : absl::StrCat("\"", values, "\""));
  }
  return absl::StrJoin(parts, " | ");
}

/// Drops what the case before has made.
absl::Status MakeEmpty(TestedCluster& cluster, session::Session& session) {
  NAM_ASSIGN_OR_RETURN(const auto entries, cluster.attachment().catalog().ListEntries());
  for (const std::string kind : {"view", "table", "schema"}) {
    for (const proto::Table& entry : entries) {
      if (kind != (entry.has_view() ? "view" : entry.schema() ? "schema" : "table")) continue;
      if (entry.name().starts_with("nam.")) continue;
      const std::string name =
          absl::StrReplaceAll(absl::StripSuffix(entry.name(), "."), {{"\"", "\"\""}, {".", "\".\""}});
      const char* const cascade = kind == "schema" ? "" : " cascade";  // it is empty by then
      NAM_RETURN_IF_ERROR(
          session.Execute(absl::StrCat("drop ", kind, " if exists \"", name, "\"", cascade)).status());
    }
  }
  return absl::OkStatus();
}

/// The cluster of the case that runs: the cases of one fabric follow each other.
class CurrentCluster {
 public:
  TestedCluster* Get(fabric::Kind fabric) {
    if (cluster_ != nullptr && fabric_ == fabric) return cluster_.get();
    cluster_.reset();
    fabric_ = fabric;
    auto started = TestedCluster::Start({.fabric = fabric,
                                         .memory_bytes = uint64_t{256} << 20,
                                         .region_bytes = uint64_t{8} << 20,
                                         .compute_memory_bytes = uint64_t{256} << 20,
                                         .first_attempt_bytes = uint64_t{16} << 20});
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) cluster_ = *std::move(started);
    return cluster_.get();
  }

 private:
  fabric::Kind fabric_ = fabric::Kind::kSim;
  std::unique_ptr<TestedCluster> cluster_;
};

struct ScriptFile {
  std::string path;
  std::string suite;  // `ForeignKey` of foreign_key.test
  absl::StatusOr<Script> script;
};

class StatementsTest : public ::testing::Test {
 public:
  StatementsTest(ScriptFile& file, std::string name, fabric::Kind fabric, CurrentCluster& cluster)
      : file_(file), name_(std::move(name)), fabric_(fabric), cluster_(cluster) {}

  void TestBody() override {
    ASSERT_TRUE(file_.script.ok()) << file_.path << ": " << file_.script.status();
    TestedCluster* const cluster = cluster_.Get(fabric_);
    ASSERT_NE(cluster, nullptr);
    std::map<std::string, std::unique_ptr<session::Session>> sessions;
    const auto session = [&](const std::string& name) -> session::Session& {
      std::unique_ptr<session::Session>& found = sessions[name];
      if (found == nullptr) found = session::Session::Open(cluster->attachment()).value();
      return *found;
    };
    const absl::Status empty = MakeEmpty(*cluster, session(""));
    ASSERT_TRUE(empty.ok()) << empty;
    const TempFolder folder;
    std::filesystem::current_path(folder.File(""));
    for (ScriptStep& step : file_.script->steps) {
      if (!step.in_case.empty() && step.in_case != name_) continue;
      const bool writes = step.statement.starts_with(kWrite);
      Compare(writes ? Write(step.statement) : Described(session(step.session).Execute(step.statement)),
              step);
    }
  }

 private:
  static std::string Write(const std::string& statement) {
    const std::vector<std::string> words = absl::StrSplit(statement, absl::MaxSplits(' ', 2));
    if (words.size() < 3) return "write NAME TEXT";
    std::ofstream(words[1], std::ios::binary)
        << absl::StrReplaceAll(words[2], {{"\\n", "\n"}, {"\\t", "\t"}});
    return "WRITE";
  }

  void Compare(const std::string& result, ScriptStep& step) {
    const std::string detailed = AsDetailed(result, step.expected);
    if (detailed == step.expected) return;
    if (Regenerates()) return Expect(detailed, step);
    ADD_FAILURE_AT(file_.path.c_str(), static_cast<int>(step.line))
        << step.statement << "\nexpected: " << step.expected << "\nresult:   " << detailed;
  }

  ScriptFile& file_;
  const std::string name_;
  const fabric::Kind fabric_;
  CurrentCluster& cluster_;
};

int RunAll() {
  std::vector<ScriptFile> files;
  for (const auto& path : std::set<std::filesystem::path>(std::filesystem::directory_iterator(kFolder), {})) {
    if (path.extension() != ".test") continue;
    std::string suite;
    const std::string name = path.stem().string();
    for (const absl::string_view word : absl::StrSplit(name, '_'))
      absl::StrAppend(&suite, absl::AsciiStrToUpper(word.substr(0, 1)), word.substr(1));
    std::ifstream in(path, std::ios::binary);
    files.push_back({path.string(), suite, ParseScript(std::string(std::istreambuf_iterator<char>(in), {}))});
  }
  CurrentCluster cluster;
  for (const fabric::Kind fabric : {fabric::Kind::kSim, fabric::Kind::kShm, fabric::Kind::kTcp}) {
    if (Regenerates() && fabric != fabric::Kind::kSim) break;
    for (ScriptFile& file : files) {
      for (const std::string& name :
           file.script.ok() ? file.script->cases : std::vector<std::string>{"CanBeRead"}) {
        ::testing::RegisterTest(absl::StrCat(std::string(fabric::KindName(fabric)), "/", file.suite).c_str(),
                                name.c_str(), nullptr, nullptr, file.path.c_str(), 1, [&, fabric, name] {
                                  return new StatementsTest(file, name, fabric, cluster);
                                });
      }
    }
  }
  const std::filesystem::path home = std::filesystem::current_path();
  const int failed = RUN_ALL_TESTS();
  std::filesystem::current_path(home);
  for (const ScriptFile& file : files) {
    if (Regenerates() && file.script.ok()) std::ofstream(file.path, std::ios::binary) << ToText(*file.script);
  }
  return failed;
}

}  // namespace
}  // namespace nam::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return nam::testing::RunAll();
}
