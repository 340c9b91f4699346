#include "catalog/rpc.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/cord.h"
#include "catalog/token.h"

namespace nam::catalog {
namespace {

TEST(RpcStatusTest, EveryCodeTravelsBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why not");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(RpcStatusTest, PayloadsTravelWhole) {
  absl::Status status = absl::InvalidArgumentError("bad statement");
  status.SetPayload("nam/sql", absl::Cord(std::string("\0\xFFposition 7", 12)));
  status.SetPayload("nam/other", absl::Cord("x"));
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
}

TEST(RpcStatusTest, SizesAreBounded) {
  absl::Status status = absl::InternalError(std::string(1 << 20, 'm'));
  status.SetPayload("nam/large", absl::Cord(std::string(1 << 20, 'p')));
  const grpc::Status sent = ToGrpcStatus(status);
  EXPECT_LT(sent.error_message().size() + sent.error_details().size(), 32u << 10);
  EXPECT_EQ(FromGrpcStatus(sent).code(), absl::StatusCode::kInternal);
}

TEST(RpcStatusTest, GarbageInDetailsIsIgnored) {
  const grpc::Status garbage(grpc::StatusCode::NOT_FOUND, "gone", std::string("\xFF\xFF\xFF\x01\x02", 5));
  EXPECT_EQ(FromGrpcStatus(garbage), absl::NotFoundError("gone"));
}

TEST(ControlTokenTest, DependsOnTheSecretAndHidesIt) {
  EXPECT_EQ(ControlToken("secret"), ControlToken("secret"));
  EXPECT_NE(ControlToken("secret"), ControlToken("Secret"));
  EXPECT_EQ(ControlToken("secret").find("secret"), std::string::npos);
  EXPECT_EQ(ControlToken("secret").size(), 64u);
  EXPECT_TRUE(SameToken("abc", "abc"));
  EXPECT_FALSE(SameToken("abc", "abd"));
  EXPECT_FALSE(SameToken("abc", "abcd"));
  EXPECT_FALSE(SameToken("", "a"));
}

TEST(AddressTest, SplitsAndAdvertises) {
  EXPECT_EQ(SplitAddress("127.0.0.1:4700")->first, "127.0.0.1");
  EXPECT_EQ(SplitAddress("127.0.0.1:4700")->second, 4'700);
  EXPECT_EQ(SplitAddress("[::1]:0")->first, "[::1]");
  for (const char* bad : {"", "host", ":1", "host:", "host:70000", "host:x", "::1:5", "host:-1"}) {
    EXPECT_FALSE(SplitAddress(bad).ok()) << bad;
  }
  EXPECT_EQ(AdvertisedAddress("127.0.0.1:5", ""), "127.0.0.1:5");
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:5", ""), LocalHostName() + ":5");
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:5", "db1"), "db1:5");
}

TEST(RpcServerTest, ABadAddressIsRefused) {
  RpcServerOptions options;
  options.address = "nonsense";
  EXPECT_EQ(RpcServer::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nam::catalog
