#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

namespace nam::fabric {

/// Zeroed, page-aligned anonymous memory, unmapped by its destructor.
class AnonymousMapping {
 public:
  /// Maps `bytes`, rounded up to 4 KiB. `huge_pages` is a wish; `populate` faults in every page now.
  /// INVALID_ARGUMENT for 0 bytes. RESOURCE_EXHAUSTED if memory is short.
  static absl::StatusOr<AnonymousMapping> Create(size_t bytes, bool huge_pages, bool populate);
  AnonymousMapping(AnonymousMapping&& other) noexcept;
  AnonymousMapping& operator=(AnonymousMapping&&) = delete;
  ~AnonymousMapping();
  std::byte* data() const { return data_; }

 private:
  AnonymousMapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  size_t bytes_;
};

}  // namespace nam::fabric
