#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace nam::partitioner {

/// Numbers that are written once, each in 1, 2, 4 or 8 bytes: as many as its distance from the least one may
/// take. Read by any number of threads.
class NarrowNumbers {
 public:
  /// Stores number(i) for all i below `count`. Numbers lie between `least` and `greatest`; any other is
  /// stored as an arbitrary number.
  template <typename Number>
  void Fill(size_t count, int64_t least, int64_t greatest, Number number) {
    const uint64_t spread = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least);
    base_ = static_cast<uint64_t>(least);
    count_ = count;
    if (spread <= std::numeric_limits<uint8_t>::max()) return FillAs<uint8_t>(number);
    if (spread <= std::numeric_limits<uint16_t>::max()) return FillAs<uint16_t>(number);
    if (spread <= std::numeric_limits<uint32_t>::max()) return FillAs<uint32_t>(number);
    FillAs<uint64_t>(number);
  }

  bool empty() const { return count_ == 0; }
  int64_t operator[](size_t i) const { return static_cast<int64_t>(base_ + Distance(i)); }
  uint64_t held_bytes() const { return uint64_t{count_} * width_; }

 private:
  template <typename T, typename Number>
  void FillAs(const Number& number) {
    width_ = sizeof(T);
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(count_ * sizeof(T));
    T* const out = reinterpret_cast<T*>(bytes_.get());
    for (size_t i = 0; i < count_; ++i) out[i] = static_cast<T>(static_cast<uint64_t>(number(i)) - base_);
  }
  template <typename T>
  uint64_t At(size_t i) const {
    return reinterpret_cast<const T*>(bytes_.get())[i];
  }
  uint64_t Distance(size_t i) const {
    switch (width_) {
      case 1:
        return At<uint8_t>(i);
      case 2:
        return At<uint16_t>(i);
      case 4:
        return At<uint32_t>(i);
      default:
        return At<uint64_t>(i);
    }
  }

  uint64_t base_ = 0;
  size_t count_ = 0;
  uint8_t width_ = 1;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace nam::partitioner
