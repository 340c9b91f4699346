#include "session/work_counters.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::session {

absl::StatusOr<std::unique_ptr<WorkCounters>> WorkCounters::Open(catalog::Attachment& attachment,
                                                                 const std::atomic<bool>& cancel) {
  if (attachment.member() == MemberId()) return absl::ResourceExhaustedError("this session has no lease");
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment.Members(proto::ROLE_MEMORY));
  const std::string name = absl::StrCat("nam.work.", attachment.member().value());
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                       attachment.catalog().BeginLoad(attachment.member(), name, /*replace=*/false));
  std::unique_ptr<WorkCounters> counters(new WorkCounters(attachment, cancel, allocation));
  absl::Status refused = absl::ResourceExhaustedError("the cluster has no living memory server");
  for (size_t i = 0; i < servers.size(); ++i) {
    // Sessions spread over the servers.
    const proto::Member& member = servers[(attachment.member().value() + i) % servers.size()];
    const MemoryServerId server(static_cast<uint16_t>(member.id()));
    const auto extent = attachment.AllocateContiguous(server, allocation, kBytes);
    refused = extent.status();
    if (!extent.ok()) continue;
    counters->server_ = server;
    counters->offset_ = extent->offset;
    NAM_ASSIGN_OR_RETURN(counters->channel_,
                         storage::Channel::Open(attachment.fabric(), attachment, {.buffer_bytes = 1 << 20}));
    return counters;
  }
  return refused;
}

WorkCounters::~WorkCounters() {
  {
    const Interruption none(nullptr);  // untold, the catalog keeps the load until the lease is over
    (void)attachment_.catalog().AbortLoad(allocation_);
  }
  if (server_ != MemoryServerId() && !abandoned_) (void)attachment_.Release(server_, allocation_);
}

absl::StatusOr<std::vector<uint64_t>> WorkCounters::Values(std::span<const storage::WorkCounter> counters) {
  if (!usable()) return absl::UnavailableError("the words to claim work from cannot be read any more");
  std::vector<uint64_t> values(counters.size());
  if (counters.empty()) return values;
  uint64_t first = UINT64_MAX, last = 0;
  for (const storage::WorkCounter& counter : counters) {
    first = std::min(first, counter.word.offset());
    last = std::max(last, counter.word.offset());
  }
  // Reads all bytes between them, which is cheaper than a READ for each.
  std::vector<std::byte> words(last - first + sizeof(uint64_t));
  NAM_RETURN_IF_ERROR(channel_->Read(storage::RemotePtr<void>(server_, first), words, &cancel_));
  for (size_t i = 0; i < counters.size(); ++i)
    std::memcpy(&values[i], words.data() + (counters[i].word.offset() - first), sizeof(uint64_t));
  return values;
}

absl::StatusOr<std::vector<storage::WorkCounter>> WorkCounters::Next(size_t count) {
  if (count > kBytes / kWordBytes) return absl::ResourceExhaustedError("more lists of work than words");
  std::vector<storage::WorkCounter> counters;
  for (size_t i = 0; i < count; ++i) {
    const storage::RemotePtr<void> word(server_, offset_ + next_++ % (kBytes / kWordBytes) * kWordBytes);
    counters.push_back({.word = word, .allocation = allocation_});
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> bases, Values(counters));
  for (size_t i = 0; i < count; ++i) counters[i].base = bases[i];
  return counters;
}

absl::StatusOr<std::vector<uint64_t>> WorkCounters::Claimed(std::span<const storage::WorkCounter> counters) {
  NAM_ASSIGN_OR_RETURN(std::vector<uint64_t> claimed, Values(counters));
  for (size_t i = 0; i < claimed.size(); ++i) claimed[i] -= counters[i].base;
  return claimed;
}

}  // namespace nam::session
