#include "workload/sqlite_dialect.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "re2/re2.h"
#include "types/date.h"

namespace nam {
namespace {

CivilDate Later(CivilDate date, int64_t count, const std::string& unit) {
  if (unit == "day") return CivilFromDays(DaysFromCivil(date) + count);
  const int64_t months = date.year * 12 + date.month - 1 + (unit == "year" ? 12 : 1) * count;
  const auto year = static_cast<int32_t>(months / 12), month = static_cast<int32_t>(months % 12 + 1);
  return {year, month, std::min<int32_t>(date.day, DaysInMonth(year, month))};
}

/// Rewrites `date '1994-01-01' + interval '1' year` as `'1995-01-01'`.
std::string DatesOf(std::string sql) {
  static const re2::RE2& pattern =
      *new re2::RE2(R"(date '(\d+)-(\d+)-(\d+)'(?:\s*([+-])\s*interval '(\d+)' (day|month|year))?)");
  CivilDate date;
  std::string sign, count, unit;
  while (re2::RE2::PartialMatch(sql, pattern, &date.year, &date.month, &date.day, &sign, &count, &unit)) {
    if (!sign.empty()) date = Later(date, std::atoll((sign == "-" ? "-" + count : count).c_str()), unit);
    NAM_CHECK(re2::RE2::Replace(&sql, pattern,
                                absl::StrFormat("'%04d-%02d-%02d'", date.year, date.month, date.day)));
    sign.clear();
  }
  return sql;
}

/// Rewrites `0.06 - 0.01` as `0.05`; hundredths only.
std::string SumsOf(std::string sql) {
  static const re2::RE2& pattern = *new re2::RE2(R"(\b0\.(\d\d) ([+-]) 0\.(\d\d)\b)");
  int left = 0, right = 0;
  std::string sign;
  while (re2::RE2::PartialMatch(sql, pattern, &left, &sign, &right)) {
    NAM_CHECK(re2::RE2::Replace(&sql, pattern,
                                absl::StrFormat("0.%02d", sign == "+" ? left + right : left - right)));
  }
  return sql;
}

/// `… count(x) group by … ) as t (a, b)`: SQLite takes column names from the select list only.
std::string DerivedColumnsOf(std::string sql) {
  static const re2::RE2& pattern =
      *new re2::RE2(R"((?s)select (\w+), (count\(\w+\))(.*?)\) as (\w+) \((\w+), (\w+)\))");
  re2::RE2::GlobalReplace(&sql, pattern, R"(select \1 as \5, \2 as \6\3) as \4)");
  return sql;
}

}  // namespace

std::string SqliteText(const std::string& sql) {
  static const re2::RE2& year = *new re2::RE2(R"(extract\(year from (\w+)\))");
  static const re2::RE2& substring = *new re2::RE2(R"(substring\((\w+) from (\d+) for (\d+)\))");
  std::string text = DerivedColumnsOf(SumsOf(DatesOf(sql)));
  re2::RE2::GlobalReplace(&text, year, R"(cast(substr(\1, 1, 4) as integer))");
  re2::RE2::GlobalReplace(&text, substring, R"(substr(\1, \2, \3))");
  return text;
}

}  // namespace nam
