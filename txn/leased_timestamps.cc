#include "txn/leased_timestamps.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "txn/session.h"

namespace nam::txn {
namespace {

constexpr uint64_t kFirstReadMin = 16;
constexpr uint64_t kNextReads = 1'024;
constexpr uint64_t kWatermarkStep = 512;
constexpr int kRoundsMax = 1'024;  // of kNextReads: more than the ring has
constexpr int kClaimsMax = 16;
constexpr int64_t kNotYet = -1;  // the wait was not seen to last

}  // namespace

absl::Status LeasedTimestamps::Advance(storage::VerbBatch& batch, const StateHead& head) {
  const uint64_t last = snapshot_;
  NAM_RETURN_IF_ERROR(ReadEntries(batch, first_read_));
  next_ = head.next;
  for (int round = 0; entries_.empty(); ++round) {
    // All of them done: we are behind, perhaps by far.
    if (round == kRoundsMax)
      return absl::UnavailableError("timestamps are given out faster than they are read");
    if (round == 0) NAM_RETURN_IF_ERROR(JumpToWatermark(batch));
    NAM_RETURN_IF_ERROR(ReadEntries(batch, kNextReads));
  }
  if (RingEntry(entries_[0]).timestamp() > snapshot_ + 1) {
    // The ring has gone round since we looked last.
    const uint64_t before = snapshot_;
    NAM_RETURN_IF_ERROR(JumpToWatermark(batch));
    if (snapshot_ == before) return absl::UnavailableError("the ring of timestamps has gone round");
    return Advance(batch, head);
  }
  // As many have become done since the last time, probably, until the next: one READ for all of them.
  first_read_ = std::clamp((snapshot_ - last) * 3 / 2, kFirstReadMin, kNextReads);
  NAM_RETURN_IF_ERROR(LookAhead(batch));
  if (snapshot_ < watermark_ + kWatermarkStep) return absl::OkStatus();
  return RaiseWatermark(batch);
}

// Moves the snapshot over entries that are done; entries_ is what follows it.
absl::Status LeasedTimestamps::ReadEntries(storage::VerbBatch& batch, uint64_t count) {
  auto* const words = reinterpret_cast<uint64_t*>(batch.Scratch(count * 8));
  const uint64_t first = snapshot_ + 1;
  const uint64_t before_wrap = std::min(count, kRingEntries - first % kRingEntries);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(geometry_.entry(first)));
  batch.Read(target, reinterpret_cast<std::byte*>(words), static_cast<uint32_t>(before_wrap * 8));
  if (before_wrap < count) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target start, At(geometry_.ring()));
    batch.Read(start, reinterpret_cast<std::byte*>(words + before_wrap),
               static_cast<uint32_t>((count - before_wrap) * 8));
  }
  NAM_RETURN_IF_ERROR(batch.Execute());
  size_t done = 0;
  while (done < count && words[done] == RingEntry::Done(snapshot_ + 1).word()) {
    ++snapshot_;
    ++done;
  }
  entries_ = std::span<const uint64_t>(words, count).subspan(done);
  return absl::OkStatus();
}

absl::Status LeasedTimestamps::JumpToWatermark(storage::VerbBatch& batch) {
  uint64_t* const word = Word(batch);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(kWatermarkOffset));
  batch.Read(target, reinterpret_cast<std::byte*>(word), 8);
  NAM_RETURN_IF_ERROR(batch.Execute());
  watermark_ = *word;
  snapshot_ = std::max(snapshot_, watermark_);
  return absl::OkStatus();
}

absl::Status LeasedTimestamps::RaiseWatermark(storage::VerbBatch& batch) {
  uint64_t* const old = Word(batch);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(kWatermarkOffset));
  batch.CompareAndSwap(target, watermark_, snapshot_, old);
  NAM_RETURN_IF_ERROR(batch.Execute());
  watermark_ = *old == watermark_ ? snapshot_ : *old;
  return absl::OkStatus();
}

// The entry after the snapshot is not done. If that lasts, it is either nobody's, and skipped once it was
// given out, or somebody's, whom Suspect() then names.
absl::Status LeasedTimestamps::LookAhead(storage::VerbBatch& batch) {
  const uint64_t timestamp = snapshot_ + 1;
  if (waits_at_ != timestamp || waits_for_ != entries_[0]) {
    waits_at_ = timestamp;
    waits_for_ = entries_[0];
    waits_since_ns_ = kNotYet;
    return absl::OkStatus();
  }
  // Seen twice: rare enough for a look at the clock.
  const int64_t now_ns = clock_.NowNs();
  if (waits_since_ns_ == kNotYet) waits_since_ns_ = now_ns;
  if (now_ns - waits_since_ns_ < kPatienceUs * 1'000 || waits_for_ != RingEntry::Before(timestamp).word()) {
    return absl::OkStatus();
  }
  waits_since_ns_ = now_ns;
  uint64_t* const word = Word(batch);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target next, At(kNextOffset));
  batch.Read(next, reinterpret_cast<std::byte*>(word), 8);
  NAM_RETURN_IF_ERROR(batch.Execute());
  if (*word < timestamp) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target entry, At(geometry_.entry(timestamp)));
  batch.CompareAndSwap(entry, RingEntry::Before(timestamp).word(), RingEntry::Done(timestamp).word(), word);
  return batch.Execute();
}

uint32_t LeasedTimestamps::Suspect() const {
  const RingEntry entry(waits_for_);
  if (waits_at_ != snapshot_ + 1 || entry.done() || entry.timestamp() != waits_at_) return 0;
  if (waits_since_ns_ == kNotYet) return 0;
  return clock_.NowNs() - waits_since_ns_ < kPatienceUs * 1'000 ? 0 : entry.client();
}

absl::Status LeasedTimestamps::AddTake(storage::VerbBatch& batch) {
  taken_ = Word(batch);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target next, At(kNextOffset));
  batch.FetchAdd(next, 1, taken_);
  return absl::OkStatus();
}

absl::Status LeasedTimestamps::AddClaim(storage::VerbBatch& batch) {
  claim_ = Word(batch);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target entry, At(geometry_.entry(taken())));
  batch.CompareAndSwap(entry, RingEntry::Before(taken()).word(), RingEntry::Claimed(client_, taken()).word(),
                       claim_);
  return absl::OkStatus();
}

// Whoever was held up has skipped ours, or the ring is full.
absl::StatusOr<bool> LeasedTimestamps::Settle(storage::VerbBatch& batch) {
  if (claimed()) return true;
  for (int i = 0; i < kClaimsMax; ++i) {
    NAM_RETURN_IF_ERROR(AddTake(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
    NAM_RETURN_IF_ERROR(AddClaim(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
    if (claimed()) return false;
  }
  return AbortStatus(AbortReason::kDeadLock, "no timestamp is free: a commit hangs");
}

absl::Status LeasedTimestamps::AddSkip(storage::VerbBatch& batch) {
  return AddSwap(batch, geometry_.entry(taken()), RingEntry::Before(taken()).word(),
                 RingEntry::Done(taken()).word(), Word(batch));
}

absl::StatusOr<uint64_t> LeasedTimestamps::Newest(storage::VerbBatch& batch) {
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(batch.Execute());
  return head->next;
}

absl::Status LeasedTimestamps::AddDone(storage::VerbBatch& batch, uint64_t timestamp) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target entry, At(geometry_.entry(timestamp)));
  batch.FetchAdd(entry, RingEntry::DoneAddend(client_), Word(batch));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> LeasedTimestamps::ClaimedBy(storage::VerbBatch& batch,
                                                                  uint32_t client) {
  std::byte* const ring = batch.Scratch(kRingEntries * 8);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(geometry_.ring()));
  batch.Read(target, ring, kRingEntries * 8);
  NAM_RETURN_IF_ERROR(batch.Execute());
  std::vector<uint64_t> claimed;
  for (uint64_t i = 0; i < kRingEntries; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, ring + i * 8, 8);
    const RingEntry entry(word);
    if (!entry.done() && entry.client() == client) claimed.push_back(entry.timestamp());
  }
  return claimed;
}

absl::Status LeasedTimestamps::Finish(storage::VerbBatch& batch, uint32_t client,
                                      const std::vector<uint64_t>& claimed) {
  for (const uint64_t timestamp : claimed) {
    NAM_RETURN_IF_ERROR(AddSwap(batch, geometry_.entry(timestamp),
                                RingEntry::Claimed(client, timestamp).word(),
                                RingEntry::Done(timestamp).word(), Word(batch)));
  }
  return batch.Execute();
}

}  // namespace nam::txn
