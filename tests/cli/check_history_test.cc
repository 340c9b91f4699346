#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/check_history_command.h"
#include "txn/check/history.h"

namespace nam::cli {
namespace {

using ::testing::HasSubstr;

/// Two clients that both update a row at the snapshot 1; the second sees the first one's write, or does not.
class CheckHistory : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, uint32_t session, uint64_t snapshot, uint64_t seen,
                    uint64_t commit) {
    const std::string path = ::testing::TempDir() + "/" + name;
    std::filesystem::remove(path);
    const auto history = txn::SessionHistory::InFile(path, 1);
    EXPECT_TRUE(history.ok()) << history.status();
    txn::HistoryRecorder recorder(session, **history);
    recorder.Begin(snapshot);
    recorder.Read(txn::RecordId(1, uint64_t{7}), seen);
    written_ = recorder.NextValue();
    recorder.Write(txn::OperationKind::kUpdate, txn::RecordId(1, uint64_t{7}), written_);
    recorder.Committing();
    recorder.RecordOutcome(txn::Outcome::kCommitted, commit);
    return path;
  }
  int Run(const std::vector<std::string>& files) {
    out_.str("");
    err_.str("");
    return RunCheckHistory({files}, out_, err_);
  }
  std::ostringstream out_, err_;
  uint64_t written_ = 0;
};

TEST_F(CheckHistory, TellsSnapshotIsolationFromALostUpdate) {
  const uint64_t loaded = 5;
  const std::string first = Write("first", 1, 1, loaded, 2);
  const std::string second = Write("second", 2, 2, written_, 3);
  EXPECT_EQ(Run({first, second}), 0) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("2 transactions"));
  const std::string lost = Write("lost", 3, 1, loaded, 4);
  EXPECT_EQ(Run({first, lost}), 4) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("NOT SNAPSHOT ISOLATION"));
}

TEST_F(CheckHistory, TellsDamageFromMisuse) {
  const std::string path = Write("first", 1, 1, 5, 2);
  EXPECT_EQ(Run({path, path + ".absent"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr(".absent"));
  const std::string text = ::testing::TempDir() + "/text";
  std::ofstream(text) << "this is no history at all";
  EXPECT_EQ(Run({text}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("is no history"));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(Run({path}), 4);
  EXPECT_THAT(err_.str(), HasSubstr("cut off"));
}

}  // namespace
}  // namespace nam::cli
