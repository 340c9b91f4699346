#include "tests/fabric/datagram_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/fabric/fixture.h"

namespace nam::fabric::conformance {
namespace {

// Sends have ids from here on; receives are numbered by their slot.
constexpr uint64_t kSendIds = uint64_t{1} << 32;
constexpr int64_t kResendUs = 20'000;

}  // namespace

End::End(Fabric& fabric, const DatagramOptions& options) : fabric_(fabric), options_(options) {
  completions_ = Take(fabric.CreateCompletionQueue(options.send_depth + options.receive_depth));
  memory_ =
      Take(fabric.Allocate(size_t{slots()} * kSlotBytes, {.access = Access::kNone, .huge_pages = false}));
  if (completions_ && memory_) pair_ = Take(fabric.CreateDatagramQueuePair(*completions_, options));
}

LocalBuffer End::Slot(uint32_t index, uint32_t bytes) const {
  return memory_->Slice(size_t{index} * kSlotBytes, bytes);
}

void End::PostReceives() {
  for (uint32_t i = 0; i < options_.receive_depth; ++i) {
    const ReceiveRequest receive{.id = i, .into = Slot(i, kDatagramHeadroomBytes + kMaxDatagramBytes)};
    ASSERT_OK(pair_->PostReceive({&receive, 1}));
  }
}

bool End::Send(DatagramTarget to, uint32_t bytes, const std::function<void(std::byte*)>& fill) {
  const LocalBuffer buffer =
      Slot(options_.receive_depth + static_cast<uint32_t>(next_send_ % options_.send_depth), bytes);
  fill(buffer.data);
  const uint64_t id = kSendIds + next_send_++;
  const DatagramRequest request{.id = id, .local = buffer, .to = to};
  const absl::Status posted = pair_->Post({&request, 1});
  EXPECT_TRUE(posted.ok()) << posted.ToString();
  if (!posted.ok()) return false;
  const Deadline deadline = fabric_.clock().After(kTimeoutUs);
  while (true) {
    const auto completion = NextCompletion(deadline);
    EXPECT_TRUE(completion.has_value()) << "a send does not complete";
    if (!completion.has_value()) return false;
    if (completion->opcode == Opcode::kReceive) {
      arrived_.push_back(*completion);
      continue;
    }
    EXPECT_EQ(completion->opcode, Opcode::kSend);
    EXPECT_EQ(completion->id, id);
    EXPECT_EQ(completion->queue_pair, pair_->id());
    EXPECT_TRUE(completion->ok());
    return completion->ok();
  }
}

bool End::SendPattern(DatagramTarget to, uint32_t bytes, uint32_t seed) {
  return Send(to, bytes, [&](std::byte* data) { FillPattern(data, bytes, seed); });
}

std::optional<Completion> End::NextCompletion(Deadline deadline) {
  Completion completion;
  if (completions_->Wait({&completion, 1}, deadline) == 0) return std::nullopt;
  return completion;
}

std::optional<Arrived> End::Next(Deadline deadline) {
  if (unposted_.has_value()) {
    const ReceiveRequest again{
        .id = *unposted_,
        .into = Slot(static_cast<uint32_t>(*unposted_), kDatagramHeadroomBytes + kMaxDatagramBytes)};
    const absl::Status posted = pair_->PostReceive({&again, 1});
    EXPECT_TRUE(posted.ok()) << posted.ToString();
    unposted_.reset();
  }
  Completion completion;
  if (!arrived_.empty()) {
    completion = arrived_.front();
    arrived_.erase(arrived_.begin());
  } else {
    const auto next = NextCompletion(deadline);
    if (!next.has_value()) return std::nullopt;
    completion = *next;
  }
  EXPECT_TRUE(completion.ok());
  EXPECT_EQ(completion.opcode, Opcode::kReceive);
  EXPECT_EQ(completion.queue_pair, pair_->id());
  EXPECT_FALSE(completion.has_immediate);
  EXPECT_LT(completion.id, options_.receive_depth);
  EXPECT_LE(completion.bytes, pair_->bytes_max());
  if (!completion.ok() || completion.id >= options_.receive_depth) return std::nullopt;
  unposted_ = completion.id;
  return Arrived{completion.bytes,
                 Slot(static_cast<uint32_t>(completion.id), kSlotBytes).data + kDatagramHeadroomBytes};
}

size_t End::Drain(int64_t quiet_us) {
  size_t count = 0;
  while (Next(fabric_.clock().After(quiet_us)).has_value()) ++count;
  return count;
}

bool End::SendUntilSeen(DatagramTarget to, uint32_t bytes, uint32_t seed, std::span<End* const> receivers) {
  std::vector<End*> missing(receivers.begin(), receivers.end());
  const Deadline deadline = fabric_.clock().After(kTimeoutUs);
  while (!missing.empty() && !fabric_.clock().Passed(deadline)) {
    if (!SendPattern(to, bytes, seed)) return false;
    std::erase_if(missing, [&](End* receiver) {
      const Deadline again = receiver->fabric().clock().After(kResendUs);
      while (const auto arrived = receiver->Next(again)) {
        if (arrived->bytes == bytes && HasPattern(arrived->payload, bytes, seed)) return true;
      }
      return false;
    });
  }
  return missing.empty();
}

uint32_t NumberedBytes(uint64_t number, uint32_t bytes_max) {
  return 8 + static_cast<uint32_t>(number * 37 % (bytes_max - 7));
}

void FillNumbered(std::byte* data, uint64_t number, uint32_t bytes) {
  std::memcpy(data, &number, sizeof(number));
  FillPattern(data + sizeof(number), bytes - sizeof(number), static_cast<uint32_t>(number));
}

std::optional<uint64_t> ReadNumbered(const Arrived& arrived, uint32_t bytes_max) {
  uint64_t number;
  if (arrived.bytes < sizeof(number)) return std::nullopt;
  std::memcpy(&number, arrived.payload, sizeof(number));
  if (arrived.bytes != NumberedBytes(number, bytes_max)) return std::nullopt;
  if (!HasPattern(arrived.payload + sizeof(number), arrived.bytes - sizeof(number),
                  static_cast<uint32_t>(number))) {
    return std::nullopt;
  }
  return number;
}

}  // namespace nam::fabric::conformance
