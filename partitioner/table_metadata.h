#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "storage/dictionary.h"

/// From the catalog's description of a table to what storage streams by.
namespace nam::partitioner {

std::vector<uint8_t> WidthsOf(const proto::Table& table);
/// What a value of the column takes in a block; of plain texts on average.
uint32_t StoredBytesOf(const proto::Column& column);
storage::StreamTable StreamTableOf(const proto::Table& table, std::span<const uint32_t> columns);
storage::ChainStart ChainStartOf(const proto::Table& table, uint32_t partition);
storage::BlockLayout LayoutOf(const proto::Table& table, uint32_t partition);
/// Bytes of one block of the partition's chain.
uint32_t BlockBytesOf(const proto::Table& table, uint32_t partition);

/// Reads a column's dictionary from the memory servers and checks it.
absl::StatusOr<std::shared_ptr<const storage::Dictionary>> ReadDictionary(
    storage::Channel& channel, const proto::Dictionary& dictionary);

}  // namespace nam::partitioner
