#include "tests/random_joins/random_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tests/random_joins/sqlite_peer.h"

namespace nam::testing {
namespace {

constexpr Type WithPrecision(Type type, uint8_t precision) {
  type.precision = precision;
  return type;
}

constexpr Type BlankPadded(uint32_t length) {
  Type type = Type::String(length);
  type.blank_padded = true;
  return type;
}

/// The distribution of a table's keys over 0 … domain - 1.
class Spread {
 public:
  Spread(Draw& draw, uint64_t domain)
      : kind_(draw.Below(4)), domain_(domain), heavy_(draw.Below(domain)), share_(draw.Between(20, 90)) {}

  uint64_t Value(Draw& draw) const {
    switch (kind_) {
      case 0:  // even
        return draw.Below(domain_);
      case 1:  // a heavy hitter
        return draw.Percent(static_cast<uint64_t>(share_)) ? heavy_ : draw.Below(domain_);
      case 2:  // skewed: each order of magnitude as likely as any other
        return static_cast<uint64_t>(std::pow(static_cast<double>(domain_), draw.Fraction())) - 1;
      default:  // some values, many times each
        return (heavy_ + draw.Below(std::max<uint64_t>(domain_ / 8, 1)) * 7) % domain_;
    }
  }

 private:
  const uint64_t kind_;
  const uint64_t domain_;
  const uint64_t heavy_;
  const int64_t share_;
};

const char* const kWords[] = {"a", "b", "ab", "B", "", "abc", "zz", "été", "日本", "a%b", "zzz", "Zz"};

/// The value of a column for a key: equal keys have equal values in all tables.
Value ValueOf(const RandomColumn& column, int64_t key) {
  switch (column.type.kind) {
    case TypeKind::kDecimal:
      // Half of them are whole, so that they have partners among integers: 2, 2.5, 3, 3.5, … or with
      // quarters.
      return Value::Decimal(column.type.scale == 2 ? (key % 2 == 0 ? key * 100 : key * 100 + 25)
                                                   : (key % 2 == 0 ? key * 1000 : key * 1000 + 125),
                            column.type.scale);
    case TypeKind::kDate:
      return Value::Date(8035 + key);
    case TypeKind::kBool:
      return Value::Bool(key % 3 == 0);
    case TypeKind::kString: {
      const std::string word = kWords[static_cast<uint64_t>(key) % std::size(kWords)];
      if (column.type.length <= 6) return Value::String(word);
      std::string text = key < static_cast<int64_t>(std::size(kWords)) ? word : absl::StrCat(word, key);
      if (column.type.length > 20 && key % 5 == 1) absl::StrAppend(&text, "-with-a-tail-of-", key % 100);
      return Value::String(text);
    }
    default:
      return Value::Integer(column.family == Family::kWideNumber ? key * 1'000'000'007 : key);
  }
}

/// The number of rows of a table.
uint64_t DrawRows(Draw& draw, uint64_t size) {
  switch (size) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint64_t>(draw.Between(1, 20));
    case 2:
      return static_cast<uint64_t>(draw.Between(30, 600));
    case 3:
      return static_cast<uint64_t>(draw.Between(1'100, 5'000));
    default:
      return static_cast<uint64_t>(draw.Between(8'000, 20'000));
  }
}

std::vector<partitioner::PartitionSchema> DrawPartitioning(Draw& draw) {
  const auto parts = [&] { return static_cast<uint32_t>(draw.Between(1, 5)); };
  switch (draw.Below(6)) {
    case 0:
      return {};
    case 1:
      return {{"id", parts()}};
    case 2:
      return {{"s", parts()}};
    case 3:
      return {{"k", parts()}, {"l", 2}};
    case 4:
      return {{"n", parts()}};
    default:
      return {{"k", parts()}};
  }
}

}  // namespace

const std::vector<RandomColumn>& RandomColumns() {
  static const std::vector<RandomColumn> columns = {
      {"id", WithPrecision(Type::Integer(), 4), Family::kNumber},
      {"k", WithPrecision(Type::Integer(), 4), Family::kNumber},
      {"l", WithPrecision(Type::Integer(), 8), Family::kNumber},
      {"j", WithPrecision(Type::Integer(), 8), Family::kWideNumber},
      {"n", WithPrecision(Type::Decimal(2), 12), Family::kNumber},
      {"m", WithPrecision(Type::Decimal(3), 15), Family::kNumber},
      {"s", Type::String(12), Family::kText},
      {"t", Type::String(40), Family::kText},
      {"c", BlankPadded(6), Family::kText},
      {"d", Type::Date(), Family::kDate},
      {"b", Type::Bool(), Family::kBool},
      {"v", WithPrecision(Type::Integer(), 4), Family::kNumber},
  };
  return columns;
}

RandomTables::RandomTables(uint64_t seed, uint64_t set) {
  Draw draw(seed, 1, set);
  // The sizes of the set's tables: mostly small, so that cases are many.
  static const std::vector<std::vector<uint64_t>> kSizes = {
      {2, 2, 2, 1, 0}, {2, 2, 1, 2, 0}, {3, 2, 2, 1, 0}, {3, 3, 2, 1, 0}, {4, 3, 2, 1, 0}, {4, 4, 2, 1, 0}};
  const auto& sizes = draw.Of(kSizes);
  uint64_t most = 1;
  std::vector<uint64_t> rows;
  for (const uint64_t size : sizes) {
    rows.push_back(DrawRows(draw, size));
    most = std::max(most, rows.back());
  }
  // There are fewer keys than rows, so that some have several; in small sets there are also more keys than
  // rows.
  const uint64_t domain = std::max<uint64_t>(4, most * static_cast<uint64_t>(draw.Between(20, 120)) / 100);
  for (size_t i = 0; i < rows.size(); ++i) {
    tables_.push_back(Make(draw, absl::StrCat("t", i), rows[i], domain));
    layouts_.push_back({.block_bytes = draw.Of(std::vector<uint32_t>{1024, 4096, 16384, 65536}),
                        .pointer_group = static_cast<uint32_t>(draw.Between(2, 8))});
  }
}

SmallTable RandomTables::Make(Draw& draw, const std::string& name, uint64_t rows, uint64_t domain) {
  SmallTable table;
  table.schema.name = name;
  struct Filler {
    Spread spread;
    uint64_t null_percent;
  };
  std::vector<Filler> fillers;
  for (const RandomColumn& column : RandomColumns()) {
    const bool key = std::string_view(column.name) == "id";
    // One-word texts and booleans have few values in any case; dates lie within some years.
    const uint64_t values = std::string_view(column.name) == "v" ? 1000
                            : column.family == Family::kDate     ? std::min<uint64_t>(domain, 900)
                            : draw.Percent(30)                   ? std::max<uint64_t>(domain / 20, 2)
                                                                 : domain;
    const uint64_t null_percent = key || draw.Percent(40) ? 0 : draw.Percent(20) ? 60 : 10;
    table.schema.columns.push_back({column.name, column.type, null_percent != 0});
    fillers.push_back({Spread(draw, values), null_percent});
  }
  table.schema.partitioning = DrawPartitioning(draw);
  if (draw.Percent(40)) table.schema.sort_column = draw.Of({"k", "d", "id", "v"});
  const auto first = static_cast<int64_t>(draw.Below(domain / 2 + 1));
  for (uint64_t r = 0; r < rows; ++r) {
    auto& row = table.rows.emplace_back();
    for (size_t c = 0; c < fillers.size(); ++c) {
      const RandomColumn& column = RandomColumns()[c];
      if (draw.Percent(fillers[c].null_percent)) {
        row.push_back(Value::Null(column.type));
      } else {
        const auto value = static_cast<int64_t>(fillers[c].spread.Value(draw));
        row.push_back(ValueOf(column, c == 0 ? first + static_cast<int64_t>(r) : value));
      }
    }
  }
  return table;
}

uint64_t RandomTables::rows() const {
  uint64_t rows = 0;
  for (const SmallTable& table : tables_) rows += table.rows.size();
  return rows;
}

absl::Status RandomTables::LoadInto(catalog::Attachment& attachment) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    NAM_RETURN_IF_ERROR(Load(attachment, tables_[i],
                             {.block_bytes = layouts_[i].block_bytes,
                              .pointer_group = layouts_[i].pointer_group,
                              .replace = true}));
  }
  return absl::OkStatus();
}

void RandomTables::LoadInto(SqlitePeer& sqlite) const {
  for (const SmallTable& table : tables_) sqlite.Load(table);
}

std::string RandomTables::Describe() const {
  std::string text;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const partitioner::TableSchema& schema = tables_[i].schema;
    absl::StrAppendFormat(&text, "  %s: %d rows, blocks of %d bytes", schema.name, tables_[i].rows.size(),
                          layouts_[i].block_bytes);
    for (const partitioner::PartitionSchema& key : schema.partitioning)
      absl::StrAppendFormat(&text, ", %d parts by %s", key.parts, key.column);
    if (!schema.sort_column.empty()) absl::StrAppend(&text, ", sorted by ", schema.sort_column);
    absl::StrAppend(&text, "; NOT NULL:");
    for (const partitioner::ColumnSchema& column : schema.columns) {
      if (!column.nullable) absl::StrAppend(&text, " ", column.name);
    }
    text += "\n";
  }
  return text;
}

}  // namespace nam::testing
