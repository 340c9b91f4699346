#include "bench/read_bound.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "storage/scratch_streams.h"

namespace nam::bench {
namespace {

constexpr size_t kPlacesMax = 16'384;  // 1 GiB

absl::Status ReadAll(storage::Channel& channel, std::vector<storage::ScratchPage> pages) {
  const std::atomic<bool> never = false;
  storage::ScratchReader reader(channel, ReadBound::kReadBytes, ReadBound::kInFlight, never);
  reader.Start(std::move(pages));
  while (true) {
    NAM_ASSIGN_OR_RETURN(const std::span<std::byte> page, reader.Next());
    if (page.empty()) return absl::OkStatus();
  }
}

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
  std::vector<std::vector<storage::ScratchPage>> pages(channels_.size());
  for (uint64_t i = 0; i < reads; ++i)
    pages[i % pages.size()].push_back({places_[i % places_.size()], kReadBytes});
  std::vector<absl::Status> results(channels_.size());
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  const int64_t begun_ns = fabric_.clock().NowNs();
  for (size_t i = 0; i < channels_.size(); ++i) {
    threads.push_back(fabric_.StartThread(
        "bench-read", [&, i] { results[i] = ReadAll(*channels_[i], std::move(pages[i])); }));
  }
  threads.clear();
  const int64_t ended_ns = fabric_.clock().NowNs();
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  return static_cast<double>(ended_ns - begun_ns) * 1e-6;
}

}  // namespace nam::bench
