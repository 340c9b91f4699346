#include "txn/timestamps/bit_vector_timestamps.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/status_macros.h"
#include "txn/session.h"

namespace nam::txn {
namespace {

constexpr uint64_t kFirstRead = 8;
constexpr uint64_t kWatermarkStep = kBitRows / 4;
constexpr int kViewsMax = 16;
constexpr int kJoinsMax = 100;
constexpr uint64_t kRowWords = kBitRowBytes / 8;

/// A lane's bits when all rows up to `row` are done, and none beyond.
bool BitAsOf(uint64_t place, uint64_t row) {
  if (row < place + 1) return !BitRow::DoneValue(place + 1);
  return BitRow::DoneValue(row - (row - 1 - place) % kBitRows);
}

}  // namespace

absl::Status BitVectorTimestamps::Advance(storage::VerbBatch& batch, const StateHead& head) {
  uint64_t count = kFirstRead;
  suspect_ = 0;
  held_ = false;
  held_by_idle_ = false;
  for (int round = 0; round < kViewsMax; ++round) {
    const StateHead* now = &head;
    if (round > 0) {
      NAM_ASSIGN_OR_RETURN(now, AddReadHead(batch));
    }
    NAM_ASSIGN_OR_RETURN(const View view, ReadView(batch, count));
    watermark_ = now->watermark;
    top_ = std::max(top_, now->top);
    complete_ = std::max(complete_, watermark_);
    // Never below the horizon, so that rows which no snapshot sees can go.
    snapshot_ = std::max(snapshot_, now->horizon);
    const bool all_lanes = view.lanes_count > now->lanes;
    lanes_ = now->lanes;
    Mask missing = {};
    if (!all_lanes || view.first + view.count <= complete_ + 1) continue;
    const bool blocked = Evaluate(view, &missing);
    count = kBitRows;
    if (!blocked && complete_ < top_) continue;
    if (present_ && row_ < top_) NAM_RETURN_IF_ERROR(AddGiveUp(batch, top_));
    if (complete_ >= watermark_ + kWatermarkStep) {
      NAM_RETURN_IF_ERROR(AddSwap(batch, kWatermarkOffset, watermark_, complete_, batch.Word()));
    }
    if (blocked) return LookAhead(batch, view, missing);
    waits_at_ = 0;
    return absl::OkStatus();
  }
  return absl::OkStatus();  // others outpace us; what we have seen holds
}

// READs bits, then lanes, in this order; executes the batch.
absl::StatusOr<BitVectorTimestamps::View> BitVectorTimestamps::ReadView(storage::VerbBatch& batch,
                                                                        uint64_t count) {
  View view{.first = complete_ + 1, .count = count, .lanes_count = lanes_ / 8 * 8 + 8};
  std::byte* const bits = batch.Scratch(count * kBitRowBytes);
  const uint64_t before_wrap = std::min(count, kBitRows - BitRow::Place(view.first));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target rows, At(geometry_.bit_row(view.first)));
  batch.Read(rows, bits, static_cast<uint32_t>(before_wrap * kBitRowBytes));
  if (before_wrap < count) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target start, At(geometry_.bit_row(1)));
    batch.Read(start, bits + before_wrap * kBitRowBytes,
               static_cast<uint32_t>((count - before_wrap) * kBitRowBytes));
  }
  std::byte* const lanes = batch.Scratch(view.lanes_count * 8);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target words, At(geometry_.lane(0)));
  batch.Read(words, lanes, static_cast<uint32_t>(view.lanes_count * 8));
  NAM_RETURN_IF_ERROR(batch.Execute());
  view.bits = reinterpret_cast<const uint64_t*>(bits);
  view.lanes = reinterpret_cast<const uint64_t*>(lanes);
  return view;
}

// Advances over complete rows, up to top. True: row complete_ + 1 waits for the lanes `missing`. Our own lane
// has nothing under way.
bool BitVectorTimestamps::Evaluate(const View& view, Mask* missing) {
  Mask present = {};
  for (uint32_t lane = 1; lane < view.lanes_count; ++lane) {
    if (lane != client_ && LaneWord(view.lanes[lane]).present())
      present[lane / 64] |= uint64_t{1} << lane % 64;
  }
  const uint64_t end = std::min(top_ + 1, view.first + view.count);
  while (complete_ + 1 < end) {
    const uint64_t row = complete_ + 1;
    const uint64_t inverted = BitRow::DoneValue(row) ? 0 : ~uint64_t{0};
    for (uint64_t i = 0; i < kRowWords; ++i) {
      (*missing)[i] = present[i] & ~(view.row(row)[i] ^ inverted);
    }
    for (uint64_t i = 0; i < kRowWords; ++i) {
      if ((*missing)[i] == 0) continue;
      const auto lane = static_cast<uint32_t>(i * 64 + std::countr_zero((*missing)[i]));
      snapshot_ = std::max(snapshot_, BitRow::TimestampOf(row, lane) - 1);
      return true;
    }
    complete_ = row;
  }
  snapshot_ = std::max(snapshot_, BitRow::TimestampOf(complete_ + 1, 0) - 1);
  return false;
}

// Makes lanes absent that hold the snapshot back for long without a claim; suspects a client with one.
absl::Status BitVectorTimestamps::LookAhead(storage::VerbBatch& batch, const View& view,
                                            const Mask& missing) {
  const uint64_t row = complete_ + 1;
  const int64_t now_ns = clock_.NowNs();
  if (waits_at_ != row) {
    waits_at_ = row;
    waits_since_ns_ = now_ns;
  }
  const bool patient = now_ns - waits_since_ns_ < kPatienceUs * 1'000;
  for (uint32_t lane = 1; lane < view.lanes_count; ++lane) {
    if ((missing[lane / 64] >> lane % 64 & 1) == 0) continue;
    const LaneWord word(view.lanes[lane]);
    if (word.row() >= row) {
      held_ = true;
      if (suspect_ == 0 && !patient) suspect_ = lane;
      continue;
    }
    held_by_idle_ = true;
    if (patient) break;
    NAM_RETURN_IF_ERROR(
        AddSwap(batch, geometry_.lane(lane), word.word(), LaneWord::Absent(word.row()).word(), batch.Word()));
  }
  return patient ? absl::OkStatus() : batch.Execute();
}

// Only our own client flips our lane's bits.
absl::Status BitVectorTimestamps::AddFlip(storage::VerbBatch& batch, uint64_t place, bool up) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word,
                       At(geometry_.bit_row(place + 1) + client_ / 64 * 8));
  const uint64_t bit = uint64_t{1} << client_ % 64;
  batch.FetchAdd(word, up ? bit : ~bit + 1, batch.Word());
  return absl::OkStatus();
}

absl::Status BitVectorTimestamps::AddFlips(storage::VerbBatch& batch, const std::bitset<kBitRows>& bits,
                                           uint64_t row) {
  for (uint64_t place = 0; place < kBitRows; ++place) {
    const bool wanted = BitAsOf(place, row);
    if (bits[place] != wanted) NAM_RETURN_IF_ERROR(AddFlip(batch, place, wanted));
  }
  return absl::OkStatus();
}

// Releases other clients from waiting for us at rows up to `row`. If a client has made us absent, the next
// claim notices.
absl::Status BitVectorTimestamps::AddGiveUp(storage::VerbBatch& batch, uint64_t row) {
  NAM_RETURN_IF_ERROR(AddSwap(batch, geometry_.lane(client_), LaneWord::Present(row_).word(),
                              LaneWord::Present(row).word(), batch.Word()));
  for (uint64_t given = std::max(row_, row < kBitRows ? 0 : row - kBitRows) + 1; given <= row; ++given) {
    const uint64_t place = BitRow::Place(given);
    if (BitAsOf(place, row_) != BitAsOf(place, row)) {
      NAM_RETURN_IF_ERROR(AddFlip(batch, place, BitAsOf(place, row)));
    }
  }
  row_ = row;
  return absl::OkStatus();
}

// The lane is present, so our bits from row_ + 1 on say `not done`.
absl::Status BitVectorTimestamps::AddTake(storage::VerbBatch& batch) {
  claims_ = row_ + 1;
  claim_ = nullptr;
  if (!present_ || !RowIsFree(claims_)) return absl::OkStatus();
  // If it fails, top is already as high.
  if (claims_ > top_) NAM_RETURN_IF_ERROR(AddSwap(batch, kTopOffset, top_, claims_, batch.Word()));
  claim_ = batch.Word();
  return AddSwap(batch, geometry_.lane(client_), LaneWord::Present(row_).word(),
                 LaneWord::Present(claims_).word(), claim_);
}

absl::StatusOr<bool> BitVectorTimestamps::ConfirmClaim(storage::VerbBatch& batch) {
  for (int i = 0; i < kJoinsMax; ++i) {
    NAM_RETURN_IF_ERROR(commit_point_.Claimed());
    if (claim_ != nullptr && *claim_ == LaneWord::Present(row_).word()) {
      top_ = std::max(top_, claims_);
      return i == 0;
    }
    if (claim_ != nullptr) present_ = false;
    if (!present_) {
      NAM_RETURN_IF_ERROR(Join(batch));
    } else {
      NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
      NAM_RETURN_IF_ERROR(batch.Execute());
      watermark_ = head->watermark;
      top_ = head->top;
    }
    if (row_ > kBitRowMax) return absl::ResourceExhaustedError("the bit vector has no timestamps left");
    // The slot's word comes first: a lane's claim implies that its slot says so.
    claims_ = row_ + 1;
    NAM_RETURN_IF_ERROR(AddClaim(batch));
    NAM_RETURN_IF_ERROR(AddTake(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
  }
  return AbortStatus(AbortReason::kLockOfDeadClient, "no timestamp is free: a commit hangs");
}

// While we are absent no client looks at our bits, so they are set right first: as of `top`. READs top again
// after the CAS that makes us present: snapshots that do not know of us are not above it.
absl::Status BitVectorTimestamps::Join(storage::VerbBatch& batch) {
  for (int i = 0; i < kJoinsMax; ++i) {
    NAM_ASSIGN_OR_RETURN(const StateHead* const before, AddReadHead(batch));
    NAM_ASSIGN_OR_RETURN(const std::bitset<kBitRows> bits, OwnBits(batch));
    const uint64_t row = std::max(before->top, row_);
    for (uint64_t lanes = before->lanes; lanes < client_;) {
      uint64_t* const old = batch.Word();
      NAM_RETURN_IF_ERROR(AddSwap(batch, kLanesOffset, lanes, client_, old));
      NAM_RETURN_IF_ERROR(batch.Execute());
      lanes = *old == lanes ? client_ : *old;
    }
    NAM_RETURN_IF_ERROR(AddFlips(batch, bits, row));
    NAM_RETURN_IF_ERROR(batch.Execute());
    uint64_t* const old = batch.Word();
    NAM_RETURN_IF_ERROR(AddSwap(batch, geometry_.lane(client_), LaneWord::Absent(row_).word(),
                                LaneWord::Present(row).word(), old));
    NAM_ASSIGN_OR_RETURN(const StateHead* const behind, AddReadHead(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
    if (*old != LaneWord::Absent(row_).word()) {
      return absl::InternalError("the lane was taken away: other clients took this one for dead");
    }
    row_ = row;
    present_ = true;
    watermark_ = behind->watermark;
    top_ = std::max(top_, behind->top);
    if (top_ + 1 < row + kBitRows) return top_ > row ? AddGiveUp(batch, top_) : absl::OkStatus();
    // Others went once around meanwhile, so our bits mean nothing: repeat.
    NAM_RETURN_IF_ERROR(AddLeave(batch));
    NAM_RETURN_IF_ERROR(batch.Execute());
  }
  return AbortStatus(AbortReason::kLockOfDeadClient, "timestamps are given out faster than one can join");
}

// READs our lane's row, too, when we do not know it.
absl::StatusOr<std::bitset<kBitRows>> BitVectorTimestamps::OwnBits(storage::VerbBatch& batch) {
  std::byte* const vector = batch.Scratch(kBitRows * kBitRowBytes);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target rows, At(geometry_.bit_row(1)));
  batch.Read(rows, vector, kBitRows * kBitRowBytes);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word, At(geometry_.lane(client_)));
  const uint64_t* const lane = batch.ReadWord(word);
  NAM_RETURN_IF_ERROR(batch.Execute());
  std::bitset<kBitRows> bits;
  for (uint64_t place = 0; place < kBitRows; ++place) {
    const uint64_t bit_word = reinterpret_cast<const uint64_t*>(vector)[place * kRowWords + client_ / 64];
    bits[place] = (bit_word >> client_ % 64 & 1) != 0;
  }
  row_ = LaneWord(*lane).row();
  return bits;
}

// AddTake has already claimed.
absl::Status BitVectorTimestamps::AddSkip(storage::VerbBatch& batch) {
  if (claim_ == nullptr || *claim_ != LaneWord::Present(row_).word()) return absl::OkStatus();
  top_ = std::max(top_, claims_);
  return AddDone(batch, taken());
}

absl::StatusOr<uint64_t> BitVectorTimestamps::Newest(storage::VerbBatch& batch) {
  NAM_ASSIGN_OR_RETURN(const StateHead* const head, AddReadHead(batch));
  NAM_RETURN_IF_ERROR(batch.Execute());
  return BitRow::TimestampOf(head->top + 1, 0) - 1;
}

absl::Status BitVectorTimestamps::AddDone(storage::VerbBatch& batch, uint64_t timestamp) {
  const uint64_t row = BitRow::Of(timestamp);
  NAM_CHECK(row == row_ + 1, "bits are set in the order of their rows");
  row_ = row;
  return AddFlip(batch, BitRow::Place(row), BitRow::DoneValue(row));
}

absl::Status BitVectorTimestamps::AddLeave(storage::VerbBatch& batch) {
  if (!present_) return absl::OkStatus();
  present_ = false;
  return AddSwap(batch, geometry_.lane(client_), LaneWord::Present(row_).word(),
                 LaneWord::Absent(row_).word(), batch.Word());
}

absl::StatusOr<uint64_t> BitVectorTimestamps::Floor(storage::VerbBatch& batch) {
  while (watermark_ < complete_) {
    uint64_t* const old = batch.Word();
    NAM_RETURN_IF_ERROR(AddSwap(batch, kWatermarkOffset, watermark_, complete_, old));
    NAM_RETURN_IF_ERROR(batch.Execute());
    watermark_ = *old == watermark_ ? complete_ : *old;
  }
  return std::min(snapshot_, BitRow::TimestampOf(complete_ + 1, 0) - 1);
}

// Its lane may have claimed a row that the slot's word does not show yet: once absent it is passed over.
absl::Status BitVectorTimestamps::Finish(storage::VerbBatch& batch, uint32_t client, uint64_t) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target lane_at, At(geometry_.lane(client)));
  const uint64_t* const lane = batch.ReadWord(lane_at);
  NAM_RETURN_IF_ERROR(batch.Execute());
  const LaneWord word(*lane);
  if (!word.present()) return absl::OkStatus();
  // Another client may make it absent first, with the same effect.
  NAM_RETURN_IF_ERROR(
      AddSwap(batch, geometry_.lane(client), word.word(), LaneWord::Absent(word.row()).word(), batch.Word()));
  return batch.Execute();
}

}  // namespace nam::txn
