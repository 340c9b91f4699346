#include "dataset/row_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace nam::dataset {
namespace {

constexpr std::string_view kAddressLetters =
    "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
static_assert(kAddressLetters.size() == 64);
constexpr size_t kAddressLengthMax = 40;
constexpr size_t kPrefixLengthMax = 16;
constexpr int kKeyDigits = 9;

}  // namespace

char* WriteDigits(char* at, uint64_t number, int digits) {
  for (int i = digits - 1; i >= 0; --i, number /= 10) at[i] = static_cast<char>('0' + number % 10);
  return at + digits;
}

std::string_view KeepName(partitioner::ColumnBatch& batch, std::string_view prefix, uint64_t key) {
  NAM_CHECK(prefix.size() <= kPrefixLengthMax);
  std::array<char, kPrefixLengthMax + kKeyDigits> text;
  std::memcpy(text.data(), prefix.data(), prefix.size());
  const char* end = WriteDigits(text.data() + prefix.size(), key, kKeyDigits);
  return batch.Keep({text.data(), static_cast<size_t>(end - text.data())});
}

std::string_view KeepAddress(partitioner::ColumnBatch& batch, const RowRandom& random, uint64_t word,
                             uint32_t low, uint32_t high) {
  NAM_CHECK(low <= high && high <= kAddressLengthMax);
  std::array<char, kAddressLengthMax> text;
  const uint32_t length = random.Word(word).Between(low, high);
  for (uint32_t i = 0; i < length; i += 8) {
    RandomDigits digits = random.Word(word + 1 + i / 8);
    for (uint32_t j = i; j < std::min(length, i + 8); ++j) text[j] = kAddressLetters[digits.Below(64)];
  }
  return batch.Keep({text.data(), length});
}

std::string_view KeepPhone(partitioner::ColumnBatch& batch, uint32_t nation, RandomDigits digits) {
  std::array<char, 15> text;
  char* at = WriteDigits(text.data(), 10 + nation, 2);
  *at++ = '-';
  at = WriteDigits(at, digits.Between(100, 999), 3);
  *at++ = '-';
  at = WriteDigits(at, digits.Between(100, 999), 3);
  *at++ = '-';
  WriteDigits(at, digits.Between(1000, 9999), 4);
  return batch.Keep({text.data(), text.size()});
}

}  // namespace nam::dataset
