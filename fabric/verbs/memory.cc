#include "fabric/verbs/memory.h"

#include <errno.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/verbs/memlock.h"

namespace nam::fabric::verbs {
namespace {

/// NICs reuse rkeys. This many consecutive rkeys that peers may still hold are skipped.
constexpr size_t kRkeyTries = 16;

}  // namespace

unsigned NicAccess(Access access) {
  // The owner has all rights, so the NIC may write locally.
  unsigned rights = IBV_ACCESS_LOCAL_WRITE;
  if (Allows(access, Access::kRead)) rights |= IBV_ACCESS_REMOTE_READ;
  if (Allows(access, Access::kWrite)) rights |= IBV_ACCESS_REMOTE_WRITE;
  if (Allows(access, Access::kAtomic)) rights |= IBV_ACCESS_REMOTE_ATOMIC;
  return rights;
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> VerbsRegion::Allocate(std::shared_ptr<Core> core, size_t bytes,
                                                                    const AllocateOptions& options) {
  // Before the memory is touched, which pinning does completely.
  NAM_RETURN_IF_ERROR(CheckMemlock(ReadMemlockState(), bytes));
  NAM_ASSIGN_OR_RETURN(AnonymousMapping mapping,
                       AnonymousMapping::Create(bytes, options.huge_pages, options.populate));
  std::unique_ptr<VerbsRegion> region(
      new VerbsRegion(std::move(core), std::move(mapping), bytes, options.access));
  NAM_RETURN_IF_ERROR(region->Register());
  return region;
}

VerbsRegion::VerbsRegion(std::shared_ptr<Core> core, AnonymousMapping mapping, size_t bytes, Access access)
    : core_(std::move(core)), mapping_(std::move(mapping)) {
  data_ = mapping_.data();
  bytes_ = bytes;
  access_ = access;
}

absl::Status VerbsRegion::Register() {
  const Device& device = core_->device();
  std::vector<MemoryRegionHandle> passed_over;
  while (true) {
    handle_.reset(ibv_reg_mr(device.pd(), data_, bytes_, NicAccess(access_)));
    if (handle_ == nullptr) {
      return VerbsError(
          device, absl::StrFormat("cannot register %d bytes of memory", bytes_), errno,
          absl::StrFormat("it must be pinned: see `ulimit -l`, the control group's memory limit, and "
                          "that the device takes %d regions of at most %d bytes",
                          device.attributes().max_mr, device.attributes().max_mr_size));
    }
    if (passed_over.size() == kRkeyTries || !core_->registry().RecentlyRetired(handle_->rkey)) break;
    passed_over.push_back(std::move(handle_));
  }
  NAM_ASSIGN_OR_RETURN(const uint32_t key, core_->registry().Register({.data = data_,
                                                                       .bytes = bytes_,
                                                                       .access = access_,
                                                                       .nic_lkey = handle_->lkey,
                                                                       .nic_rkey = handle_->rkey}));
  rkey_ = {key};
  lkey_ = {key};
  return absl::OkStatus();
}

VerbsRegion::~VerbsRegion() {
  if (rkey_.value == 0 || Revoke()) return;
  // The NIC refuses because a peer is stalled inside a WRITE. The pages stay pinned, so the rest of the WRITE
  // lands in unused memory; the NIC frees it all when the process ends.
  [[maybe_unused]] ibv_mr* left_to_the_nic = handle_.release();
}

bool VerbsRegion::Revoke() {
  const MutexLock lock(mutex_);
  if (!std::exchange(retired_, true)) core_->registry().Retire(rkey_.value);
  if (handle_ == nullptr) return true;
  if (ibv_dereg_mr(handle_.get()) != 0) return false;
  [[maybe_unused]] ibv_mr* freed = handle_.release();
  return true;
}

}  // namespace nam::fabric::verbs
