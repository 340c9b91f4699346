#include "bench/read_bound.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr size_t kPlacesMax = 16'384;  // 1 GiB

}  // namespace

absl::StatusOr<std::unique_ptr<ReadBound>> ReadBound::Open(catalog::Attachment& attachment, int threads) {
  std::unique_ptr<ReadBound> bound(new ReadBound(attachment.fabric()));
  NAM_RETURN_IF_ERROR(bound->FindPlaces(attachment));
  for (int i = 0; i < threads; ++i) {
    NAM_ASSIGN_OR_RETURN(bound->channels_.emplace_back(),
                         storage::Channel::Open(attachment.fabric(), attachment, {}));
  }
  return bound;
}

absl::Status ReadBound::FindPlaces(catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const auto members, attachment.Members(proto::ROLE_MEMORY));
  std::vector<std::vector<storage::RemotePtr<void>>> servers;
  size_t most = 0;
  for (const auto& member : members) {
    const MemoryServerId server(static_cast<uint16_t>(member.id()));
    NAM_ASSIGN_OR_RETURN(const auto regions, attachment.Lookup(server, /*refresh=*/true));
    auto& places = servers.emplace_back();
    for (const auto& region : regions->regions) {
      for (uint64_t at = 0; at + kReadBytes <= region.bytes; at += kReadBytes)
        places.emplace_back(server, region.offset + at);
    }
    most = std::max(most, places.size());
  }
  if (most == 0) return absl::FailedPreconditionError("no memory server has anything to READ");
  for (size_t i = 0; i < most && places_.size() < kPlacesMax; ++i) {
    for (const auto& places : servers) {
      if (!places.empty()) places_.push_back(places[i % places.size()]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ReadBound::Run(uint64_t bytes) {
  const uint64_t reads = (bytes + kReadBytes - 1) / kReadBytes;
  std::atomic<uint64_t> taken = 0;
  std::vector<absl::Status> results(channels_.size());
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  const int64_t begun_ns = fabric_.clock().NowNs();
  for (size_t i = 0; i < channels_.size(); ++i) {
    threads.push_back(
        fabric_.StartThread("bench-read", [&, i] { results[i] = RunThread(*channels_[i], taken, reads); }));
  }
  threads.clear();
  const int64_t ended_ns = fabric_.clock().NowNs();
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  return static_cast<double>(ended_ns - begun_ns) * 1e-6;
}

absl::Status ReadBound::RunThread(storage::Channel& channel, std::atomic<uint64_t>& taken, uint64_t reads) {
  std::array<fabric::Completion, kInFlight> done;
  size_t free = kInFlight;
  for (size_t slot = 0; slot < free; ++slot) done[slot].id = slot;
  size_t in_flight = 0;
  while (true) {
    for (size_t i = 0; i < free; ++i) {
      const uint64_t number = taken.fetch_add(1, std::memory_order_relaxed);
      if (number >= reads) break;
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target from,
                           channel.Resolve(places_[number % places_.size()], kReadBytes));
      const uint64_t slot = done[i].id;
      const auto read = fabric::WorkRequest::Read(slot, channel.buffer().Slice(slot * kReadBytes, kReadBytes),
                                                  from.address);
      if (absl::Status status = from.queue_pair->Post({&read, 1}); !status.ok()) {
        channel.Break();
        return status;
      }
      ++in_flight;
    }
    if (in_flight == 0) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(free, channel.WaitSome(done));
    for (const fabric::Completion& completion : std::span(done).first(free)) {
      if (!completion.ok()) return channel.Error(completion);
    }
    in_flight -= free;
  }
}

}  // namespace nam::bench
