#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "execution/memory_budget.h"

namespace nam::execution {

/// Zeroed bytes that a query's budget pays for. Large ones are mapped: the kernel zeroes a page when a thread
/// first touches it. So the threads that fill a table zero it as they go, and untouched pages take no memory.
/// Move-only; gives its bytes back.
class MappedBytes {
 public:
  MappedBytes() = default;
  /// RESOURCE_EXHAUSTED if the budget or the system does not allow it.
  static absl::StatusOr<MappedBytes> Make(uint64_t bytes, MemoryBudget& budget);
  MappedBytes(MappedBytes&& other) noexcept { *this = std::move(other); }
  MappedBytes& operator=(MappedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~MappedBytes();

  /// Aligned to a cache line.
  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  MemoryBudget* budget_ = nullptr;
};

/// `size` elements in MappedBytes.
template <typename Element>
class MappedArray {
  static_assert(std::is_trivial_v<Element>);

 public:
  MappedArray() = default;
  static absl::StatusOr<MappedArray> Make(uint64_t size, MemoryBudget& budget) {
    auto bytes = MappedBytes::Make(size * sizeof(Element), budget);
    if (!bytes.ok()) return std::move(bytes).status();
    MappedArray array;
    array.bytes_ = *std::move(bytes);
    return array;
  }

  Element* data() const { return reinterpret_cast<Element*>(bytes_.data()); }
  Element& operator[](uint64_t i) const { return data()[i]; }
  uint64_t size() const { return bytes_.bytes() / sizeof(Element); }

 private:
  MappedBytes bytes_;
};

}  // namespace nam::execution
