#include "partitioner/partition_function.h"

#include "storage/checksum.h"

namespace nam::partitioner {

uint32_t PartitionOfNumber(int64_t key, uint32_t parts) {
  return static_cast<uint32_t>(storage::Checksum(std::as_bytes(std::span(&key, 1))) % parts);
}

uint32_t PartitionOfString(std::string_view key, uint32_t parts) {
  return static_cast<uint32_t>(storage::Checksum(std::as_bytes(std::span(key.data(), key.size()))) % parts);
}

}  // namespace nam::partitioner
