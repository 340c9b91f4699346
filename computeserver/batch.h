#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "plan/expression.h"
#include "storage/dictionary.h"
#include "types/value.h"

namespace nam::computeserver {

/// Tuples that move through a pipeline together.
inline constexpr uint32_t kBatchRows = 1024;

/// What a column's codes mean; fixed for a query.
struct ColumnMeaning {
  Type type;
  bool nullable = false;
  int64_t base = 0;    // value (or dictionary entry) = base + code; code 0 is NULL if nullable
  uint64_t codes = 1;  // codes are below this; 0 if all 64 bits are used
  int64_t min = 0;     // of the values; strings: of the dictionary entries
  int64_t max = 0;
  uint8_t width = 1;
  std::shared_ptr<const storage::Dictionary> dictionary;  // strings

  bool IsNull(uint64_t code) const { return nullable && code == 0; }
  int64_t Number(uint64_t code) const { return static_cast<int64_t>(static_cast<uint64_t>(base) + code); }
  std::string_view Text(uint64_t code) const { return (*dictionary)[static_cast<size_t>(Number(code))]; }
  Value Decode(uint64_t code) const;
};

/// Where a column's codes lie at the moment: a mini-page, or a join table's copy of the column.
struct ColumnSource {
  const std::byte* codes = nullptr;
  uint8_t width = 1;

  uint64_t at(uint32_t row) const {
    switch (width) {
      case 1:
        return reinterpret_cast<const uint8_t*>(codes)[row];
      case 2:
        return reinterpret_cast<const uint16_t*>(codes)[row];
      case 4:
        return reinterpret_cast<const uint32_t*>(codes)[row];
      default:
        return reinterpret_cast<const uint64_t*>(codes)[row];
    }
  }
};

/// Calls `body` with a typed pointer to the codes, so that loops over them are compiled per width.
template <typename Body>
void WithCodes(const ColumnSource& source, Body&& body) {
  switch (source.width) {
    case 1:
      return body(reinterpret_cast<const uint8_t*>(source.codes));
    case 2:
      return body(reinterpret_cast<const uint16_t*>(source.codes));
    case 4:
      return body(reinterpret_cast<const uint32_t*>(source.codes));
    default:
      return body(reinterpret_cast<const uint64_t*>(source.codes));
  }
}

/// The columns of all the query's tables as one thread sees them. The driving table's sources change
/// with every block, a build side's are set once it is built.
class ColumnSpace {
 public:
  struct Column {
    ColumnMeaning meaning;
    ColumnSource source;
  };
  explicit ColumnSpace(size_t tables) : tables_(tables) {}
  std::vector<Column>& table(int t) { return tables_[static_cast<size_t>(t)]; }
  const Column& at(plan::ColumnRef ref) const {
    return tables_[static_cast<size_t>(ref.table)][static_cast<size_t>(ref.column)];
  }
  Column& at(plan::ColumnRef ref) {
    return tables_[static_cast<size_t>(ref.table)][static_cast<size_t>(ref.column)];
  }
  size_t size() const { return tables_.size(); }

 private:
  std::vector<std::vector<Column>> tables_;
};

/// Up to kBatchRows tuples: for each table that is joined and still needed, the row numbers into its
/// column sources. Columns are fetched through them only when an expression asks (late materialization).
struct Batch {
  explicit Batch(size_t tables) : rows(tables) {}
  uint32_t size = 0;
  std::vector<std::vector<uint32_t>> rows;  // empty for tables that are not in the batch

  const uint32_t* of(int table) const { return rows[static_cast<size_t>(table)].data(); }
  void Include(int table) { rows[static_cast<size_t>(table)].resize(kBatchRows); }

  /// Keeps the tuples at the ascending positions keep[0 … count).
  void Keep(const uint32_t* keep, uint32_t count) {
    for (std::vector<uint32_t>& numbers : rows) {
      if (numbers.empty()) continue;
      uint32_t* p = numbers.data();
      for (uint32_t i = 0; i < count; ++i) p[i] = p[keep[i]];
    }
    size = count;
  }
  /// The tuples of `from` at positions keep[0 … count); `this` includes the same tables.
  void Select(const Batch& from, const uint32_t* keep, uint32_t count) {
    for (size_t t = 0; t < rows.size(); ++t) {
      if (rows[t].empty() || from.rows[t].empty()) continue;
      const uint32_t* in = from.rows[t].data();
      uint32_t* out = rows[t].data();
      for (uint32_t i = 0; i < count; ++i) out[i] = in[keep[i]];
    }
    size = count;
  }
};

}  // namespace nam::computeserver
