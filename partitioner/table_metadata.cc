#include "partitioner/table_metadata.h"

#include <algorithm>

#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "storage/checksum.h"

namespace nam::partitioner {

std::vector<uint8_t> WidthsOf(const proto::Table& table, uint32_t group) {
  std::vector<uint8_t> widths;
  for (uint32_t c = 0; c < static_cast<uint32_t>(table.columns_size()); ++c)
    widths.push_back(static_cast<uint8_t>(catalog::GroupColumnOf(table, group, c).encoding().width()));
  return widths;
}

uint32_t GroupOfChain(const proto::Table& table, uint32_t chain) {
  return chain / catalog::PartitionCount(table);
}

storage::StreamTable StreamTableOf(const proto::Table& table, std::span<const uint32_t> columns) {
  return {catalog::GroupAllocation(table, 0),
          table.pointer_group(),
          WidthsOf(table, 0),
          {columns.begin(), columns.end()}};
}

storage::ChainStart ChainStartOf(const proto::Table& table, uint32_t number) {
  const proto::Chain& chain = table.partitions(static_cast<int>(number));
  const uint32_t group = GroupOfChain(table, number);
  std::shared_ptr<storage::AppendedGroup> appended;
  if (group > 0) {
    appended = std::make_shared<storage::AppendedGroup>(
        storage::AppendedGroup{catalog::GroupAllocation(table, group), WidthsOf(table, group)});
  }
  return {.partition = number % catalog::PartitionCount(table),
          .number = number,
          .blocks = chain.blocks(),
          .block_rows = chain.block_rows(),
          .text_bytes = {chain.text_bytes().begin(), chain.text_bytes().end()},
          .head = {chain.head().begin(), chain.head().end()},
          .group = group,
          .appended = std::move(appended)};
}

bool IsPlain(const proto::Table& table, uint32_t column) {
  for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
    if (catalog::GroupColumnOf(table, g, column).encoding().plain()) return true;
  }
  return false;
}

uint32_t StoredBytesOf(const proto::Column& column) {
  return column.encoding().width() + column.encoding().average_text_bytes();
}

uint64_t StoredRowBytes(const proto::Table& table, std::span<const uint32_t> columns) {
  uint64_t bytes = 0;
  for (const uint32_t c : columns) bytes += StoredBytesOf(table.columns(static_cast<int>(c)));
  return bytes;
}

storage::BlockLayout LayoutOf(const proto::Table& table, uint32_t number) {
  const proto::Chain& chain = table.partitions(static_cast<int>(number));
  const std::vector<uint32_t> text_bytes(chain.text_bytes().begin(), chain.text_bytes().end());
  return {WidthsOf(table, GroupOfChain(table, number)), chain.block_rows(),
          storage::PointerSlots(chain.blocks(), table.pointer_group()), text_bytes};
}

uint32_t BlockBytesOf(const proto::Table& table, uint32_t chain) {
  return LayoutOf(table, chain).bytes();
}

absl::StatusOr<std::shared_ptr<const storage::Dictionary>> ReadDictionary(
    storage::Channel& channel, const proto::Dictionary& dictionary) {
  const uint64_t needed_segments =
      dictionary.segment_bytes() == 0
          ? 0
          : (dictionary.bytes() + dictionary.segment_bytes() - 1) / dictionary.segment_bytes();
  if (needed_segments == 0 || needed_segments != static_cast<uint64_t>(dictionary.segments_size())) {
    return absl::DataLossError("the catalog's description of a dictionary is damaged");
  }
  std::vector<std::byte> bytes(dictionary.bytes());
  for (int i = 0; i < dictionary.segments_size(); ++i) {
    const uint64_t at = uint64_t{static_cast<uint32_t>(i)} * dictionary.segment_bytes();
    const uint64_t n = std::min<uint64_t>(dictionary.segment_bytes(), bytes.size() - at);
    NAM_RETURN_IF_ERROR(
        channel.Read(storage::RemotePtr<void>::FromRaw(dictionary.segments(i)), {bytes.data() + at, n}));
  }
  if (storage::Checksum(bytes) != dictionary.checksum()) {
    return absl::DataLossError("a dictionary is damaged: its checksum does not match");
  }
  return storage::Dictionary::Decode(std::move(bytes));
}

}  // namespace nam::partitioner
