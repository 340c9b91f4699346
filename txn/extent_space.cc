#include "txn/extent_space.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<ExtentSpace> ExtentSpace::Open(storage::Channel& channel, std::shared_ptr<ExtentSource> source,
                                              uint64_t extent_bytes) {
  NAM_CHECK(std::has_single_bit(extent_bytes), "extents are of a power of two");
  NAM_ASSIGN_OR_RETURN(const std::vector<SpaceExtent> extents, source->Extents());
  ExtentSpace space(channel, std::move(source), std::countr_zero(extent_bytes));
  NAM_RETURN_IF_ERROR(space.Install(extents));
  return space;
}

absl::Status ExtentSpace::Install(const std::vector<SpaceExtent>& extents) {
  targets_.reserve(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    const uint64_t bytes = extents[i].bytes == 0 ? extent_bytes() : extents[i].bytes;
    if (bytes > extent_bytes())
      return absl::DataLossError(absl::StrFormat("an extent of %d bytes in a space of smaller ones", bytes));
    if (extents[i].lost) {
      if (i == targets_.size()) {
        targets_.emplace_back();
        grants_.emplace_back();
        bytes_.push_back(bytes);
      }
      targets_[i] = {};
      lost_.insert(extents[i].server);
    }
    if (i < targets_.size()) continue;
    NAM_ASSIGN_OR_RETURN(storage::Channel::Target target,
                         channel_->Resolve({extents[i].server, extents[i].offset}, bytes));
    target.grant = extents[i].grant.get();
    targets_.push_back(target);
    grants_.push_back(extents[i].grant);
    bytes_.push_back(bytes);
  }
  const auto lost = std::find_if(targets_.begin(), targets_.end(),
                                 [](const storage::Channel::Target& target) { return !target.queue_pair; });
  whole_ = static_cast<size_t>(lost - targets_.begin());
  return absl::OkStatus();
}

absl::Status ExtentSpace::FindNew() {
  NAM_ASSIGN_OR_RETURN(const std::vector<SpaceExtent> extents, source_->Extents());
  return Install(extents);
}

absl::Status ExtentSpace::Seek(uint64_t position) {
  const size_t extent = position >> shift_;
  if (extent >= targets_.size()) NAM_RETURN_IF_ERROR(FindNew());
  if (extent >= targets_.size()) {
    return absl::OutOfRangeError(
        absl::StrFormat("there are %d extents, and no number %d", targets_.size(), extent));
  }
  return Lost(position) ? LostError() : absl::OkStatus();
}

absl::Status ExtentSpace::LostError() const {
  std::string servers;
  for (const MemoryServerId server : lost_) {
    servers += absl::StrFormat("%s%d", servers.empty() ? "" : ", ", server.value());
  }
  return absl::UnavailableError(absl::StrFormat(
      "memory server %s is gone, and its part of this table or index is lost: drop and recreate it",
      servers));
}

absl::Status ExtentSpace::Grow() {
  NAM_ASSIGN_OR_RETURN(const std::vector<SpaceExtent> extents, source_->Grow(targets_.size()));
  return Install(extents);
}

}  // namespace nam::txn
