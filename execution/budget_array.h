#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "execution/memory_budget.h"

namespace nam::execution {

/// RESOURCE_EXHAUSTED: the query needs more memory than it may have on a server.
inline absl::Status OverBudget(const MemoryBudget& budget) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the query needs more than its ", budget.bytes() >> 20,
                   " MiB of memory on a server: add a LIMIT or a filter, or raise nam.result_mib_max"));
}

/// An array whose memory a query's budget pays for. Elements are zero until written. The budget outlives it.
/// One thread.
template <typename T>
class BudgetArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit BudgetArray(MemoryBudget& budget) : budget_(&budget) {}
  BudgetArray(BudgetArray&& other) noexcept
      : budget_(other.budget_),
        elements_(std::exchange(other.elements_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  BudgetArray& operator=(BudgetArray&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(elements_, other.elements_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~BudgetArray() { Clear(); }

  /// Makes room for at least `capacity` elements. Growth by doubling bounds the cost of copies. While it
  /// copies it holds both arrays.
  absl::Status Grow(uint64_t capacity) {
    if (capacity <= capacity_) return absl::OkStatus();
    return Resize(std::max({capacity, 2 * capacity_, kLeastBytes / sizeof(T)}));
  }
  /// As Grow, but to exactly this size.
  absl::Status Resize(uint64_t capacity) {
    if (capacity <= capacity_) return absl::OkStatus();
    if (capacity > UINT64_MAX / sizeof(T) || !budget_->Reserve(capacity * sizeof(T)))
      return OverBudget(*budget_);
    auto* elements = static_cast<T*>(std::calloc(capacity, sizeof(T)));
    if (elements == nullptr) {
      budget_->Release(capacity * sizeof(T));
      return OverBudget(*budget_);
    }
    if (capacity_ > 0) std::memcpy(static_cast<void*>(elements), elements_, capacity_ * sizeof(T));
    Clear();
    elements_ = elements;
    capacity_ = capacity;
    return absl::OkStatus();
  }
  void Clear() {
    if (elements_ == nullptr) return;
    std::free(elements_);
    elements_ = nullptr;
    budget_->Release(std::exchange(capacity_, 0) * sizeof(T));
  }

  uint64_t capacity() const { return capacity_; }
  T* data() { return elements_; }
  const T* data() const { return elements_; }
  T& operator[](uint64_t i) { return elements_[i]; }
  const T& operator[](uint64_t i) const { return elements_[i]; }

 private:
  static constexpr uint64_t kLeastBytes = 256;

  MemoryBudget* budget_;
  T* elements_ = nullptr;
  uint64_t capacity_ = 0;
};

}  // namespace nam::execution
