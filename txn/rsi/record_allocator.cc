#include "txn/rsi/record_allocator.h"

#include <algorithm>
#include <limits>

#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr int kLooksMax = 8;  // chunks searched in vain before the table grows

}  // namespace

absl::StatusOr<uint64_t> RecordAllocator::Allocate(storage::VerbBatch& batch) {
  while (free_.empty()) NAM_RETURN_IF_ERROR(ClaimChunk(batch));
  const uint64_t record = free_.back();
  free_.pop_back();
  return record;
}

absl::Status RecordAllocator::AddFree(storage::VerbBatch& batch, uint64_t record) {
  if (layout_.ChunkOf(record) == chunk_) {
    free_.push_back(record);
    return absl::OkStatus();
  }
  return AddToChunk(batch, record);
}

absl::Status RecordAllocator::AddDeleted(storage::VerbBatch& batch, uint64_t record) {
  if (layout_.ChunkOf(record) != chunk_) return AddToChunk(batch, record);
  ++deleted_;
  return absl::OkStatus();
}

absl::Status RecordAllocator::AddToChunk(storage::VerbBatch& batch, uint64_t record) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word,
                       space_.Resolve(layout_.ChunkPosition(layout_.ChunkOf(record))));
  batch.FetchAdd(word, 1, batch.Word());
  return absl::OkStatus();
}

absl::Status RecordAllocator::Release(storage::VerbBatch& batch) {
  if (chunk_ != kNone) Spend();
  NAM_RETURN_IF_ERROR(AddReleaseSpent(batch));
  return batch.Execute();
}

// The chunk's last blocks are allocated and not written yet: no client may take them for free ones.
void RecordAllocator::Spend() {
  spent_.push_back({chunk_, free_.size() + deleted_});
  chunk_ = kNone;
  free_.clear();
  deleted_ = 0;
}

absl::Status RecordAllocator::AddReleaseSpent(storage::VerbBatch& batch) {
  for (const Spent& spent : spent_) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word,
                         space_.Resolve(layout_.ChunkPosition(spent.chunk)));
    // Subtracts the owner, and adds the free blocks; others may add to `freed` at the same time.
    batch.FetchAdd(word, ChunkWord::GiveBackAddend(client_, spent.freed), batch.Word());
  }
  spent_.clear();
  return absl::OkStatus();
}

// Tries unused chunks first, then those with enough freed blocks, then a new extent.
absl::Status RecordAllocator::ClaimChunk(storage::VerbBatch& batch) {
  if (chunk_ != kNone) Spend();
  looks_left_ = kLooksMax;
  freed_min_ = kFreedMin;
  bool asked = recover_ == nullptr;
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool taken, ClaimFromAny(batch));
    if (taken) return absl::OkStatus();
    if (!asked) {
      asked = true;
      NAM_ASSIGN_OR_RETURN(const int recovered, recover_());
      if (recovered > 0) continue;
    }
    extent_ = space_.extents();  // the new one
    next_ = kNone;
    const absl::Status grown = space_.Grow();
    if (absl::IsResourceExhausted(grown) && freed_min_ > 1) {
      looks_left_ = std::numeric_limits<int>::max();
      freed_min_ = 1;
      continue;
    }
    NAM_RETURN_IF_ERROR(grown);
  }
}

absl::StatusOr<bool> RecordAllocator::ClaimFromAny(storage::VerbBatch& batch) {
  const size_t extents = space_.extents();
  // Clients begin in different extents, so that they write to different memory servers.
  if (extent_ == kNone && extents > 0) extent_ = client_ % extents;
  for (const bool had : {false, true}) {
    for (size_t i = 0; i < extents; ++i) {
      const size_t extent = (extent_ + i) % extents;
      const size_t kept = batch.scratch_used();
      NAM_ASSIGN_OR_RETURN(const bool taken, ClaimFrom(batch, extent, had));
      if (!taken) {
        batch.Reset(kept);
        next_ = kNone;
        continue;
      }
      extent_ = extent;
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::span<const uint64_t>> RecordAllocator::ReadWords(storage::VerbBatch& batch,
                                                                     size_t extent) {
  std::byte* const words = batch.Scratch(layout_.chunks * 8);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target,
                       space_.Resolve(layout_.ChunkPosition(layout_.ChunkNumber(extent, 0))));
  const uint64_t chunks = layout_.ChunksIn(space_.BytesOf(extent));
  batch.Read(target, words, static_cast<uint32_t>(chunks * 8));
  NAM_RETURN_IF_ERROR(batch.Execute());
  return std::span<const uint64_t>(reinterpret_cast<const uint64_t*>(words), chunks);
}

absl::Status RecordAllocator::GiveBackOf(storage::VerbBatch& batch, uint32_t client) {
  NAM_RETURN_IF_ERROR(space_.FindNew());
  auto* const old = batch.Word();
  const size_t kept = batch.scratch_used();
  for (size_t extent = 0; extent < space_.extents(); ++extent) {
    if (space_.Lost(layout_.ChunkPosition(layout_.ChunkNumber(extent, 0)))) continue;
    NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> words, ReadWords(batch, extent));
    for (uint64_t i = 0; i < words.size(); ++i) {
      if (ChunkWord(words[i]).owner() != client) continue;
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target chunk,
                           space_.Resolve(layout_.ChunkPosition(layout_.ChunkNumber(extent, i))));
      // The number of free blocks is unknown: adds enough for a search.
      batch.FetchAdd(chunk, ChunkWord::GiveBackAddend(client, kFreedMin), old);
      NAM_RETURN_IF_ERROR(batch.Execute());
    }
    batch.Reset(kept);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordAllocator::ClaimFrom(storage::VerbBatch& batch, size_t extent, bool had) {
  const uint64_t first = layout_.ChunkNumber(extent, 0);
  NAM_ASSIGN_OR_RETURN(const std::span<const uint64_t> words, ReadWords(batch, extent));
  auto* const old = batch.Word();
  const size_t kept = batch.scratch_used();
  // Clients begin at different places, so that they rarely collide.
  uint64_t at = next_ != kNone ? next_ : uint64_t{client_} * 7 % words.size();
  for (uint64_t i = 0; i < words.size(); ++i, at = at + 1 == words.size() ? 0 : at + 1) {
    const ChunkWord word(words[at]);
    if (word.owner() != 0 || word.had() != had || (had && word.freed() < freed_min_)) continue;
    if (had && looks_left_ == 0) return false;
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target chunk,
                         space_.Resolve(layout_.ChunkPosition(first + at)));
    batch.CompareAndSwap(chunk, word.word(), ChunkWord::OwnedBy(client_).word(), old);
    NAM_RETURN_IF_ERROR(batch.Execute());
    if (*old != word.word()) continue;
    chunk_ = first + at;
    next_ = at;
    if (had) {
      NAM_RETURN_IF_ERROR(FindFree(batch));
      if (!free_.empty()) return true;
      Spend();  // the counted blocks are not free any more, or not yet
      --looks_left_;
      batch.Reset(kept);
      continue;
    }
    for (uint64_t record = kChunkRecords; record-- > 0;) free_.push_back(chunk_ * kChunkRecords + record);
    return true;
  }
  return false;
}

absl::Status RecordAllocator::FindFree(storage::VerbBatch& batch) {
  auto* const headers = batch.Words(kChunkRecords);
  for (uint64_t i = 0; i < kChunkRecords; ++i) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target header,
                         space_.Resolve(layout_.BlockPosition(chunk_ * kChunkRecords + i)));
    batch.Read(header, reinterpret_cast<std::byte*>(headers + i), 8);
  }
  NAM_RETURN_IF_ERROR(batch.Execute());
  std::vector<uint64_t> taken;
  for (uint64_t i = kChunkRecords; i-- > 0;) {
    (headers[i] == 0 ? free_ : taken).push_back(chunk_ * kChunkRecords + i);
  }
  if (reclaim_ == nullptr) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(deleted_, reclaim_(taken, free_));
  return absl::OkStatus();
}

}  // namespace nam::txn
