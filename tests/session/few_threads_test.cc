#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/mutex.h"
#include "base/process_limits.h"
#include "catalog/attach_over_fabric.h"
#include "tests/session/file_session.h"

/// A client to which the system gives no threads (ulimit -u, pids.max), or whose host has more processors.
namespace nam::testing {
namespace {

constexpr int kProcessors = 5;

/// The names of threads that have started.
class StartedThreads {
 public:
  void Add(const std::string& name) {
    const MutexLock lock(mutex_);
    names_.insert(name);
  }
  int CountOf(const std::string& prefix) {
    const MutexLock lock(mutex_);
    int count = 0;
    for (const std::string& name : names_) count += name.starts_with(prefix) ? 1 : 0;
    return count;
  }

 private:
  Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

/// Another fabric, of a host with kProcessors, which starts no threads for those that can do without while
/// `refuses` is set.
class FewThreadsFabric final : public fabric::Fabric {
 public:
  FewThreadsFabric(std::unique_ptr<fabric::Fabric> under, const std::atomic<bool>& refuses,
                   StartedThreads& started)
      : under_(std::move(under)), refuses_(refuses), started_(started) {}

  fabric::Kind kind() const override { return under_->kind(); }
  fabric::Capabilities capabilities() const override {
    fabric::Capabilities capabilities = under_->capabilities();
    capabilities.processors = kProcessors;
    return capabilities;
  }
  Clock& clock() override { return under_->clock(); }
  absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> Allocate(
      size_t bytes, const fabric::AllocateOptions& options) override {
    return under_->Allocate(bytes, options);
  }
  absl::StatusOr<std::unique_ptr<fabric::CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return under_->CreateCompletionQueue(depth);
  }
  absl::StatusOr<std::unique_ptr<fabric::Listener>> Listen(const fabric::ListenOptions& options) override {
    return under_->Listen(options);
  }
  absl::StatusOr<std::unique_ptr<fabric::QueuePair>> Connect(const std::string& address,
                                                             fabric::CompletionQueue& completions,
                                                             const fabric::QueuePairOptions& options,
                                                             Deadline deadline) override {
    return under_->Connect(address, completions, options, deadline);
  }
  absl::StatusOr<std::unique_ptr<fabric::DatagramQueuePair>> CreateDatagramQueuePair(
      fabric::CompletionQueue& completions, const fabric::DatagramOptions& options) override {
    return under_->CreateDatagramQueuePair(completions, options);
  }
  fabric::DatagramDrops datagram_drops() const override { return under_->datagram_drops(); }
  uint64_t Random() override { return under_->Random(); }
  std::unique_ptr<fabric::Event> CreateEvent() override { return under_->CreateEvent(); }
  std::unique_ptr<fabric::Thread> StartThread(const std::string& name, std::function<void()> body) override {
    EXPECT_FALSE(refuses_) << name << " would end the process";
    return under_->StartThread(name, std::move(body));
  }
  absl::StatusOr<std::unique_ptr<fabric::Thread>> TryStartThread(const std::string& name,
                                                                 std::function<void()> body) override {
    if (refuses_) return NoThreadsLeft();
    started_.Add(name);
    return under_->TryStartThread(name, std::move(body));
  }

 private:
  const std::unique_ptr<fabric::Fabric> under_;
  const std::atomic<bool>& refuses_;
  StartedThreads& started_;
};

class FewThreadsTest : public FileSession {
 protected:
  FewThreadsTest() {
    auto attachment = catalog::AttachOverFabric(
        {.catalog = cluster_.Client()},
        [this](const fabric::FabricOptions& options) -> absl::StatusOr<std::unique_ptr<fabric::Fabric>> {
          auto under = fabric::Open(options);
          if (!under.ok()) return under.status();
          return std::make_unique<FewThreadsFabric>(*std::move(under), refuses_, started_);
        });
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    attachment_ = *std::move(attachment);
    session_ = *session::Session::Open(*attachment_);
  }
  absl::StatusOr<session::ResultSet> Short(const std::string& sql) {
    refuses_ = true;
    absl::StatusOr<session::ResultSet> result = session_->Execute(sql);
    refuses_ = false;
    return result;
  }
  void ExpectDone(const std::string& sql, const std::string& command) {
    const auto result = Short(sql);
    ASSERT_TRUE(result.ok()) << sql << ": " << result.status();
    EXPECT_EQ(result->command, command) << sql;
  }
  void ExpectNamesLimit(const std::string& sql) {
    const auto result = Short(sql);
    ASSERT_FALSE(result.ok()) << sql;
    EXPECT_TRUE(IsProcessLimit(result.status())) << sql << ": " << result.status();
    EXPECT_NE(result.status().message().find("`ulimit -u`"), std::string::npos) << result.status();
  }

  std::atomic<bool> refuses_ = false;
  StartedThreads started_;
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<session::Session> session_;
};

TEST_F(FewThreadsTest, LoadsGoOnWithTheirOwnThread) {
  std::string rows;
  for (int i = 1; i <= 30'000; ++i) absl::StrAppend(&rows, i, ",name ", i, "\n");
  const std::string file = Write("rows.csv", rows);
  ExpectDone("create table t (k int, s text) with (partition_by = 'k:8')", "CREATE TABLE");
  ExpectDone(absl::StrCat("copy t from '", file, "' with (format csv)"), "COPY 30000");
  ExpectDone("insert into t values (30001, 'one more')", "INSERT 0 1");
  EXPECT_EQ(Rows("select count(*), sum(k), max(s) from t"), (TextRows{{"30001", "450045001", "one more"}}));
  ExpectDone("create table r (k int primary key, v int)", "CREATE TABLE");
  ExpectDone("insert into r values (1, 1), (2, 2)", "INSERT 0 2");
  ExpectDone("update r set v = v + 1 where k = 2", "UPDATE 1");
  EXPECT_EQ(Rows("select k, v from r order by k"), (TextRows{{"1", "1"}, {"2", "3"}}));
}

TEST_F(FewThreadsTest, ALoadHasAThreadForEachProcessor) {
  std::string rows;
  for (int i = 1; i <= 30'000; ++i) absl::StrAppend(&rows, i, "\n");
  const std::string file = Write("numbers.csv", rows);
  for (const std::string sql :
       {"create table t (k int) with (partition_by = 'k:8')", "copy t from '%s' with (format csv)"}) {
    const auto done = session_->Execute(absl::StrReplaceAll(sql, {{"%s", file}}));
    ASSERT_TRUE(done.ok()) << done.status();
  }
  EXPECT_EQ(started_.CountOf("nam-copy-"), kProcessors);
  EXPECT_EQ(started_.CountOf("nam-load-"), kProcessors);
  EXPECT_EQ(Rows("select count(*), sum(k) from t"), (TextRows{{"30000", "450015000"}}));
}

TEST_F(FewThreadsTest, AQueryNamesTheLimitAndTheNextOneRuns) {
  Command("create table t (k int not null) with (storage = columnar)");
  Command("create table u (k int not null) with (storage = columnar)");
  Command("insert into t select i from generate_series(1, 20000) g (i)");
  for (int turn = 0; turn < 2; ++turn) {
    ExpectNamesLimit("select count(*) from t");
    ExpectNamesLimit("insert into u select k + 1 from t");
    const auto result = session_->Execute("select count(*), sum(k) from t");
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), (TextRows{{"20000", "200010000"}}));
  }
  EXPECT_EQ(Rows("select count(*) from u"), (TextRows{{"0"}}));
  ASSERT_TRUE(session_->Execute("set statement_timeout = '60s'").ok());
  ExpectNamesLimit("select 1");
  EXPECT_TRUE(session_->Execute("select 1").ok());
}

}  // namespace
}  // namespace nam::testing
