#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/dictionary.h"

/// From the catalog's description of a table to what storage streams by.
namespace nam::partitioner {

/// The widths of all columns, as the group's chains hold them.
std::vector<uint8_t> WidthsOf(const proto::Table& table, uint32_t group);
/// The group of one of the table's chains: catalog/chain_groups.h.
uint32_t GroupOfChain(const proto::Table& table, uint32_t chain);
/// Whether a group of chains holds the column's values as they are.
bool IsPlain(const proto::Table& table, uint32_t column);
/// The bytes of a value in a block; plain texts have so many on average.
uint32_t StoredBytesOf(const proto::Column& column);
storage::StreamTable StreamTableOf(const proto::Table& table, std::span<const uint32_t> columns);
storage::ChainStart ChainStartOf(const proto::Table& table, uint32_t number);
storage::BlockLayout LayoutOf(const proto::Table& table, uint32_t number);
/// Bytes of one block of the chain.
uint32_t BlockBytesOf(const proto::Table& table, uint32_t chain);

/// Reads a column's dictionary from the memory servers and checks it.
absl::StatusOr<std::shared_ptr<const storage::Dictionary>> ReadDictionary(
    storage::Channel& channel, const proto::Dictionary& dictionary);

}  // namespace nam::partitioner
