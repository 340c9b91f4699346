#include "txn/timestamps/leased_timestamps.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "storage/record_block.h"
#include "txn/session.h"

namespace nam::txn {
namespace {

constexpr uint64_t kFirstReadMin = 16;
constexpr uint64_t kReadsMax = 256;  // entries at once: few more are under way beyond the watermark
constexpr uint64_t kWatermarkLagInTurn = 64;
constexpr uint64_t kWatermarkLagMax = 1'024;
constexpr uint64_t kWatermarkTurns = 32;
constexpr uint64_t kRingRoundsMax = 2 * kRingEntries / kReadsMax;
constexpr int kClaimsMax = 16;
constexpr int64_t kNotYet = -1;  // the wait was not seen to last
constexpr size_t kPassedOverAtOnce = 64;

}  // namespace

absl::Status LeasedTimestamps::Advance(storage::VerbBatch& batch, const StateHead& head) {
  // Timestamps up to another session's watermark are done and need no READ.
  if (shared_ != nullptr) snapshot_ = std::max(snapshot_, shared_->watermark());
  const uint64_t last = snapshot_;
  const StateHead* now = &head;
  uint64_t count = first_read_;
  for (uint64_t round = 0;; ++round) {
    if (round == kRingRoundsMax)
      return absl::UnavailableError("timestamps are given out faster than they are read");
    if (round > 0) {
      NAM_ASSIGN_OR_RETURN(now, AddReadHead(batch));
    }
    NAM_RETURN_IF_ERROR(AddReadEntries(batch, count));
    NAM_RETURN_IF_ERROR(batch.Execute());
    next_ = std::min(now->next, storage::kTimestampMask);
    watermark_ = now->watermark;
    snapshot_ = std::max(snapshot_, now->watermark);
    AdvanceOverDone();
    // We lag by more than was READ, or by more than the ring has.
    if (!entries_.empty() && RingEntry(entries_[0]).timestamp() <= snapshot_ + 1) break;
    count = kReadsMax;
  }
  // Expects as many to be done next time as since the last: one READ for all of them. Times what is under
  // way.
  if (shared_ != nullptr) shared_->SawWatermark(watermark_);
  const uint64_t under_way = next_ > snapshot_ ? next_ - snapshot_ : 0;
  first_read_ = std::clamp((snapshot_ - last) * 3 / 2 + under_way, kFirstReadMin, kReadsMax);
  NAM_RETURN_IF_ERROR(LookAhead(batch));
  return RaisesWatermark() ? AddRaiseWatermark(batch) : absl::OkStatus();
}

// All sessions see that it lags, and would contend for its word, all but one in vain. So few of those that
// take a snapshot raise it: chosen by the snapshot and their own number, which vary each time.
bool LeasedTimestamps::RaisesWatermark() const {
  const uint64_t ahead = snapshot_ - watermark_;
  const bool in_turn = (snapshot_ + client_) % kWatermarkTurns == 0;
  return ahead >= (in_turn ? kWatermarkLagInTurn : kWatermarkLagMax);
}

absl::Status LeasedTimestamps::AddReadEntries(storage::VerbBatch& batch, uint64_t count) {
  auto* const words = batch.Words(count);
  entries_at_ = snapshot_ + 1;
  entries_ = std::span<const uint64_t>(words, count);
  const uint64_t before_wrap = std::min(count, kRingEntries - entries_at_ % kRingEntries);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, At(geometry_.entry(entries_at_)));
  batch.Read(target, reinterpret_cast<std::byte*>(words), static_cast<uint32_t>(before_wrap * 8));
  if (before_wrap == count) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target start, At(geometry_.ring()));
  batch.Read(start, reinterpret_cast<std::byte*>(words + before_wrap),
             static_cast<uint32_t>((count - before_wrap) * 8));
  return absl::OkStatus();
}

// Moves the snapshot over done entries; then entries_ follows it.
void LeasedTimestamps::AdvanceOverDone() {
  entries_ = entries_.subspan(std::min<uint64_t>(snapshot_ + 1 - entries_at_, entries_.size()));
  size_t done = 0;
  while (done < entries_.size() && entries_[done] == RingEntry::Done(snapshot_ + 1).word()) {
    ++snapshot_;
    ++done;
  }
  entries_ = entries_.subspan(done);
}

// Fails if others are ahead; the next head tells how far.
absl::Status LeasedTimestamps::AddRaiseWatermark(storage::VerbBatch& batch) {
  return AddSwap(batch, kWatermarkOffset, watermark_, snapshot_, batch.Word());
}

// Mostly no entry is under way, or each was seen for the first time.
absl::Status LeasedTimestamps::LookAhead(storage::VerbBatch& batch) {
  if (next_ <= snapshot_) {
    waiting_.clear();
    return absl::OkStatus();
  }
  return TimeEntries() ? PassOver(batch) : absl::OkStatus();
}

// Whether an entry has lasted too long. Only entries that are seen twice are worth reading the clock.
bool LeasedTimestamps::TimeEntries() {
  waiting_now_.clear();
  auto known = waiting_.begin();
  int64_t now_ns = kNotYet;
  bool overdue = false;
  const uint64_t first = snapshot_ + 1;
  for (size_t i = 0; i < entries_.size() && first + i <= next_; ++i) {
    const RingEntry entry(entries_[i]);
    const bool unclaimed = entry == RingEntry::Before(first + i);
    if (!unclaimed && (entry.done() || entry.timestamp() != first + i)) continue;
    while (known != waiting_.end() && known->timestamp < first + i) ++known;
    const bool again =
        known != waiting_.end() && known->timestamp == first + i && known->word == entry.word();
    Waiting& waiting = waiting_now_.emplace_back(
        again ? *known : Waiting{.timestamp = first + i, .word = entry.word(), .since_ns = kNotYet});
    if (!again) continue;
    if (now_ns == kNotYet) now_ns = clock_.NowNs();
    if (waiting.since_ns == kNotYet) waiting.since_ns = now_ns;
    overdue = overdue || now_ns - waiting.since_ns >= waiting.patience_us * 1'000;
  }
  std::swap(waiting_, waiting_now_);
  return overdue;
}

// Treats the slots first: helps a commit that has happened, skips one that has not. The entry's CAS then
// refuses late claims.
absl::Status LeasedTimestamps::PassOver(storage::VerbBatch& batch) {
  const int64_t now_ns = clock_.NowNs();
  const auto overdue = [&](const Waiting& waiting) {
    return waiting.since_ns != kNotYet && now_ns - waiting.since_ns >= waiting.patience_us * 1'000;
  };
  waiting_now_.clear();
  for (const Waiting& waiting : waiting_) {
    if (overdue(waiting) && waiting_now_.size() < kPassedOverAtOnce) waiting_now_.push_back(waiting);
  }
  const auto slot_of = [&](const Waiting& waiting) {
    return At(geometry_.slot(RingEntry(waiting.word).client()) + kSlotWordOffset);
  };
  const auto is_claim = [](const Waiting& waiting) {
    return waiting.word != RingEntry::Before(waiting.timestamp).word();
  };
  for (Waiting& waiting : waiting_now_) {
    if (!is_claim(waiting)) continue;
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, slot_of(waiting));
    waiting.slot = batch.ReadWord(at);
  }
  NAM_RETURN_IF_ERROR(batch.Execute());
  for (Waiting& waiting : waiting_now_) {
    if (!is_claim(waiting)) continue;
    const SlotWord word(*waiting.slot);
    if (word.fate() != SlotFate::kClaimed || word.timestamp() != waiting.timestamp) continue;
    waiting.patience_us = word.patience_us();
    if (waiting.seen != 0 && waiting.seen != word.word()) {  // its client goes on
      waiting.since_ns = now_ns;
      ++moves_;
    }
    waiting.seen = word.word();
    if (!overdue(waiting)) continue;
    waiting.old = batch.Word();
    NAM_RETURN_IF_ERROR(AddSwap(batch, geometry_.slot(RingEntry(waiting.word).client()) + kSlotWordOffset,
                                word.word(), word.Become(SlotFate::kSkipped).word(), waiting.old));
  }
  NAM_RETURN_IF_ERROR(batch.Execute());
  for (const Waiting& waiting : waiting_now_) {
    const auto timed = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
      return other.timestamp == waiting.timestamp;
    });
    timed->patience_us = waiting.patience_us;
    timed->since_ns = waiting.since_ns;
    timed->seen = waiting.seen;
    if (!overdue(waiting)) continue;
    NAM_RETURN_IF_ERROR(AddEntrySwap(batch, waiting.timestamp, waiting.word));
  }
  return batch.Execute();
}

absl::Status LeasedTimestamps::AddTake(storage::VerbBatch& batch) {
  taken_ = batch.Word();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target next, At(kNextOffset));
  batch.FetchAdd(next, 1, taken_);
  return absl::OkStatus();
}

absl::Status LeasedTimestamps::AddClaim(storage::VerbBatch& batch) {
  NAM_RETURN_IF_ERROR(commit_point_.AddClaim(batch, taken()));
  claim_ = batch.Word();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target entry, At(geometry_.entry(taken())));
  batch.CompareAndSwap(entry, RingEntry::Before(taken()).word(), RingEntry::Claimed(client_, taken()).word(),
                       claim_);
  return absl::OkStatus();
}

// A client that was held up has skipped ours, or the ring is full.
absl::StatusOr<bool> LeasedTimestamps::ConfirmClaim(storage::VerbBatch& batch) {
  NAM_RETURN_IF_ERROR(commit_point_.Claimed());
  if (claimed()) return true;
  for (int i = 0; i < kClaimsMax; ++i) {
    NAM_RETURN_IF_ERROR(AddTake(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
    NAM_RETURN_IF_ERROR(AddClaim(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
    NAM_RETURN_IF_ERROR(commit_point_.Claimed());
    if (claimed()) return false;
  }
  return AbortStatus(AbortReason::kLockOfDeadClient, "no timestamp is free: a commit hangs");
}

absl::Status LeasedTimestamps::AddSkip(storage::VerbBatch& batch) {
  return AddEntrySwap(batch, taken(), RingEntry::Before(taken()).word());
}

absl::StatusOr<uint64_t> LeasedTimestamps::Newest(storage::VerbBatch& batch) {
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(batch.Execute());
  return head->next;
}

absl::Status LeasedTimestamps::AddDone(storage::VerbBatch& batch, uint64_t timestamp) {
  return AddEntrySwap(batch, timestamp, RingEntry::Claimed(client_, timestamp).word());
}

// It may have died before its entry was claimed: the fence defeats a claim in flight.
absl::Status LeasedTimestamps::Finish(storage::VerbBatch& batch, uint32_t client, uint64_t timestamp) {
  if (timestamp == 0) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(AddEntrySwap(batch, timestamp, RingEntry::Before(timestamp).word()));
  NAM_RETURN_IF_ERROR(AddEntrySwap(batch, timestamp, RingEntry::Claimed(client, timestamp).word()));
  return batch.Execute();
}

}  // namespace nam::txn
