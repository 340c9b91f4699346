#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"

namespace nam::fabric::tcp {

/// The registered regions of one fabric. Look-ups take no lock: NIC threads make one per operation.
///
/// A key is index:16 | generation:16. The generation of an index starts at random and advances with every
/// use. An index whose generations are used up is retired, so no key ever names two regions.
///
/// Retire() makes later look-ups fail, but a NIC thread may be inside an operation. The owner lets every NIC
/// thread pass (NicThread::ReleaseRegion) before the memory is freed and the index reused.
class Regions {
 public:
  struct View {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Access access = Access::kNone;
  };

  Regions();
  /// RESOURCE_EXHAUSTED when 65 535 regions are registered.
  absl::StatusOr<uint32_t> Register(const View& view);
  void Retire(uint32_t key);
  /// Call after every NIC thread has passed.
  void Recycle(uint32_t key);

  std::optional<View> Find(uint32_t key) const;
  /// Resolves a peer's address within a region: kOk, or the completion status.
  CompletionStatus Resolve(RemoteAddress address, uint32_t bytes, Access wanted, std::byte*& at) const;
  bool Contains(const LocalBuffer& buffer) const;

 private:
  struct Slot {
    std::atomic<uint32_t> key{0};
    std::atomic<std::byte*> data{nullptr};
    std::atomic<size_t> bytes{0};
    std::atomic<Access> access{Access::kNone};
    uint32_t uses = 0;        // under mutex_
    uint16_t generation = 0;  // under mutex_
  };
  static constexpr size_t kChunkSlots = 256;
  static constexpr size_t kChunks = 256;
  using Chunk = std::array<Slot, kChunkSlots>;

  const Slot* SlotOf(uint32_t key) const;

  Mutex mutex_;
  std::array<std::unique_ptr<Chunk>, kChunks> owned_ ABSL_GUARDED_BY(mutex_);  // only grows
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  uint32_t next_index_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::tcp
