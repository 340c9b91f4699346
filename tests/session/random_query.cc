#include "tests/session/random_query.h"

namespace nam::testing {
namespace {

const std::vector<std::string> kWords = {"a", "b", "ab", "abc", "B", "", "zz", "a%b", "été", "é", "日本"};

Value MaybeNull(Choices& choices, bool nullable, Value value) {
  return nullable && choices.Chance(15) ? Value::Null(value.type) : value;
}

/// Which tables a query joins: their names and conditions.
struct From {
  std::string text;
  std::vector<std::string> conditions;
  std::vector<std::string> numbers, strings, dates;
};

From RandomFrom(Choices& choices) {
  From from{"f", {}, {"f.k1", "f.k2", "f.a", "f.q"}, {"f.s"}, {"f.d"}};
  if (choices.Chance(60)) {
    const bool on = choices.Chance(50), text = choices.Chance(15);
    const std::string condition = text ? "f.s = x.s" : "f.k1 = x.k";
    from.text += on ? " join x on " + condition : ", x";
    if (!on) from.conditions.push_back(condition);
    from.numbers.insert(from.numbers.end(), {"x.k", "x.a"});
    from.strings.push_back("x.s");
    // FROM f, x JOIN y would bind the join to x alone.
    if (on && choices.Chance(50)) {
      from.text += choices.Chance(70) ? " join y on f.k2 = y.k" : " join y on x.a = y.b";
      if (choices.Chance(20)) from.conditions.push_back("f.a = y.b");
      from.numbers.insert(from.numbers.end(), {"y.k", "y.b"});
      from.strings.push_back("y.s");
    }
  }
  return from;
}

std::string Number(Choices& choices, const From& from, int depth) {
  switch (choices.Next(depth > 0 ? 8 : 2)) {
    case 0:
      return choices.Of(from.numbers);
    case 1:
      return std::to_string(static_cast<int>(choices.Next(12)) - 3);
    case 2:
      return "(" + Number(choices, from, depth - 1) + " + " + Number(choices, from, depth - 1) + ")";
    case 3:
      return "(" + Number(choices, from, depth - 1) + " - " + Number(choices, from, depth - 1) + ")";
    case 4:
      return "(" + Number(choices, from, depth - 1) + " * " + Number(choices, from, depth - 1) + ")";
    case 5:
      return "(" + Number(choices, from, depth - 1) + " / " + std::to_string(1 + choices.Next(4)) + ")";
    case 6:
      return "(- " + Number(choices, from, depth - 1) + ")";
    default:
      return "case when " + choices.Of(from.numbers) + " > " + std::to_string(choices.Next(5)) + " then " +
             Number(choices, from, depth - 1) +
             (choices.Chance(50) ? " else " + Number(choices, from, depth - 1) : "") + " end";
  }
}

std::string Word(Choices& choices) {
  return "'" + choices.Of(kWords) + "'";
}

std::string Condition(Choices& choices, const From& from, int depth) {
  static const std::vector<std::string> kComparisons = {"=", "<>", "<", "<=", ">", ">="};
  const uint32_t kind = choices.Next(depth > 0 ? 12 : 9);
  switch (kind) {
    case 0:
      return Number(choices, from, 1) + " " + choices.Of(kComparisons) + " " + Number(choices, from, 1);
    case 1:
      return choices.Of(from.numbers) + (choices.Chance(30) ? " not" : "") + " between " +
             std::to_string(choices.Next(5)) + " and " + std::to_string(choices.Next(10));
    case 2:
      return choices.Of(from.numbers) + (choices.Chance(30) ? " not" : "") + " in (1, " +
             std::to_string(choices.Next(8)) + ", -1)";
    case 3:
      return choices.Of(from.strings) + " " + choices.Of(kComparisons) + " " + Word(choices);
    case 4:
      return choices.Of(from.strings) + (choices.Chance(30) ? " not" : "") + " in (" + Word(choices) + ", " +
             Word(choices) + ")";
    case 5: {
      static const std::vector<std::string> kPatterns = {"'a%'", "'%b'",  "'_'",   "'%b%'", "'ab'", "'%'",
                                                         "'__'", "'_t_'", "'%_é'", "'__%'", "'_本'"};
      return choices.Of(from.strings) + (choices.Chance(30) ? " not" : "") + " like " + choices.Of(kPatterns);
    }
    case 6:
      return (choices.Chance(50) ? choices.Of(from.numbers) : choices.Of(from.strings)) +
             (choices.Chance(50) ? " is null" : " is not null");
    case 7:
      return choices.Of(from.dates) + " " + choices.Of(kComparisons) + " '199" +
             std::to_string(2 + choices.Next(3)) + "-03-01'";
    case 8:
      return choices.Of(from.strings) + " " + choices.Of(kComparisons) + " " + choices.Of(from.strings);
    case 9:
      return "(" + Condition(choices, from, depth - 1) + " and " + Condition(choices, from, depth - 1) + ")";
    case 10:
      return "(" + Condition(choices, from, depth - 1) + " or " + Condition(choices, from, depth - 1) + ")";
    default:
      return "not (" + Condition(choices, from, depth - 1) + ")";
  }
}

std::string Aggregate(Choices& choices, const From& from) {
  switch (choices.Next(7)) {
    case 0:
      return "count(*)";
    case 1:
      return "count(" + choices.Of(from.numbers) + ")";
    case 2:
      return "sum(" + Number(choices, from, 2) + ")";
    case 3:
      return "min(" + Number(choices, from, 1) + ")";
    case 4:
      return "max(" + choices.Of(choices.Chance(50) ? from.strings : from.numbers) + ")";
    case 5:
      return "count(distinct " + choices.Of(choices.Chance(40) ? from.strings : from.numbers) + ")";
    default:
      return "min(" + choices.Of(from.dates) + ")";
  }
}

}  // namespace

std::vector<SmallTable> RandomTables(Choices& choices) {
  const auto key = [&] { return Value::Integer(static_cast<int>(choices.Next(14)) - 2); };
  const auto number = [&] { return Value::Integer(static_cast<int>(choices.Next(40)) - 10); };
  const auto word = [&] { return Value::String(choices.Of(kWords)); };
  // Sometimes keys far apart, so that join tables hash.
  const bool sparse = choices.Chance(30);
  const auto spread = [&](Value v) {
    if (sparse) v.number *= 1'000'003;
    return v;
  };
  const uint32_t parts = 1 + choices.Next(4);
  SmallTable f{{"f",
                {{"k1", Type::Integer(), true},
                 {"k2", Type::Integer(), true},
                 {"a", Type::Integer(), true},
                 {"q", Type::Integer(), false},
                 {"s", Type::String(8), true},
                 {"d", Type::Date(), false}},
                {{"k1", parts}, {"k2", 2}},
                "d"},
               {}};
  SmallTable x{{"x",
                {{"k", Type::Integer(), false}, {"a", Type::Integer(), true}, {"s", Type::String(8), false}},
                {{"k", parts}},
                ""},
               {}};
  SmallTable y{{"y",
                {{"k", Type::Integer(), true}, {"s", Type::String(8), true}, {"b", Type::Integer(), false}},
                {{"k", 2}},
                ""},
               {}};
  for (uint32_t i = choices.Next(300); i > 0; --i) {
    f.rows.push_back({MaybeNull(choices, true, spread(key())), MaybeNull(choices, true, spread(key())),
                      MaybeNull(choices, true, number()), number(), MaybeNull(choices, true, word()),
                      Value::Date(8035 + choices.Next(1200))});
  }
  for (uint32_t i = choices.Next(25); i > 0; --i)
    x.rows.push_back({spread(key()), MaybeNull(choices, true, number()), word()});
  for (uint32_t i = choices.Next(25); i > 0; --i) {
    y.rows.push_back({MaybeNull(choices, true, spread(key())), MaybeNull(choices, true, word()), number()});
  }
  return {f, x, y};
}

std::string RandomQuery(Choices& choices) {
  const From from = RandomFrom(choices);
  std::string where;
  for (const std::string& condition : from.conditions)
    where += (where.empty() ? " where " : " and ") + condition;
  for (uint32_t i = choices.Next(3); i > 0; --i)
    where += (where.empty() ? " where " : " and ") + Condition(choices, from, 2);
  if (choices.Chance(25)) {  // plain rows
    const bool distinct = choices.Chance(40);
    std::string select = choices.Of(from.strings) + ", " + Number(choices, from, 2);
    if (choices.Chance(50)) select += ", " + choices.Of(from.dates);
    return "select " + std::string(distinct ? "distinct " : "") + select + " from " + from.text + where;
  }
  std::vector<std::string> keys;
  for (uint32_t i = choices.Next(3); i > 0; --i) {
    const uint32_t kind = choices.Next(4);
    keys.push_back(kind == 0   ? choices.Of(from.numbers)
                   : kind == 1 ? choices.Of(from.strings)
                   : kind == 2 ? choices.Of(from.dates)
                               : choices.Of(from.numbers) + " + " + Number(choices, from, 1));
  }
  std::string select, group;
  for (const std::string& key : keys) {
    select += key + ", ";
    group += (group.empty() ? " group by " : ", ") + key;
  }
  select += Aggregate(choices, from);
  for (uint32_t i = choices.Next(3); i > 0; --i) select += ", " + Aggregate(choices, from);
  if (choices.Chance(20)) select += ", sum(f.q) - count(*)";
  std::string having;
  if (!keys.empty() && choices.Chance(25)) having = " having count(*) > " + std::to_string(choices.Next(4));
  return "select " + select + " from " + from.text + where + group + having;
}

}  // namespace nam::testing
