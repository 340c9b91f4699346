#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/dictionary.h"

/// Translates the catalog's description of a table for storage's streams.
namespace nam::partitioner {

/// The widths of all columns in the group's chains.
std::vector<uint8_t> WidthsOf(const proto::Table& table, uint32_t group);
/// The group of a chain: catalog/chain_groups.h.
uint32_t GroupOfChain(const proto::Table& table, uint32_t chain);
/// True if a chain group stores the column's values unencoded.
bool IsPlain(const proto::Table& table, uint32_t column);
/// The bytes of a value in a block; for plain texts, on average.
uint32_t StoredBytesOf(const proto::Column& column);
/// … and of a row's values in these columns.
uint64_t StoredRowBytes(const proto::Table& table, std::span<const uint32_t> columns);
storage::StreamTable StreamTableOf(const proto::Table& table, std::span<const uint32_t> columns);
storage::ChainStart ChainStartOf(const proto::Table& table, uint32_t number);
storage::BlockLayout LayoutOf(const proto::Table& table, uint32_t number);
/// Bytes of one block of the chain.
uint32_t BlockBytesOf(const proto::Table& table, uint32_t chain);

/// Reads a column's dictionary from the memory servers and checks it.
absl::StatusOr<std::shared_ptr<const storage::Dictionary>> ReadDictionary(
    storage::Channel& channel, const proto::Dictionary& dictionary);

}  // namespace nam::partitioner
