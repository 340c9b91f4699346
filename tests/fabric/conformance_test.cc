#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/fixture.h"

/// One-sided operations: what every provider promises in fabric.h. Messages, connections and lost
/// peers have files of their own beside this one.
namespace nam::fabric::conformance {
namespace {

constexpr size_t kSizes[] = {0, 1, 7, 8, 4095, 64 << 10, 1 << 20};

TEST_F(Conformance, ReadsAndWritesEverySizeAndNothingElse) {
  for (const size_t bytes : kSizes) {
    for (const size_t offset : {64, 67}) {
      for (const size_t local_offset : {128, 129}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes at " << offset << " from " << local_offset);
        std::fill_n(region_->data(), offset + bytes + 64, std::byte{0xee});
        FillPattern(local_->data() + local_offset, bytes, 5);
        ASSERT_TRUE(Run(WorkRequest::Write(1, local_->Slice(local_offset, bytes), At(offset))).ok());
        EXPECT_TRUE(HasPattern(region_->data() + offset, bytes, 5));
        EXPECT_EQ(region_->data()[offset - 1], std::byte{0xee});
        EXPECT_EQ(region_->data()[offset + bytes], std::byte{0xee});

        const size_t into = (2 << 20) + local_offset;
        std::fill_n(local_->data() + into - 1, bytes + 2, std::byte{0xdd});
        ASSERT_TRUE(Run(WorkRequest::Read(2, local_->Slice(into, bytes), At(offset))).ok());
        EXPECT_TRUE(HasPattern(local_->data() + into, bytes, 5));
        EXPECT_EQ(local_->data()[into - 1], std::byte{0xdd});
        EXPECT_EQ(local_->data()[into + bytes], std::byte{0xdd});
      }
    }
  }
}

TEST_F(Conformance, MemoryIsZeroedAndReachesToItsLastByte) {
  ASSERT_TRUE(Run(WorkRequest::Read(1, local_->Slice(0, 8), At(kRegionBytes - 8))).ok());
  EXPECT_EQ(LocalWord(0), 0u);
  const auto odd = Allocate(*server_, 4097);
  EXPECT_TRUE(Run(WorkRequest::Read(2, local_->Slice(0, 1), {odd->rkey(), 4096})).ok());
  EXPECT_EQ(Run(WorkRequest::Read(3, local_->Slice(0, 1), {odd->rkey(), 4097})).status,
            CompletionStatus::kRemoteAccessError);
}

TEST_F(Conformance, BatchesCompleteInPostingOrder) {
  std::vector<WorkRequest> batch;
  for (uint64_t i = 0; i < 100; ++i) {
    const LocalBuffer local = local_->Slice(i * 8, 8);
    switch (i % 4) {
      case 0:
        batch.push_back(WorkRequest::Write(i, local, At(i * 8)));
        break;
      case 1:
        batch.push_back(WorkRequest::Read(i, local_->Slice(4096, 64 << 10), At(0)));
        break;
      case 2:
        batch.push_back(WorkRequest::FetchAdd(i, local, At(8 << 10), 1));
        break;
      case 3:
        batch.push_back(WorkRequest::CompareAndSwap(i, local, At(16 << 10), i / 4, i / 4 + 1));
        break;
    }
  }
  ASSERT_OK(queue_pair_->Post(batch));
  for (uint64_t i = 0; i < batch.size(); ++i) {
    const Completion completion = Next();
    EXPECT_TRUE(completion.ok());
    EXPECT_EQ(completion.id, i);
    EXPECT_EQ(completion.opcode, batch[i].opcode);
  }
  EXPECT_EQ(RemoteWord(8 << 10), 25u);
  EXPECT_EQ(RemoteWord(16 << 10), 25u);
  Completion none;
  EXPECT_EQ(completions_->Poll({&none, 1}), 0u);
}

TEST_F(Conformance, UnsignaledRequestsKeepTheirPlacesUntilASignaledOneCompletes) {
  const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
  const auto write = [&](uint64_t id, Signal signal) {
    const WorkRequest request = WorkRequest::Write(id, local_->Slice(id * 8, 8), At(id * 8), signal);
    return pair->Post({&request, 1});
  };
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t id = 0; id < 7; ++id) ASSERT_OK(write(id, Signal::kUnsignaled));
    ASSERT_OK(write(7, Signal::kSignaled));
    EXPECT_TRUE(absl::IsResourceExhausted(write(8, Signal::kSignaled)));
    EXPECT_EQ(Next().id, 7u);
  }
  for (uint64_t id = 0; id < 8; ++id) ASSERT_OK(write(id, Signal::kUnsignaled));
  EXPECT_TRUE(absl::IsResourceExhausted(write(8, Signal::kSignaled)));
}

TEST_F(Conformance, PostsAllOrNone) {
  const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
  std::fill_n(local_->data(), 9 * 8, std::byte{0x77});
  std::vector<WorkRequest> batch;
  for (uint64_t id = 0; id < 9; ++id)
    batch.push_back(WorkRequest::Write(id, local_->Slice(id * 8, 8), At(id * 8)));
  EXPECT_TRUE(absl::IsResourceExhausted(pair->Post(batch)));
  batch.resize(7);
  batch.push_back(WorkRequest::FetchAdd(8, local_->Slice(0, 4), At(512), 1));
  EXPECT_TRUE(absl::IsInvalidArgument(pair->Post(batch)));
  EXPECT_EQ(RemoteWord(0), 0u);
  batch.pop_back();
  ASSERT_OK(pair->Post(batch));
  for (uint64_t id = 0; id < 7; ++id) EXPECT_EQ(Next().id, id);
}

TEST_F(Conformance, RefusesWhatNoProviderWouldTake) {
  const auto post = [&](WorkRequest request) { return queue_pair_->Post({&request, 1}); };
  const LocalBuffer too_long{local_->data(), kMaxMessageBytes + 1, local_->lkey()};
  EXPECT_TRUE(absl::IsInvalidArgument(post(WorkRequest::Read(1, too_long, At(0)))));
  EXPECT_TRUE(absl::IsInvalidArgument(post(WorkRequest::Write(1, too_long, At(0)))));
  EXPECT_TRUE(absl::IsInvalidArgument(post(WorkRequest::Send(1, local_->Slice(0, kMaxSendBytes + 1)))));
  EXPECT_TRUE(absl::IsInvalidArgument(post(WorkRequest::FetchAdd(1, local_->Slice(0, 16), At(0), 1))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(post(WorkRequest::CompareAndSwap(1, local_->Slice(0, 4), At(0), 0, 1))));
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReady);
  EXPECT_EQ(RemoteWord(0), 0u);
}

TEST_F(Conformance, InlineBuffersAreFreeAtOnce) {
  const auto pair = NewQueuePair({.send_depth = 64, .receive_depth = 0, .inline_bytes_max = 64});
  for (uint64_t id = 0; id < 64; ++id) {
    FillPattern(local_->data(), 64, static_cast<uint32_t>(id));
    WorkRequest request = WorkRequest::Write(id, {local_->data(), 64, local_->lkey()}, At(id * 64));
    request.inlined = true;
    ASSERT_OK(pair->Post({&request, 1}));
    std::fill_n(local_->data(), 64, std::byte{0});
  }
  for (uint64_t id = 0; id < 64; ++id) EXPECT_TRUE(Next().ok());
  for (uint32_t id = 0; id < 64; ++id) EXPECT_TRUE(HasPattern(region_->data() + id * 64, 64, id));

  WorkRequest request = WorkRequest::Write(1, local_->Slice(0, 65), At(0));
  request.inlined = true;
  EXPECT_TRUE(absl::IsInvalidArgument(pair->Post({&request, 1})));
  request = WorkRequest::Read(1, local_->Slice(0, 8), At(0));
  request.inlined = true;
  EXPECT_TRUE(absl::IsInvalidArgument(pair->Post({&request, 1})));
}

TEST_F(Conformance, AtomicsReturnTheOldValue) {
  EXPECT_TRUE(Run(WorkRequest::FetchAdd(1, local_->Slice(0, 8), At(8), 5)).ok());
  EXPECT_EQ(LocalWord(0), 0u);
  EXPECT_TRUE(Run(WorkRequest::FetchAdd(2, local_->Slice(0, 8), At(8), uint64_t{0} - 2)).ok());
  EXPECT_EQ(LocalWord(0), 5u);
  EXPECT_TRUE(Run(WorkRequest::CompareAndSwap(3, local_->Slice(0, 8), At(8), 4, 100)).ok());
  EXPECT_EQ(LocalWord(0), 3u) << "a failed swap tells the value that was there";
  EXPECT_EQ(RemoteWord(8), 3u);
  EXPECT_TRUE(Run(WorkRequest::CompareAndSwap(4, local_->Slice(0, 8), At(8), 3, ~uint64_t{0})).ok());
  EXPECT_EQ(LocalWord(0), 3u);
  EXPECT_EQ(RemoteWord(8), ~uint64_t{0});
  EXPECT_EQ(RemoteWord(0), 0u);
  EXPECT_EQ(RemoteWord(16), 0u);
}

TEST_F(Conformance, AtomicsOfManyQueuePairsAreExact) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 500;
  const auto add = [this](int thread) {
    const auto completions = NewQueue();
    const auto pair = ConnectTo(listener_->address(), *completions);
    if (pair == nullptr) return;
    const LocalBuffer old = local_->Slice(static_cast<size_t>(thread) * 64, 8);
    const auto run = [&](const WorkRequest& request) {
      EXPECT_TRUE(pair->Post({&request, 1}).ok());
      EXPECT_TRUE(Next(*completions).ok());
      return LocalWord(static_cast<size_t>(thread) * 64);
    };
    uint64_t expected = 0;
    for (int i = 0; i < kAdds; ++i) {
      run(WorkRequest::FetchAdd(1, old, At(0), 3));
      for (bool swapped = false; !swapped;) {
        const uint64_t found = run(WorkRequest::CompareAndSwap(2, old, At(8), expected, expected + 1));
        swapped = found == expected;
        expected = swapped ? expected + 1 : found;
      }
    }
  };
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) threads.push_back(client_->StartThread("adder", [&add, i] { add(i); }));
  threads.clear();
  EXPECT_EQ(RemoteWord(0), 3u * kThreads * kAdds);
  EXPECT_EQ(RemoteWord(8), uint64_t{kThreads} * kAdds);
}

/// Random sequences against a model in plain memory.
TEST_F(Conformance, BehavesLikeMemory) {
  constexpr uint64_t kBytes = 256;
  std::array<std::byte, kBytes> model{};
  EXPECT_TRUE(rc::check("operations act like on an array", [&] {
    const auto count = *rc::gen::inRange(1, 40);
    for (int i = 0; i < count; ++i) {
      const uint64_t offset = *rc::gen::inRange<uint64_t>(0, kBytes);
      const uint64_t bytes = *rc::gen::inRange<uint64_t>(0, kBytes - offset + 1);
      const uint64_t word_offset = offset / 8 * 8;
      uint64_t word;
      std::memcpy(&word, model.data() + word_offset, 8);
      switch (*rc::gen::inRange(0, 4)) {
        case 0: {
          FillPattern(local_->data() + 1024, bytes, static_cast<uint32_t>(i));
          RC_ASSERT(Run(WorkRequest::Write(1, local_->Slice(1024, bytes), At(offset))).ok());
          std::copy_n(local_->data() + 1024, bytes, model.data() + offset);
          break;
        }
        case 1: {
          RC_ASSERT(Run(WorkRequest::Read(2, local_->Slice(2048, bytes), At(offset))).ok());
          RC_ASSERT(std::equal(model.data() + offset, model.data() + offset + bytes, local_->data() + 2048));
          break;
        }
        case 2: {
          const uint64_t addend = *rc::gen::arbitrary<uint64_t>();
          RC_ASSERT(Run(WorkRequest::FetchAdd(3, local_->Slice(0, 8), At(word_offset), addend)).ok());
          RC_ASSERT(LocalWord(0) == word);
          word += addend;
          std::memcpy(model.data() + word_offset, &word, 8);
          break;
        }
        default: {
          const uint64_t compare = *rc::gen::element(word, word + 1);
          RC_ASSERT(
              Run(WorkRequest::CompareAndSwap(4, local_->Slice(0, 8), At(word_offset), compare, 7)).ok());
          RC_ASSERT(LocalWord(0) == word);
          if (compare == word) word = 7;
          std::memcpy(model.data() + word_offset, &word, 8);
        }
      }
    }
  }));
}

TEST_F(Conformance, WritesArePlacedInOrderAndLaterReadsAreNoOlder) {
  constexpr uint64_t kRounds = 1000;
  const auto writer = client_->StartThread("writer", [this] {
    const auto completions = NewQueue();
    const auto pair = ConnectTo(listener_->address(), *completions);
    for (uint64_t round = 1; pair != nullptr && round <= kRounds; ++round) {
      for (const size_t at : {64, 128}) std::memcpy(local_->data() + at, &round, 8);
      const std::array batch = {WorkRequest::Write(1, local_->Slice(64, 8), At(0), Signal::kUnsignaled),
                                WorkRequest::Write(2, local_->Slice(128, 8), At(4096))};
      EXPECT_TRUE(pair->Post(batch).ok());
      if (!Next(*completions).ok()) return;
    }
  });
  for (uint64_t second = 0; second < kRounds;) {
    const std::array batch = {WorkRequest::Read(1, local_->Slice(512, 8), At(4096), Signal::kUnsignaled),
                              WorkRequest::Read(2, local_->Slice(576, 8), At(0))};
    ASSERT_OK(queue_pair_->Post(batch));
    ASSERT_TRUE(Next().ok());
    second = LocalWord(512);
    ASSERT_GE(LocalWord(576), second);
  }
}

/// A provider that repeats lost requests answers atomics as the first time, and omits no answer; here many
/// are in flight at once, between WRITEs and READs. On a lossy network the connection may be lost, too.
TEST_F(Conformance, AtomicsOfABatchAreExecutedOnce) {
  constexpr uint64_t kRounds = 300, kWords = 8, kNoAnswer = ~uint64_t{0};
  uint64_t words[2 * kWords] = {};  // half of them for CAS, half for FETCH_ADD, at 0, 8, …
  std::unique_ptr<CompletionQueue> completions = NewQueue();
  std::unique_ptr<QueuePair> pair = ConnectTo(listener_->address(), *completions);
  int lost = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    ASSERT_NE(pair, nullptr);
    std::vector<WorkRequest> batch;
    for (size_t i = 0; i < kWords; ++i) {
      const size_t cas = i * 8, add = (kWords + i) * 8, row = 4096 * (i + 1), copy = row + 2048;
      for (const size_t answer : {cas, add, copy}) SetLocalWord(answer, kNoAnswer);
      SetLocalWord(row, round);
      batch.push_back(WorkRequest::CompareAndSwap(1, local_->Slice(cas, 8), At(cas), words[i], words[i] + 1,
                                                  Signal::kUnsignaled));
      batch.push_back(WorkRequest::Write(2, local_->Slice(row, 1024), At(row), Signal::kUnsignaled));
      batch.push_back(WorkRequest::FetchAdd(3, local_->Slice(add, 8), At(add), 1, Signal::kUnsignaled));
      batch.push_back(WorkRequest::Read(4, local_->Slice(copy, 1024), At(row), Signal::kUnsignaled));
    }
    batch.back().signal = Signal::kSignaled;
    ASSERT_TRUE(pair->Post(batch).ok());
    if (!Next(*completions).ok()) {
      ASSERT_TRUE(LossyNetwork() && ++lost < 20);
      ASSERT_TRUE(pair->Disconnect(Soon()).ok());
      for (size_t i = 0; i < 2 * kWords; ++i) words[i] = RemoteWord(i * 8);
      pair = nullptr;
      completions = NewQueue();
      pair = ConnectTo(listener_->address(), *completions);
      continue;
    }
    for (size_t i = 0; i < 2 * kWords; ++i) EXPECT_EQ(LocalWord(i * 8), words[i]++) << "answer " << i;
    for (size_t i = 0; i < kWords; ++i) EXPECT_EQ(LocalWord(4096 * (i + 1) + 2048), round) << "READ " << i;
  }
}

/// Two clients add to their own word and then READ the other's: at least one sees the other's addition. A
/// client that sees it also sees the WRITE ahead of it.
TEST_F(Conformance, AtomicsComeAfterEarlierWritesAndBeforeLaterReads) {
  constexpr uint64_t kRounds = 1000;
  constexpr size_t kWord[] = {64, 4096};  // of either client; what it has written lies behind
  std::array<std::vector<uint64_t>, 2> seen;
  std::array<std::atomic<uint64_t>, 2> begun{};
  const auto run = [&](size_t self) {
    const auto completions = NewQueue();
    const auto pair = ConnectTo(listener_->address(), *completions);
    const size_t local = 512 * (self + 1);
    for (uint64_t round = 1; pair != nullptr && round <= kRounds; ++round) {
      std::memcpy(local_->data() + local, &round, 8);
      const std::array batch = {
          WorkRequest::Write(1, local_->Slice(local, 8), At(kWord[self] + 512), Signal::kUnsignaled),
          WorkRequest::FetchAdd(2, local_->Slice(local + 64, 8), At(kWord[self]), 1, Signal::kUnsignaled),
          WorkRequest::Read(3, local_->Slice(local + 128, 8), At(kWord[1 - self]), Signal::kUnsignaled),
          WorkRequest::Read(4, local_->Slice(local + 192, 8), At(kWord[1 - self] + 512))};
      // Together, or one would be through before the other has begun.
      begun[self] = round;
      while (begun[1 - self] < round) {
        Completion none;
        if (completions->Poll({&none, 1}) > 0) break;
      }
      EXPECT_TRUE(pair->Post(batch).ok());
      if (!Next(*completions).ok()) break;
      seen[self].push_back(LocalWord(local + 128));
      EXPECT_GE(LocalWord(local + 192), seen[self].back());
    }
    begun[self] = kRounds + 1;
  };
  auto other = client_->StartThread("other", [&run] { run(1); });
  run(0);
  other.reset();
  const uint64_t rounds = std::min(seen[0].size(), seen[1].size());
  // Where packets are lost, Soft-RoCE may lose a connection in the middle.
  ASSERT_GE(rounds, LossyNetwork() ? 1 : kRounds);
  for (uint64_t round = 1; round <= rounds; ++round) {
    EXPECT_TRUE(seen[0][round - 1] >= round || seen[1][round - 1] >= round) << "round " << round;
  }
}

TEST_F(Conformance, AlignedWordsAreNeverTorn) {
  // Neither the offset nor the length is a multiple of 8; every whole word has two equal halves.
  constexpr size_t kOffset = 4;
  constexpr size_t kBytes = 2500;
  std::atomic<bool> stop{false};
  const auto writer = client_->StartThread("writer", [&] {
    const auto completions = NewQueue();
    const auto pair = ConnectTo(listener_->address(), *completions);
    for (uint32_t round = 1; pair != nullptr && !stop; ++round) {
      for (size_t i = 0; i < kBytes; i += 4) std::memcpy(local_->data() + 4096 + kOffset + i, &round, 4);
      const size_t from = 4096 + (round % 2 == 0 ? kOffset : kOffset + 4);
      const WorkRequest write = WorkRequest::Write(1, local_->Slice(from, kBytes - 4), At(kOffset));
      EXPECT_TRUE(pair->Post({&write, 1}).ok());
      if (!Next(*completions).ok()) return;
    }
  });
  for (int round = 0; round < 2000; ++round) {
    const size_t into = 16384 + kOffset + (round % 3);
    const Completion completion = Run(WorkRequest::Read(1, local_->Slice(into, kBytes - 4), At(kOffset)));
    if (!completion.ok()) break;
    for (size_t i = 4; i + 8 <= kBytes - 4; i += 8) {
      const uint64_t word = LocalWord(into + i);
      if (word >> 32 != (word & 0xffff'ffff)) {
        ADD_FAILURE() << "torn word " << std::hex << word;
        stop = true;
        return;
      }
    }
  }
  stop = true;
}

TEST_F(Conformance, ViewShowsThePeersBytesWhereCapable) {
  FillPattern(region_->data(), 4096, 9);
  const auto view = queue_pair_->View(At(16), 1000);
  if (!client_->capabilities().in_place) {
    EXPECT_TRUE(absl::IsFailedPrecondition(view.status())) << view.status().ToString();
    return;
  }
  ASSERT_OK(view.status());
  ASSERT_EQ(view->size(), 1000u);
  EXPECT_TRUE(std::equal(view->begin(), view->end(), region_->data() + 16));
  region_->data()[20] = std::byte{0x5a};
  EXPECT_EQ((*view)[4], std::byte{0x5a});

  EXPECT_TRUE(absl::IsOutOfRange(queue_pair_->View(At(kRegionBytes - 8), 9).status()));
  EXPECT_TRUE(absl::IsOutOfRange(queue_pair_->View(At(~uint64_t{0}), 8).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(queue_pair_->View({RemoteKey{}, 0}, 8).status()));
  const auto unreadable = Allocate(*server_, 4096, Access::kWrite);
  EXPECT_TRUE(absl::IsPermissionDenied(queue_pair_->View({unreadable->rkey(), 0}, 8).status()));
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReady);

  region_.reset();
  EXPECT_TRUE(absl::IsPermissionDenied(queue_pair_->View({unreadable->rkey(), 0}, 8).status()));
  EXPECT_EQ((*view)[4], std::byte{0x5a}) << "readable until the queue pair is destroyed";
}

}  // namespace
}  // namespace nam::fabric::conformance
