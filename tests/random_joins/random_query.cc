#include "tests/random_joins/random_query.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace nam::testing {
namespace {

/// A column by the name that the query around it uses.
struct Name {
  std::string text;
  Family family = Family::kNumber;
  bool integer = false;
};
using Names = std::vector<Name>;

Names Only(const Names& names, Family family) {
  Names those;
  std::copy_if(names.begin(), names.end(), std::back_inserter(those),
               [&](const Name& name) { return name.family == family; });
  return those;
}

/// An item of FROM: its text without the alias, and its columns without one.
struct Source {
  std::string text;
  Names columns;
};

class QueryMaker {
 public:
  QueryMaker(Draw& draw, const std::vector<SmallTable>& tables) : draw_(draw), tables_(tables) {
    for (const SmallTable& table : tables)
      most_rows_ = std::max(most_rows_, static_cast<int64_t>(table.rows.size()));
  }

  RandomQuery Make() {
    RandomQuery query;
    if (draw_.Percent(12)) {
      Source common = Derived();
      const std::string name = Alias("w");
      query.with.push_back(absl::StrCat(name, " as ", common.text));
      common_ = {name, common.columns};
    }
    const Names names = From(query, 1 + (draw_.Percent(85) ? 1 + draw_.Below(3) : 0), /*depth=*/1);
    for (uint64_t i = draw_.Of(std::vector<uint64_t>{0, 0, 0, 1, 1, 1, 2}); i > 0; --i)
      query.where.push_back(Predicate(names, 2, true));
    if (draw_.Percent(70)) {
      Group(query, names, /*top=*/true);
    } else {
      for (int64_t i = draw_.Between(1, 4); i > 0; --i) query.outputs.push_back({Expression(names)});
      query.distinct = draw_.Percent(30);
    }
    const auto approximate = query.Approximate();
    if (std::find(approximate.begin(), approximate.end(), true) == approximate.end() && draw_.Percent(15)) {
      query.ordered = true;
      query.limit = draw_.Percent(80) ? static_cast<int>(draw_.Below(60)) : -1;
    }
    return query;
  }

 private:
  std::string Alias(const char* prefix) { return absl::StrCat(prefix, ++aliases_); }

  // --- FROM

  Source Table() {
    // Larger tables come first, the empty one last.
    size_t at = std::min(draw_.Below(tables_.size()), draw_.Below(tables_.size() + 1));
    if (at + 1 == tables_.size() && draw_.Percent(60)) at = 0;
    Source source{tables_[at].schema.name, {}};
    for (const RandomColumn& column : RandomColumns())
      source.columns.push_back({column.name, column.family, column.type.kind == TypeKind::kInteger});
    return source;
  }

  /// An intermediate result: groups, distinct rows, a join, a union, or the first rows of an order.
  Source Derived() {
    RandomQuery query;
    Source source;
    const uint64_t kind = draw_.Below(10);
    const Names names = From(query, kind >= 8 ? 1 : 1 + draw_.Below(2), /*depth=*/0);
    if (draw_.Percent(40)) query.where.push_back(Predicate(names, 1, false));
    if (kind < 5) {
      source.columns = Group(query, names, /*top=*/false);
    } else {
      for (int64_t i = draw_.Between(2, 4); i > 0; --i) {
        source.columns.push_back(draw_.Of(names));
        query.outputs.push_back({source.columns.back().text});
      }
      query.distinct = kind == 5 || kind == 6;
    }
    if (kind == 9) {
      query.ordered = true;
      query.limit = static_cast<int>(draw_.Below(200));
    }
    for (size_t i = 0; i < source.columns.size(); ++i) {
      source.columns[i].text = absl::StrCat("c", i);
      absl::StrAppend(&query.outputs[i].text, " as c", i);
    }
    source.text = absl::StrCat("(", query.Text(), kind == 8 ? " union all " + query.Text() : "", ")");
    return source;
  }

  Source AnySource(int depth) {
    if (common_.has_value() && depth > 0 && draw_.Percent(60)) return *common_;
    return depth > 0 && draw_.Percent(22) ? Derived() : Table();
  }

  /// Adds `items` of them; returns the columns that the rest of the query sees.
  Names From(RandomQuery& query, uint64_t items, int depth) {
    Names all;
    for (uint64_t i = 0; i < items; ++i) {
      const Source source = AnySource(depth);
      const std::string alias = Alias("a");
      Names names = source.columns;
      for (Name& name : names) name.text = absl::StrCat(alias, ".", name.text);
      RandomQuery::Join join{"", absl::StrCat(source.text, " ", alias), {}};
      if (i > 0) {
        join.kind = draw_.Of({"join", "join", "join", "join", "left join", "left join", "right join",
                              "full join", "cross join"});
        null_extends_earlier_ |= join.kind == "full join" || join.kind == "right join";
        std::vector<std::string> conditions = JoinConditions(all, names, join.kind == "full join");
        (join.kind == "cross join" ? query.where : join.on) = std::move(conditions);
      }
      query.from.push_back(std::move(join));
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  }

  /// A column, most often one that has many values.
  Name Key(const Names& names) {
    Names keys = names;
    std::erase_if(keys, [](const Name& name) {
      return name.family == Family::kBool || (name.family == Family::kNumber && !name.integer) ||
             name.text.ends_with(".v");
    });
    return keys.empty() || draw_.Percent(30) ? draw_.Of(names) : draw_.Of(keys);
  }

  /// Equalities of one to three columns, of equal and of different types; sometimes another condition.
  std::vector<std::string> JoinConditions(const Names& left, const Names& right, bool plain) {
    std::vector<std::string> conditions;
    for (int64_t i = draw_.Percent(80) ? 1 : draw_.Between(2, 3); i > 0; --i) {
      const Name a = Key(left);
      const Names partners = Only(right, a.family);
      if (partners.empty()) continue;
      // Booleans alone join everything with everything.
      if (a.family == Family::kBool && conditions.empty() && draw_.Percent(90)) continue;
      const Name b = Key(partners);
      const bool computed = !plain && a.family == Family::kNumber && draw_.Percent(10);
      conditions.push_back(absl::StrCat(a.text, computed ? " + 1" : "", " = ", b.text));
    }
    if (conditions.empty()) {
      const Names a = Only(left, Family::kNumber), b = Only(right, Family::kNumber);
      if (!a.empty() && !b.empty())
        conditions.push_back(absl::StrCat(draw_.Of(a).text, " = ", draw_.Of(b).text));
    }
    if (conditions.empty()) conditions.push_back(plain ? "1 = 1" : "true");
    if (!plain && draw_.Percent(15)) {
      Names both = left;
      both.insert(both.end(), right.begin(), right.end());
      conditions.push_back(Predicate(both, 1, false));
    }
    return conditions;
  }

  // --- expressions

  std::string NumberOf(const Names& names, int depth) {
    const Names numbers = Only(names, Family::kNumber);
    if (numbers.empty()) return absl::StrCat(draw_.Between(0, 9));
    const std::string column = draw_.Of(numbers).text;
    if (depth == 0) return column;
    switch (draw_.Below(9)) {
      case 0:
        return absl::StrCat("(", column, " + ", NumberOf(names, depth - 1), ")");
      case 1:
        return absl::StrCat("(", column, " - ", draw_.Between(1, 50), ")");
      case 2:
        return absl::StrCat("(", column, " * ", draw_.Between(2, 5), ")");
      case 3:
        return absl::StrCat("coalesce(", column, ", ", draw_.Between(-1, 20), ")");
      case 4:
        return absl::StrCat("case when ", Predicate(names, 0, false), " then ", column, " else ",
                            NumberOf(names, depth - 1), " end");
      case 5:
        return absl::StrCat("nullif(", column, ", ", draw_.Between(0, 5), ")");
      case 6: {
        Names integers = numbers;
        std::erase_if(integers, [](const Name& name) { return !name.integer; });
        return integers.empty()
                   ? column
                   : absl::StrCat("(", draw_.Of(integers).text, " % ", draw_.Between(2, 40), ")");
      }
      default:
        return column;
    }
  }

  std::string Expression(const Names& names) {
    return draw_.Percent(40) ? NumberOf(names, 2) : draw_.Of(names).text;
  }

  /// A constant of the family, that some rows have.
  std::string Constant(Family family) {
    switch (family) {
      case Family::kNumber:
        return draw_.Percent(15) ? absl::StrCat(draw_.Between(0, 40), ".25")
                                 : absl::StrCat(draw_.Between(draw_.Percent(20) ? -2 : 0,
                                                              draw_.Percent(50) ? 20 : most_rows_));
      case Family::kWideNumber:
        return absl::StrCat(draw_.Between(0, 500) * 1'000'000'007);
      case Family::kText:
        return draw_.Of({"'a'", "'b'", "'ab'", "''", "'zz'", "'a17'", "'B'", "'été'", "'none'"});
      case Family::kDate:
        return draw_.Of({"'1992-01-01'", "'1992-01-20'", "'1992-06-30'", "'1993-03-01'", "'1994-01-01'"});
      case Family::kBool:
        break;
    }
    return "true";
  }

  std::string Predicate(const Names& names, int depth, bool subqueries) {
    if (subqueries && draw_.Percent(40)) return Subquery(names);
    if (depth > 0 && draw_.Percent(25)) {
      return absl::StrCat("(", Predicate(names, depth - 1, subqueries), draw_.Percent(50) ? " and " : " or ",
                          Predicate(names, depth - 1, subqueries), ")");
    }
    if (depth > 0 && draw_.Percent(8))
      return absl::StrCat("not (", Predicate(names, depth - 1, subqueries), ")");
    const Name name = draw_.Of(names);
    if (name.family == Family::kBool && draw_.Percent(60))
      return absl::StrCat(draw_.Percent(40) ? "not " : "", name.text);
    switch (draw_.Below(6)) {
      case 0:
        return absl::StrCat(name.text, draw_.Percent(50) ? " is null" : " is not null");
      case 1: {
        const Name other = draw_.Of(Only(names, name.family));
        return absl::StrCat(name.text, draw_.Of({" <> ", " < ", " >= ", " = "}), other.text);
      }
      case 2:
        return absl::StrCat(name.text, draw_.Percent(30) ? " not in (" : " in (", Constant(name.family), ", ",
                            Constant(name.family), ")");
      case 3: {
        const std::string low = name.family == Family::kNumber ? absl::StrCat(draw_.Between(-2, 20))
                                : name.family == Family::kText ? "''"
                                : name.family == Family::kDate ? "'1992-01-01'"
                                                               : Constant(name.family);
        return absl::StrCat(name.text, " between ", low, " and ", Constant(name.family));
      }
      default:
        return absl::StrCat(name.text, draw_.Of({" = ", " <> ", " < ", " <= ", " > ", " >= ", " >= ", " < "}),
                            Constant(name.family));
    }
  }

  /// EXISTS, IN and comparisons with an aggregate: semi and anti joins, and those that count.
  std::string Subquery(const Names& names) {
    const Source source = Table();
    const std::string alias = Alias("x");
    Names inner = source.columns;
    for (Name& name : inner) name.text = absl::StrCat(alias, ".", name.text);
    const std::string from = absl::StrCat(" from ", source.text, " ", alias);
    const std::string filter = draw_.Percent(40) ? Predicate(inner, 1, false) : "";
    const Name a = draw_.Of(names), b = draw_.Of(Only(inner, a.family));
    const std::string no = draw_.Percent(45) ? "not " : "";
    const std::string where = filter.empty() ? "" : absl::StrCat(" where ", filter);
    const std::string correlated =
        absl::StrCat(" where ", b.text, " = ", a.text, filter.empty() ? "" : " and ", filter);
    const Name more = draw_.Of(names), partner = draw_.Of(Only(inner, more.family));
    switch (draw_.Below(8)) {
      case 0:
      case 1:
        return absl::StrCat(no, "exists (select 1", from, correlated, ")");
      case 2:
        return absl::StrCat(no, "exists (select 1", from, correlated, " and ", partner.text,
                            draw_.Of({" = ", " <> ", " < "}), more.text, ")");
      case 3:
      case 4:
        return absl::StrCat(a.text, " ", no, "in (select ", b.text, from, where, ")");
      case 5:
        // SQLite 3.40 returns other rows than for the same query with EXISTS, or with a left join.
        if (null_extends_earlier_)
          return absl::StrCat(a.text, " ", no, "in (select ", b.text, from, where, ")");
        return absl::StrCat("(", a.text, ", ", more.text, ") ", no, "in (select ", b.text, ", ", partner.text,
                            from, where, ")");
      case 6:
        return absl::StrCat(a.text, " ", no, "in (select ", b.text, from, " where ", partner.text, " = ",
                            more.text, filter.empty() ? "" : " and ", filter, ")");
      default:
        return absl::StrCat(NumberOf(names, 0), draw_.Of({" > ", " <= ", " = "}), "(select ",
                            draw_.Of({"max(", "min(", "count("}), NumberOf(inner, 0), ")", from, correlated,
                            ")");
    }
  }

  // --- groups

  Name Aggregate(const Names& names, bool top, bool& approximate) {
    const Name any = draw_.Of(names);
    Names ordered = names;
    std::erase_if(ordered, [](const Name& name) { return name.family == Family::kBool; });
    const Name name = ordered.empty() ? any : draw_.Of(ordered);
    const std::string filter =
        draw_.Percent(8) ? absl::StrCat(" filter (where ", Predicate(names, 1, false), ")") : "";
    const auto made = [&](const std::string& call, Family family, bool integer) {
      return Name{absl::StrCat(call, filter), family, integer};
    };
    switch (draw_.Below(top ? 10 : 9)) {
      case 0:
      case 1:
        return made("count(*)", Family::kNumber, true);
      case 2:
        return made(absl::StrCat("count(", any.text, ")"), Family::kNumber, true);
      case 3:
        return made(absl::StrCat("count(distinct ", any.text, ")"), Family::kNumber, true);
      case 4:
      case 5:
        return made(absl::StrCat("sum(", NumberOf(names, top ? 1 : 0), ")"), Family::kNumber, false);
      case 6:
        return made(absl::StrCat("sum(distinct ", NumberOf(names, 0), ")"), Family::kNumber, false);
      case 7:
        if (ordered.empty()) return made("count(*)", Family::kNumber, true);
        return made(absl::StrCat("min(", name.text, ")"), name.family, name.integer);
      case 8:
        if (ordered.empty()) return made("count(*)", Family::kNumber, true);
        return made(absl::StrCat("max(", name.text, ")"), name.family, name.integer);
      default:
        approximate = true;
        return made(absl::StrCat("avg(", NumberOf(names, 0), ")"), Family::kNumber, false);
    }
  }

  /// The columns of its outputs.
  Names Group(RandomQuery& query, const Names& names, bool top) {
    Names outputs;
    for (uint64_t i = top ? draw_.Below(4) : 1 + draw_.Below(2); i > 0; --i) {
      Name key = draw_.Of(names);
      const bool integer = key.family == Family::kNumber && key.integer;
      if (integer && draw_.Percent(20)) key.text = absl::StrCat(key.text, " % ", draw_.Between(2, 90));
      if (key.family == Family::kNumber && draw_.Percent(10)) key.text = absl::StrCat(key.text, " + 1");
      query.group_by.push_back(key.text);
      if (!top || draw_.Percent(90)) {
        query.outputs.push_back({key.text});
        outputs.push_back(key);
      }
    }
    for (int64_t i = draw_.Between(top && !query.outputs.empty() ? 0 : 1, 3); i > 0; --i) {
      bool approximate = false;
      outputs.push_back(Aggregate(names, top, approximate));
      query.outputs.push_back({outputs.back().text, approximate});
    }
    if (!query.group_by.empty() && draw_.Percent(20)) {
      query.having.push_back(draw_.Percent(60)
                                 ? absl::StrCat("count(*) > ", draw_.Between(1, 3))
                                 : absl::StrCat(draw_.Of({"min(", "max(", "sum(", "count(distinct "}),
                                                NumberOf(names, 0), ") ", draw_.Of({"> ", "<= "}),
                                                draw_.Between(0, 100)));
    }
    return outputs;
  }

  Draw& draw_;
  const std::vector<SmallTable>& tables_;
  int64_t most_rows_ = 1;  // of a table: keys go up to about it
  std::optional<Source> common_;
  bool null_extends_earlier_ = false;  // a full or a right join was drawn
  int aliases_ = 0;
};

}  // namespace

std::string RandomQuery::Text() const {
  std::string text = with.empty() ? "" : absl::StrCat("with ", absl::StrJoin(with, ", "), " ");
  std::vector<std::string> columns, order;
  for (const Output& output : outputs) columns.push_back(output.text);
  absl::StrAppend(&text, "select ", distinct ? "distinct " : "", absl::StrJoin(columns, ", "), " from");
  for (const Join& join : from) {
    absl::StrAppend(&text, join.kind.empty() ? "" : " ", join.kind, " ", join.item);
    if (!join.on.empty()) absl::StrAppend(&text, " on ", absl::StrJoin(join.on, " and "));
  }
  if (!where.empty()) absl::StrAppend(&text, " where ", absl::StrJoin(where, " and "));
  if (!group_by.empty()) absl::StrAppend(&text, " group by ", absl::StrJoin(group_by, ", "));
  if (!having.empty()) absl::StrAppend(&text, " having ", absl::StrJoin(having, " and "));
  if (ordered) {
    for (size_t i = 0; i < outputs.size(); ++i)
      order.push_back(absl::StrCat(i + 1, i % 2 == 0 ? " nulls first" : " desc nulls last"));
    absl::StrAppend(&text, " order by ", absl::StrJoin(order, ", "));
    if (limit >= 0) absl::StrAppend(&text, " limit ", limit);
  }
  return text;
}

std::vector<bool> RandomQuery::Approximate() const {
  std::vector<bool> approximate;
  for (const Output& output : outputs) approximate.push_back(output.approximate);
  return approximate;
}

RandomQuery DrawQuery(Draw& draw, const std::vector<SmallTable>& tables) {
  return QueryMaker(draw, tables).Make();
}

RandomQuery Shrink(RandomQuery query, int tries_max, const std::function<bool(const RandomQuery&)>& fails) {
  int tries = 0;
  const auto accept = [&](RandomQuery smaller) {
    if (++tries > tries_max || smaller.outputs.empty() || smaller.from.empty() || !fails(smaller))
      return false;
    query = std::move(smaller);
    return true;
  };
  // Leaves out each element of a list that is not needed, the last one first.
  const auto without_each = [&](const auto& list_of) {
    bool less = false;
    for (size_t i = list_of(query).size(); i-- > 0;) {
      RandomQuery smaller = query;
      auto& list = list_of(smaller);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      less |= accept(std::move(smaller));
    }
    return less;
  };
  const auto without = [&](bool has, const auto& change) {
    if (!has) return false;
    RandomQuery smaller = query;
    change(smaller);
    return accept(std::move(smaller));
  };
  for (bool less = true; less && tries < tries_max;) {
    less = without(query.limit >= 0, [](RandomQuery& q) { q.limit = -1; });
    less |= without(query.ordered && query.limit < 0, [](RandomQuery& q) { q.ordered = false; });
    less |= without(query.distinct, [](RandomQuery& q) { q.distinct = false; });
    less |= without_each([](auto& q) -> auto& { return q.having; });
    less |= without_each([](auto& q) -> auto& { return q.where; });
    less |= without_each([](auto& q) -> auto& { return q.outputs; });
    less |= without_each([](auto& q) -> auto& { return q.group_by; });
    less |= without_each([](auto& q) -> auto& { return q.from; });
    less |= without_each([](auto& q) -> auto& { return q.with; });
    for (size_t j = 0; j < query.from.size(); ++j)
      less |= without_each([j](auto& q) -> auto& { return q.from[j].on; });
  }
  return query;
}

}  // namespace nam::testing
