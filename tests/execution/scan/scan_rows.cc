#include "tests/execution/scan/scan_rows.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/check.h"
#include "execution/column.h"

namespace nam::execution {

using plan::Expr;
using plan::Op;

Expr Read(uint32_t slot, uint32_t column) {
  Expr out;
  out.op = Op::kColumn;
  out.type = ScanTable::TypeOf(column);
  out.column = {0, static_cast<int>(slot)};
  return out;
}
Expr Literal(Value value) {
  Expr out;
  out.type = value.type;
  out.literal = std::move(value);
  return out;
}
Expr Node(Op op, Type type, std::vector<Expr> children) {
  Expr out;
  out.op = op;
  out.type = type;
  out.children = std::move(children);
  return out;
}
Expr Compare(Op op, Expr left, int64_t right) {
  return Node(op, Type::Bool(), {std::move(left), Literal(Value::Integer(right))});
}

std::vector<ScanRow> RandomRows(RandomStream& random, size_t count, const ScanTable::Shape& shape) {
  std::vector<ScanRow> rows(count);
  for (ScanRow& row : rows) {
    if (random.Below(8) != 0)
      row.key = ScanTable::kKeyMin +
                static_cast<int64_t>(random.Below(ScanTable::kKeyMax - ScanTable::kKeyMin + 1));
    row.day = ScanTable::kDayMin + static_cast<int64_t>(random.Below(400));
    row.wide = static_cast<int64_t>(random.Below(uint64_t{1} << 40));
    const auto& texts = ScanTable::Texts(ScanTable::PartitionOf(row, shape.partitions) % shape.groups);
    if (random.Below(6) != 0) row.text = texts[random.Below(texts.size())];
  }
  return rows;
}

std::string TextOf(const Column& column, uint32_t position) {
  const CodeMeaning& meaning = *column.meaning;
  const uint64_t code = CodeAt(column.base, column.width, column.IndexOf(position));
  if (meaning.IsNull(code)) return "NULL";
  return meaning.dictionary ? std::string(meaning.Text(code)) : std::to_string(meaning.Number(code));
}
std::string TextOf(const Value& value) {
  return value.null ? "NULL" : value.type.kind == TypeKind::kString ? value.text : value.ToString();
}

/// Takes the rows of a chunk, which is valid.
void Take(const Chunk& chunk, std::vector<TextRow>& rows) {
  const Selection selection = chunk.selection();
  NAM_CHECK(chunk.size() <= kChunkRows && selection.count > 0 && selection.count <= chunk.size());
  for (uint32_t i = 0; i < selection.count; ++i) {
    NAM_CHECK(selection[i] < chunk.size() && (i == 0 || selection[i - 1] < selection[i]));
    TextRow& row = rows.emplace_back();
    for (const Column& column : chunk.columns()) row.push_back(TextOf(column, selection[i]));
  }
}

/// A filter on one or two of the columns that are read; about half of them are no tests of codes.
Expr RandomFilter(RandomStream& random, const std::vector<uint32_t>& columns) {
  const auto slot = static_cast<uint32_t>(random.Below(columns.size()));
  const uint32_t column = columns[slot];
  Expr operand = Read(slot, column);
  static constexpr Op kComparisons[] = {Op::kEqual,     Op::kNotEqual, Op::kLess,
                                        Op::kLessEqual, Op::kGreater,  Op::kGreaterEqual};
  const Op op = kComparisons[random.Below(6)];
  const Type boolean = Type::Bool(), integer = Type::Integer();
  if (random.Below(8) == 0) return Node(Op::kIsNull, boolean, {std::move(operand)});
  if (column == ScanTable::kText) {
    const auto& texts = ScanTable::Texts(static_cast<uint32_t>(random.Below(2)) & 1);
    if (random.Below(2) == 0)
      return Node(op, boolean,
                  {std::move(operand), Literal(Value::String(texts[random.Below(texts.size())]))});
    Expr like = Node(Op::kLike, boolean, {std::move(operand)});
    like.literal = Value::String(random.Below(2) == 0 ? "b%" : "%e%");
    return like;
  }
  const auto middle = [&](uint32_t of) -> int64_t {
    return of == ScanTable::kKey   ? static_cast<int64_t>(random.Below(1100)) - 150
           : of == ScanTable::kDay ? 990 + static_cast<int64_t>(random.Below(420))
                                   : static_cast<int64_t>(random.Below(uint64_t{1} << 40));
  };
  switch (random.Below(3)) {
    case 0:
      return Compare(op, std::move(operand), middle(column));
    case 1:
      return Compare(Op::kNotEqual,
                     Node(Op::kModulo, integer, {std::move(operand), Literal(Value::Integer(3))}), 1);
    default:
      const auto other = static_cast<uint32_t>(random.Below(columns.size()));
      if (columns[other] == ScanTable::kText) return Compare(op, std::move(operand), middle(column));
      return Compare(op, Node(Op::kAdd, integer, {std::move(operand), Read(other, columns[other])}),
                     middle(column) + middle(columns[other]));
  }
}

/// A table of one partition whose rows all differ.
std::vector<ScanRow> Numbered(size_t count) {
  std::vector<ScanRow> rows(count);
  for (size_t i = 0; i < count; ++i)
    rows[i] = {.key = static_cast<int64_t>(i % 900), .day = 1000, .wide = static_cast<int64_t>(i)};
  return rows;
}
std::vector<partitioner::Piece> Whole(const proto::Table& table) {
  std::vector<partitioner::Piece> pieces;
  for (uint32_t p = 0; p < static_cast<uint32_t>(table.partitions_size()); ++p)
    pieces.push_back({p, 0, table.partitions(static_cast<int>(p)).blocks()});
  return pieces;
}

absl::StatusOr<std::vector<TextRow>> StreamedRows(fabric::Kind kind, ScanTable& table, BlockScan& scan) {
  const auto fabric = storage::OpenFabric(kind);
  const auto blocks = *storage::Channel::Open(*fabric, table.servers(), {});
  MemoryBudget budget(0);
  std::atomic<bool> cancel = false;
  absl::Status error;
  std::vector<TextRow> rows;
  fabric->StartThread("stream", [&] {
    TaskContext context(fabric->clock(), budget, cancel, {blocks.get(), nullptr});
    const auto chunk = scan.NewChunk();
    const auto task = scan.NewTask(context);
    while (task->Next(context, *chunk) == Step::kHaveMore) Take(*chunk, rows);
    error = context.error();
  });
  if (!error.ok()) return error;
  std::sort(rows.begin(), rows.end());
  return rows;
}

Step TextSink::Consume(TaskContext& context, const Chunk& in) {
  if (!std::exchange(waited_, true) && random_.Below(4) == 0) {
    gate_.Open();
    return context.BlockOn(gate_);
  }
  waited_ = false;
  Take(in, result_.rows);
  return result_.rows.size() < most_ ? Step::kNeedInput : Step::kDone;
}

Step TextSink::Finish(TaskContext&) {
  result_.finished = true;
  return Step::kDone;
}

FedTask::FedTask(BlockScan& scan, TaskContext& context, uint64_t seed, size_t most)
    : task(scan.NewFedTask(context, feed), {}, std::make_unique<TextSink>(seed, result, most), [&] {
        std::vector<std::unique_ptr<Chunk>> chunks;
        chunks.push_back(scan.NewChunk());
        return chunks;
      }()) {}

}  // namespace nam::execution
