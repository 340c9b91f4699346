#pragma once

#include <cstdint>

namespace nam::execution {

/// Hashes a group's number for tables of groups: both halves count, and all bits of the result are good. Does
/// not decide the part of a row (types/hash.h): it stays in the process.
inline uint32_t HashOfNumber(uint64_t number) {
  const uint64_t low = uint64_t{static_cast<uint32_t>(number)} * 0x9e3779b1;
  const uint64_t high = (number >> 32) * 0x85ebca77;
  const uint64_t mixed = low ^ low >> 32 ^ high ^ high >> 29;
  return static_cast<uint32_t>(mixed);
}

/// hashes[i] = HashOfNumber(numbers[i]). Compiled for each kind of processor.
void HashNumbers(const uint64_t* numbers, uint32_t count, uint32_t* hashes);

}  // namespace nam::execution
