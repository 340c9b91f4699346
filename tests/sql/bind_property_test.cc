#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "absl/strings/str_join.h"
#include "plan/aggregate.h"
#include "plan/expression_tree.h"
#include "sql/error_text.h"
#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"
#include "tests/sql/flat_query.h"
#include "tests/sql/ssb_queries.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using plan::Aggregate;
using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::IsChar;
using plan::Op;
using plan::OrderKey;
using plan::Resolver;

void CheckExpr(const FlatQuery& query, const Expr& e, bool after_aggregation) {
  switch (e.op) {
    case Op::kColumn:
      if (after_aggregation) {
        const bool group = e.column.table == FlatQuery::kGroups;
        RC_ASSERT(group || e.column.table == FlatQuery::kAggregates);
        RC_ASSERT(static_cast<size_t>(e.column.column) <
                  (group ? query.group_by.size() : query.aggregates.size()));
        break;
      }
      RC_ASSERT(e.column.table >= 0 && static_cast<size_t>(e.column.table) < query.tables.size());
      RC_ASSERT(e.column.column < query.tables[static_cast<size_t>(e.column.table)].table->columns_size());
      break;
    case Op::kLiteral:
      RC_ASSERT(e.type.kind != TypeKind::kNull);
      RC_ASSERT(e.literal.type == e.type);
      break;
    case Op::kIn:
      for (size_t i = 1; i < e.children.size(); ++i) RC_ASSERT(e.children[i].op == Op::kLiteral);
      break;
    case Op::kCase:
      RC_ASSERT(e.children.size() % 2 == 1);
      for (size_t i = 0; i + 1 < e.children.size(); i += 2)
        RC_ASSERT(e.children[i].type.kind == TypeKind::kBool);
      for (size_t i = 1; i < e.children.size(); i += 2) RC_ASSERT(e.children[i].type.kind == e.type.kind);
      RC_ASSERT(e.children.back().type.kind == e.type.kind && e.children.back().type.scale == e.type.scale);
      break;
    case Op::kAnd:
    case Op::kOr:
      RC_ASSERT(e.children.size() >= 2);
      break;
    default:
      if (e.op >= Op::kEqual && e.op <= Op::kGreaterEqual) {
        const Type &a = e.children[0].type, &b = e.children[1].type;
        RC_ASSERT(a.kind == b.kind || (a.numeric() && b.numeric()));
      }
  }
  for (const Expr& child : e.children) CheckExpr(query, child, after_aggregation);
}

/// Checks the guarantees for flat queries.
void CheckQuery(const FlatQuery& query) {
  RC_ASSERT(!query.tables.empty() && !query.select.empty());
  for (const auto& [left, right] : query.joins) RC_ASSERT(left.table != right.table);
  for (const Expr& e : query.conjuncts) {
    RC_ASSERT(e.type.kind == TypeKind::kBool && e.op != Op::kAnd);
    CheckExpr(query, e, false);
  }
  for (const Expr& e : query.group_by) CheckExpr(query, e, false);
  for (const Aggregate& a : query.aggregates) {
    if (a.function != AggregateFunction::kCountRows) CheckExpr(query, a.argument, false);
  }
  for (const FlatQuery::Output& o : query.select) CheckExpr(query, o.expr, query.aggregated);
  for (const OrderKey& k : query.order_by) CheckExpr(query, k.expr, query.aggregated);
  if (query.having.has_value()) CheckExpr(query, *query.having, true);
  RC_ASSERT(query.offset >= 0 && query.limit.value_or(0) >= 0);
  RC_ASSERT(!Show(query).empty());
}

/// Binds any text. Returns whether it bound.
bool CheckBind(const std::string& text) {
  FakeTables tables;
  const absl::StatusOr<Statement> statement = Bind(text, tables);
  if (statement.ok()) {
    if (const auto* select = std::get_if<TreeStatement>(&*statement)) {
      RC_ASSERT(plan::logical::CheckTree(*select->tree, /*unnested=*/false).ok());
      if (const auto flat = Flatten(*select->tree); flat.has_value()) CheckQuery(*flat);
    }
    return true;
  }
  const auto error = SqlErrorOf(statement.status());
  RC_ASSERT(error.has_value());
  RC_ASSERT(error->position >= -1 && error->position <= static_cast<int>(text.size()));
  RC_ASSERT(error->sqlstate.size() == 5u);
  RC_ASSERT(!error->message.empty());
  // A position is the start of a character, unless the text has no characters there.
  if (error->sqlstate != "22021" && error->position >= 0 &&
      static_cast<size_t>(error->position) < text.size()) {
    RC_ASSERT((static_cast<unsigned char>(text[static_cast<size_t>(error->position)]) & 0xc0) != 0x80);
  }
  RC_ASSERT(!FormatError(text, *error).empty());
  return false;
}

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words = {"select",
                                                 "from",
                                                 "where",
                                                 "group by",
                                                 "order by",
                                                 "having",
                                                 "limit",
                                                 "offset",
                                                 "distinct",
                                                 "as",
                                                 "on",
                                                 "using",
                                                 "join",
                                                 "left",
                                                 "natural",
                                                 "cross",
                                                 "union",
                                                 "with",
                                                 "and",
                                                 "or",
                                                 "not",
                                                 "in",
                                                 "between",
                                                 "like",
                                                 "is",
                                                 "null",
                                                 "case",
                                                 "when",
                                                 "then",
                                                 "else",
                                                 "end",
                                                 "cast(",
                                                 "::",
                                                 "int",
                                                 "date",
                                                 "decimal(9, 2)",
                                                 "interval",
                                                 "'1 month'",
                                                 "extract(year from",
                                                 "count(*)",
                                                 "sum(",
                                                 "min(",
                                                 "avg(distinct",
                                                 "coalesce(",
                                                 "nullif(",
                                                 "(",
                                                 ")",
                                                 ",",
                                                 ";",
                                                 "*",
                                                 "+",
                                                 "-",
                                                 "/",
                                                 "%",
                                                 "=",
                                                 "<>",
                                                 "<",
                                                 ">=",
                                                 "t",
                                                 "u",
                                                 "t.id",
                                                 "u.id",
                                                 "n",
                                                 "price",
                                                 "rate",
                                                 "day",
                                                 "name",
                                                 "ok",
                                                 "lineorder",
                                                 "\"Odd Name\"",
                                                 "x",
                                                 "0",
                                                 "1",
                                                 "2",
                                                 "-1",
                                                 "2.5",
                                                 "1e9",
                                                 "'a'",
                                                 "'1994-01-01'",
                                                 "'é€'",
                                                 "true",
                                                 "explain",
                                                 "analyze",
                                                 "drop table",
                                                 "if exists",
                                                 "set",
                                                 "nam.x",
                                                 "default",
                                                 "for update",
                                                 "over ()",
                                                 "filter",
                                                 "array[1]",
                                                 "exists (",
                                                 "values",
                                                 "$1",
                                                 "-- c\n",
                                                 "/* c */",
                                                 "'",
                                                 "\"",
                                                 "$$",
                                                 "\xc3\xa9",
                                                 "\t",
                                                 "\n",
                                                 "any",
                                                 "rollup(",
                                                 "fetch first 1 row with ties",
                                                 "asc",
                                                 "desc",
                                                 "nulls first",
                                                 "only",
                                                 "lateral",
                                                 "tablesample",
                                                 "row("};
  return words;
}

RC_GTEST_PROP(BindProperty, TokenSoup, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(Words()));
  CheckBind(absl::StrJoin(words, " "));
}

const std::vector<std::string>& Queries() {
  static const std::vector<std::string> queries = [] {
    std::vector<std::string> all(std::begin(kSsbQueries), std::end(kSsbQueries));
    all.insert(
        all.end(),
        {"select n, sum(price * (1 - rate)) s from t group by n having count(*) > 1 order by s desc limit 3",
         "select distinct t.name, case when u.price > 1 then 'é' else t.name end from t join u using (id) "
         "where "
         "t.day between '1994-01-01' and date '1994-01-01' + interval '1' year order by 1 nulls first",
         "select coalesce(n, id, 0), nullif(price, 2.5), cast(day as text) from t where name like 'a%' and "
         "not "
         "ok or n in (1, 2, null) offset 2",
         "explain analyze select extract(year from day) y, avg(rate) from t group by y",
         "set nam.prefetch_blocks = 16", "drop table if exists public.t"});
    return all;
  }();
  return queries;
}

/// A query with a few words inserted, removed, replaced or doubled.
RC_GTEST_PROP(BindProperty, MutatedQueries, ()) {
  std::string text = *rc::gen::elementOf(Queries());
  const int edits = *rc::gen::inRange(0, 5);
  for (int i = 0; i < edits; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, text.size() + 1);
    const auto length = *rc::gen::inRange<size_t>(0, 8);
    const std::string word = " " + *rc::gen::elementOf(Words()) + " ";
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text.insert(at, word);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.replace(at, std::min(length, text.size() - at), word);
        break;
      default:
        text.insert(at, text.substr(at, length));
        break;
    }
  }
  CheckBind(text);
}

/// An expression of known kind, so that most of them bind.
std::string Expression(int depth, char kind) {
  const auto pick = [](int n) { return *rc::gen::inRange(0, n); };
  const auto sub = [&](char k) { return Expression(depth - 1, k); };
  const bool leaf = depth <= 0;
  if (kind == 'n') {
    switch (leaf ? pick(6) : pick(14)) {
      case 0:
        return "n";
      case 1:
        return "id";
      case 2:
        return "price";
      case 3:
        return "rate";
      case 4:
        return std::to_string(pick(200) - 100);
      case 5:
        return "1.25";
      case 6:
        return "(" + sub('n') + " + " + sub('n') + ")";
      case 7:
        return "(" + sub('n') + " - " + sub('n') + ")";
      case 8:
        return "(" + sub('n') + " * " + sub('n') + ")";
      case 9:
        return "(" + sub('n') + " / " + sub('n') + ")";
      case 10:
        return "case when " + sub('b') + " then " + sub('n') + " else " + sub('n') + " end";
      case 11:
        return "coalesce(" + sub('n') + ", " + sub('n') + ")";
      case 12:
        return "extract(month from " + sub('d') + ")";
      default:
        return "(- " + sub('n') + ")";
    }
  }
  if (kind == 'd')
    return leaf || pick(2) == 0 ? "day" : "(" + sub('d') + " + " + std::to_string(pick(50)) + ")";
  switch (leaf ? pick(2) : pick(9)) {
    case 0:
      return "ok";
    case 1:
      return "(name like 'a%')";
    case 2:
      return "(" + sub('n') + " < " + sub('n') + ")";
    case 3:
      return "(" + sub('b') + " and " + sub('b') + ")";
    case 4:
      return "(" + sub('b') + " or " + sub('b') + ")";
    case 5:
      return "(not " + sub('b') + ")";
    case 6:
      return "(" + sub('n') + " in (1, 2.5, null, " + sub('n') + "))";
    case 7:
      return "(" + sub('n') + " between " + sub('n') + " and " + sub('n') + ")";
    default:
      return "(" + sub('d') + " is null)";
  }
}

Value ArbitraryCell(const Expr& column) {
  if (*rc::gen::inRange(0, 4) == 0) return Value::Null(column.type);
  const int n = *rc::gen::inRange(-20, 20);
  switch (column.type.kind) {
    case TypeKind::kBool:
      return Value::Bool(n > 0);
    case TypeKind::kDecimal:
      return Value::Decimal(n * 7, column.type.scale);
    case TypeKind::kDate:
      return Value::Date(8000 + n);
    case TypeKind::kString:
      return Value::String(n > 0 ? "abc" : "b");
    default:
      return Value::Integer(n);
  }
}

/// The text that ToString prints binds again, prints the same, and has the same value on any row.
RC_GTEST_PROP(BindProperty, PrintedExpressionsMeanTheSame, ()) {
  const std::string text = Expression(*rc::gen::inRange(0, 4), *rc::gen::elementOf(std::string("nb")));
  FakeTables tables;
  const auto bind = [&](const std::string& e) { return Bind("select " + e + " from t", tables); };
  const auto once = bind(text);
  if (!once.ok()) {  // more than 38 decimals, or a constant divided by zero
    RC_ASSERT(SqlErrorOf(once.status()).has_value());
    RC_DISCARD("does not bind");
  }
  const FlatQuery query = Flatten(*std::get<TreeStatement>(*once).tree).value();
  const Expr& first = query.select[0].expr;
  CheckQuery(query);
  const std::string printed = Show(query, first);
  const auto twice = bind(printed);
  RC_ASSERT(twice.ok());
  const Expr second = Flatten(*std::get<TreeStatement>(*twice).tree)->select[0].expr;
  if (first.op == Op::kLiteral && first.literal.null) RC_DISCARD("NULL alone prints without its type");
  RC_ASSERT(first.type == second.type);
  std::map<int, Value> row;
  for (const ColumnRef& ref : ColumnsOf(first)) {
    Expr column;
    column.type = ColumnTypeOf(query.tables[0].table->columns(ref.column).type());
    column.type.length = 0;
    row[ref.column] = ArbitraryCell(column);
  }
  const Resolver resolve = [&](const Expr& e) { return row.at(e.column.column); };
  const auto a = Evaluate(first, resolve), b = Evaluate(second, resolve);
  RC_ASSERT(a.ok() == b.ok());
  if (!a.ok()) return;
  RC_ASSERT(a->null == b->null);
  if (!a->null) RC_ASSERT(Compare(*a, *b) == 0);
  if (!a->null) RC_ASSERT(a->type.scale == first.type.scale && a->type.kind == first.type.kind);
}

/// A condition over r with a constant in the place of each $, of any type that fits there.
std::string ConditionWithConstants() {
  struct Place {
    std::vector<std::string> conditions, constants;
  };
  static const std::vector<Place> places = {
      {{"n / $ > 0.5", "n = $", "$ / 7 > n", "n in ($, $)", "coalesce(n, $) / 3 > 1",
        "case when ok then $ else $ end / 7 > 0", "d between $ and $", "k + $ > d"},
       {"0", "-7", "100.", "1e2", "-1e2", "2.50", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "(9223372036854775807 + 1)", "1e20", "1e-38", "cast(5 as decimal(9, 0))",
        "'12'", "'1e1'"}},
      {{"c = $", "v = $", "c in ($, $)", "v in ($, $)", "coalesce(c, $) = c", "nullif(c, $) = $",
        "case when ok then c else $ end = $", "case when ok then $ else v end < $", "v like 'a%'",
        "cast(v as text) = c", "cast(c as varchar) = $"},
       {"'a'", "'a '", "'it''s'", "cast('a ' as text)", "cast('a ' as varchar)", "null", "'\\'",
        "cast(null as text)"}},
      {{"day < $", "at >= $", "day in ($, $)", "coalesce(day, $) < $", "coalesce(at, $) = $", "day - 3 < $"},
       {"date '1994-01-01'", "timestamp '1994-01-01 12:00:00.5'", "'1994-01-01'"}},
      {{"ok = $", "case when $ then ok else $ end", "coalesce(ok, $)"}, {"true", "false", "ok", "'yes'"}},
  };
  const Place& place = *rc::gen::elementOf(places);
  std::string text = *rc::gen::elementOf(place.conditions);
  for (size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at))
    text.replace(at, 1, *rc::gen::elementOf(place.constants));
  return text;
}

/// Text and varchar(n) differ beside char(n) alone, and are printed only there.
Expr WithoutLengths(Expr e) {
  for (Type* type : {&e.type, &e.literal.type}) {
    if (!IsChar(*type)) type->length = 0;
  }
  for (Expr& child : e.children) child = WithoutLengths(std::move(child));
  return e;
}

/// Bound as the CHECK of a record table.
RC_GTEST_PROP(BindProperty, PrintedConstantsKeepTheirTypes, ()) {
  FakeTables tables;
  const auto bind = [&](const std::string& e) { return BindLogical("select " + e + " from r", tables); };
  const auto once = bind(ConditionWithConstants());
  RC_PRE(once.ok());  // some divide by zero
  const FlatQuery query = Flatten(*once).value();
  const Expr& first = query.select[0].expr;
  RC_PRE(!IsNullLiteral(first));
  const std::string printed = Show(query, first);
  const auto twice = bind(printed);
  RC_LOG() << printed << "\n" << twice.status();
  RC_ASSERT(twice.ok());
  RC_ASSERT(SameExpr(WithoutLengths(Flatten(*twice)->select[0].expr), WithoutLengths(first)));
}

}  // namespace
}  // namespace nam::sql
