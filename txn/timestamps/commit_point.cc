#include "txn/timestamps/commit_point.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

/// Writes that a commit does within the least patience, however slow its servers are.
constexpr size_t kWritesPerPatience = 256;

absl::StatusOr<storage::Channel::Target> WordOf(ExtentSpace& state, uint32_t client) {
  return state.Resolve(StateGeometry::slot(client) + kSlotWordOffset);
}

}  // namespace

void CommitPoint::Expect(size_t writes) {
  const auto for_writes = static_cast<uint32_t>(std::bit_width(writes / kWritesPerPatience));
  patience_ = std::min(for_writes + skips_, SlotWord::kPatienceMax);
}

absl::Status CommitPoint::AddSwap(storage::VerbBatch& batch, SlotWord to) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, WordOf(state_, client_));
  auto* const old = batch.Word();
  batch.CompareAndSwap(at, word_.word(), to.word(), old);
  next_ = to;
  old_ = old;
  return absl::OkStatus();
}

absl::Status CommitPoint::LostError() const {
  return absl::InternalError("the slot's word was changed: other clients took this one for dead");
}

absl::Status CommitPoint::AddClaim(storage::VerbBatch& batch, uint64_t timestamp) {
  return AddSwap(batch, SlotWord::Claimed(timestamp, patience_));
}

// No other client changes a word that is over, preparing, or committing. A claim whose timestamp was passed
// over before the ring had it cannot be skipped.
absl::Status CommitPoint::Claimed() {
  if (*old_ != word_.word()) return LostError();
  word_ = next_;
  move_ns_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> CommitPoint::GoOn(storage::VerbBatch& batch, Clock& clock) {
  if (word_.fate() != SlotFate::kClaimed && !word_.preparing()) return word_.fate() != SlotFate::kSkipped;
  const int64_t now_ns = clock.NowNs();
  const bool moves = move_ns_ != 0 && now_ns >= move_ns_;
  if (moves || move_ns_ == 0) move_ns_ = now_ns + SlotWord::kMoveUs * 1'000;
  if (!moves) return true;
  const size_t kept = batch.scratch_used();
  NAM_RETURN_IF_ERROR(AddSwap(batch, word_.Moved()));
  NAM_RETURN_IF_ERROR(batch.Execute());
  const uint64_t old = *old_;
  batch.Reset(kept);
  const SlotWord skipped = word_.Become(SlotFate::kSkipped);
  if (old == word_.word()) {
    word_ = next_;
    return true;
  }
  if (old != skipped.word()) return LostError();
  ++skips_;
  word_ = skipped;
  return false;
}

absl::StatusOr<bool> CommitPoint::Commit(storage::VerbBatch& batch) {
  NAM_CHECK(word_.fate() == SlotFate::kClaimed, "only a claim is decided");
  NAM_RETURN_IF_ERROR(AddSwap(batch, word_.Become(SlotFate::kCommitting)));
  NAM_RETURN_IF_ERROR(batch.Execute());
  const SlotWord skipped = word_.Become(SlotFate::kSkipped);
  if (*old_ == word_.word()) {
    word_ = next_;
    skips_ = 0;
    return true;
  }
  if (*old_ != skipped.word()) return LostError();
  word_ = skipped;
  ++skips_;
  return false;
}

absl::Status CommitPoint::GiveUp(storage::VerbBatch& batch) {
  if (word_.fate() != SlotFate::kClaimed && word_.fate() != SlotFate::kSkipped) return absl::OkStatus();
  const SlotWord skipped = word_.Become(SlotFate::kSkipped);
  NAM_RETURN_IF_ERROR(AddSwap(batch, word_.Become(SlotFate::kOver)));
  NAM_RETURN_IF_ERROR(batch.Execute());
  if (*old_ != word_.word()) {
    if (*old_ != skipped.word()) return LostError();
    word_ = skipped;
    ++skips_;
    return GiveUp(batch);  // no other client leaves skipped
  }
  word_ = next_;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<UnderWay>> FindUnderWay(ExtentSpace& state, StateGeometry geometry,
                                                   storage::VerbBatch& batch) {
  std::vector<UnderWay> under_way;
  NAM_RETURN_IF_ERROR(VisitSlots(state, geometry, batch, [&](uint32_t client, const SlotWords& slot) {
    const SlotWord word(slot.word);
    if (word.fate() == SlotFate::kClaimed || word.fate() == SlotFate::kSkipped)
      under_way.push_back({client, word});
  }));
  return under_way;
}

absl::Status RemoveOver(ExtentSpace& state, storage::VerbBatch& batch, std::vector<UnderWay>& under_way) {
  constexpr size_t kAtOnce = 512;
  std::vector<UnderWay> left;
  for (size_t first = 0; first < under_way.size(); first += kAtOnce) {
    const auto some = std::span(under_way).subspan(first, std::min(kAtOnce, under_way.size() - first));
    const size_t kept = batch.scratch_used();
    std::vector<const uint64_t*> words(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, WordOf(state, some[i].client));
      words[i] = batch.ReadWord(at);
    }
    NAM_RETURN_IF_ERROR(batch.Execute());
    for (size_t i = 0; i < some.size(); ++i) {
      const SlotWord now(*words[i]);
      const bool may_write = now.fate() == SlotFate::kClaimed || now.fate() == SlotFate::kSkipped;
      if (may_write && now.timestamp() == some[i].word.timestamp()) left.push_back({some[i].client, now});
    }
    batch.Reset(kept);
  }
  under_way = std::move(left);
  return absl::OkStatus();
}

}  // namespace nam::txn
