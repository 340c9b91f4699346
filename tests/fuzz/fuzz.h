#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

/// A fuzzer is one file that defines both. It is run in two ways: by libFuzzer (`./run fuzz NAME`), and over
/// its seeds and its corpus with a bounded number of mutations in every test run (replay_test.cc).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace nam::fuzz {

/// Valid inputs, made by the code under test: they stay valid when a format changes.
std::vector<std::string> Seeds();

/// Takes an input apart. Beyond its end it yields zeroes.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  size_t left() const { return left_; }
  uint8_t Byte() { return Consume<uint8_t>(); }
  template <typename T>
  T Consume() {
    T value{};
    const size_t bytes = std::min(sizeof(T), left_);
    if (bytes > 0) std::memcpy(&value, at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return value;
  }
  /// Returns at most `bytes`.
  std::span<const std::byte> Bytes(size_t bytes) {
    const std::span<const std::byte> taken(reinterpret_cast<const std::byte*>(at_), std::min(bytes, left_));
    at_ += taken.size();
    left_ -= taken.size();
    return taken;
  }
  std::span<const std::byte> Rest() { return Bytes(left_); }

 private:
  const uint8_t* at_;
  size_t left_;
};

template <typename T>
void Append(std::string& seed, const T& value) {
  seed.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace nam::fuzz
