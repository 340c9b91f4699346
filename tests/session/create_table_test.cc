#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "catalog/attachment.h"
#include "catalog/control_plane.h"
#include "catalog/grpc_control_plane.h"
#include "catalog/methods.h"
#include "session/session.h"
#include "tests/cluster/in_process_cluster.h"
#include "types/sql_error.h"

/// CREATE TABLE makes a table, and then its indexes.
namespace nam::testing {
namespace {

/// gRPC over which no call that extends a table is begun while `fails` is a code.
class FailingControlPlane final : public catalog::ControlPlane {
 public:
  std::atomic<absl::StatusCode> fails = absl::StatusCode::kOk;

  std::string host_name() const override { return catalog::GrpcControlPlane().host_name(); }
  absl::StatusOr<std::unique_ptr<catalog::ControlServer>> Serve(
      const catalog::ControlServerOptions& options) override {
    return catalog::GrpcControlPlane().Serve(options);
  }
  std::unique_ptr<catalog::ControlChannel> Open(const std::string& address,
                                                const std::string& secret) override {
    return std::make_unique<Channel>(catalog::GrpcControlPlane().Open(address, secret), fails);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return catalog::GrpcControlPlane().Refused(address, timeout_us);
  }

 private:
  class Channel final : public catalog::ControlChannel {
   public:
    Channel(std::unique_ptr<catalog::ControlChannel> channel, const std::atomic<absl::StatusCode>& fails)
        : channel_(std::move(channel)), fails_(fails) {}
    Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                 catalog::CallCancellation* cancellation) override {
      const absl::StatusCode code = fails_;
      if (path == catalog::kBeginExtend.path && code != absl::StatusCode::kOk)
        return {.status = absl::Status(code, "no index"), .from_service = true};
      return channel_->Call(path, request, timeout_us, cancellation);
    }

   private:
    const std::unique_ptr<catalog::ControlChannel> channel_;
    const std::atomic<absl::StatusCode>& fails_;
  };
};

class CreateTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    catalog::ClientOptions options = cluster_.Client();
    options.control_plane = &plane_;
    auto attachment = catalog::Attachment::Attach({.catalog = options});
    ASSERT_TRUE(attachment.ok()) << attachment.status();
    attachment_ = *std::move(attachment);
    auto session = session::Session::Open(*attachment_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }
  /// The command, or the SQLSTATE.
  std::string Run(const std::string& statement) {
    const auto result = session_->Execute(statement);
    if (result.ok()) return result->command;
    return SqlErrorOf(result.status()).value_or(SqlError{.sqlstate = "none"}).sqlstate;
  }

  FailingControlPlane plane_;
  InProcessCluster cluster_{{}};
  std::unique_ptr<catalog::Attachment> attachment_;
  std::unique_ptr<session::Session> session_;
};

/// Nothing stays, whatever the error is, and whether or not it ends the engine's session.
TEST_F(CreateTableTest, ATableWhoseIndexCannotBeMadeDoesNotStay) {
  ASSERT_EQ(Run("create table p (id int primary key) with (storage = record)"), "CREATE TABLE");
  for (const std::string columns :
       {"id int primary key, u int unique", "id int primary key, r int references p"}) {
    const std::string create = "create table t (" + columns + ") with (storage = record)";
    for (const absl::StatusCode code : {absl::StatusCode::kUnavailable, absl::StatusCode::kInternal,
                                        absl::StatusCode::kResourceExhausted}) {
      SCOPED_TRACE(columns + ": " + absl::StatusCodeToString(code));
      plane_.fails = code;
      EXPECT_NE(Run(create), "CREATE TABLE");
      plane_.fails = absl::StatusCode::kOk;
      EXPECT_EQ(Run("select * from t"), "42P01");
      EXPECT_EQ(Run(create), "CREATE TABLE");
      EXPECT_EQ(Run("drop table t"), "DROP TABLE");
    }
  }
  EXPECT_EQ(Run("drop table p"), "DROP TABLE");
}

}  // namespace
}  // namespace nam::testing
