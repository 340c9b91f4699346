#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "execution/exchange/endpoint.h"
#include "tests/execution/exchange/members.h"

/// What every implementation of the exchange must do, over every fabric.
namespace nam::execution {
namespace {

/// A payload: its sender and its number there, then bytes that follow from both.
struct Stamp {
  uint32_t sender = 0, number = 0;
};

uint32_t Fill(std::span<std::byte> payload, Stamp stamp) {
  std::memcpy(payload.data(), &stamp, sizeof(stamp));
  const auto bytes = static_cast<uint32_t>(sizeof(stamp) + stamp.number * 37 % 900);
  for (uint32_t i = sizeof(stamp); i < bytes; ++i)
    payload[i] = static_cast<std::byte>(stamp.sender * 11 + stamp.number + i);
  return bytes;
}

Stamp StampOf(const Endpoint::Message& message) {
  Stamp stamp;
  EXPECT_GE(message.payload.size(), sizeof(stamp));
  std::memcpy(&stamp, message.payload.data(), sizeof(stamp));
  EXPECT_EQ(message.payload.size(), sizeof(stamp) + stamp.number * 37 % 900);
  for (size_t i = sizeof(stamp); i < message.payload.size(); ++i) {
    if (message.payload[i] == static_cast<std::byte>(stamp.sender * 11 + stamp.number + i)) continue;
    ADD_FAILURE() << "byte " << i << " is another one";
    break;
  }
  return stamp;
}

class ExchangeConformance : public testing::TestWithParam<Subject> {
 protected:
  static EndpointOptions Options(std::vector<std::vector<TransmissionGroup>> exchanges) {
    return {.exchanges = std::move(exchanges), .message_bytes = 1024, .credits = 4, .attempt = 77};
  }

  /// Sends `count` messages to the group and receives meanwhile, until all members have ended. Calls `seen`
  /// with each message.
  static void Talk(Members& members, uint32_t self, uint32_t exchange, uint32_t count,
                   const std::function<void(const Endpoint::Message&)>& seen) {
    Endpoint& endpoint = members[self];
    const size_t groups = endpoint.options().exchanges[exchange].size();
    std::vector<uint32_t> sent(groups);
    std::vector<std::optional<Endpoint::Buffer>> open(groups);
    while (true) {
      bool sending = false;
      for (uint32_t g = 0; g < groups; ++g) {
        if (sent[g] == count) continue;
        sending = true;
        if (!open[g].has_value()) {
          open[g] = endpoint.GetFree(exchange, g);
          if (!open[g].has_value()) continue;
        }
        const uint32_t bytes = Fill(open[g]->payload, {self, sent[g]});
        const auto went = endpoint.Send(*open[g], {bytes, sent[g], sent[g] + 1 == count});
        ASSERT_OK(went.status());
        if (!*went) continue;
        open[g].reset();
        ++sent[g];
      }
      const auto message = endpoint.GetData(exchange, exchange + 1);
      if (message.has_value()) {
        seen(*message);
        ASSERT_OK(endpoint.Release(*message));
      }
      if (!sending && endpoint.Ended(exchange)) break;
      ASSERT_OK(endpoint.Poll(/*wait=*/false, members.cancel()));
    }
    while (!endpoint.Idle()) ASSERT_OK(endpoint.Poll(/*wait=*/true, members.cancel()));
  }
  static void SendOne(Members& members, uint32_t self, uint32_t exchange, uint32_t group, uint32_t number,
                      bool last = false) {
    Endpoint& endpoint = members[self];
    std::optional<Endpoint::Buffer> buffer;
    while (!(buffer = endpoint.GetFree(exchange, group)).has_value())
      ASSERT_OK(endpoint.Poll(/*wait=*/true, members.cancel()));
    const auto sent = endpoint.Send(*buffer, {Fill(buffer->payload, {self, number}), 1, last});
    ASSERT_OK(sent.status());
    ASSERT_TRUE(*sent) << "no credit for " << number;
  }
  static Endpoint::Message Receive(Members& members, uint32_t self, uint32_t first, uint32_t end) {
    while (true) {
      if (const auto message = members[self].GetData(first, end); message.has_value()) return *message;
      const absl::Status status = members[self].Poll(/*wait=*/true, members.cancel());
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return {};
    }
  }
};

TEST_P(ExchangeConformance, AllSendToAllInOrderAndInBothDirectionsAtOnce) {
  constexpr uint32_t kCount = 300;
  EndpointOptions options = Options({RepartitionAmong(3)});
  options.credits = 2;
  Members members(GetParam(), 3, options);
  members.Connect();
  members.OnAll([&](uint32_t self) {
    std::vector<uint32_t> next(3);
    Talk(members, self, 0, kCount, [&](const Endpoint::Message& message) {
      const Stamp stamp = StampOf(message);
      EXPECT_EQ(stamp.sender, message.sender);
      EXPECT_EQ(stamp.number, next[stamp.sender]++);
      EXPECT_EQ(message.rows, stamp.number);
      EXPECT_EQ(message.last, stamp.number + 1 == kCount);
    });
    EXPECT_EQ(next, std::vector<uint32_t>(3, kCount));
  });
  for (uint32_t m = 0; m < 3; ++m) {
    EXPECT_EQ(members[m].sent_messages(), 2 * kCount) << "its own are not sent";
    EXPECT_GT(members[m].sent_bytes(), 2 * kCount * sizeof(MessageHeader));
    EXPECT_EQ(members[m].discarded(), 0u);
  }
}

TEST_P(ExchangeConformance, OneGroupOfAllIsABroadcastAndGroupsOfSomeAMulticast) {
  constexpr uint32_t kCount = 50;
  Members members(GetParam(), 3, Options({BroadcastAmong(3), {{0, 1}, {2}}}));
  members.Connect();
  members.OnAll([&](uint32_t self) {
    for (const uint32_t exchange : {0u, 1u}) {
      std::vector<uint32_t> next(3);
      Talk(members, self, exchange, kCount, [&](const Endpoint::Message& message) {
        EXPECT_EQ(StampOf(message).number, next[message.sender]++);
      });
      EXPECT_EQ(next, std::vector<uint32_t>(3, kCount));
    }
  });
}

TEST_P(ExchangeConformance, RowsOfOnesOwnAreNotSent) {
  Members members(GetParam(), 1, Options({RepartitionAmong(1)}));
  members.Connect();
  Endpoint& endpoint = members[0];
  SendOne(members, 0, 0, 0, 0);
  SendOne(members, 0, 0, 0, 1, /*last=*/true);
  EXPECT_FALSE(endpoint.GetFree(0, 0).has_value()) << "both buffers hold what has not been read";
  EXPECT_FALSE(endpoint.Idle());
  for (const uint32_t number : {0u, 1u}) {
    EXPECT_FALSE(endpoint.Ended(0));
    const auto message = endpoint.GetData(0, 1);
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(StampOf(*message).number, number);
    ASSERT_OK(endpoint.Release(*message));
  }
  EXPECT_TRUE(endpoint.Ended(0));
  EXPECT_TRUE(endpoint.Idle());
  EXPECT_TRUE(endpoint.GetFree(0, 0).has_value());
  EXPECT_EQ(endpoint.sent_messages(), 0u);
}

TEST_P(ExchangeConformance, ASenderWithoutCreditIsHeldUpOnThatExchangeAlone) {
  Members members(GetParam(), 2, Options({RepartitionAmong(2), RepartitionAmong(2)}));
  members.Connect();
  for (uint32_t number = 0; number < 4; ++number) SendOne(members, 0, 0, 1, number);
  std::optional<Endpoint::Buffer> buffer;
  while (!(buffer = members[0].GetFree(0, 1)).has_value())
    ASSERT_OK(members[0].Poll(/*wait=*/true, members.cancel()));
  const uint32_t bytes = Fill(buffer->payload, {0, 4});
  const auto refused = members[0].Send(*buffer, {bytes, 1, false});
  ASSERT_OK(refused.status());
  EXPECT_FALSE(*refused);
  SendOne(members, 0, 1, 1, 0);
  // A message of the later exchange has arrived too, and is taken first.
  Endpoint::Message message = Receive(members, 1, 1, 2);
  EXPECT_EQ(message.exchange, 1);
  ASSERT_OK(members[1].Release(message));
  for (uint32_t number = 0; number < 4; ++number) {
    message = Receive(members, 1, 0, 2);
    EXPECT_EQ(message.exchange, 0);
    EXPECT_EQ(StampOf(message).number, number);
    ASSERT_OK(members[1].Release(message));
  }
  // The same buffer, with the same contents, once there is credit.
  absl::StatusOr<bool> sent = false;
  while (sent.ok() && !*sent) {
    ASSERT_OK(members[0].Poll(/*wait=*/true, members.cancel()));
    sent = members[0].Send(*buffer, {bytes, 1, false});
  }
  ASSERT_OK(sent.status());
  message = Receive(members, 1, 0, 2);
  EXPECT_EQ(StampOf(message).number, 4u);
}

TEST_P(ExchangeConformance, TheHighestOfTheWantedExchangesComesFirst) {
  Members members(GetParam(), 2, Options({RepartitionAmong(2), RepartitionAmong(2), RepartitionAmong(2)}));
  members.Connect();
  for (const uint32_t exchange : {0u, 2u, 1u}) SendOne(members, 0, exchange, 1, exchange);
  const Endpoint::Message last = Receive(members, 1, 2, 3);
  EXPECT_EQ(last.exchange, 2);
  const Endpoint::Message middle = Receive(members, 1, 0, 2);
  // Both were sent earlier: messages of one sender arrive in order.
  const Endpoint::Message other = Receive(members, 1, 0, 2);
  EXPECT_EQ(middle.exchange + other.exchange, 1);
  EXPECT_FALSE(members[1].GetData(0, 3).has_value());
}

TEST_P(ExchangeConformance, AStreamEndsWhenAllSendersHaveEndedAndAllIsReleased) {
  Members members(GetParam(), 3, Options({RepartitionAmong(3)}));
  members.Connect();
  SendOne(members, 0, 0, 2, 0, /*last=*/true);
  SendOne(members, 2, 0, 2, 0, /*last=*/true);
  for (int i = 0; i < 2; ++i) ASSERT_OK(members[2].Release(Receive(members, 2, 0, 1)));
  EXPECT_FALSE(members[2].Ended(0));
  SendOne(members, 1, 0, 2, 0);
  SendOne(members, 1, 0, 2, 1, /*last=*/true);
  ASSERT_OK(members[2].Release(Receive(members, 2, 0, 1)));
  const Endpoint::Message last = Receive(members, 2, 0, 1);
  EXPECT_FALSE(members[2].Ended(0));
  ASSERT_OK(members[2].Release(last));
  EXPECT_TRUE(members[2].Ended(0));
}

TEST_P(ExchangeConformance, AMemberThatHasDoneAllMayLeaveBeforeTheOthers) {
  Members members(GetParam(), 3, Options({RepartitionAmong(3)}));
  members.Connect();
  const auto gone = members.fabric(0).CreateEvent();
  members.OnAll([&](uint32_t self) {
    if (self == 2) {
      // It sends its last messages to member 0 first, and to member 1 once 0 is gone.
      SendOne(members, 2, 0, 0, 0, /*last=*/true);
      SendOne(members, 2, 0, 2, 0, /*last=*/true);
    } else {
      for (uint32_t to = 0; to < 3; ++to) SendOne(members, self, 0, to, 0, /*last=*/true);
    }
    Endpoint& endpoint = members[self];
    if (self == 2) {
      ASSERT_TRUE(gone->Wait(members.Soon()));
      SendOne(members, 2, 0, 1, 0, /*last=*/true);
    }
    while (!endpoint.Ended(0)) ASSERT_OK(endpoint.Release(Receive(members, self, 0, 1)));
    while (!endpoint.Idle()) ASSERT_OK(endpoint.Poll(/*wait=*/true, members.cancel()));
    if (self == 0) {
      members.Leave(0);
      gone->Set();
    }
  });
}

TEST_P(ExchangeConformance, MessagesOfAnotherAttemptAreDiscarded) {
  Members members(GetParam(), 2, Options({RepartitionAmong(2)}));
  members.Connect();
  for (uint32_t number = 0; number < 3; ++number) SendOne(members, 0, 0, 1, number);
  SendOne(members, 1, 0, 1, 0);
  ASSERT_OK(members[1].Release(Receive(members, 1, 0, 1)));
  for (uint32_t m = 0; m < 2; ++m) ASSERT_OK(members[m].Begin(/*stage=*/0, /*attempt=*/78));
  // The messages need more credit than there is at once: all of it is back.
  members.OnAll([&](uint32_t self) {
    std::vector<uint32_t> next(2);
    Talk(members, self, 0, 20, [&](const Endpoint::Message& message) {
      EXPECT_EQ(StampOf(message).number, next[message.sender]++);
    });
    EXPECT_EQ(next, std::vector<uint32_t>(2, 20));
  });
  EXPECT_GE(members[1].discarded(), 1u);
  EXPECT_LE(members[1].discarded(), 3u);
}

TEST_P(ExchangeConformance, ALostMemberIsNamed) {
  Members members(GetParam(), 3, Options({RepartitionAmong(3)}));
  members.Connect();
  members.Lose(1);
  members.OnAll([&](uint32_t self) {
    absl::Status status;
    while (status.ok()) status = members[self].Poll(/*wait=*/true, members.cancel());
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "member 1")) << status;
    EXPECT_TRUE(status.GetPayload(kExchangeMemberLost).has_value());
  });
}

TEST_P(ExchangeConformance, AMemberThatDoesNotComeIsNamed) {
  Members members(GetParam(), 3, Options({RepartitionAmong(3)}));
  std::vector<std::string> addresses = members.addresses();
  members.Lose(1);
  members.OnAll([&](uint32_t self) {
    const Deadline deadline = members.fabric(0).clock().After(2'000'000);
    const absl::Status status = members[self].Connect(addresses, deadline, members.cancel());
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "member 1")) << status;
  });
}

TEST_P(ExchangeConformance, WaitingEndsSoonAfterTheQueryIsCancelled) {
  Members members(GetParam(), 2, Options({RepartitionAmong(2)}));
  members.Connect();
  members.OnAll([&](uint32_t self) {
    if (self == 0) {
      members.Cancel();
      return;
    }
    absl::Status status;
    while (status.ok()) status = members[1].Poll(/*wait=*/true, members.cancel());
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
}

TEST_P(ExchangeConformance, WaitingForMembersThatStandStillHasABound) {
  EndpointOptions options = Options({RepartitionAmong(2)});
  options.timeout_us = 50'000;
  Members members(GetParam(), 2, options);
  members.Connect();
  absl::Status status;
  while (status.ok()) status = members[1].Poll(/*wait=*/true, members.cancel());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

INSTANTIATE_TEST_SUITE_P(Exchange, ExchangeConformance,
                         testing::Values(Subject{Design::kSendReceive, fabric::Kind::kSim},
                                         Subject{Design::kSendReceive, fabric::Kind::kShm},
                                         Subject{Design::kSendReceive, fabric::Kind::kTcp}),
                         NameOf);

}  // namespace
}  // namespace nam::execution
