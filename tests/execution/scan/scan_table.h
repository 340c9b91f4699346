#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution/column.h"
#include "execution/scan/block_scan.h"
#include "proto/table.pb.h"
#include "storage/known_blocks.h"
#include "tests/storage/chains.h"
#include "types/value.h"

namespace nam::execution {

/// A row of the table below.
struct ScanRow {
  std::optional<int64_t> key;
  int64_t day = 0;
  std::optional<std::string> text;
  int64_t wide = 0;
};

/// A table (key integer, day integer, text varchar, wide integer) in two memory servers, as the loader lays
/// it out: split by key modulo the partitions, each sorted by day. Partitions belong to two groups of chains
/// in turn, which encode the same values differently.
class ScanTable {
 public:
  static constexpr uint32_t kKey = 0, kDay = 1, kText = 2, kWide = 3, kColumns = 4;
  static constexpr std::array<uint8_t, kColumns> kWidths{4, 2, 1, 8};
  // The least and greatest values of keys and days.
  static constexpr int64_t kKeyMin = -100, kKeyMax = 900, kDayMin = 1000, kDayMax = 1399;

  struct Shape {
    uint32_t partitions = 4;  // a power of two
    uint32_t groups = 1;      // one or two
    uint32_t block_rows = 100;
    uint32_t pointer_group = 4;
  };
  ScanTable(fabric::Kind kind, const Shape& shape, const std::vector<ScanRow>& rows);
  /// Puts the table into the memory servers of `beside`, behind that table; nothing is added to `beside`
  /// afterwards.
  ScanTable(fabric::Kind kind, const ScanTable& beside, const Shape& shape, const std::vector<ScanRow>& rows);

  static uint32_t PartitionOf(const ScanRow& row, uint32_t partitions);
  static Value ValueOf(const ScanRow& row, uint32_t column);
  static Type TypeOf(uint32_t column);
  /// The texts that rows of a group may have.
  static const std::vector<std::string>& Texts(uint32_t group);

  const std::vector<ScanRow>& rows(uint32_t partition) const { return rows_[partition]; }
  const std::shared_ptr<const proto::Table>& meta() const { return meta_; }
  std::shared_ptr<storage::KnownBlocks> NewKnownBlocks() const;
  storage::TwoServers& servers() { return *servers_; }
  /// A counter that is zero, for claims.
  storage::WorkCounter NewCounter();

  /// Options to read `columns`, all of which flow out: without filters, probes and known blocks.
  BlockScan::Options ScanOf(const std::vector<uint32_t>& columns) const;

 private:
  void Load(fabric::Kind kind, const Shape& shape, const std::vector<ScanRow>& rows);
  void MakeMeanings(uint32_t groups);
  void WriteChain(storage::Channel& channel, uint32_t partition, const Shape& shape, proto::Table& meta);
  void FillBlock(storage::BlockWriter& writer, uint32_t partition, size_t first, uint32_t rows) const;
  uint64_t CodeOf(const ScanRow& row, uint32_t column, uint32_t group) const;

  const std::shared_ptr<storage::TwoServers> servers_;
  const uint64_t allocation_;
  uint64_t next_offset_ = 4096;                              // in both servers
  std::vector<std::vector<ScanRow>> rows_;                   // by partition, in order
  std::vector<uint32_t> group_of_;                           // partition
  std::vector<std::array<CodeMeaning, kColumns>> meanings_;  // by group
  std::shared_ptr<const proto::Table> meta_;
};

}  // namespace nam::execution
