#include "txn/rsi/client_log.h"

#include <span>
#include <utility>

#include "base/status_macros.h"

namespace nam::txn {
namespace {

/// Beyond these, segments are given back after a large transaction.
constexpr size_t kSpareSegments = 16;

constexpr uint64_t WordPosition(uint64_t segment_position) {
  return segment_position / kLogExtentBytes * kLogExtentBytes +
         segment_position % kLogExtentBytes / kLogSegmentBytes * sizeof(uint64_t);
}

constexpr uint64_t SegmentPosition(uint64_t extent, uint64_t segment) {
  return extent * kLogExtentBytes + segment * kLogSegmentBytes;
}

absl::StatusOr<const uint64_t*> ReadWords(storage::VerbBatch& batch, ExtentSpace& extents, uint64_t extent) {
  constexpr uint32_t kBytes = kLogSegments * sizeof(uint64_t);
  std::byte* const words = batch.Scratch(kBytes);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents.Resolve(SegmentPosition(extent, 0)));
  batch.Read(at, words, kBytes);
  NAM_RETURN_IF_ERROR(batch.Execute());
  return reinterpret_cast<const uint64_t*>(words);
}

}  // namespace

absl::StatusOr<ExtentSpace*> LogSpace::Open() {
  if (!extents_.has_value()) {
    NAM_ASSIGN_OR_RETURN(ExtentSpace extents, ExtentSpace::Open(channel_, source_, kLogExtentBytes));
    extents_.emplace(std::move(extents));
  }
  return &*extents_;
}

// A CAS expects the word that was READ, with its session: a late one misses the next client's segments.
absl::Status LogSpace::GiveBackOf(storage::VerbBatch& batch, uint32_t client, uint64_t first) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, Open());
  NAM_RETURN_IF_ERROR(extents->FindNew());
  const size_t kept = batch.scratch_used();
  for (uint64_t extent = 0; extent < extents->extents(); ++extent) {
    if (extents->Lost(SegmentPosition(extent, 0))) continue;
    NAM_ASSIGN_OR_RETURN(const uint64_t* const words, ReadWords(batch, *extents, extent));
    uint64_t* const old = batch.Word();
    for (uint64_t segment = 1; segment < kLogSegments; ++segment) {
      const LogSegmentWord word(words[segment]);
      const uint64_t position = SegmentPosition(extent, segment);
      if (!word.used() || word.client() != client || position == first) continue;
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents->Resolve(WordPosition(position)));
      batch.CompareAndSwap(at, word.word(), 0, old);
    }
    NAM_RETURN_IF_ERROR(batch.Execute());
    batch.Reset(kept);
  }
  return absl::OkStatus();
}

absl::StatusOr<LogEncoder> ClientLog::Start(uint64_t bytes) {
  segments_ = LogSegmentsOf(bytes);
  if (positions_.empty()) NAM_RETURN_IF_ERROR(FindFirst());
  if (positions_.size() > segments_ + kSpareSegments) NAM_RETURN_IF_ERROR(Keep(segments_));
  if (positions_.size() < segments_) NAM_RETURN_IF_ERROR(Allocate(segments_ - positions_.size(), positions_));
  const bool one = segments_ == 1;
  return LogEncoder(batch_.Scratch(one ? sizeof(LogSegmentHeader) + bytes : segments_ * kLogSegmentBytes));
}

absl::Status ClientLog::AddWrites(LogEncoder& encoder) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, space_.Open());
  const std::span<const uint64_t> positions = std::span(positions_).first(segments_);
  encoder.Finish(++log_, slot_.client, positions);
  for (size_t place = 0; place < positions.size(); ++place) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents->Resolve(positions[place]));
    const std::span<const std::byte> segment = encoder.Segment(place);
    batch_.Write(segment.data(), static_cast<uint32_t>(segment.size()), at);
  }
  return absl::OkStatus();
}

// The slot names the first segment of its former client's logs, unless there was none or the segment was lost
// with its memory server.
absl::Status ClientLog::FindFirst() {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at,
                       state_.Resolve(geometry_.slot(slot_.client) + kSlotLogOffset));
  const uint64_t* const first = batch_.ReadWord(at);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, space_.Open());
  if (*first != 0 && extents->Resolve(*first).ok()) {
    positions_.push_back(*first);
    return absl::OkStatus();
  }
  std::vector<uint64_t> taken;
  NAM_RETURN_IF_ERROR(Allocate(1, taken));
  uint64_t* const old = batch_.Word();
  batch_.CompareAndSwap(at, *first, taken[0], old);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  if (*old != *first) return absl::InternalError("another client uses this one's slot");
  positions_.push_back(taken[0]);
  return absl::OkStatus();
}

// Clients begin in different extents, which lie on different memory servers. Looks at each extent once,
// however many segments a large log takes.
absl::Status ClientLog::Allocate(size_t count, std::vector<uint64_t>& taken) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, space_.Open());
  const size_t wanted = taken.size() + count, first_known = extents->extents();
  size_t looked = 0;
  while (true) {
    for (const size_t known = extents->extents(); looked < known; ++looked) {
      const uint64_t extent = looked < first_known ? (slot_.client + looked) % first_known : looked;
      if (extents->Lost(SegmentPosition(extent, 0))) continue;
      NAM_RETURN_IF_ERROR(AllocateFrom(*extents, extent, wanted - taken.size(), taken));
      if (taken.size() == wanted) return absl::OkStatus();
    }
    NAM_RETURN_IF_ERROR(extents->Grow());
  }
}

absl::Status ClientLog::AllocateFrom(ExtentSpace& extents, uint64_t extent, size_t most,
                                     std::vector<uint64_t>& taken) {
  const size_t kept = batch_.scratch_used();
  NAM_ASSIGN_OR_RETURN(const uint64_t* const words, ReadWords(batch_, extents, extent));
  std::vector<std::pair<uint64_t, const uint64_t*>> claims;  // position, and its word before
  // Clients begin at different places, so that they rarely collide.
  for (uint64_t i = 0; i < kLogSegments - 1 && claims.size() < most; ++i) {
    const uint64_t segment = 1 + (slot_.client * 7 + i) % (kLogSegments - 1);
    if (LogSegmentWord(words[segment]).used()) continue;
    const uint64_t position = SegmentPosition(extent, segment);
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents.Resolve(WordPosition(position)));
    uint64_t* const old = batch_.Word();
    batch_.CompareAndSwap(at, 0, OwnWord().word(), old);
    claims.emplace_back(position, old);
  }
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (const auto& [position, old] : claims) {
    if (*old == 0) taken.push_back(position);
  }
  batch_.Reset(kept);
  return absl::OkStatus();
}

// The log in them is over: a client that finds it truncated finds no lock of it either.
absl::Status ClientLog::Keep(size_t segments) {
  if (positions_.size() <= segments) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(ExtentSpace* const extents, space_.Open());
  uint64_t* const old = batch_.Word();
  for (const uint64_t position : std::span(positions_).subspan(segments)) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, extents->Resolve(WordPosition(position)));
    batch_.CompareAndSwap(at, OwnWord().word(), 0, old);
  }
  positions_.resize(segments);
  return batch_.Execute();
}

}  // namespace nam::txn
