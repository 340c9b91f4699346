#include "bench/json_peer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>

namespace nam::bench {
namespace {

using Json = JsonPeer::Json;

constexpr int64_t kTimeoutMs = 60'000;

/// A peer that is a shell script.
std::unique_ptr<JsonPeer> Script(const std::string& script) {
  auto peer = JsonPeer::Start(
      {.name = "the script",
       .executable = "/bin/sh",
       .arguments = {"-c", script},
       .log_file = ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name()});
  EXPECT_TRUE(peer.ok()) << peer.status();
  return std::move(peer).value();
}

TEST(JsonPeerTest, EveryLineIsAnswered) {
  const auto peer = Script(R"(while read -r line; do echo "{\"ok\": true, \"asked\": $line}"; done)");
  for (int i = 0; i < 3; ++i) {
    const auto answer = peer->Call({{"op", i}}, kTimeoutMs);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ((*answer)["asked"], (Json{{"op", i}}));
  }
}

TEST(JsonPeerTest, LongRequestsAndAnswers) {
  const auto peer = Script(R"(while read -r line; do echo "{\"ok\": true, \"asked\": $line}"; done)");
  const std::string text(1 << 20, 'x');
  const auto answer = peer->Call({{"text", text}}, kTimeoutMs);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["asked"]["text"], text);
}

TEST(JsonPeerTest, ARefusalCarriesItsWordsAndTheNextCallWorks) {
  const auto peer =
      Script(R"(read -r a; echo '{"ok": false, "error": "no such table"}'; read -r b; echo '{"ok": true}')");
  const auto refused = peer->Call({{"op", 1}}, kTimeoutMs);
  EXPECT_TRUE(absl::IsInternal(refused.status()));
  EXPECT_NE(std::string(refused.status().message()).find("the script: no such table"), std::string::npos);
  EXPECT_TRUE(peer->Call({{"op", 2}}, kTimeoutMs).ok());
}

TEST(JsonPeerTest, AnEndIsTold) {
  const auto peer = Script("read -r a; echo 'out of luck' >&2; exit 7");
  const auto answer = peer->Call({{"op", 1}}, kTimeoutMs);
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  const std::string message(answer.status().message());
  EXPECT_NE(message.find("exit code 7"), std::string::npos) << message;
  EXPECT_NE(message.find("out of luck"), std::string::npos) << message;
}

TEST(JsonPeerTest, WhatIsNoAnswerIsRefused) {
  for (const std::string line : {"hello", "[]", "{}", "{\"ok\": 1}"}) {
    const auto peer = Script("read -r a; echo '" + line + "'; read -r b");
    EXPECT_TRUE(absl::IsInternal(peer->Call({{"op", 1}}, kTimeoutMs).status())) << line;
  }
}

TEST(JsonPeerTest, SilenceHasADeadline) {
  const auto peer = Script("read -r a; read -r b");
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer->Call({{"op", 1}}, 50).status()));
}

TEST(JsonPeerTest, CancelEndsACallThatWaitsAndLaterOnes) {
  const auto peer = Script("read -r a; read -r b");
  std::thread canceller([&] { peer->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(peer->Call({{"op", 1}}, kTimeoutMs).status()));
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(peer->Call({{"op", 1}}, kTimeoutMs).status()));
}

TEST(JsonPeerTest, AProgramThatIsNotThere) {
  std::signal(SIGPIPE, SIG_IGN);  // as nam-bench does
  const auto peer = JsonPeer::Start({.name = "nobody", .executable = "/nonexistent/program"});
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_TRUE(absl::IsUnavailable((*peer)->Call({{"op", 1}}, kTimeoutMs).status()));
}

}  // namespace
}  // namespace nam::bench
