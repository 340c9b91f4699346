#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"
#include "tests/fabric/fixture.h"

/// Passive listeners that know the members of their connections, and fence them.
namespace nam::fabric::conformance {
namespace {

constexpr MemberId kOne(1), kOther(2);
constexpr int kRounds = 30;

MemberKey KeyOf(MemberId member, uint8_t salt = 0) {
  MemberKey key{};
  key[0] = static_cast<uint8_t>(member.value());
  key[1] = salt;
  return key;
}

/// Decides which members are alive.
class Owner final : public MemberKeys {
 public:
  absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) override {
    ++questions;
    std::vector<std::optional<MemberKey>> keys;
    {
      const MutexLock lock(mutex_);
      for (const MemberId member : members) {
        const auto found = living_.find(member);
        keys.push_back(found == living_.end() ? std::nullopt : std::optional(found->second));
      }
    }
    if (behind_the_answer) behind_the_answer();
    if (away) return absl::UnavailableError("the catalog is away");
    return keys;
  }
  void Join(MemberId member) {
    const MutexLock lock(mutex_);
    living_[member] = KeyOf(member);
  }
  void End(MemberId member) {
    const MutexLock lock(mutex_);
    living_.erase(member);
  }

  std::function<void()> behind_the_answer;  // after the answer is made, before it arrives
  std::atomic<bool> away{false};
  std::atomic<int> questions{0};

 private:
  Mutex mutex_;
  std::map<MemberId, MemberKey> living_;
};

class MemberConformance : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    for (const MemberId member : {kOne, kOther}) owner_.Join(member);
    gate_ = Take(server_->Listen({.address = provider_.ListenAddress(), .member_keys = &owner_}));
    ASSERT_NE(gate_, nullptr);
  }
  absl::StatusOr<std::unique_ptr<QueuePair>> TryAs(const MemberCredentials& member) {
    return client_->Connect(gate_->address(), *completions_,
                            {.send_depth = 16, .receive_depth = 0, .member = member}, Soon());
  }
  std::unique_ptr<QueuePair> As(MemberId member) { return Take(TryAs({member, KeyOf(member)})); }
  CompletionStatus Do(QueuePair& pair, Opcode opcode, uint64_t offset = 64) {
    const LocalBuffer local = local_->Slice(0, 8);
    return Run(pair, {.id = 1, .opcode = opcode, .local = local, .remote = At(offset), .swap_or_add = 1})
        .status;
  }
  /// Asks until it is so.
  bool MembersBecome(const std::vector<MemberId>& members) {
    const Deadline deadline = Soon();
    while (gate_->Members() != members) {
      if (server_->clock().Passed(deadline)) return false;
      RemoteWord(0);  // lets time pass
    }
    return true;
  }

  Owner owner_;
  std::unique_ptr<Listener> gate_;
};

TEST_F(MemberConformance, AMemberMayDoWhatKeysAllow) {
  const auto pair = As(kOne);
  ASSERT_NE(pair, nullptr);
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd}) {
    EXPECT_EQ(Do(*pair, opcode), CompletionStatus::kOk) << OpcodeName(opcode);
  }
  EXPECT_EQ(gate_->Members(), std::vector<MemberId>{kOne});
}

TEST_F(MemberConformance, AConnectionOfNobodyOnlyReads) {
  for (const Opcode opcode : {Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd}) {
    const auto pair = Take(TryAs({}));
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(Do(*pair, Opcode::kRead), CompletionStatus::kOk);
    SetLocalWord(0, 77);
    EXPECT_EQ(CompletionStatusName(Do(*pair, opcode)),
              CompletionStatusName(CompletionStatus::kRemoteAccessError))
        << OpcodeName(opcode);
  }
  EXPECT_EQ(RemoteWord(64), 0u);
  EXPECT_EQ(owner_.questions, 0);
  EXPECT_TRUE(gate_->Members().empty());
}

TEST_F(MemberConformance, RightsAreTheConnectionsNotTheProcesss) {
  const auto reads = Take(TryAs({})), writes = As(kOne);
  ASSERT_TRUE(reads != nullptr && writes != nullptr);
  EXPECT_EQ(Do(*reads, Opcode::kRead), CompletionStatus::kOk);
  EXPECT_EQ(Do(*writes, Opcode::kFetchAdd), CompletionStatus::kOk);
  EXPECT_EQ(Do(*reads, Opcode::kFetchAdd), CompletionStatus::kRemoteAccessError);
  EXPECT_EQ(RemoteWord(64), 1u);
}

TEST_F(MemberConformance, WhoCannotProveAMemberIsRefused) {
  for (const MemberCredentials& wrong :
       {MemberCredentials{kOne, KeyOf(kOther)}, MemberCredentials{kOne, MemberKey{}},
        MemberCredentials{MemberId(3), KeyOf(MemberId(3))}}) {
    EXPECT_TRUE(absl::IsPermissionDenied(TryAs(wrong).status()));
  }
  const auto honest = As(kOne);
  ASSERT_NE(honest, nullptr);
  EXPECT_TRUE(absl::IsPermissionDenied(TryAs({kOne, KeyOf(kOne, 1)}).status()))
      << "though the member is connected";
  EXPECT_EQ(Do(*honest, Opcode::kWrite), CompletionStatus::kOk);
  owner_.End(kOther);
  EXPECT_TRUE(absl::IsPermissionDenied(TryAs({kOther, KeyOf(kOther)}).status()));
  EXPECT_TRUE(MembersBecome({kOne}));
}

TEST_F(MemberConformance, ADoubtIsNoRefusal) {
  owner_.away = true;
  EXPECT_TRUE(absl::IsUnavailable(TryAs({kOne, KeyOf(kOne)}).status()));
  EXPECT_TRUE(MembersBecome({}));
  owner_.away = false;
  EXPECT_NE(As(kOne), nullptr);
}

TEST_F(MemberConformance, AConnectedMemberIsNotAskedAboutAgain) {
  const auto first = As(kOne);
  ASSERT_NE(first, nullptr);
  owner_.away = true;
  const auto second = As(kOne);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(Do(*second, Opcode::kWrite), CompletionStatus::kOk);
  EXPECT_EQ(owner_.questions, 1);
  EXPECT_TRUE(gate_->Fence(kOne, false));
  EXPECT_TRUE(absl::IsUnavailable(TryAs({kOne, KeyOf(kOne)}).status())) << "a fence ends that, too";
}

TEST_F(MemberConformance, AFenceEndsAllConnectionsOfAMemberAlone) {
  std::vector<std::unique_ptr<QueuePair>> fenced;
  for (int i = 0; i < 3; ++i) fenced.push_back(As(kOne));
  const auto other = As(kOther), nobodys = Take(TryAs({}));
  for (const auto& pair : fenced) EXPECT_EQ(Do(*pair, Opcode::kFetchAdd), CompletionStatus::kOk);
  EXPECT_EQ(Do(*other, Opcode::kFetchAdd), CompletionStatus::kOk);
  EXPECT_EQ(gate_->Members(), (std::vector<MemberId>{kOne, kOther}));
  owner_.End(kOne);
  EXPECT_TRUE(gate_->Fence(kOne, true));
  EXPECT_TRUE(gate_->Fence(kOne, true)) << "once more does no harm";
  EXPECT_EQ(gate_->Members(), std::vector<MemberId>{kOther});
  EXPECT_EQ(RemoteWord(64), 4u);
  for (const auto& pair : fenced) EXPECT_NE(Do(*pair, Opcode::kFetchAdd), CompletionStatus::kOk);
  EXPECT_EQ(RemoteWord(64), 4u);
  EXPECT_EQ(Do(*other, Opcode::kFetchAdd), CompletionStatus::kOk);
  EXPECT_EQ(Do(*nobodys, Opcode::kRead), CompletionStatus::kOk);
  EXPECT_TRUE(absl::IsPermissionDenied(TryAs({kOne, KeyOf(kOne)}).status()));
  for (const auto& pair : fenced) EXPECT_TRUE(pair->Disconnect(Soon()).ok()) << "it is over";
}

// The owner still knows the member, which ends and is fenced before its answer is heard.
TEST_F(MemberConformance, AFenceBehindTheAnswerFindsTheConnection) {
  owner_.behind_the_answer = [&] {
    owner_.End(kOne);
    EXPECT_TRUE(gate_->Fence(kOne, false));
  };
  const auto late = TryAs({kOne, KeyOf(kOne)});
  if (late.ok()) {
    EXPECT_NE(Do(**late, Opcode::kFetchAdd), CompletionStatus::kOk);
  } else {
    EXPECT_TRUE(absl::IsPermissionDenied(late.status())) << late.status();
  }
  EXPECT_EQ(RemoteWord(64), 0u);
  owner_.behind_the_answer = nullptr;
  EXPECT_TRUE(MembersBecome({}));
  EXPECT_NE(As(kOther), nullptr);
}

TEST_F(MemberConformance, OthersConnectWhileOneIsAskedAbout) {
  const auto known = As(kOther);
  const auto asked = server_->CreateEvent(), answer = server_->CreateEvent();
  owner_.behind_the_answer = [&] {
    asked->Set();
    answer->Wait(Soon());
  };
  const auto queue = NewQueue();
  std::unique_ptr<QueuePair> one;
  {
    const auto thread = client_->StartThread("connects", [&] {
      auto pair = client_->Connect(gate_->address(), *queue, {.member = {kOne, KeyOf(kOne)}}, Soon());
      if (pair.ok()) one = *std::move(pair);
      EXPECT_TRUE(pair.ok()) << pair.status();
    });
    EXPECT_TRUE(asked->Wait(Soon()));
    EXPECT_NE(Take(TryAs({})), nullptr);
    EXPECT_NE(As(kOther), nullptr);
    EXPECT_EQ(Do(*known, Opcode::kWrite), CompletionStatus::kOk);
    EXPECT_EQ(one, nullptr);
    answer->Set();
  }
  EXPECT_NE(one, nullptr);
}

TEST_F(MemberConformance, NothingIsWrittenBehindAFence) {
  const auto look = As(kOther);
  for (int round = 0; round < kRounds; ++round) {
    owner_.Join(kOne);
    const auto queue = NewQueue();
    const auto pair =
        Take(client_->Connect(gate_->address(), *queue,
                              {.send_depth = 16, .receive_depth = 0, .member = {kOne, KeyOf(kOne)}}, Soon()));
    const auto buffer = Allocate(*client_, 4096, Access::kNone);
    ASSERT_TRUE(pair != nullptr && buffer != nullptr);
    const auto under_way = client_->CreateEvent();
    uint64_t word = 0;
    {
      const auto writer = client_->StartThread("writes", [&] {
        CompletionStatus status = CompletionStatus::kOk;
        while (status == CompletionStatus::kOk) {
          status = Run(*queue, *pair, WorkRequest::FetchAdd(1, buffer->Slice(0, 8), At(128), 1)).status;
          under_way->Set();
        }
      });
      EXPECT_TRUE(under_way->Wait(Soon()));
      owner_.End(kOne);
      while (!gate_->Fence(kOne, false)) RemoteWord(0);
      word = RemoteWord(128);
    }
    ASSERT_EQ(RemoteWord(128), word) << round;
  }
  EXPECT_EQ(Do(*look, Opcode::kWrite), CompletionStatus::kOk);
}

TEST_F(MemberConformance, ConnectionsThatEndAreForgotten) {
  auto one = As(kOne), another = As(kOne);
  EXPECT_EQ(gate_->Members(), std::vector<MemberId>{kOne});
  one.reset();
  EXPECT_EQ(Do(*another, Opcode::kWrite), CompletionStatus::kOk);
  EXPECT_EQ(gate_->Members(), std::vector<MemberId>{kOne});
  another.reset();
  EXPECT_TRUE(MembersBecome({}));
}

TEST_F(MemberConformance, WithoutMemberKeysConnectionsAreNobodys) {
  const auto pair = NewQueuePair({.member = {kOne, KeyOf(kOne)}});
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(Do(*pair, Opcode::kWrite), CompletionStatus::kOk);
  EXPECT_TRUE(listener_->Members().empty());
  EXPECT_TRUE(listener_->Fence(kOne, true));
  EXPECT_EQ(Do(*pair, Opcode::kWrite), CompletionStatus::kOk);
}

}  // namespace
}  // namespace nam::fabric::conformance
