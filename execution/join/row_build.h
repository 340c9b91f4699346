#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "execution/expression/program.h"
#include "execution/join/bloom_filter.h"
#include "execution/join/build_side.h"
#include "execution/join/direct_table.h"
#include "execution/join/domain_table.h"
#include "execution/join/hash_table.h"
#include "execution/join/row_keys.h"
#include "execution/rows/row_table.h"

namespace nam::execution {

/// Builds a table over rows at rest, in two steps:
///
///     tasks     write keys and payload to pages of a RowTable, each thread its own pages
///     Combine   when the number of rows is known: runs of pages are inserted into a chained DirectTable or a
///               HashTable, in any order and at once
///
/// Rows with a NULL key are in the RowTable, and no chain leads to them. Without keys there is no table:
/// loops go over the rows alone.
class RowBuild : public BuildSide {
 public:
  struct Options {
    /// Outputs: the keys, then the payload. Outlives the build.
    const Program* program = nullptr;
    uint32_t keys = 1;  // 0: none
    /// Field i is output i. Keys and payload that stay codes are fields with a meaning.
    RowLayout layout;
    /// For each key whether blanks at its end are ignored (char(n) beside varchar(n)). Empty: none are.
    std::vector<bool> ignores_blanks;
    /// Not unique: the only key is a dense number, or text in a field with a dictionary, whose canonical
    /// entries are the keys. It fits.
    std::optional<DirectTable::Options> direct;
    /// The only key is a number of up to 8 bytes, of the domain except NULLs. One thread builds.
    std::optional<DomainTable::Options> domain;
    uint64_t pages_max = 0;
    /// Keeps a bit for each row that has found a partner: right and full joins.
    bool match_bits = false;
    /// The false-positive rate of a Bloom filter of its keys; 0: no filter.
    double false_positives = 0;
  };

  /// RESOURCE_EXHAUSTED if the budget, which outlives the build, does not allow it.
  static absl::StatusOr<std::unique_ptr<RowBuild>> Make(Options options, MemoryBudget& budget);

  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  absl::StatusOr<std::unique_ptr<StepOperator>> NewProbe(ProbeOptions options) const override;
  /// Adds the rows of a page that already has the layout. One thread, between the tasks' calls.
  absl::Status AddPage(std::span<const std::byte> page);
  uint32_t CombineParts() override;
  absl::Status Combine(TaskContext& context, uint32_t part) override;

  // After the build:
  const RowTable& rows() const { return *rows_; }
  size_t key_count() const { return options_.keys; }
  /// For a build side with keys; it then has exactly one of the three tables below.
  const RowKeys& keys() const { return *keys_; }
  const DirectTable* direct() const { return direct_.get(); }
  const HashTable* hash() const { return hash_.get(); }
  const DomainTable* domain() const { return domain_.has_value() ? &*domain_ : nullptr; }
  const BloomFilter* filter() const override { return filter_.has_value() ? &*filter_ : nullptr; }
  /// The text keys of key i; nullptr unless it is a field with a dictionary.
  const TextKeys* texts(size_t i) const { return texts_[i].get(); }
  Column PayloadOf(size_t i, const uint32_t* rows) const override {
    return rows_->ColumnOf(options_.keys + i, rows);
  }
  size_t payload_columns() const override { return options_.layout.fields() - options_.keys; }

  bool has_match_bits() const { return options_.match_bits; }
  /// Marks that the row has found a partner. Any thread.
  void SetMatched(uint32_t row) const {
    const std::atomic_ref<uint32_t> word(matched_[row / 32]);
    const uint32_t bit = uint32_t{1} << row % 32;
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  /// Whether the row has found a partner. Called after all probes and a barrier.
  bool Matched(uint32_t row) const { return (matched_[row / 32] >> row % 32 & 1) != 0; }

 private:
  class Task;
  RowBuild(Options options, MemoryBudget& budget) : options_(std::move(options)), budget_(budget) {}
  absl::Status Size();
  /// The bytes of the table that leads to the rows.
  uint64_t HeadsBytes() const;
  absl::Status InsertDirect(uint32_t first_page, uint32_t end_page);
  void AddToFilter(uint32_t first_page, uint32_t end_page);
  absl::Status InsertInDomain(uint32_t first_page, uint32_t end_page);

  const Options options_;
  MemoryBudget& budget_;
  std::unique_ptr<RowTable> rows_;
  std::vector<std::unique_ptr<const TextKeys>> texts_;  // by key; nullptr where it is no entry
  std::unique_ptr<const RowKeys> keys_;
  std::unique_ptr<DirectTable> direct_;
  std::unique_ptr<HashTable> hash_;
  std::optional<DomainTable> domain_;
  std::optional<BloomFilter> filter_;
  absl::Status sized_;  // set by CombineParts; the result of each part
  MappedArray<uint32_t> matched_;
};

}  // namespace nam::execution
