#include "storage/dictionary.h"

#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "base/check.h"

namespace nam::storage {

std::vector<std::byte> Dictionary::Encode(const std::vector<std::string_view>& entries) {
  size_t text_bytes = 0;
  for (std::string_view entry : entries) text_bytes += entry.size();
  NAM_CHECK(text_bytes <= std::numeric_limits<uint32_t>::max(), "dictionary above 4 GiB");
  std::vector<std::byte> bytes(8 + 4 * (entries.size() + 1) + text_bytes);
  const uint64_t count = entries.size();
  std::memcpy(bytes.data(), &count, 8);
  std::byte* offsets = bytes.data() + 8;
  std::byte* text = offsets + 4 * (entries.size() + 1);
  uint32_t at = 0;
  for (size_t i = 0; i <= entries.size(); ++i) {
    std::memcpy(offsets + 4 * i, &at, 4);
    if (i == entries.size()) break;
    std::memcpy(text + at, entries[i].data(), entries[i].size());
    at += static_cast<uint32_t>(entries[i].size());
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<const Dictionary>> Dictionary::Decode(std::vector<std::byte> bytes) {
  const auto damaged = [] { return absl::DataLossError("a dictionary is damaged"); };
  if (bytes.size() < 12) return damaged();
  uint64_t count;
  std::memcpy(&count, bytes.data(), 8);
  if (count >= bytes.size() / 4 || 8 + 4 * (count + 1) > bytes.size()) return damaged();
  std::shared_ptr<Dictionary> dictionary(new Dictionary);
  dictionary->bytes_ = std::move(bytes);
  dictionary->size_ = count;
  dictionary->offsets_ = reinterpret_cast<const uint32_t*>(dictionary->bytes_.data() + 8);
  const size_t text_at = 8 + 4 * (count + 1);
  dictionary->text_ = reinterpret_cast<const char*>(dictionary->bytes_.data() + text_at);
  const uint32_t* offsets = dictionary->offsets_;
  if (offsets[0] != 0 || offsets[count] != dictionary->bytes_.size() - text_at) return damaged();
  for (size_t i = 0; i < count; ++i) {
    if (offsets[i] > offsets[i + 1]) return damaged();
  }
  return std::shared_ptr<const Dictionary>(std::move(dictionary));
}

size_t Dictionary::LowerBound(std::string_view text) const {
  size_t low = 0, high = size_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((*this)[middle] < text) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<size_t> Dictionary::Find(std::string_view text) const {
  const size_t at = LowerBound(text);
  if (at < size_ && (*this)[at] == text) return at;
  return std::nullopt;
}

}  // namespace nam::storage
