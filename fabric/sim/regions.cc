#include "fabric/sim/regions.h"

#include "absl/strings/str_format.h"

namespace nam::fabric::sim {
namespace {

constexpr uint32_t kDrawnBits = 12;
constexpr uint32_t kKeysMax = (1u << 18) - 1;

}  // namespace

absl::StatusOr<uint32_t> Regions::Register(const View& view, RandomStream& random) {
  if (made_ == kKeysMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("this simulated process has registered %d memory regions, which is the most: share "
                        "fewer, larger ones",
                        kKeysMax));
  }
  const uint32_t key = ++made_ << kDrawnBits | static_cast<uint32_t>(random.Below(1u << kDrawnBits));
  views_.emplace(key, view);
  return key;
}

CompletionStatus Regions::Resolve(RemoteAddress address, uint32_t bytes, Access wanted,
                                  std::byte*& at) const {
  const auto found = views_.find(address.rkey.value);
  if (found == views_.end() || !Allows(found->second.access, wanted)) {
    return CompletionStatus::kRemoteAccessError;
  }
  const View& view = found->second;
  if (wanted == Access::kAtomic && address.offset % sizeof(uint64_t) != 0) {
    return CompletionStatus::kRemoteInvalidRequest;
  }
  if (address.offset > view.bytes || bytes > view.bytes - address.offset) {
    return CompletionStatus::kRemoteAccessError;
  }
  at = view.data + address.offset;
  return CompletionStatus::kOk;
}

bool Regions::Contains(const LocalBuffer& buffer) const {
  if (buffer.bytes == 0) return true;
  const auto found = views_.find(buffer.lkey.value);
  if (found == views_.end()) return false;
  const View& view = found->second;
  const auto begin = reinterpret_cast<uintptr_t>(buffer.data);
  const auto base = reinterpret_cast<uintptr_t>(view.data);
  return begin >= base && begin - base <= view.bytes && buffer.bytes <= view.bytes - (begin - base);
}

}  // namespace nam::fabric::sim
