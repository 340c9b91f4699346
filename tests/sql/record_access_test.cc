#include "sql/record_access.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plan/expression_tree.h"
#include "sql/constraints.h"
#include "tests/sql/arbitrary_record.h"
#include "tests/sql/flat_query.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using partitioner::RecordLayout;
using plan::Expr;
using plan::MakeLiteral;
using plan::Op;

bool Holds(const Expr& condition, const std::vector<Value>& row) {
  const auto value = Evaluate(condition, RowResolver(row));
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() && !value->null && value->number != 0;
}

/// A constant that may stand beside the column: of other scales, too large, too long.
Value ArbitraryConstant(const proto::Column& column) {
  Value value = ArbitraryValue(column);
  const int pick = *rc::gen::inRange(0, 6);
  if (value.type.numeric() && pick < 2) {
    const auto scale = static_cast<uint8_t>(*rc::gen::inRange(0, 5));
    const __int128 number = *rc::gen::inRange(-40000, 40000) / *rc::gen::element(1, 10, 1000);
    return scale == 0 ? Value::Integer(number) : Value::Decimal(number, scale);
  }
  if (value.type.numeric() && pick == 2) {
    const __int128 huge = PowerOfTen(38) - 1;
    return Value::Integer(*rc::gen::arbitrary<bool>() ? huge : -huge);
  }
  if (value.type.kind == TypeKind::kString && pick < 3 && !value.null) {
    value.text += *rc::gen::element<std::string>("a", "ab\x01", "\x01");
  }
  return value;
}

Expr ArbitraryConjunct(const proto::Table& table) {
  const int c = *rc::gen::inRange(0, table.columns_size());
  const proto::Column& definition = table.columns(c);
  Expr column = MakeNode(Op::kColumn, {}, -1, {});
  column.type = ColumnTypeOf(definition.type());
  column.type.length = 0;
  column.column = {0, c};
  const auto literal = [&] { return MakeLiteral(ArbitraryConstant(definition), -1); };
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return MakeNode(Op::kIsNull, Type::Bool(), -1, {column});
    case 1:
      return MakeNode(Op::kNot, Type::Bool(), -1, {MakeNode(Op::kIsNull, Type::Bool(), -1, {column})});
    case 2:
    case 3: {
      std::vector<Expr> children = {column};
      for (int n = *rc::gen::inRange(1, 4); n > 0; --n) children.push_back(literal());
      return MakeNode(Op::kIn, Type::Bool(), -1, std::move(children));
    }
    default:
      break;
  }
  const Op op = *rc::gen::element(Op::kEqual, Op::kEqual, Op::kNotEqual, Op::kLess, Op::kLessEqual,
                                  Op::kGreater, Op::kGreaterEqual);
  std::vector<Expr> sides = {column, literal()};
  if (*rc::gen::arbitrary<bool>()) std::swap(sides[0], sides[1]);
  return MakeNode(op, Type::Bool(), -1, std::move(sides));
}

std::span<const std::byte> Bytes(const std::string& row) {
  return std::as_bytes(std::span(row));
}

/// A table's rows by key, found as a path specifies.
class KeyedRows {
 public:
  KeyedRows(const proto::Table& table, const RecordLayout& layout) : table_(table), layout_(layout) {}

  void Add(const std::vector<Value>& row) {
    const std::string bytes = layout_.Encode(row);
    rows_[bytes.substr(0, layout_.key_bytes())] = bytes;
  }

  /// Keys of the rows; one that is found twice occurs twice.
  std::vector<std::string> Find(const AccessPath& path) const {
    std::vector<std::string> found;
    for (const auto& [key, row] : rows_) {
      std::string entry = key;
      if (path.index != AccessPath::kPrimaryKey) {
        const proto::RecordPart& part = table_.record().parts(path.index);
        entry =
            layout_.IndexKey(Bytes(row), std::vector<uint32_t>(part.columns().begin(), part.columns().end()));
      }
      auto times = std::count(path.keys.begin(), path.keys.end(), key);
      for (const KeyRange& range : path.ranges)
        times += range.low <= entry && (range.high.empty() || entry < range.high);
      const std::vector<Value> values = layout_.Decode(Bytes(row));
      const bool kept = std::all_of(path.filter.begin(), path.filter.end(),
                                    [&](const Expr* filter) { return Holds(*filter, values); });
      if (kept) found.insert(found.end(), static_cast<size_t>(times), key);
    }
    return found;
  }

  std::vector<std::string> FindByAll(const std::vector<Expr>& conjuncts) const {
    std::vector<std::string> found;
    for (const auto& [key, row] : rows_) {
      const std::vector<Value> values = layout_.Decode(Bytes(row));
      if (std::all_of(conjuncts.begin(), conjuncts.end(), [&](const Expr& e) { return Holds(e, values); }))
        found.push_back(key);
    }
    return found;
  }

 private:
  const proto::Table& table_;
  const RecordLayout& layout_;
  std::map<std::string, std::string> rows_;
};

RC_GTEST_PROP(RecordAccessProperty, FindsWhatMeetsTheConditions, ()) {
  proto::Table table = ArbitraryRecordTable();
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    proto::RecordPart& index = *table.mutable_record()->add_parts();
    index.set_kind(proto::ORDERED_INDEX);
    index.set_usable_from(1);
    const auto columns = *rc::gen::unique<std::vector<uint32_t>>(
        *rc::gen::inRange(1, 3), rc::gen::inRange<uint32_t>(0, static_cast<uint32_t>(table.columns_size())));
    index.mutable_columns()->Add(columns.begin(), columns.end());
  }
  const RecordLayout layout(table);
  KeyedRows rows(table, layout);
  for (int n = *rc::gen::inRange(0, 40); n > 0; --n) rows.Add(ArbitraryRow(table));
  std::vector<Expr> conjuncts;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) conjuncts.push_back(ArbitraryConjunct(table));

  const auto most_points = *rc::gen::element<size_t>(1, 2, 3, 4, 1024);
  const AccessPath path = ChooseAccessPath(table, layout, conjuncts, {.most_points = most_points});
  RC_CLASSIFY(!path.keys.empty(), "keys");
  RC_CLASSIFY(path.index != AccessPath::kPrimaryKey, "index");
  RC_CLASSIFY(path.keys.empty() && path.ranges.empty(), "nothing");
  RC_ASSERT(path.keys.empty() || path.ranges.empty());
  RC_ASSERT(rows.Find(path) == rows.FindByAll(conjuncts));
}

/// The path of a WHERE over `pairs`, with an index on v.
std::string Path(const std::string& where) {
  FakeTables tables;
  const auto statement = Bind("delete from pairs where " + where, tables);
  if (!statement.ok()) return statement.status().ToString();
  const auto& remove = std::get<DeleteStatement>(*statement);
  proto::Table table = *remove.table.table;
  proto::RecordPart& index = *table.mutable_record()->add_parts();
  index.set_kind(proto::ORDERED_INDEX);
  index.set_usable_from(1);
  index.add_columns(0);
  const AccessPath path = ChooseAccessPath(table, RecordLayout(table), remove.conjuncts);
  std::string shown = path.index == AccessPath::kPrimaryKey ? "" : "index ";
  for (const std::string& key : path.keys) absl::StrAppend(&shown, absl::BytesToHexString(key), " ");
  for (const KeyRange& range : path.ranges) {
    absl::StrAppend(&shown, "[", absl::BytesToHexString(range.low), ",", absl::BytesToHexString(range.high),
                    ") ");
  }
  FlatQuery query;
  query.tables = {{remove.table.alias, remove.table.table}};
  for (const Expr* filter : path.filter) absl::StrAppend(&shown, "if ", Show(query, *filter), " ");
  return shown;
}

/// `first`, `first` + 1, …, quoted for a column of text.
std::string List(int first, int count, const char* quote) {
  std::string list = "(";
  for (int i = 0; i < count; ++i) absl::StrAppend(&list, i > 0 ? ", " : "", quote, first + i, quote);
  return list + ")";
}

TEST(RecordAccessTest, PointsThatAreTooManyAreARangeWithAFilter) {
  // 1,024 keys are looked up; 33 * 32 are too many: b is a range behind each a.
  EXPECT_FALSE(
      absl::StrContains(Path("a in " + List(1, 32, "") + " and b in " + List(10, 32, "'")), "if pairs.b"));
  const std::string path = Path("a in " + List(1, 33, "") + " and b in " + List(10, 32, "'"));
  EXPECT_TRUE(absl::StartsWith(path, "[80013130000000000000,80013431000000000001) ")) << path;
  EXPECT_TRUE(absl::StrContains(path, "if pairs.b IN ('10', ")) << path;
  EXPECT_FALSE(absl::StrContains(path, "if pairs.a")) << path;
}

TEST(RecordAccessTest, Choice) {
  // pairs(v int, b char(2), a smallint, primary key (a, b))
  EXPECT_EQ(Path("a = 1 and b = 'x'"), "80017800000000000000 ");
  EXPECT_EQ(Path("a in (1, 2) and b = 'x' and v > 3"),
            "80017800000000000000 80027800000000000000 if pairs.v > 3 ");
  EXPECT_EQ(Path("a = 1"), "[8001,8002) ");
  EXPECT_EQ(Path("a = 1 and b > 'x'"), "[80017800000000000001,8002) ");
  EXPECT_EQ(Path("a = 1 and b >= 'x' and b <= 'y'"), "[80017800000000000000,80017900000000000001) ");
  EXPECT_EQ(Path("a >= 1 and a < 3 and b = 'x'"), "[8001,8003) if pairs.b = 'x' ");
  EXPECT_EQ(Path("a < 1.5"), "[0000,8002) ");
  EXPECT_EQ(Path("a < 100000"), "[0000,) ");
  EXPECT_EQ(Path("a = 1 and a = 2"), "");
  EXPECT_EQ(Path("a = 1.5"), "");
  EXPECT_EQ(Path("a > 32767"), "");
  EXPECT_EQ(Path("v = 3"), "index [0080000003,0080000004) ");
  EXPECT_EQ(Path("v = 3 and a = 1 and b = 'x'"), "80017800000000000000 if pairs.v = 3 ");
  EXPECT_EQ(Path("v = 3 and a = 1"), "index [0080000003,0080000004) if pairs.a = 1 ");
  EXPECT_EQ(Path("v is null"), "index [0100000000,0100000001) ");
  EXPECT_EQ(Path("v is not null"), "index [0000000000,01) ");
  EXPECT_EQ(Path("b = 'x'"), "[,) if pairs.b = 'x' ");
  EXPECT_EQ(Path("a <> 1 or v = 1"), "[,) if pairs.a <> 1 OR pairs.v = 1 ");
  EXPECT_EQ(Path("1 = 2"), "");
}

/// The rows of a table with an index on each of its columns that a WHERE finds through them, by the key `id`.
class Indexed {
 public:
  explicit Indexed(const std::string& columns)
      : table_(RecordTable("create table x (" + columns + ") with (storage = record)")), layout_(table_) {
    for (uint32_t c = 1; c < static_cast<uint32_t>(table_.columns_size()); ++c) {
      proto::RecordPart& index = *table_.mutable_record()->add_parts();
      index.set_kind(proto::ORDERED_INDEX);
      index.set_usable_from(1);
      index.add_columns(c);
    }
  }

  /// Found by what ChooseAccessPath leaves, and by the conditions alone.
  std::pair<size_t, size_t> Find(const std::vector<std::vector<Value>>& values,
                                 const std::vector<Expr>& conjuncts) const {
    KeyedRows rows(table_, layout_);
    for (const std::vector<Value>& row : values) rows.Add(row);
    return {rows.Find(ChooseAccessPath(table_, layout_, conjuncts)).size(), rows.FindByAll(conjuncts).size()};
  }

 private:
  proto::Table table_;
  RecordLayout layout_;
};

Expr Column(int c, Type type) {
  Expr column = MakeNode(Op::kColumn, type, -1, {});
  column.column = {0, c};
  return column;
}

Value Typed(std::string text, Type type) {
  Value value = Value::String(std::move(text));
  value.type = type;
  return value;
}

using Found = std::pair<size_t, size_t>;

TEST(RecordAccessTest, SpansOfTimeHaveNoRange) {
  const Indexed table("id int primary key, i interval");
  std::vector<std::vector<Value>> rows;
  const Interval intervals[] = {{1, 0, 0}, {0, 30, 0}, {0, 31, 0}, {0, 29, int64_t{24} * 3'600'000'000}};
  for (const Interval& interval : intervals)
    rows.push_back({Value::Integer(static_cast<int>(rows.size())), Value::Span(interval)});
  const auto condition = [&](Op op, const Interval& constant) {
    return MakeNode(op, Type::Bool(), -1,
                    {Column(1, Type::Interval()), MakeLiteral(Value::Span(constant), -1)});
  };
  EXPECT_EQ(table.Find(rows, {condition(Op::kGreaterEqual, {1, 0, 0}), condition(Op::kLess, {0, 31, 0})}),
            Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, {0, 30, 0})}), Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kIn, {0, 31, 0})}), Found(1, 1));
}

TEST(RecordAccessTest, BlanksBesideCharDoNotCount) {
  const Indexed table("id int primary key, s varchar(4), c char(4)");
  std::vector<std::vector<Value>> rows;
  for (const char* text : {"a", "a ", "a  ", "ab", "b"}) {
    rows.push_back({Value::Integer(static_cast<int>(rows.size())), Value::String(text),
                    Value::String(std::string(plan::WithoutBlanks(text)))});
  }
  const Type varchar = Type::String(4), character = plan::CharType(4);
  const auto condition = [&](Op op, int c, Value constant) {
    return MakeNode(op, Type::Bool(), -1,
                    {Column(c, c == 1 ? varchar : character), MakeLiteral(std::move(constant), -1)});
  };
  // varchar beside char(n): any number of blanks may stand at the end.
  const Value a = Typed("a", plan::CharType(3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, 1, a)}), Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kLessEqual, 1, a)}), Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kGreater, 1, a)}), Found(2, 2));
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, 1, Value::String("a"))}), Found(1, 1));
  EXPECT_EQ(
      table.Find(rows,
                 {MakeNode(Op::kIn, Type::Bool(), -1,
                           {Column(1, varchar), MakeLiteral(a, -1), MakeLiteral(Value::String("b"), -1)})}),
      Found(2, 2));
  // char(n) beside varchar: those of the constant do not count.
  const Value blanks = Typed("a  ", varchar);
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, 2, blanks)}), Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kLessEqual, 2, blanks)}), Found(3, 3));
  EXPECT_EQ(table.Find(rows, {condition(Op::kGreater, 2, blanks)}), Found(2, 2));
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, 2, Typed("a      ", varchar))}), Found(3, 3));
  // Beside text they count.
  EXPECT_EQ(table.Find(rows, {condition(Op::kEqual, 2, Value::String("a  "))}), Found(0, 0));
}

}  // namespace
}  // namespace nam::sql
