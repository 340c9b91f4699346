#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/child.h"
#include "tests/fabric/datagram_end.h"
#include "tests/fabric/fixture.h"

/// Unreliable datagrams, to one peer and to groups. A datagram may be lost on any fabric, so a case that
/// needs one resends it until it is seen. A check that nothing arrives also sends something that does.
namespace nam::fabric::conformance {
namespace {

constexpr int64_t kQuietUs = 20'000;

class DatagramConformance : public Conformance {
 protected:
  void SetUp() override {
    auto server = provider_.Open("secret");
    ASSERT_OK(server.status());
    server_ = *std::move(server);
    client_ = Take(provider_.Open("secret"));
    ASSERT_NE(client_, nullptr);
  }

  static std::unique_ptr<End> NewEnd(Fabric& fabric) {
    auto end = std::make_unique<End>(fabric);
    if (!end->valid()) return nullptr;
    end->PostReceives();
    return end;
  }
  struct Group {
    DatagramTarget target;
    std::string address;
  };
  static Group Open(End& sender, uint32_t number) {
    Group group{.target = Take(sender.pair().OpenGroup(number))};
    group.address = Take(sender.pair().GroupAddress(group.target));
    return group;
  }
  /// `count` members, in two fabrics in turn.
  std::vector<std::unique_ptr<End>> Members(const Group& group, size_t count) {
    std::vector<std::unique_ptr<End>> members;
    for (size_t i = 0; i < count; ++i) {
      members.push_back(NewEnd(i % 2 == 0 ? *client_ : *server_));
      if (members.back() == nullptr) return {};
      const absl::Status joined = members.back()->pair().Join(group.address);
      EXPECT_TRUE(joined.ok()) << joined.ToString();
    }
    return members;
  }
  static bool SeenBy(End& sender, DatagramTarget to, uint32_t seed, std::vector<End*> receivers,
                     uint32_t bytes = 100) {
    return sender.SendUntilSeen(to, bytes, seed, receivers);
  }
  /// True if a datagram of that length is among the arrivals until quiet. A resent datagram may arrive late,
  /// so lengths distinguish datagrams.
  static bool Hears(End& end, uint32_t bytes) {
    bool heard = false;
    while (const auto arrived = end.Next(end.fabric().clock().After(kQuietUs))) {
      heard = heard || arrived->bytes == bytes;
    }
    return heard;
  }
};

using ProcessDatagramConformance = DatagramConformance;

TEST_F(DatagramConformance, EverySizeBothWays) {
  const auto one = NewEnd(*client_);
  const auto other = NewEnd(*server_);
  ASSERT_TRUE(one && other);
  const uint32_t bytes_max = one->pair().bytes_max();
  ASSERT_GT(bytes_max, 1000u);
  ASSERT_LE(bytes_max, kMaxDatagramBytes);
  ASSERT_EQ(other->pair().bytes_max(), bytes_max);
  const DatagramTarget there = Take(one->pair().Resolve(other->pair().address()));
  const DatagramTarget back = Take(other->pair().Resolve(one->pair().address()));
  for (const uint32_t bytes : {0u, 1u, 7u, 8u, 39u, 40u, 41u, 999u, bytes_max - 1, bytes_max}) {
    SCOPED_TRACE(bytes);
    EXPECT_TRUE(one->SendUntilSeen(there, bytes, bytes, std::array{other.get()}));
    EXPECT_TRUE(other->SendUntilSeen(back, bytes, bytes + 1, std::array{one.get()}));
  }
}

TEST_F(DatagramConformance, TwoPairsOfOneFabricReachEachOther) {
  const auto one = NewEnd(*client_);
  const auto other = NewEnd(*client_);
  ASSERT_TRUE(one && other);
  const DatagramTarget there = Take(one->pair().Resolve(other->pair().address()));
  EXPECT_TRUE(SeenBy(*one, there, 1, {other.get()}));
  const DatagramTarget itself = Take(one->pair().Resolve(one->pair().address()));
  EXPECT_TRUE(SeenBy(*one, itself, 2, {one.get()}, 200)) << "one's own address is no group";
  EXPECT_FALSE(Hears(*other, 200));
}

TEST_F(DatagramConformance, ManySendersReachOneReceiver) {
  constexpr uint32_t kSenders = 6;
  const auto receiver = NewEnd(*server_);
  ASSERT_TRUE(receiver);
  std::vector<std::unique_ptr<End>> senders;
  std::vector<DatagramTarget> targets;
  for (uint32_t i = 0; i < kSenders; ++i) {
    senders.push_back(NewEnd(*client_));
    ASSERT_TRUE(senders.back());
    targets.push_back(Take(senders.back()->pair().Resolve(receiver->pair().address())));
  }
  for (uint32_t round = 0; round < 50; ++round) {
    for (uint32_t i = 0; i < kSenders; ++i) {
      ASSERT_TRUE(SeenBy(*senders[i], targets[i], round * kSenders + i, {receiver.get()}));
    }
  }
}

TEST_F(DatagramConformance, EveryMemberOfAGroupGetsEverything) {
  uint32_t number = 0;
  for (const size_t count : {1, 2, 8}) {
    SCOPED_TRACE(count);
    End sender(*server_, {.send_depth = 64, .receive_depth = 0});
    ASSERT_TRUE(sender.valid());
    const Group group = Open(sender, ++number);
    const auto members = Members(group, count);
    ASSERT_EQ(members.size(), count);
    const uint32_t bytes_max = sender.pair().bytes_max();
    // Windows of 32; what a member still misses of one is sent again, to all.
    constexpr uint64_t kWindows = 30, kWindow = 32;
    for (uint64_t window = 0; window < kWindows; ++window) {
      std::vector<std::set<uint64_t>> missing(count);
      for (auto& numbers : missing) {
        for (uint64_t i = 0; i < kWindow; ++i) numbers.insert(window * kWindow + i);
      }
      const Deadline deadline = Soon();
      std::set<uint64_t> unsent = missing[0];
      while (!unsent.empty() && !client_->clock().Passed(deadline)) {
        for (const uint64_t sent : unsent) {
          const uint32_t bytes = NumberedBytes(sent, bytes_max);
          ASSERT_TRUE(
              sender.Send(group.target, bytes, [&](std::byte* at) { FillNumbered(at, sent, bytes); }));
        }
        unsent.clear();
        for (size_t i = 0; i < count; ++i) {
          while (!missing[i].empty()) {
            const auto arrived = members[i]->Next(client_->clock().After(kQuietUs));
            if (!arrived.has_value()) break;
            const auto got = ReadNumbered(*arrived, bytes_max);
            ASSERT_TRUE(got.has_value()) << "a datagram that was never sent";
            missing[i].erase(*got);
          }
          unsent.insert(missing[i].begin(), missing[i].end());
        }
      }
      ASSERT_TRUE(unsent.empty()) << "window " << window;
    }
  }
}

TEST_F(DatagramConformance, MembersJoinAndLeave) {
  const auto sender = NewEnd(*server_);
  const auto stays = NewEnd(*client_);
  const auto moves = NewEnd(*client_);
  ASSERT_TRUE(sender && stays && moves);
  const Group group = Open(*sender, 7);
  EXPECT_FALSE(moves->pair().Leave(group.address).ok()) << "not yet a member";
  ASSERT_OK(stays->pair().Join(group.address));
  for (uint32_t round = 0; round < 5; ++round) {
    ASSERT_OK(moves->pair().Join(group.address));
    ASSERT_TRUE(SeenBy(*sender, group.target, 2 * round, {stays.get(), moves.get()}));
    ASSERT_OK(moves->pair().Leave(group.address));
    // A length of its own: what was sent before it left may still arrive.
    const uint32_t bytes = 200 + round;
    ASSERT_TRUE(SeenBy(*sender, group.target, 2 * round + 1, {stays.get()}, bytes));
    EXPECT_FALSE(Hears(*moves, bytes));
  }
}

TEST_F(DatagramConformance, ASenderDoesNotHearItsOwnGroup) {
  const auto sender = NewEnd(*server_);
  const auto neighbour = NewEnd(*server_);
  ASSERT_TRUE(sender && neighbour);
  const Group group = Open(*sender, 8);
  ASSERT_OK(neighbour->pair().Join(group.address));
  // Whether that is refused is the provider's choice.
  sender->pair().Join(group.address).IgnoreError();
  for (uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(SeenBy(*sender, group.target, i, {neighbour.get()}));
  EXPECT_EQ(sender->Drain(kQuietUs), 0u);
}

TEST_F(DatagramConformance, GroupsAreSeparate) {
  const auto sender = NewEnd(*server_);
  const auto second_sender = NewEnd(*client_);
  const auto one = NewEnd(*client_);
  const auto other = NewEnd(*client_);
  const auto both = NewEnd(*client_);
  ASSERT_TRUE(sender && second_sender && one && other && both);
  const Group first = Open(*sender, 11);
  const Group second = Open(*sender, 12);
  const Group third = Open(*second_sender, 13);
  ASSERT_OK(one->pair().Join(first.address));
  ASSERT_OK(other->pair().Join(second.address));
  for (const Group* group : {&first, &second, &third}) ASSERT_OK(both->pair().Join(group->address));
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(SeenBy(*sender, first.target, i, {one.get(), both.get()}, 101));
    EXPECT_FALSE(Hears(*other, 101));
    ASSERT_TRUE(SeenBy(*sender, second.target, i, {other.get(), both.get()}, 102));
    EXPECT_FALSE(Hears(*one, 102));
    ASSERT_TRUE(SeenBy(*second_sender, third.target, i, {both.get()}, 103));
    EXPECT_FALSE(Hears(*one, 103) || Hears(*other, 103));
  }
}

TEST_F(DatagramConformance, ANumberIsOpenedAgainAfterItsSenderClosed) {
  const auto member = NewEnd(*client_);
  ASSERT_TRUE(member);
  for (uint32_t round = 0; round < 3; ++round) {
    const auto sender = NewEnd(round == 1 ? *client_ : *server_);
    ASSERT_TRUE(sender);
    const Group group = Open(*sender, 21);
    ASSERT_OK(member->pair().Join(group.address));
    EXPECT_TRUE(SeenBy(*sender, group.target, round, {member.get()}));
    if (round == 1) ASSERT_OK(member->pair().Leave(group.address));
  }
}

TEST_F(DatagramConformance, NonsenseAddressesAreRefused) {
  const auto end = NewEnd(*client_);
  const auto peer = NewEnd(*server_);
  ASSERT_TRUE(end && peer);
  const Group group = Open(*peer, 31);
  for (const std::string& address :
       {std::string(), std::string("nonsense"), std::string(5000, 'x'), std::string("\0\0", 2),
        std::string("/"), std::string("1.2.3.4:5/"), peer->pair().address() + "x", group.address + "x"}) {
    EXPECT_FALSE(end->pair().Resolve(address).ok()) << address;
    EXPECT_FALSE(end->pair().Join(address).ok()) << address;
    EXPECT_FALSE(end->pair().Leave(address).ok()) << address;
  }
  EXPECT_FALSE(end->pair().Resolve(group.address).ok()) << "only its sender sends to a group";
  EXPECT_FALSE(end->pair().Join(peer->pair().address()).ok()) << "not a group";
  EXPECT_FALSE(end->pair().GroupAddress({77}).ok());
  const DatagramTarget single = Take(end->pair().Resolve(peer->pair().address()));
  EXPECT_FALSE(end->pair().GroupAddress(single).ok());
  EXPECT_TRUE(SeenBy(*end, single, 1, {peer.get()}));
}

TEST_F(DatagramConformance, WithoutAReceiveADatagramIsDroppedAndCounted) {
  const auto sender = NewEnd(*client_);
  End receiver(*server_);
  ASSERT_TRUE(sender && receiver.valid());
  const DatagramTarget there = Take(sender->pair().Resolve(receiver.pair().address()));
  const Deadline deadline = Soon();
  do {
    ASSERT_TRUE(sender->SendPattern(there, 64, 1));
    EXPECT_FALSE(receiver.Next(client_->clock().After(1000)).has_value());
  } while (provider_.counts_dropped_datagrams() && server_->datagram_drops().no_receive == 0 &&
           !client_->clock().Passed(deadline));
  if (provider_.counts_dropped_datagrams()) {
    EXPECT_GT(server_->datagram_drops().no_receive, 0u);
  }
  receiver.PostReceives();
  EXPECT_TRUE(SeenBy(*sender, there, 2, {&receiver}));
}

TEST_F(DatagramConformance, ADatagramLongerThanItsReceiveIsDropped) {
  const auto sender = NewEnd(*client_);
  End receiver(*server_);
  ASSERT_TRUE(sender && receiver.valid());
  const DatagramTarget there = Take(sender->pair().Resolve(receiver.pair().address()));
  const ReceiveRequest brief{.id = 0, .into = receiver.Slot(0, kDatagramHeadroomBytes + 16)};
  ASSERT_OK(receiver.pair().PostReceive({&brief, 1}));
  const Deadline deadline = Soon();
  do {
    ASSERT_TRUE(sender->SendPattern(there, 17, 1));
    EXPECT_FALSE(receiver.Next(client_->clock().After(1000)).has_value());
  } while (provider_.counts_dropped_datagrams() && server_->datagram_drops().no_receive == 0 &&
           !client_->clock().Passed(deadline));
  if (provider_.counts_dropped_datagrams()) {
    EXPECT_GT(server_->datagram_drops().no_receive, 0u);
  }
  const ReceiveRequest exact{.id = 1, .into = receiver.Slot(1, kDatagramHeadroomBytes + 16)};
  ASSERT_OK(receiver.pair().PostReceive({&exact, 1}));
  EXPECT_TRUE(sender->SendUntilSeen(there, 16, 2, std::array{&receiver}));
}

TEST_F(DatagramConformance, WhatCannotBeSentIsRefusedAtPost) {
  const auto sender = NewEnd(*client_);
  const auto receiver = NewEnd(*server_);
  ASSERT_TRUE(sender && receiver);
  DatagramQueuePair& pair = sender->pair();
  const DatagramTarget there = Take(pair.Resolve(receiver->pair().address()));
  const LocalBuffer good = sender->Slot(sender->slots() - 1, 8);
  const LocalBuffer long_one = sender->Slot(sender->slots() - 2, pair.bytes_max() + 1);
  const std::array too_long{DatagramRequest{.id = 1, .local = good, .to = there},
                            DatagramRequest{.id = 2, .local = long_one, .to = there}};
  EXPECT_TRUE(absl::IsInvalidArgument(pair.Post(too_long)));
  const std::array nowhere{DatagramRequest{.id = 3, .local = good, .to = there},
                           DatagramRequest{.id = 4, .local = good, .to = {there.handle + 1000}}};
  EXPECT_TRUE(absl::IsInvalidArgument(pair.Post(nowhere)));
  EXPECT_TRUE(SeenBy(*sender, there, 5, {receiver.get()})) << "and nothing else completes";
  EXPECT_FALSE(Hears(*receiver, 8));
}

TEST_F(DatagramConformance, ABufferThatIsNotRegisteredIsNotSent) {
  const auto sender = NewEnd(*client_);
  const auto receiver = NewEnd(*server_);
  ASSERT_TRUE(sender && receiver);
  const DatagramTarget there = Take(sender->pair().Resolve(receiver->pair().address()));
  ASSERT_TRUE(SeenBy(*sender, there, 1, {receiver.get()}));
  std::array<std::byte, 64> foreign{};
  LocalBuffer buffer = sender->Slot(0, 64);
  buffer.data = foreign.data();
  const DatagramRequest request{.id = 9, .signal = Signal::kUnsignaled, .local = buffer, .to = there};
  ASSERT_OK(sender->pair().Post({&request, 1}));
  const Completion completion = Next(sender->completions());
  EXPECT_EQ(completion.id, 9u);
  EXPECT_EQ(completion.status, CompletionStatus::kLocalError);
  EXPECT_FALSE(Hears(*receiver, 64));
}

TEST_F(DatagramConformance, QueuesAreBoundedAllOrNone) {
  const auto receiver = NewEnd(*server_);
  End sender(*client_, {.send_depth = 4, .receive_depth = 3});
  ASSERT_TRUE(receiver && sender.valid());
  const DatagramTarget there = Take(sender.pair().Resolve(receiver->pair().address()));
  const std::vector<DatagramRequest> requests(5, {.id = 1, .local = sender.Slot(6, 8), .to = there});
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().Post(requests)));
    ASSERT_OK(sender.pair().Post(std::span(requests).first(3)));
    EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().Post(std::span(requests).first(2))));
    ASSERT_OK(sender.pair().Post(std::span(requests).first(1)));
    EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().Post(std::span(requests).first(1))));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(Next(sender.completions()).ok());
  }
  const std::vector<ReceiveRequest> receives(4, {.id = 1, .into = sender.Slot(0, 4136)});
  EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().PostReceive(receives)));
  ASSERT_OK(sender.pair().PostReceive(std::span(receives).first(3)));
  EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().PostReceive(std::span(receives).first(1))));
  const auto queue = NewQueue(10);
  const auto too_deep = client_->CreateDatagramQueuePair(*queue, {.send_depth = 4, .receive_depth = 7});
  EXPECT_TRUE(absl::IsResourceExhausted(too_deep.status())) << too_deep.status().ToString();
  EXPECT_TRUE(client_->CreateDatagramQueuePair(*queue, {.send_depth = 4, .receive_depth = 6}).ok());
  EXPECT_TRUE(client_->CreateDatagramQueuePair(*queue, {.send_depth = 10, .receive_depth = 0}).ok())
      << "the room comes back";
}

TEST_F(DatagramConformance, UnsignaledSendsKeepTheirPlaceUntilASignaledOneCompletes) {
  const auto receiver = NewEnd(*server_);
  End sender(*client_, {.send_depth = 4, .receive_depth = 0});
  ASSERT_TRUE(receiver && sender.valid());
  const DatagramTarget there = Take(sender.pair().Resolve(receiver->pair().address()));
  for (uint64_t round = 0; round < 16; ++round) {
    std::vector<DatagramRequest> requests(
        3, {.id = 0, .signal = Signal::kUnsignaled, .local = sender.Slot(0, 8), .to = there});
    ASSERT_OK(sender.pair().Post(requests));
    Completion none;
    EXPECT_EQ(sender.completions().Poll({&none, 1}), 0u);
    EXPECT_TRUE(absl::IsResourceExhausted(sender.pair().Post(std::span(requests).first(2))));
    requests[0].id = round;
    requests[0].signal = Signal::kSignaled;
    ASSERT_OK(sender.pair().Post(std::span(requests).first(1)));
    const Completion completion = Next(sender.completions());
    EXPECT_TRUE(completion.ok());
    EXPECT_EQ(completion.id, round);
  }
}

TEST_F(DatagramConformance, SeveralPairsShareACompletionQueue) {
  constexpr uint32_t kPairs = 3;
  const auto sender = NewEnd(*server_);
  ASSERT_TRUE(sender);
  const auto queue = NewQueue(512);
  const auto memory = Allocate(*client_, kPairs * 8192, Access::kNone);
  std::vector<std::unique_ptr<DatagramQueuePair>> pairs;
  for (uint32_t i = 0; i < kPairs; ++i) {
    pairs.push_back(Take(client_->CreateDatagramQueuePair(*queue, {.send_depth = 8, .receive_depth = 8})));
    ASSERT_TRUE(pairs.back());
    const ReceiveRequest receive{.id = i, .into = memory->Slice(i * 8192, 4136)};
    ASSERT_OK(pairs.back()->PostReceive({&receive, 1}));
  }
  for (uint32_t i = 0; i < kPairs; ++i) {
    const DatagramTarget there = Take(sender->pair().Resolve(pairs[i]->address()));
    const Deadline deadline = Soon();
    Completion completion;
    do {
      ASSERT_TRUE(sender->SendPattern(there, 50, i));
    } while (queue->Wait({&completion, 1}, client_->clock().After(kQuietUs)) == 0 &&
             !client_->clock().Passed(deadline));
    EXPECT_EQ(completion.id, i);
    EXPECT_EQ(completion.queue_pair, pairs[i]->id());
    EXPECT_EQ(completion.bytes, 50u);
    EXPECT_TRUE(HasPattern(memory->data() + i * 8192 + kDatagramHeadroomBytes, 50, i));
    pairs[i].reset();
  }
}

TEST_F(DatagramConformance, ADatagramEndsItsReceiversSleep) {
  const auto sender = NewEnd(*server_);
  const auto receiver = NewEnd(*client_);
  ASSERT_TRUE(sender && receiver);
  const Group group = Open(*sender, 41);
  ASSERT_OK(receiver->pair().Join(group.address));
  const DatagramTarget there = Take(sender->pair().Resolve(receiver->pair().address()));
  for (const DatagramTarget target : {group.target, there}) {
    const auto awake = client_->CreateEvent();
    const auto sleeper = client_->StartThread("sleeper", [&] {
      EXPECT_TRUE(receiver->Next(Soon()).has_value());
      awake->Set();
    });
    const Deadline deadline = Soon();
    do {
      ASSERT_TRUE(sender->SendPattern(target, 100, 1));
    } while (!awake->Wait(server_->clock().After(kQuietUs)) && !server_->clock().Passed(deadline));
  }
}

TEST_F(DatagramConformance, StrangersAreNotHeardAndHearNothing) {
  const auto strange = Take(provider_.Open("another secret"));
  ASSERT_NE(strange, nullptr);
  const auto stranger = NewEnd(*strange);
  const auto member = NewEnd(*client_);
  const auto sender = NewEnd(*server_);
  ASSERT_TRUE(stranger && member && sender);
  const Group group = Open(*sender, 51);
  const Group strange_group = Open(*stranger, 51);
  ASSERT_OK(member->pair().Join(group.address));
  // Whether a stranger is stopped here or later is the provider's choice.
  const bool listens = stranger->pair().Join(group.address).ok();
  const bool heard = member->pair().Join(strange_group.address).ok();
  const auto target = stranger->pair().Resolve(member->pair().address());
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(stranger->SendPattern(strange_group.target, 64, 1));
    if (target.ok()) {
      ASSERT_TRUE(stranger->SendPattern(*target, 64, 2));
    }
    ASSERT_TRUE(SeenBy(*sender, group.target, 1000 + i, {member.get()}));
  }
  EXPECT_FALSE(Hears(*member, 64));
  EXPECT_EQ(stranger->Drain(kQuietUs), 0u);
  if (!provider_.counts_dropped_datagrams()) return;
  if (heard || target.ok()) {
    EXPECT_GT(client_->datagram_drops().refused, 0u);
  }
  if (listens) {
    const Deadline deadline = Soon();
    while (strange->datagram_drops().refused == 0 && !client_->clock().Passed(deadline))
      EXPECT_EQ(stranger->Drain(kQuietUs), 0u);
    EXPECT_GT(strange->datagram_drops().refused, 0u);
  }
}

TEST_F(DatagramConformance, OnlyWholeDatagramsArriveWhenReceiversLag) {
  constexpr uint64_t kDatagrams = 100'000;
  constexpr int64_t kFloodUs = 2'000'000;
  End sender(*server_, {.send_depth = 64, .receive_depth = 0});
  ASSERT_TRUE(sender.valid());
  const Group group = Open(sender, 61);
  const auto members = Members(group, 2);
  ASSERT_EQ(members.size(), 2u);
  const uint32_t bytes_max = sender.pair().bytes_max();
  const auto flooded = server_->CreateEvent();
  std::array<uint64_t, 2> received{};
  const auto receive = [&](size_t index) {
    Clock& clock = members[index]->fabric().clock();
    while (true) {
      const auto arrived = members[index]->Next(clock.After(kQuietUs));
      if (!arrived.has_value() && flooded->IsSet()) return;
      if (!arrived.has_value()) continue;
      ASSERT_TRUE(ReadNumbered(*arrived, bytes_max).has_value()) << "torn";
      if (++received[index] % 256 == 0) clock.SleepUntil(clock.After(2000));
    }
  };
  {
    const auto first = client_->StartThread("first", [&] { receive(0); });
    const auto second = server_->StartThread("second", [&] { receive(1); });
    const Deadline deadline = server_->clock().After(kFloodUs);
    for (uint64_t i = 0; i < kDatagrams && !server_->clock().Passed(deadline) && !HasFailure(); ++i) {
      const uint32_t bytes = NumberedBytes(i, bytes_max);
      EXPECT_TRUE(sender.Send(group.target, bytes, [&](std::byte* at) { FillNumbered(at, i, bytes); }));
    }
    flooded->Set();
  }
  EXPECT_GT(std::min(received[0], received[1]), 0u);
  EXPECT_TRUE(SeenBy(sender, group.target, 1, {members[0].get(), members[1].get()})) << "all is well again";
}

TEST_F(DatagramConformance, WhoIsGoneIsNotMissed) {
  const auto sender = NewEnd(*server_);
  const auto stays = NewEnd(*client_);
  ASSERT_TRUE(sender && stays);
  const Group group = Open(*sender, 71);
  ASSERT_OK(stays->pair().Join(group.address));
  auto goes = NewEnd(*client_);
  ASSERT_TRUE(goes);
  ASSERT_OK(goes->pair().Join(group.address));
  const DatagramTarget there = Take(sender->pair().Resolve(goes->pair().address()));
  ASSERT_TRUE(SeenBy(*sender, there, 1, {goes.get()}));
  ASSERT_TRUE(SeenBy(*sender, group.target, 2, {stays.get(), goes.get()}));
  goes.reset();
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(sender->SendPattern(there, 64, i)) << "completes, and is lost";
    ASSERT_TRUE(SeenBy(*sender, group.target, 3 + i, {stays.get()}));
  }
}

TEST_F(ProcessDatagramConformance, AKilledMemberCostsNobodyAnything) {
  const auto sender = NewEnd(*server_);
  const auto stays = NewEnd(*client_);
  ASSERT_TRUE(sender && stays);
  const Group group = Open(*sender, 81);
  ASSERT_OK(stays->pair().Join(group.address));
  Child child({"member", "secret", group.address});
  const auto address = child.ReadLine();
  ASSERT_TRUE(address.has_value());
  const DatagramTarget there = Take(sender->pair().Resolve(*address));
  const auto received = client_->CreateEvent();
  const auto reader = client_->StartThread("reader", [&] {
    EXPECT_EQ(child.ReadLine(), "received");
    received->Set();
  });
  uint32_t seed = 0;
  const Deadline deadline = Soon();
  while (!received->IsSet() && !server_->clock().Passed(deadline)) {
    ASSERT_TRUE(SeenBy(*sender, group.target, ++seed, {stays.get()}));
  }
  const auto killer = client_->StartThread("killer", [&] { child.Kill(); });
  const int64_t start_ns = server_->clock().NowNs();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(SeenBy(*sender, group.target, ++seed, {stays.get()}));
    ASSERT_TRUE(sender->SendPattern(there, 64, seed));
  }
  // A sender that waits for the dead does so 400 times, a peer timeout of 3 s each.
  EXPECT_LT(server_->clock().NowNs() - start_ns, 1'000 * kTimeoutUs);
}

TEST_F(ProcessDatagramConformance, AKilledSenderLeavesItsMembersUnharmed) {
  const auto member = NewEnd(*client_);
  ASSERT_TRUE(member);
  {
    Child child({"multicast", "secret", "91"});
    const auto address = child.ReadLine();
    ASSERT_TRUE(address.has_value());
    ASSERT_OK(member->pair().Join(*address));
    for (int i = 0; i < 500; ++i) {
      const auto arrived = member->Next(Soon());
      ASSERT_TRUE(arrived.has_value());
      ASSERT_TRUE(ReadNumbered(*arrived, member->pair().bytes_max()).has_value());
    }
    child.Kill();
    while (const auto arrived = member->Next(client_->clock().After(kQuietUs))) {
      ASSERT_TRUE(ReadNumbered(*arrived, member->pair().bytes_max()).has_value());
    }
  }
  const auto sender = NewEnd(*server_);
  ASSERT_TRUE(sender);
  const Group group = Open(*sender, 91);
  ASSERT_OK(member->pair().Join(group.address));
  EXPECT_TRUE(SeenBy(*sender, group.target, 1, {member.get()}));
}

}  // namespace
}  // namespace nam::fabric::conformance
