// Queries whose snapshot is too old when they read: writers were faster.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "session/record_engine.h"
#include "session/session.h"
#include "tests/cluster/in_process_cluster.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::testing {
namespace {

/// An engine in which the next `overtaken` transactions find that their snapshot is too old.
class OvertakenAccess final : public session::RecordAccess {
 public:
  OvertakenAccess(std::unique_ptr<session::RecordAccess> access, int& overtaken, int& begun)
      : access_(std::move(access)), overtaken_(overtaken), begun_(begun) {}

  absl::Status Begin() override {
    ++begun_;
    if (overtaken_ > 0) {
      --overtaken_;
      return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld, "t");
    }
    return access_->Begin();
  }
  absl::Status Commit() override { return access_->Commit(); }
  void Abort() override { access_->Abort(); }
  absl::StatusOr<uint64_t> NewestCommit() override { return access_->NewestCommit(); }
  void BeginAnew() override { access_->BeginAnew(); }
  absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                      const OnRow& on_row) override {
    return access_->Lookup(table, keys, on_row);
  }
  absl::Status Scan(const proto::Table& table, const OnRow& on_row) override {
    return access_->Scan(table, on_row);
  }
  absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                         const OnRow& on_row) override {
    return access_->ScanIndex(table, index, range, on_row);
  }
  absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) override {
    return access_->VisitWrites(table, on_write);
  }
  uint64_t snapshot() const override { return access_->snapshot(); }
  absl::Status MayWrite(size_t rows) const override { return access_->MayWrite(rows); }
  size_t Mark() const override { return access_->Mark(); }
  absl::Status RollBackTo(size_t mark) override { return access_->RollBackTo(mark); }
  absl::Status Insert(const proto::Table& table, std::span<const std::string> rows, size_t* taken) override {
    return access_->Insert(table, rows, taken);
  }
  absl::Status Update(const proto::Table& table, std::span<const std::string> rows) override {
    return access_->Update(table, rows);
  }
  absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) override {
    return access_->Delete(table, keys);
  }
  absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) override {
    return access_->Lock(table, keys, waits);
  }
  void SetLockTimeout(int64_t us) override { access_->SetLockTimeout(us); }
  void SetTransactionBytesMax(uint64_t bytes) override { access_->SetTransactionBytesMax(bytes); }
  absl::Status DropTable(const std::string& name, bool cascade) override {
    return access_->DropTable(name, cascade);
  }
  absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) override {
    return access_->NextNumber(table, column);
  }
  absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) override {
    return access_->CreateTable(table, indexes);
  }
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) override {
    return access_->CreateIndex(table, index);
  }
  absl::Status DropIndex(const std::string& name) override { return access_->DropIndex(name); }

 private:
  const std::unique_ptr<session::RecordAccess> access_;
  int& overtaken_;
  int& begun_;
};

class OvertakenQueryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto session = session::Session::Open(
        cluster_.attachment(), std::make_unique<OvertakenAccess>(
                                   session::MakeRecordEngine(cluster_.attachment()), overtaken_, begun_));
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    ASSERT_EQ(Run("create table t (k int primary key, n int) with (storage = record)"), "CREATE TABLE");
    ASSERT_EQ(Run("insert into t values (1, 10), (2, 20)"), "INSERT 0 2");
    begun_ = 0;
  }
  /// The command, or the SQLSTATE.
  std::string Run(const std::string& statement) {
    const auto result = session_->Execute(statement);
    if (result.ok()) return result->command;
    return SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate;
  }

  InProcessCluster cluster_{{}};
  int overtaken_ = 0, begun_ = 0;
  std::unique_ptr<session::Session> session_;
};

TEST_F(OvertakenQueryTest, RunsAgainAtALaterSnapshot) {
  for (const char* const query : {"select sum(n) from t", "select n from t where k = 2"}) {
    overtaken_ = 3;
    begun_ = 0;
    const auto result = session_->Execute(query);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows.size(), 1u);
    EXPECT_EQ(begun_, 4);
  }
}

TEST_F(OvertakenQueryTest, RunsAgainIfItIsPreparedToo) {
  ASSERT_EQ(Run("prepare q (int) as select n from t where k = $1"), "PREPARE");
  ASSERT_EQ(Run("prepare c as update t set n = n + 1"), "PREPARE");
  overtaken_ = 3;
  begun_ = 0;
  const auto result = session_->Execute("execute q (2)");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows.size(), 1u);
  EXPECT_EQ(begun_, 4);
  overtaken_ = 1;
  EXPECT_EQ(Run("execute c"), "40001") << "a change is its client's to run again";
}

TEST_F(OvertakenQueryTest, ThatIsOvertakenForEverIsAnError) {
  overtaken_ = 1'000;
  EXPECT_EQ(Run("select sum(n) from t"), "40001");
  EXPECT_EQ(begun_, 5);
}

/// Its client decides: rows read before may be the reason for the change.
TEST_F(OvertakenQueryTest, AChangeIsNotRunAgain) {
  overtaken_ = 1;
  EXPECT_EQ(Run("update t set n = n + 1"), "40001");
  EXPECT_EQ(begun_, 1);
}

}  // namespace
}  // namespace nam::testing
