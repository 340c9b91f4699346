#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "execution/exchange/endpoint.h"
#include "fabric/fabric.h"
#include "tests/execution/exchange/members.h"

/// What strangers and dishonest members can do to an endpoint that sends and receives.
namespace nam::execution {
namespace {

constexpr uint32_t kMessageBytes = 1024, kCredits = 4;

EndpointOptions TwoExchangeOptions(uint32_t members) {
  return {.exchanges = {RepartitionAmong(members), RepartitionAmong(members)},
          .message_bytes = kMessageBytes,
          .credits = kCredits,
          .stage = 3,
          .attempt = kAttempt};
}

/// A process of the cluster that sends arbitrary messages.
struct Impostor {
  Impostor(Members& members, uint32_t to)
      : fabric(members.OpenFabric()),
        region(*fabric->Allocate(size_t{1} << 20, {.access = fabric::Access::kNone})),
        completions(*fabric->CreateCompletionQueue(512)),
        pair(*fabric->Connect(members[to].address(), *completions, {.send_depth = 128, .receive_depth = 128},
                              members.Soon())) {
    for (uint64_t i = 0; i < 32; ++i) {
      const fabric::ReceiveRequest request{.id = i,
                                           .into = region->Slice((i + 1) * kMessageBytes, kMessageBytes)};
      EXPECT_TRUE(pair->PostReceive({&request, 1}).ok());
    }
  }

  static MessageHeader Hello(uint16_t sender) {
    return {.kind = MessageHeader::kHello,
            .attempt = kAttempt,
            .stage = 3,
            .payload_bytes = kMessageBytes,
            .sender = sender,
            .credit = kCredits};
  }
  static MessageHeader Rows(uint16_t sender, uint32_t payload_bytes) {
    return {.kind = MessageHeader::kRows,
            .attempt = kAttempt,
            .stage = 3,
            .rows = 1,
            .payload_bytes = payload_bytes,
            .sender = sender};
  }
  void Send(const MessageHeader& header, uint32_t bytes = sizeof(MessageHeader)) {
    std::memcpy(region->data(), &header, sizeof(header));
    const auto request = fabric::WorkRequest::Send(1000, region->Slice(0, bytes));
    EXPECT_TRUE(pair->Post({&request, 1}).ok());
    fabric::Completion done;
    // An impostor that has been turned away learns so by an error.
    do {
      ASSERT_EQ(completions->Wait({&done, 1}, fabric->clock().After(60'000'000)), 1u);
    } while (done.id != 1000);
  }

  std::unique_ptr<fabric::Fabric> fabric;
  std::unique_ptr<fabric::MemoryRegion> region;
  std::unique_ptr<fabric::CompletionQueue> completions;
  std::unique_ptr<fabric::QueuePair> pair;
};

class SendReceiveEndpointTest : public testing::TestWithParam<Subject> {};

TEST_P(SendReceiveEndpointTest, StrangersAreTurnedAwayAndHoldNobodyUp) {
  Members members(GetParam(), 2, TwoExchangeOptions(2));
  std::vector<std::unique_ptr<Impostor>> silent;
  const auto come = [&] { return silent.emplace_back(std::make_unique<Impostor>(members, 0)).get(); };
  const auto meets = members.fabric(0).StartThread("member-0", [&] {
    const absl::Status met = members[0].Connect(members.addresses(), members.Soon(), members.cancel());
    EXPECT_TRUE(met.ok()) << met;
  });
  for (int i = 0; i < 6; ++i) come();  // and say nothing
  MessageHeader hello = Impostor::Hello(1);
  hello.attempt = kAttempt + 1;
  come()->Send(hello);
  hello = Impostor::Hello(1);
  hello.stage = 4;
  come()->Send(hello);
  hello = Impostor::Hello(1);
  hello.payload_bytes = 2048;
  come()->Send(hello);
  hello = Impostor::Hello(1);
  hello.magic = 1;
  come()->Send(hello);
  come()->Send(Impostor::Hello(0));  // the receiver itself
  come()->Send(Impostor::Hello(2));  // no such member exists
  come()->Send(Impostor::Rows(1, 0));
  const absl::Status met = members[1].Connect(members.addresses(), members.Soon(), members.cancel());
  EXPECT_TRUE(met.ok()) << met;
}

/// Member 1 is an impostor that has said a correct hello. Tests state what member 0 reports about its further
/// messages.
class DishonestMember {
 public:
  explicit DishonestMember(const Subject& subject)
      : members_(subject, 2, TwoExchangeOptions(2)), impostor_(members_, 0) {
    const auto meets = members_.fabric(0).StartThread("member-0", [this] {
      const absl::Status met = members_[0].Connect(members_.addresses(), members_.Soon(), members_.cancel());
      EXPECT_TRUE(met.ok()) << met;
    });
    impostor_.Send(Impostor::Hello(1));
  }
  Impostor& impostor() { return impostor_; }
  void ExpectError(const char* what) {
    absl::Status status;
    while (status.ok()) status = members_[0].Poll(/*wait=*/true, members_.cancel());
    EXPECT_TRUE(absl::StrContains(status.message(), "member 1")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), what)) << status;
    EXPECT_TRUE(status.GetPayload(kExchangeMemberLost).has_value()) << status;
  }

 private:
  Members members_;
  Impostor impostor_;
};

TEST_P(SendReceiveEndpointTest, ADishonestMemberIsFoundOut) {
  const auto expect = [](const char* what, const std::function<void(Impostor&)>& misbehave) {
    SCOPED_TRACE(what);
    DishonestMember member(GetParam());
    misbehave(member.impostor());
    member.ExpectError(what);
  };
  expect("without a header", [](Impostor& i) { i.Send(Impostor::Rows(1, 0), 20); });
  expect("malformed message", [](Impostor& i) {
    MessageHeader header = Impostor::Rows(1, 0);
    header.magic = 0;
    i.Send(header);
  });
  expect("unknown kind", [](Impostor& i) {
    MessageHeader header = Impostor::Rows(1, 0);
    header.kind = 9;
    i.Send(header);
  });
  expect("another member", [](Impostor& i) { i.Send(Impostor::Rows(0, 0)); });
  expect("another size", [](Impostor& i) { i.Send(Impostor::Rows(1, 100)); });
  expect("another size", [](Impostor& i) { i.Send(Impostor::Rows(1, 8), sizeof(MessageHeader) + 9); });
  expect("unknown exchange", [](Impostor& i) {
    MessageHeader header = Impostor::Rows(1, 0);
    header.exchange = 2;
    i.Send(header);
  });
  expect("after its last", [](Impostor& i) {
    MessageHeader header = Impostor::Rows(1, 0);
    header.last = 1;
    i.Send(header);
    i.Send(header);
  });
  expect("more messages than", [](Impostor& i) {
    for (uint32_t n = 0; n <= kCredits; ++n) i.Send(Impostor::Rows(1, 0));
  });
  expect("another greeting", [](Impostor& i) { i.Send(Impostor::Hello(1)); });
  const auto credit = [](uint16_t exchange, uint64_t credit) {
    return [=](Impostor& i) {
      MessageHeader header = Impostor::Rows(1, 0);
      header.kind = MessageHeader::kCredit;
      header.exchange = exchange;
      header.credit = credit;
      i.Send(header);
    };
  };
  expect("credit for an unknown exchange", credit(7, kCredits));
  expect("credit that it cannot", credit(0, kCredits + 1));  // nothing has been sent to it
  expect("credit that it cannot", credit(0, kCredits - 1));
}

TEST(EndpointOptions, AreChecked) {
  const auto refused = [](const std::function<void(EndpointOptions&)>& change) {
    EndpointOptions options = TwoExchangeOptions(3);
    options.members = {"a", "b", "c"};
    EXPECT_TRUE(CheckOptions(options).ok()) << CheckOptions(options);
    change(options);
    return absl::IsInvalidArgument(CheckOptions(options));
  };
  EXPECT_TRUE(refused([](auto& o) { o.self = 3; }));
  EXPECT_TRUE(refused([](auto& o) { o.members.clear(); }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges.clear(); }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges.resize(65, RepartitionAmong(3)); }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges[0] = {{0, 1}}; }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges[0] = {{0, 1}, {1, 2}}; }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges[0] = {{0, 1, 2}, {}}; }));
  EXPECT_TRUE(refused([](auto& o) { o.exchanges[0] = {{0, 1, 2, 3}}; }));
  EXPECT_TRUE(refused([](auto& o) { o.message_bytes = 1000; }));
  EXPECT_TRUE(refused([](auto& o) { o.message_bytes = 1088 + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.message_bytes = (64 << 10) + 64; }));
  EXPECT_TRUE(refused([](auto& o) { o.credits = 3; }));
  EXPECT_TRUE(refused([](auto& o) { o.credits = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.credits = 66; }));
}

INSTANTIATE_TEST_SUITE_P(Exchange, SendReceiveEndpointTest,
                         testing::Values(Subject{Design::kSendReceive, fabric::Kind::kSim},
                                         Subject{Design::kSendReceive, fabric::Kind::kShm},
                                         Subject{Design::kSendReceive, fabric::Kind::kTcp}),
                         NameOf);

}  // namespace
}  // namespace nam::execution
