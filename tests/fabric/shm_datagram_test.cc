#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "fabric/shm/datagram_ring.h"
#include "fabric/shm/memory.h"

/// The rings in isolation: overruns, stopped or lying writers, and access rights.
namespace nam::fabric::shm {
namespace {

constexpr uint32_t kSlots = 8;

std::vector<std::byte> Payload(uint64_t number) {
  std::vector<std::byte> payload(8 + number * 37 % (kMaxDatagramBytes - 7), static_cast<std::byte>(number));
  std::memcpy(payload.data(), &number, sizeof(number));
  return payload;
}

/// The number of a whole payload.
std::optional<uint64_t> NumberOf(const std::byte* data, uint32_t bytes) {
  uint64_t number;
  if (bytes < sizeof(number)) return std::nullopt;
  std::memcpy(&number, data, sizeof(number));
  const auto expected = Payload(number);
  if (expected.size() != bytes || std::memcmp(expected.data(), data, bytes) != 0) return std::nullopt;
  return number;
}

class DatagramRingTest : public testing::Test {
 protected:
  using Outcome = DatagramRingReader::Outcome;

  static DatagramRingReader NewReader(const DatagramRingWriter& writer) {
    return DatagramRingReader::Map(writer.Descriptor().value().get(), writer.slots()).value();
  }
  static void Write(DatagramRingWriter& writer, uint64_t number) {
    const auto payload = Payload(number);
    writer.Write(payload.data(), static_cast<uint32_t>(payload.size()));
  }
  std::optional<uint64_t> Read(DatagramRingReader& reader) {
    uint32_t bytes = 0;
    if (reader.Read(into_.data(), kMaxDatagramBytes, &bytes) != Outcome::kRead) return std::nullopt;
    return NumberOf(into_.data(), bytes);
  }
  std::vector<std::byte> into_ = std::vector<std::byte>(kMaxDatagramBytes + 64, std::byte{0xee});
};

TEST_F(DatagramRingTest, ReadersHaveCursorsOfTheirOwn) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  auto early = NewReader(writer);
  Write(writer, 0);
  auto late = NewReader(writer);
  late.SkipToEnd();
  Write(writer, 1);
  EXPECT_EQ(early.Refresh() + late.Refresh(), 0u);
  EXPECT_EQ(early.waiting(), 2u);
  EXPECT_EQ(late.waiting(), 1u);
  EXPECT_EQ(Read(early), 0u);
  EXPECT_EQ(Read(late), 1u);
  EXPECT_EQ(Read(early), 1u);
  EXPECT_EQ(early.waiting() + late.waiting(), 0u);
}

TEST_F(DatagramRingTest, ALaggingReaderLosesAndCounts) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  auto reader = NewReader(writer);
  for (uint64_t i = 0; i < 3 * kSlots; ++i) Write(writer, i);
  const uint64_t lost = reader.Refresh();
  EXPECT_GE(lost, 2 * kSlots);
  EXPECT_EQ(lost + reader.waiting(), 3 * kSlots);
  for (uint64_t i = lost; i < 3 * kSlots; ++i) EXPECT_EQ(Read(reader), i);
}

TEST_F(DatagramRingTest, WhatIsOverwrittenSinceItWasSeenIsLostNotTorn) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  auto reader = NewReader(writer);
  Write(writer, 0);
  EXPECT_EQ(reader.Refresh(), 0u);
  for (uint64_t i = 1; i <= kSlots; ++i) Write(writer, i);
  uint32_t bytes = 0;
  EXPECT_EQ(reader.Read(into_.data(), kMaxDatagramBytes, &bytes), Outcome::kLost);
}

TEST_F(DatagramRingTest, AShortReceiveIsNotWrittenBeyond) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  auto reader = NewReader(writer);
  Write(writer, 5);
  reader.Refresh();
  uint32_t bytes = 0;
  EXPECT_EQ(reader.Read(into_.data(), 10, &bytes), Outcome::kTooLong);
  EXPECT_EQ(into_[10], std::byte{0xee});
}

TEST_F(DatagramRingTest, PeersCannotWrite) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  const UniqueFd descriptor = writer.Descriptor().value();
  const size_t bytes = DatagramRingBytes(kSlots);
  EXPECT_EQ(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0), MAP_FAILED);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_NE(mprotect(mapped, bytes, PROT_READ | PROT_WRITE), 0);
  munmap(mapped, bytes);
  EXPECT_NE(ftruncate(descriptor.get(), 0), 0);
}

TEST_F(DatagramRingTest, ImpossibleRingsAreRefused) {
  auto writer = DatagramRingWriter::Create(kSlots).value();
  const UniqueFd descriptor = writer.Descriptor().value();
  for (const uint32_t slots : {0u, 3u, 2 * kSlots, kDatagramSlotsMax * 2, ~0u}) {
    EXPECT_FALSE(DatagramRingReader::Map(descriptor.get(), slots).ok()) << slots;
  }
  EXPECT_FALSE(DatagramRingReader::Map(-1, kSlots).ok());
}

/// A ring with a misbehaving writer.
class LyingWriterTest : public DatagramRingTest {
 protected:
  LyingWriterTest()
      : memory_(CreateShared("nam-test", DatagramRingBytes(kSlots), PeerAccess::kReadOnly, false).value()),
        ring_(*reinterpret_cast<DatagramRing*>(memory_.mapping.data())),
        reader_(DatagramRingReader::Map(memory_.descriptor.get(), kSlots).value()) {}
  SharedMemory memory_;
  DatagramRing& ring_;
  DatagramRingReader reader_;
};

TEST_F(LyingWriterTest, OneThatStopsInTheMiddleOfASlotHoldsUpNobody) {
  ring_.slots[0].sequence = 1;
  EXPECT_EQ(reader_.Refresh(), 0u);
  EXPECT_EQ(reader_.waiting(), 0u);
  // In the middle of a slot that a lagging reader has still to read.
  for (uint64_t i = 0; i < kSlots; ++i) ring_.slots[i].sequence = 2 * i + 2;
  ring_.written = kSlots;
  ring_.slots[0].sequence = 2 * kSlots + 1;
  EXPECT_EQ(reader_.Refresh(), 0u);
  uint32_t bytes = 0;
  EXPECT_EQ(reader_.Read(into_.data(), kMaxDatagramBytes, &bytes), Outcome::kLost);
  EXPECT_EQ(reader_.Read(into_.data(), kMaxDatagramBytes, &bytes), Outcome::kRead);
}

TEST_F(LyingWriterTest, NonsenseStaysWithinBounds) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto any = [&]() -> uint64_t {
    const std::array<uint64_t, 5> values{random(), random() % 64, random() % (2 * kMaxDatagramBytes), 0,
                                         ~uint64_t{0}};
    return values[random() % values.size()];
  };
  for (int round = 0; round < 100'000; ++round) {
    DatagramSlot& slot = ring_.slots[random() % kSlots];
    if (random() % 2 == 0) ring_.written = any();
    if (random() % 2 == 0) slot.sequence = any();
    slot.bytes = static_cast<uint32_t>(any());
    reader_.Refresh();
    ASSERT_LE(reader_.waiting(), kSlots);
    while (reader_.waiting() > 0) {
      const auto capacity = static_cast<uint32_t>(random() % (kMaxDatagramBytes + 1));
      uint32_t bytes = 0;
      const Outcome outcome = reader_.Read(into_.data(), capacity, &bytes);
      ASSERT_TRUE(outcome != Outcome::kRead || bytes <= capacity);
    }
  }
  EXPECT_TRUE(std::all_of(into_.begin() + kMaxDatagramBytes, into_.end(),
                          [](std::byte b) { return b == std::byte{0xee}; }));
}

TEST_F(DatagramRingTest, NothingTornIsRead) {
  // As much of the time as possible goes into the copies: all words of a payload are its number.
  constexpr uint64_t kDatagrams = 1'000'000;
  const Deadline deadline = RealClock().After(5'000'000);
  auto writer = DatagramRingWriter::Create(4).value();
  std::atomic<bool> done{false};
  auto reader = NewReader(writer);
  uint64_t read = 0, lost = 0, torn = 0;
  std::thread reading([&] {
    uint32_t bytes = 0;
    while (!done) {
      lost += reader.Refresh();
      while (reader.waiting() > 0) {
        if (reader.Read(into_.data(), kMaxDatagramBytes, &bytes) != Outcome::kRead) {
          ++lost;
          continue;
        }
        ++read;
        const bool whole =
            bytes == kMaxDatagramBytes && std::memcmp(into_.data(), into_.data() + 8, bytes - 8) == 0;
        if (!whole) ++torn;
      }
    }
  });
  std::vector<uint64_t> payload(kMaxDatagramBytes / 8);
  for (uint64_t i = 0; i < kDatagrams && !RealClock().Passed(deadline); ++i) {
    std::fill(payload.begin(), payload.end(), i);
    writer.Write(reinterpret_cast<const std::byte*>(payload.data()), kMaxDatagramBytes);
  }
  done = true;
  reading.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(read, 0u);
  EXPECT_GT(lost, 0u) << "the case shows nothing";
}

}  // namespace
}  // namespace nam::fabric::shm
