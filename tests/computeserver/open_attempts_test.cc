#include "computeserver/open_attempts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/catalog/fake_fabric.h"
#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

class CancellableCall final : public catalog::IncomingCall {
 public:
  std::string Connection() const override { return "a test"; }
  bool Cancelled() const override { return cancelled; }
  std::atomic<bool> cancelled = false;
};

/// The history of an attempt.
struct Seen {
  std::atomic<int> advances = 0;
  std::atomic<bool> cancelled = false;
  std::atomic<bool> left_window = false;
  std::atomic<bool> ended = false;
};

/// Yields this many windows, then its end.
class FakeAttempt final : public OpenAttempt {
 public:
  FakeAttempt(Seen& seen, int windows, std::function<void()> meanwhile = {})
      : seen_(seen), windows_(windows), meanwhile_(std::move(meanwhile)) {}
  ~FakeAttempt() override { seen_.ended = true; }
  absl::StatusOr<proto::AttemptReply> Advance(const catalog::IncomingCall&) override {
    if (meanwhile_) meanwhile_();
    proto::AttemptReply reply;
    reply.set_more(++seen_.advances <= windows_);
    if (seen_.cancelled) return absl::CancelledError("cancelled");
    return reply;
  }
  void Cancel() override { seen_.cancelled = true; }
  void LeaveWindow() override { seen_.left_window = true; }

 private:
  Seen& seen_;
  const int windows_;
  const std::function<void()> meanwhile_;
};

class TimedFabric final : public fabric::FakeFabric {
 public:
  struct Time final : Clock {
    int64_t NowNs() const override { return ns; }
    void SleepUntil(Deadline deadline) override { ns = std::max(ns, deadline.ns); }
    int64_t ns = 1'000'000'000;
  };
  Clock& clock() override { return time; }
  Time time;
};

class OpenAttemptsTest : public testing::Test {
 protected:
  absl::StatusOr<proto::AttemptReply> Begin(uint64_t id, uint32_t client, Seen& seen, int windows,
                                            std::function<void()> meanwhile = {}) {
    return open_.Begin(id, MemberId(client), std::make_shared<FakeAttempt>(seen, windows, meanwhile), call_);
  }
  absl::StatusOr<proto::AttemptReply> Resume(uint64_t id, uint32_t client, uint32_t windows) {
    return open_.Resume(id, MemberId(client), windows, call_, [] { return absl::OkStatus(); });
  }

  fabric::FakeFabric fabric_;
  CancellableCall call_;
  OpenAttempts open_{fabric_};
};

TEST_F(OpenAttemptsTest, AnAttemptGoesOnUntilItsEnd) {
  Seen seen;
  ASSERT_TRUE(Begin(1, 7, seen, 2)->more());
  EXPECT_EQ(open_.Clients(), (std::set<MemberId>{MemberId(7)}));
  ASSERT_TRUE(Resume(1, 7, 1)->more());
  EXPECT_FALSE(seen.ended);
  ASSERT_FALSE(Resume(1, 7, 2)->more());
  EXPECT_TRUE(seen.ended);
  EXPECT_FALSE(seen.cancelled);
  EXPECT_EQ(seen.advances, 3);
  EXPECT_EQ(open_.size(), 0);
  EXPECT_TRUE(absl::IsNotFound(Resume(1, 7, 3).status()));
}

TEST_F(OpenAttemptsTest, ResumeIsOfWhatStands) {
  Seen seen;
  ASSERT_TRUE(Begin(1, 7, seen, 5).ok());
  ASSERT_TRUE(Resume(1, 7, 1).ok());
  EXPECT_TRUE(absl::IsNotFound(Resume(1, 8, 2).status())) << "of another client";
  EXPECT_TRUE(absl::IsNotFound(Resume(2, 7, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Resume(1, 7, 1).status())) << "a window that has been handed over";
  EXPECT_TRUE(absl::IsInvalidArgument(Resume(1, 7, 3).status())) << "a window that is still to come";
  EXPECT_EQ(seen.advances, 2);
  EXPECT_TRUE(Resume(1, 7, 2).ok());
  Seen another;
  EXPECT_TRUE(absl::IsAlreadyExists(Begin(1, 7, another, 1).status()));
  EXPECT_TRUE(another.ended);
  Seen of_another;
  EXPECT_TRUE(Begin(1, 8, of_another, 1).ok()) << "clients number their attempts for themselves";
  open_.EndAll();  // the Seen objects are destroyed before open_
}

/// Other attempts wait for what this one holds. The client is told at its next call.
TEST_F(OpenAttemptsTest, WhatStandsForTooLongEnds) {
  Seen seen[3];
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Begin(i, 7, seen[i], 9).ok());
  open_.EndStanding(60'000'000);
  for (const Seen& one : seen) EXPECT_FALSE(one.ended);
  // The second attempt is running, and the first was the last to be read.
  EXPECT_TRUE(Resume(0, 7, 1).ok());
  const auto reply = open_.Resume(1, MemberId(7), 1, call_, [&] {
    open_.EndStanding(0);
    EXPECT_TRUE(seen[2].ended && seen[2].left_window);
    open_.EndStanding(0);
    EXPECT_TRUE(seen[0].ended);
    open_.EndStanding(0);
    return absl::OkStatus();
  });
  EXPECT_TRUE(reply.ok() && reply->more()) << reply.status();
  const absl::Status ended = Resume(2, 7, 1).status();
  EXPECT_EQ(SqlErrorOf(ended).value_or(SqlError{}).sqlstate, "53200") << ended;
  EXPECT_TRUE(absl::IsNotFound(Resume(2, 8, 1).status())) << "of another client";
  EXPECT_TRUE(Resume(1, 7, 2).ok());
}

/// The client reads a window now and then, always in time.
TEST_F(OpenAttemptsTest, WhatKeepsOthersWaitingAgainAndAgainEnds) {
  constexpr int64_t kUs = 100'000, kStepUs = 5'000;
  TimedFabric fabric;
  OpenAttempts open(fabric);
  Seen seen;
  ASSERT_TRUE(open.Begin(1, MemberId(7), std::make_shared<FakeAttempt>(seen, 1 << 30), call_).ok());
  int64_t stood_us = 0;
  for (uint32_t windows = 1; !seen.ended && windows < 100; ++windows) {
    for (int64_t us = 0; us < kUs / 2 && !seen.ended; us += kStepUs, stood_us += kStepUs) {
      fabric.time.ns += 1000 * kStepUs;
      open.EndStanding(kUs);
    }
    fabric.time.ns += 1000 * kUs;  // in which no attempt waits
    const auto go_on = [] { return absl::OkStatus(); };
    EXPECT_TRUE(seen.ended || open.Resume(1, MemberId(7), windows, call_, go_on).ok());
  }
  EXPECT_TRUE(seen.ended);
  EXPECT_GE(stood_us, 4 * kUs) << "it may be suspended for a while";
}

/// The attempt would keep windows that no client reads.
TEST_F(OpenAttemptsTest, WithoutATurnTheAttemptEnds) {
  Seen seen;
  ASSERT_TRUE(Begin(1, 7, seen, 9).ok());
  const auto reply =
      open_.Resume(1, MemberId(7), 1, call_, [] { return absl::CancelledError("the caller is gone"); });
  EXPECT_TRUE(absl::IsCancelled(reply.status()));
  EXPECT_TRUE(seen.ended);
  EXPECT_EQ(seen.advances, 1);
}

TEST_F(OpenAttemptsTest, TheEndOfAClientEndsItsAttempts) {
  Seen seen[3];
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Begin(i, i == 1 ? 8 : 7, seen[i], 9).ok());
  open_.EndOf(MemberId(7));
  EXPECT_EQ(open_.Clients(), (std::set<MemberId>{MemberId(8)}));
  EXPECT_TRUE(absl::IsNotFound(Resume(0, 7, 1).status()));
  open_.EndAll();  // waits for the work that EndOf has begun
  for (const Seen& one : seen) EXPECT_TRUE(one.cancelled && one.ended);
  EXPECT_EQ(open_.size(), 0);
}

TEST_F(OpenAttemptsTest, WhatIsReleasedEnds) {
  Seen seen;
  ASSERT_TRUE(Begin(1, 7, seen, 9).ok());
  open_.Release(2, MemberId(7));
  open_.Release(1, MemberId(8));
  open_.Release(1, MemberId());
  EXPECT_FALSE(seen.cancelled || seen.ended) << "of another client";
  open_.Release(1, MemberId(7));
  EXPECT_TRUE(seen.cancelled && seen.ended);
  EXPECT_EQ(open_.size(), 0);
}

/// The call that is running ends the attempt.
TEST_F(OpenAttemptsTest, WhatIsReleasedInACallEndsWithIt) {
  for (const bool of_client : {false, true}) {
    Seen seen;
    const auto reply = Begin(1, 7, seen, 9, [&] {
      if (of_client) {
        open_.EndOf(MemberId(7));
      } else {
        open_.Release(1, MemberId(7));
      }
      EXPECT_FALSE(seen.ended);
      EXPECT_TRUE(seen.cancelled);
    });
    EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
    EXPECT_TRUE(seen.ended);
    EXPECT_EQ(open_.size(), 0);
  }
}

/// No client would read its window.
TEST_F(OpenAttemptsTest, ACancelledCallEndsTheAttempt) {
  Seen seen;
  const auto reply = Begin(1, 7, seen, 9, [&] { call_.cancelled = true; });
  EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
  EXPECT_TRUE(seen.ended);
  EXPECT_EQ(open_.size(), 0);
}

}  // namespace
}  // namespace nam::computeserver
