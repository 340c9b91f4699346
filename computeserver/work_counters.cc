#include "computeserver/work_counters.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::computeserver {

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
    counters->offset_ = extent->offset();
    counters->rkey_ = {extent->rkey()};
    NAM_ASSIGN_OR_RETURN(counters->channel_,
                         storage::Channel::Open(attachment.fabric(), attachment, {.buffer_bytes = 1 << 20}));
    return counters;
  }
  return refused;
}

WorkCounters::~WorkCounters() {
  (void)attachment_.catalog().AbortLoad(allocation_);
  if (server_ != MemoryServerId() && !abandoned_) (void)attachment_.Release(server_, allocation_);
}

absl::StatusOr<uint64_t> WorkCounters::Value(storage::RemotePtr<void> word) {
  if (!usable()) return absl::UnavailableError("the words to claim work from cannot be read any more");
  uint64_t value = 0;
  NAM_RETURN_IF_ERROR(channel_->Read(word, std::as_writable_bytes(std::span(&value, 1)), &cancel_));
  return value;
}

absl::StatusOr<storage::WorkCounter> WorkCounters::Next() {
  const storage::RemotePtr<void> word(server_, offset_ + next_++ % (kBytes / kWordBytes) * kWordBytes);
  NAM_ASSIGN_OR_RETURN(const uint64_t base, Value(word));
  return storage::WorkCounter{word, {server_, offset_}, rkey_, base};
}

absl::StatusOr<uint64_t> WorkCounters::Claimed(const storage::WorkCounter& counter) {
  NAM_ASSIGN_OR_RETURN(const uint64_t value, Value(counter.word));
  return value - counter.base;
}

}  // namespace nam::computeserver
