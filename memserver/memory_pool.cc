#include "memserver/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/exhausted.h"
#include "base/status_macros.h"
#include "storage/remote_ptr.h"

namespace nam::memserver {
namespace {

constexpr uint64_t kRegionsMax = 1u << 20;
constexpr size_t kAllocationsMax = 65'536;
/// Ended attempts remembered per allocation; they get no more memory.
constexpr size_t kOverAttemptsMax = 1'024;

absl::Status CheckOptions(const MemoryPoolOptions& options) {
  const auto aligned = [](uint64_t bytes) { return bytes % kExtentAlignment == 0; };
  if (options.region_bytes == 0 || !aligned(options.region_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a region of %d bytes is not possible; choose a multiple of 4 KiB", options.region_bytes));
  }
  if (!aligned(options.memory_bytes) || options.memory_bytes <= kExtentAlignment ||
      options.memory_bytes > storage::kAddressSpaceBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a memory of %d bytes is not possible; choose a multiple of 4 KiB from 8 KiB to 256 TiB",
        options.memory_bytes));
  }
  if (!aligned(options.scratch_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d bytes of scratch memory are not possible; choose a multiple of 4 KiB", options.scratch_bytes));
  }
  if (options.scratch_bytes >= options.memory_bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s of scratch memory leave nothing of a memory of %s for tables",
                        ReadableBytes(options.scratch_bytes), ReadableBytes(options.memory_bytes)));
  }
  if (options.memory_bytes / options.region_bytes >= kRegionsMax) {
    return absl::InvalidArgumentError(absl::StrFormat("regions of %s are too small for a memory of %s",
                                                      ReadableBytes(options.region_bytes),
                                                      ReadableBytes(options.memory_bytes)));
  }
  return absl::OkStatus();
}

absl::Status Over(AllocationId allocation) {
  return absl::FailedPreconditionError(
      absl::StrFormat("allocation %d is over: its load was aborted, the loader's lease has ended, or the "
                      "attempt is no longer wanted",
                      allocation.value()));
}

/// Formats a size next to another one: in bytes if both would read alike.
std::string TellApart(uint64_t bytes, uint64_t other_bytes) {
  const std::string text = ReadableBytes(bytes);
  return text == ReadableBytes(other_bytes) ? absl::StrFormat("%d bytes", bytes) : text;
}

}  // namespace

std::string ReadableBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1'024) return absl::StrFormat("%d bytes", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1'024 && unit + 1 < std::size(kUnits)) {
    value /= 1'024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

absl::StatusOr<std::unique_ptr<MemoryPool>> MemoryPool::Create(fabric::Fabric& fabric,
                                                               const MemoryPoolOptions& options) {
  NAM_RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<MemoryPool>(new MemoryPool(fabric, options));
}

MemoryPool::MemoryPool(fabric::Fabric& fabric, const MemoryPoolOptions& options)
    : fabric_(fabric),
      options_(options),
      capacity_bytes_(options.memory_bytes - kExtentAlignment),
      allocator_(options.region_bytes, options.memory_bytes),
      slots_((options.memory_bytes + options.region_bytes - 1) / options.region_bytes) {}

absl::StatusOr<std::vector<Extent>> MemoryPool::Allocate(AllocationId allocation, uint64_t bytes,
                                                         MemberId member, Pieces pieces, Use use,
                                                         uint64_t attempt, uint64_t opening) {
  if (allocation == AllocationId())
    return absl::InvalidArgumentError("a request for memory must name an allocation");
  if (bytes == 0) return absl::InvalidArgumentError("0 bytes cannot be allocated");
  if (use == Use::kData) attempt = 0;
  const MutexLock growth(growth_mutex_);
  NAM_ASSIGN_OR_RETURN(std::vector<Extent> extents, Reserve(allocation, bytes, pieces, use));
  absl::Status status = Back(extents);
  if (status.ok()) Zero(extents, use);
  const MutexLock lock(mutex_);
  Holding* holding = nullptr;
  if (status.ok()) status = CheckOpening(member, opening);
  if (status.ok()) {
    holding = &held_[allocation];
    const auto& over = holding->over_attempts;
    if (holding->over || std::find(over.begin(), over.end(), attempt) != over.end())
      status = Over(allocation);
    else if (holding->sealed && use == Use::kData)
      status = absl::FailedPreconditionError(
          absl::StrFormat("allocation %d is sealed, and gets no more memory", allocation.value()));
  }
  if (!status.ok()) {
    for (const Extent& extent : extents) Free(extent, use);
    return status;
  }
  for (const Extent& extent : extents)
    holding->extents.push_back({.extent = extent, .use = use, .attempt = attempt});
  holding->open.emplace(attempt, member);
  scratch_highest_bytes_ = std::max(scratch_highest_bytes_, scratch_used_bytes_);
  return extents;
}

absl::Status MemoryPool::Adopt(AllocationId allocation, const std::vector<Extent>& extents) {
  const MutexLock growth(growth_mutex_);
  std::vector<Extent> taken;
  absl::Status status;
  {
    const MutexLock lock(mutex_);
    if (held_.size() >= kAllocationsMax || held_.contains(allocation)) {
      return absl::AlreadyExistsError(absl::StrFormat("allocation %d is here already, or %d others are",
                                                      allocation.value(), held_.size()));
    }
    for (const Extent& extent : extents) {
      const uint64_t end = extent.offset + extent.bytes;
      if (end < extent.offset || end > options_.memory_bytes ||
          extent.offset / options_.region_bytes != (end - 1) / options_.region_bytes) {
        status = absl::OutOfRangeError(absl::StrFormat(
            "%d bytes at offset %d do not fit a memory of %s in regions of %s", extent.bytes, extent.offset,
            ReadableBytes(options_.memory_bytes), ReadableBytes(options_.region_bytes)));
        break;
      }
      if (!allocator_.AllocateAt(extent)) {
        status = absl::AlreadyExistsError(
            absl::StrFormat("%d bytes at offset %d are another allocation's", extent.bytes, extent.offset));
        break;
      }
      taken.push_back(extent);
    }
  }
  if (status.ok()) status = Back(taken);
  if (status.ok()) Zero(taken, Use::kScratch);  // only notes that they are not zero any more
  const MutexLock lock(mutex_);
  if (!status.ok()) {
    for (const Extent& extent : taken) Free(extent, Use::kData);
    return status;
  }
  Holding& holding = held_[allocation];
  for (const Extent& extent : taken) holding.extents.push_back({.extent = extent});
  holding.sealed = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Extent>> MemoryPool::Seal(AllocationId allocation) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(allocation);
  if (found == held_.end() || found->second.over) {
    return absl::NotFoundError(absl::StrFormat("nothing is held here for allocation %d", allocation.value()));
  }
  found->second.sealed = true;
  std::vector<Extent> extents;
  for (const HeldExtent& extent : found->second.extents) {
    if (extent.use == Use::kData) extents.push_back(extent.extent);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  return extents;
}

bool MemoryPool::Lives(AllocationId allocation) const {
  const MutexLock lock(mutex_);
  const auto found = held_.find(allocation);
  return found != held_.end() && !found->second.over;
}

bool MemoryPool::WillHave(uint64_t bytes, Use use) const {
  const MutexLock lock(mutex_);
  const uint64_t leaving = LeavingBytes(use);
  return leaving > 0 && bytes <= LeftBytes(use) + leaving;
}

uint64_t MemoryPool::LeftBytes(Use use) const {
  if (use == Use::kScratch)
    return std::min(options_.scratch_bytes - scratch_used_bytes_, allocator_.free_bytes());
  const uint64_t share = table_bytes();
  const uint64_t used = allocator_.used_bytes() - scratch_used_bytes_;
  return std::min(share - std::min(share, used), allocator_.free_bytes());
}

void MemoryPool::Free(const Extent& extent, Use use) {
  allocator_.Free(extent);
  if (use == Use::kScratch) scratch_used_bytes_ -= extent.bytes;
}

absl::StatusOr<std::vector<Extent>> MemoryPool::Reserve(AllocationId allocation, uint64_t bytes,
                                                        Pieces pieces, Use use) {
  const MutexLock lock(mutex_);
  if (held_.size() >= kAllocationsMax && !held_.contains(allocation)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("memory is held for %d loads and tables already; drop some", held_.size()));
  }
  std::optional<std::vector<Extent>> extents;
  const uint64_t left = LeftBytes(use);
  if (bytes > left) {
    // The share is too small.
  } else if (pieces == Pieces::kAny) {
    extents = allocator_.Allocate(bytes);
  } else if (const std::optional<Extent> one = allocator_.AllocateContiguous(bytes)) {
    extents = {*one};
  }
  if (!extents.has_value()) {
    if (use == Use::kScratch) {
      return OutOfMemoryError(absl::StrFormat(
          "scratch memory is full: %s are needed, %s of %s are free; choose a larger --scratch",
          TellApart(bytes, left), TellApart(left, bytes), ReadableBytes(options_.scratch_bytes)));
    }
    if (pieces == Pieces::kOne && bytes <= left) {
      return OutOfMemoryError(absl::StrFormat(
          "out of memory in one piece: %s are needed, and of the %s that are free the largest piece has %s; "
          "drop "
          "tables, add memory servers, or choose larger regions",
          TellApart(bytes, allocator_.largest_gap_bytes()), ReadableBytes(left),
          TellApart(allocator_.largest_gap_bytes(), bytes)));
    }
    return OutOfMemoryError(
        absl::StrFormat("out of memory: %s are needed, %s of %s are free; drop tables or add memory servers",
                        TellApart(bytes, left), TellApart(left, bytes),
                        ReadableBytes(capacity_bytes_ - std::min(options_.scratch_bytes, capacity_bytes_))));
  }
  if (use == Use::kScratch) {
    for (const Extent& extent : *extents) scratch_used_bytes_ += extent.bytes;
  }
  return *std::move(extents);
}

// Makes regions for extents in empty slots. Regions made before an error are kept for later.
absl::Status MemoryPool::Back(const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    const uint64_t index = extent.offset / options_.region_bytes;
    if (slots_[index].region != nullptr) continue;
    const uint64_t begin = index * options_.region_bytes;
    const uint64_t bytes = std::min(options_.region_bytes, options_.memory_bytes - begin);
    absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> region = fabric_.Allocate(
        bytes,
        {.access = fabric::Access::kAll, .huge_pages = options_.huge_pages, .populate = options_.populate});
    if (absl::IsResourceExhausted(region.status())) return OutOfMemoryError(region.status().message());
    NAM_RETURN_IF_ERROR(region.status());
    const MutexLock lock(mutex_);
    slots_[index].region = *std::move(region);
  }
  return absl::OkStatus();
}

// The extents are reserved, so no other thread touches their bytes; growth_mutex_ guards the marks.
void MemoryPool::Zero(const std::vector<Extent>& extents, Use use) {
  for (const Extent& extent : extents) {
    Slot& slot = slots_[extent.offset / options_.region_bytes];
    const uint64_t begin = extent.offset % options_.region_bytes;
    const uint64_t end = begin + extent.bytes;
    if (use == Use::kData && begin < slot.handed_out_bytes) {
      std::memset(slot.region->data() + begin, 0, std::min(end, slot.handed_out_bytes) - begin);
    }
    slot.handed_out_bytes = std::max(slot.handed_out_bytes, end);
  }
}

absl::StatusOr<std::vector<Extent>> MemoryPool::Open(AllocationId allocation, MemberId member,
                                                     uint64_t opening) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(CheckOpening(member, opening));
  const auto found = held_.find(allocation);
  if (found == held_.end() || found->second.over) {
    return absl::NotFoundError(absl::StrFormat("nothing is held here for allocation %d", allocation.value()));
  }
  found->second.open.emplace(0, member);
  std::vector<Extent> extents;
  for (const HeldExtent& extent : found->second.extents) {
    if (!extent.over) extents.push_back(extent.extent);
  }
  return extents;
}

void MemoryPool::RefuseOpenings(MemberId member, uint64_t openings_from) {
  const MutexLock lock(mutex_);
  uint64_t& known = openings_from_[member];
  known = std::max(known, openings_from);
}

absl::Status MemoryPool::CheckOpening(MemberId member, uint64_t opening) const {
  const auto found = openings_from_.find(member);
  if (found == openings_from_.end() || opening >= found->second) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrFormat("member %d does not wait for this memory any more", member.value()));
}

void MemoryPool::Close(AllocationId allocation, uint64_t attempt, MemberId member) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(allocation);
  if (found == held_.end()) return;
  found->second.open.erase({attempt, member});
  FreeWhatIsOver(found);
}

void MemoryPool::Fenced(MemberId member) {
  const MutexLock lock(mutex_);
  openings_from_.erase(member);
  for (auto holding = held_.begin(); holding != held_.end();) {
    const auto next = std::next(holding);
    const size_t closed =
        std::erase_if(holding->second.open, [&](const auto& open) { return open.second == member; });
    if (closed > 0) FreeWhatIsOver(holding);
    holding = next;
  }
}

std::vector<MemberId> MemoryPool::Openers() const {
  const MutexLock lock(mutex_);
  std::set<MemberId> members;
  for (const auto& [member, openings_from] : openings_from_) members.insert(member);
  for (const auto& [allocation, holding] : held_) {
    for (const auto& [attempt, member] : holding.open) members.insert(member);
  }
  return {members.begin(), members.end()};
}

MemoryPool::Released MemoryPool::Release(AllocationId allocation) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(allocation);
  if (found == held_.end()) return {};
  found->second.over = true;
  return FreeWhatIsOver(found);
}

MemoryPool::Released MemoryPool::ReleaseAttempt(AllocationId allocation, uint64_t attempt) {
  if (attempt == 0) return {};
  const MutexLock lock(mutex_);
  if (held_.size() >= kAllocationsMax && !held_.contains(allocation)) return {};
  const auto found = held_.try_emplace(allocation).first;  // even if empty: refuses later requests
  Holding& holding = found->second;
  for (HeldExtent& extent : holding.extents) extent.over |= extent.attempt == attempt;
  holding.over_attempts.push_back(attempt);
  if (holding.over_attempts.size() > kOverAttemptsMax) holding.over_attempts.pop_front();
  return FreeWhatIsOver(found);
}

bool MemoryPool::Holding::IsOpen(uint64_t attempt) const {
  const auto first = open.lower_bound({attempt, MemberId()});
  return first != open.end() && first->first == attempt;
}

MemoryPool::Released MemoryPool::FreeWhatIsOver(Holdings::iterator found) {
  Holding& holding = found->second;
  Released released;
  std::erase_if(holding.extents, [&](const HeldExtent& extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!holding.over && !extent.over) return false;
    if (holding.IsOpen(extent.attempt)) {
      released.leaving_bytes += extent.extent.bytes;
      return false;
    }
    Free(extent.extent, extent.use);
    released.freed_bytes += extent.extent.bytes;
    return true;
  });
  if (holding.over && holding.extents.empty()) held_.erase(found);
  return released;
}

uint64_t MemoryPool::LeavingBytes(Use use) const {
  uint64_t bytes = 0;
  for (const auto& [allocation, holding] : held_) {
    for (const HeldExtent& extent : holding.extents) {
      if ((holding.over || extent.over) && extent.use == use) bytes += extent.extent.bytes;
    }
  }
  return bytes;
}

fabric::MemoryRegion* MemoryPool::RegionOf(uint64_t offset, uint64_t bytes) const {
  const uint64_t index = offset / options_.region_bytes;
  const uint64_t begin = offset % options_.region_bytes;
  if (index >= slots_.size() || slots_[index].region == nullptr) return nullptr;
  fabric::MemoryRegion* const region = slots_[index].region.get();
  return begin >= region->bytes() || bytes > region->bytes() - begin ? nullptr : region;
}

const std::byte* MemoryPool::Find(uint64_t offset, uint64_t bytes) const {
  const MutexLock lock(mutex_);
  const fabric::MemoryRegion* const region = RegionOf(offset, bytes);
  return region == nullptr ? nullptr : region->data() + offset % options_.region_bytes;
}

std::byte* MemoryPool::FindToFill(uint64_t offset, uint64_t bytes) {
  const MutexLock lock(mutex_);
  fabric::MemoryRegion* const region = RegionOf(offset, bytes);
  return region == nullptr ? nullptr : region->data() + offset % options_.region_bytes;
}

std::vector<MemoryPool::Region> MemoryPool::Regions() const {
  const MutexLock lock(mutex_);
  std::vector<Region> regions;
  for (size_t index = 0; index < slots_.size(); ++index) {
    const fabric::MemoryRegion* region = slots_[index].region.get();
    if (region != nullptr)
      regions.push_back({index * options_.region_bytes, region->bytes(), region->rkey()});
  }
  return regions;
}

std::vector<AllocationId> MemoryPool::Held() const {
  const MutexLock lock(mutex_);
  std::vector<AllocationId> held;
  held.reserve(held_.size());
  for (const auto& [allocation, holding] : held_) held.push_back(allocation);
  return held;
}

uint64_t MemoryPool::scratch_used_bytes() const {
  const MutexLock lock(mutex_);
  return scratch_used_bytes_;
}

uint64_t MemoryPool::scratch_highest_bytes() const {
  const MutexLock lock(mutex_);
  return scratch_highest_bytes_;
}

uint64_t MemoryPool::leaving_bytes() const {
  const MutexLock lock(mutex_);
  return LeavingBytes(Use::kData);
}

uint64_t MemoryPool::used_bytes() const {
  const MutexLock lock(mutex_);
  return allocator_.used_bytes();
}

}  // namespace nam::memserver
