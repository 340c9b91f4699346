#include "tests/execution/scan/scan_table.h"

#include <algorithm>
#include <cstring>

#include "types/wire.h"

namespace nam::execution {

Type ScanTable::TypeOf(uint32_t column) {
  return column == kText ? Type::String() : Type::Integer();
}

const std::vector<std::string>& ScanTable::Texts(uint32_t group) {
  static const std::vector<std::string> kTexts[] = {
      {"apple", "banana", "cherry", "date", "elder", "fig"},
      {"avocado", "banana", "blueberry", "cherry", "fennel", "fig", "grape", "kiwi"}};
  return kTexts[group];
}

uint32_t ScanTable::PartitionOf(const ScanRow& row, uint32_t partitions) {
  return row.key ? static_cast<uint32_t>(*row.key) & (partitions - 1) : 0;
}

Value ScanTable::ValueOf(const ScanRow& row, uint32_t column) {
  switch (column) {
    case kKey:
      return row.key ? Value::Integer(*row.key) : Value::Null(Type::Integer());
    case kDay:
      return Value::Integer(row.day);
    case kText:
      return row.text ? Value::String(*row.text) : Value::Null(Type::String());
    default:
      return Value::Integer(row.wide);
  }
}

ScanTable::ScanTable(fabric::Kind kind, const Shape& shape, const std::vector<ScanRow>& rows)
    : servers_(std::make_shared<storage::TwoServers>(kind)), allocation_(9), rows_(shape.partitions) {
  Load(kind, shape, rows);
}

ScanTable::ScanTable(fabric::Kind kind, const ScanTable& beside, const Shape& shape,
                     const std::vector<ScanRow>& rows)
    : servers_(beside.servers_),
      allocation_(beside.allocation_ + 1),
      next_offset_(beside.next_offset_),
      rows_(shape.partitions) {
  Load(kind, shape, rows);
}

void ScanTable::Load(fabric::Kind kind, const Shape& shape, const std::vector<ScanRow>& rows) {
  MakeMeanings(shape.groups);
  for (const ScanRow& row : rows) rows_[PartitionOf(row, shape.partitions)].push_back(row);
  auto meta = std::make_shared<proto::Table>();
  meta->set_name("t");
  meta->set_allocation(allocation_);
  meta->set_rows(rows.size());
  meta->set_pointer_group(shape.pointer_group);
  meta->set_block_bytes(storage::BlockLayout(kWidths, shape.block_rows, shape.pointer_group).bytes());
  meta->set_sort_column("day");
  proto::PartitionKey& by = *meta->add_partitioning();
  by.set_column("key");
  by.set_parts(shape.partitions);
  by.set_function(proto::MODULO);
  for (uint32_t c = 0; c < kColumns; ++c) {
    static constexpr const char* kNames[] = {"key", "day", "text", "wide"};
    proto::Column& column = *meta->add_columns();
    column.set_name(kNames[c]);
    *column.mutable_type() = ToProto(TypeOf(c));
    column.set_nullable(meanings_[0][c].null_code);
    column.mutable_encoding()->set_width(kWidths[c]);
    column.mutable_encoding()->set_base(meanings_[0][c].base);
    column.set_min(meanings_[0][c].min);
    column.set_max(meanings_[0][c].max);
  }
  auto fabric = storage::OpenFabric(kind);
  const auto channel = *storage::Channel::Open(*fabric, *servers_, {});
  for (uint32_t p = 0; p < shape.partitions; ++p) {
    std::stable_sort(rows_[p].begin(), rows_[p].end(),
                     [](const auto& a, const auto& b) { return a.day < b.day; });
    group_of_.push_back(p % shape.groups);
    WriteChain(*channel, p, shape, *meta);
  }
  meta_ = std::move(meta);
}

void ScanTable::MakeMeanings(uint32_t groups) {
  meanings_.resize(groups);
  for (uint32_t g = 0; g < groups; ++g) {
    const auto number = [](uint8_t width, bool null_code, int64_t base, int64_t min, int64_t max) {
      return CodeMeaning{.type = Type::Integer(),
                         .width = width,
                         .null_code = null_code,
                         .base = base,
                         .codes = static_cast<uint64_t>(max - base) + 1,
                         .min = min,
                         .max = max};
    };
    meanings_[g][kKey] = number(4, true, g == 0 ? kKeyMin - 1 : -5000, kKeyMin, kKeyMax);
    meanings_[g][kDay] = number(2, false, g == 0 ? kDayMin : 300, kDayMin, kDayMax);
    meanings_[g][kWide] = number(8, false, g == 0 ? 0 : -(int64_t{1} << 41), 0, int64_t{1} << 40);
    const std::vector<std::string_view> entries(Texts(g).begin(), Texts(g).end());
    meanings_[g][kText] = {.type = Type::String(),
                           .width = 1,
                           .null_code = true,
                           .base = -1,
                           .codes = entries.size() + 1,
                           .min = 0,
                           .max = static_cast<int64_t>(entries.size()) - 1,
                           .dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries)),
                           .dictionary_id = g + 1};
  }
}

uint64_t ScanTable::CodeOf(const ScanRow& row, uint32_t column, uint32_t group) const {
  const Value value = ValueOf(row, column);
  if (value.null) return 0;
  int64_t number = static_cast<int64_t>(value.number);
  if (column == kText) {
    const std::vector<std::string>& texts = Texts(group);
    number = std::find(texts.begin(), texts.end(), value.text) - texts.begin();
    NAM_CHECK(number < static_cast<int64_t>(texts.size()), "a text of another group");
  }
  return static_cast<uint64_t>(number - meanings_[group][column].base);
}

void ScanTable::FillBlock(storage::BlockWriter& writer, uint32_t partition, size_t first,
                          uint32_t rows) const {
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < kColumns; ++c) {
      const uint64_t code = CodeOf(rows_[partition][first + r], c, group_of_[partition]);
      std::memcpy(writer.page(c) + size_t{r} * kWidths[c], &code, kWidths[c]);
    }
  }
}

void ScanTable::WriteChain(storage::Channel& channel, uint32_t partition, const Shape& shape,
                           proto::Table& meta) {
  const auto rows = static_cast<uint32_t>(rows_[partition].size());
  const uint32_t blocks = (rows + shape.block_rows - 1) / shape.block_rows, group = shape.pointer_group;
  const storage::BlockLayout layout(kWidths, shape.block_rows, storage::PointerSlots(blocks, group));
  std::vector<uint64_t> pointers;
  for (uint32_t i = 0; i < blocks; ++i) {
    pointers.push_back(
        storage::RemotePtr<void>(MemoryServerId(static_cast<uint16_t>(1 + i % 2)), next_offset_).raw());
    if (i % 2 == 1 || i + 1 == blocks) next_offset_ += (layout.bytes() + 2047) / 2048 * 2048;
  }
  NAM_CHECK(next_offset_ < storage::TwoServers::kBytes, "the test's table is too large");
  storage::BlockSink sink(channel, *storage::UseOf(servers_->grant()), layout.bytes());
  for (uint32_t i = 0; i < blocks; ++i) {
    std::byte* block = *sink.Acquire();
    std::fill_n(block, layout.bytes(), std::byte{0});
    storage::BlockWriter writer(layout, block);
    const uint32_t first = i * shape.block_rows, count = std::min(shape.block_rows, rows - first);
    FillBlock(writer, partition, first, count);
    std::vector<uint64_t> next;
    for (uint32_t g = i + group; i % group == 0 && g < std::min(blocks, i + 2 * group); ++g)
      next.push_back(pointers[g]);
    writer.Seal(allocation_, partition, i, count, next);
    NAM_CHECK(sink.Write(storage::RemotePtr<void>::FromRaw(pointers[i]), layout.bytes()).ok());
  }
  NAM_CHECK(sink.Flush().ok());
  proto::Chain& chain = *meta.add_partitions();
  chain.set_rows(rows);
  chain.set_blocks(blocks);
  chain.set_block_rows(shape.block_rows);
  for (uint32_t i = 0; i < std::min(blocks, group); ++i) chain.add_head(pointers[i]);
}

std::shared_ptr<storage::KnownBlocks> ScanTable::NewKnownBlocks() const {
  std::vector<uint32_t> blocks;
  for (const proto::Chain& chain : meta_->partitions()) blocks.push_back(chain.blocks());
  return std::make_shared<storage::KnownBlocks>(blocks);
}

storage::WorkCounter ScanTable::NewCounter() {
  const storage::RemotePtr<void> word(MemoryServerId(1), next_offset_);
  next_offset_ += 64;
  std::memset(servers_->at(word), 0, sizeof(uint64_t));
  return {.word = word, .grant = servers_->grant()};
}

BlockScan::Options ScanTable::ScanOf(const std::vector<uint32_t>& columns) const {
  BlockScan::Options options;
  options.table = meta_;
  options.columns = columns;
  options.group_of = group_of_;
  options.groups.resize(meanings_.size());
  for (uint32_t slot = 0; slot < columns.size(); ++slot) {
    const uint32_t column = columns[slot];
    plan::Slot& out = options.schema.emplace_back();
    out.type = TypeOf(column);
    out.nullable = column == kKey || column == kText;
    if (column != kText) {
      const CodeMeaning& meaning = meanings_[0][column];
      out.bounds = {meaning.min, meaning.max, true};
    }
    for (size_t g = 0; g < meanings_.size(); ++g) options.groups[g].meanings.push_back(&meanings_[g][column]);
    options.outputs.push_back({ScanOutput::kScanned, slot});
  }
  return options;
}

}  // namespace nam::execution
