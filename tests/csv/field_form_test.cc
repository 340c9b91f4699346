#include "csv/field_form.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace nam::csv {
namespace {

FieldForm FirstOf(const std::vector<std::string>& fields, const FieldFormats& formats = {}) {
  FieldForms forms(formats);
  for (const std::string& field : fields) forms.Add(field);
  return forms.First();
}

std::string CanonicalOf(const std::string& field, FieldForm form, const FieldFormats& formats = {}) {
  std::string buffer;
  const std::optional<std::string_view> text = Canonical(field, form, formats, buffer);
  return text.has_value() ? std::string(*text) : "none";
}

TEST(FieldFormTest, TheFirstFormReadsAllValues) {
  EXPECT_EQ(FirstOf({}), FieldForm::kNone);
  EXPECT_EQ(FirstOf({"true", "F", "Yes", "no"}), FieldForm::kBoolean);
  EXPECT_EQ(FirstOf({"true", "1"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"1", "-9223372036854775808"}), FieldForm::kWhole);
  EXPECT_EQ(FirstOf({"1", "9223372036854775808"}), FieldForm::kWide);
  EXPECT_EQ(FirstOf({"1", std::string(38, '9')}), FieldForm::kWide);
  EXPECT_EQ(FirstOf({"1", std::string(39, '9')}), FieldForm::kText) << "as doubles, two might be equal";
  EXPECT_EQ(FirstOf({"1", ".5", "1.", "-2e10", "nan", "-Infinity"}), FieldForm::kNumber);
  EXPECT_EQ(FirstOf({"1e999"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"0x10"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"1_0"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"inf"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"-"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"1.2.3"}), FieldForm::kText);
}

TEST(FieldFormTest, ACodeWithALeadingZeroIsText) {
  for (const char* const code : {"01234", "007", "00", "00.5", "0049301234"})
    EXPECT_EQ(FirstOf({"5", code}), FieldForm::kText) << code;
  EXPECT_EQ(FirstOf({"+4930"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"0", "7", "-007"}), FieldForm::kWhole);
  EXPECT_EQ(FirstOf({"0", "0.5", "-00.5", "0e5"}), FieldForm::kNumber);
}

TEST(FieldFormTest, BlanksAroundAValueAreNoneOfIt) {
  EXPECT_EQ(FirstOf({" 1", "2 ", "\t3"}), FieldForm::kWhole);
  EXPECT_EQ(FirstOf({" 2020-01-02 "}), FieldForm::kDate);
  EXPECT_EQ(FirstOf({" true"}), FieldForm::kBoolean);
  EXPECT_EQ(FirstOf({"1", "  ", ""}), FieldForm::kWhole) << "blanks alone are no value of a number";
  EXPECT_EQ(FirstOf({"", " "}), FieldForm::kText);
  EXPECT_EQ(CanonicalOf(" 7 ", FieldForm::kWhole), "7");
  EXPECT_EQ(CanonicalOf("  ", FieldForm::kWhole), "");
  EXPECT_EQ(CanonicalOf(" x ", FieldForm::kText), " x ");
}

TEST(FieldFormTest, DatesHaveOneOrderInAColumn) {
  EXPECT_EQ(FirstOf({"2020-12-31", "2020-1-2"}), FieldForm::kDate);
  EXPECT_EQ(FirstOf({"2020/12/31", "2020.01.02"}), FieldForm::kDate);
  EXPECT_EQ(FirstOf({"31/12/2020", "01/02/2021"}), FieldForm::kDateDayFirst);
  EXPECT_EQ(FirstOf({"12/31/2020", "01/02/2021"}), FieldForm::kDateMonthFirst);
  EXPECT_EQ(FirstOf({"01/02/2020"}), FieldForm::kDateDayFirst) << "DuckDB's choice if both fit";
  EXPECT_EQ(FirstOf({"31.12.2020", "1.2.2021"}), FieldForm::kDateDayFirst);
  EXPECT_EQ(FirstOf({"31/12/2020", "12/31/2020"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"31/12/2020", "2020-12-31"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"31/12/20"}), FieldForm::kText) << "the year is not plain";
  EXPECT_EQ(FirstOf({"31/12-2020"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"2020-02-30"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"29.02.2021"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"20200102"}), FieldForm::kWhole);
  EXPECT_EQ(CanonicalOf("31/12/2020", FieldForm::kDateDayFirst), "2020-12-31");
  EXPECT_EQ(CanonicalOf(" 1.2.2021", FieldForm::kDateDayFirst), "2021-02-01");
  EXPECT_EQ(CanonicalOf("12-31-2020", FieldForm::kDateMonthFirst), "2020-12-31");
  EXPECT_EQ(CanonicalOf("12-31-2020", FieldForm::kDateDayFirst), "none");
  EXPECT_EQ(CanonicalOf("01/02/2020", FieldForm::kDate), "none") << "PostgreSQL's input would guess";
}

TEST(FieldFormTest, TimesAndTimestamps) {
  EXPECT_EQ(FirstOf({"9:30", "23:59:59.25", "24:00:00"}), FieldForm::kTime);
  EXPECT_EQ(FirstOf({"25:00"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"10:60"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"2020-01-02 03:04", "2020-01-02T03:04:05.123456"}), FieldForm::kTimestamp);
  EXPECT_EQ(FirstOf({"2020-01-02", "2020-01-02 03:04"}), FieldForm::kTimestamp);
  EXPECT_EQ(FirstOf({"31/12/2020 10:00", "01/02/2021 23:59:59"}), FieldForm::kTimestampDayFirst);
  EXPECT_EQ(FirstOf({"12/31/2020 10:00:00 PM"}), FieldForm::kTimestampMonthFirst);
  EXPECT_EQ(FirstOf({"2020-01-02T03:04:05Z", "2020-01-02 03:04:05+02", "2020-01-02 03:04:05 -05:30"}),
            FieldForm::kZoned);
  EXPECT_EQ(FirstOf({"2020-01-02 03:04:05+02", "2020-01-02 03:04:05"}), FieldForm::kZoned);
  EXPECT_EQ(FirstOf({"2020-01-02 03:04:05 nowhere"}), FieldForm::kText);
  EXPECT_EQ(FirstOf({"10:30", "2020-01-02 10:30"}), FieldForm::kText);
  EXPECT_EQ(CanonicalOf("31/12/2020 9:05", FieldForm::kTimestampDayFirst), "2020-12-31 09:05:00");
  EXPECT_EQ(CanonicalOf("12/31/2020 10:00:00 PM", FieldForm::kTimestampMonthFirst), "2020-12-31 22:00:00");
  EXPECT_EQ(CanonicalOf("12/31/2020 12:00 AM", FieldForm::kTimestampMonthFirst), "2020-12-31 00:00:00");
  EXPECT_EQ(CanonicalOf("2020-01-02T03:04:05.5Z", FieldForm::kZoned), "2020-01-02 03:04:05.5+00");
  EXPECT_EQ(CanonicalOf("2020-01-02 03:04:05 +02:00", FieldForm::kZoned), "2020-01-02 03:04:05+02:00");
  EXPECT_EQ(CanonicalOf("2020-01-02", FieldForm::kTimestamp), "2020-01-02");
  EXPECT_EQ(CanonicalOf("2020-01-02 03:04:05+02", FieldForm::kTimestamp), "none")
      << "its zone would be forgotten";
}

TEST(FieldFormTest, SeparatorsMayBeGiven) {
  const FieldFormats german{.decimal_separator = ',', .thousands = '.'};
  EXPECT_EQ(FirstOf({"1.234,5", "-7", "0,25"}, german), FieldForm::kNumber);
  EXPECT_EQ(FirstOf({"1.234.567", "12"}, german), FieldForm::kWhole);
  for (const char* const wrong : {"1.5", "1.23,5", "1.2345", ".123", "1,2.345", "01.234"})
    EXPECT_EQ(FirstOf({wrong}, german), FieldForm::kText) << wrong;
  EXPECT_EQ(CanonicalOf("1.234,5", FieldForm::kNumber, german), "1234.5");
  EXPECT_EQ(CanonicalOf("-1.234.567", FieldForm::kWhole, german), "-1234567");
  EXPECT_EQ(CanonicalOf("1.5", FieldForm::kNumber, german), "none");
  EXPECT_EQ(CanonicalOf("1.234,50", FieldForm::kGiven, german), "1234.50");
  EXPECT_EQ(FirstOf({"1,234.5", "2,000"}, {.thousands = ','}), FieldForm::kNumber);
  EXPECT_EQ(FirstOf({"1,5"}, {.decimal_separator = ','}), FieldForm::kNumber);
}

TEST(FieldFormTest, FormatsOfDatesMayBeGiven) {
  const FieldFormats formats{.date = "%d/%m/%y", .timestamp = "%b %d %Y %I:%M %p"};
  EXPECT_EQ(FirstOf({"31/12/20", "1/2/99"}, formats), FieldForm::kDate);
  EXPECT_EQ(FirstOf({"12/31/20"}, formats), FieldForm::kText);
  EXPECT_EQ(FirstOf({"2020-12-31"}, formats), FieldForm::kText) << "dates are written otherwise";
  EXPECT_EQ(FirstOf({"Dec 31 2020 1:05 PM"}, formats), FieldForm::kTimestamp);
  EXPECT_EQ(CanonicalOf("31/12/20", FieldForm::kDate, formats), "2020-12-31");
  EXPECT_EQ(CanonicalOf("1/2/99", FieldForm::kDate, formats), "1999-02-01");
  EXPECT_EQ(CanonicalOf("dec 31 2020 1:05 PM", FieldForm::kTimestamp, formats), "2020-12-31 13:05:00");
  EXPECT_EQ(CanonicalOf("30/2/20", FieldForm::kDate, formats), "none");
}

TEST(FieldFormTest, AValueIsLikeOthersOfItsFamily) {
  const auto like = [](const std::vector<std::string>& values, const std::string& field) {
    FieldForms forms;
    for (const std::string& value : values) forms.Add(value);
    return forms.IsAlike(field);
  };
  EXPECT_TRUE(like({"7", "12"}, "007")) << "a code among numbers is no name";
  EXPECT_TRUE(like({"7", "12"}, "1.5"));
  EXPECT_TRUE(like({"7", "12"}, "+5"));
  EXPECT_TRUE(like({"7", "12"}, "1,234"));
  EXPECT_TRUE(like({"7", "12"}, "2019"));
  EXPECT_TRUE(like({"7", "12"}, ""));
  EXPECT_FALSE(like({"7", "12"}, "id"));
  EXPECT_FALSE(like({"7", "12"}, "e1"));
  EXPECT_FALSE(like({"7", "12"}, "2019-20"));
  EXPECT_FALSE(like({"7", "12"}, "2020-01-02"));
  EXPECT_TRUE(like({"2020-01-02"}, "2020-01-02 10:00"));
  EXPECT_TRUE(like({"2020-01-02"}, "31/12/2020"));
  EXPECT_FALSE(like({"2020-01-02"}, "1"));
  EXPECT_FALSE(like({"true"}, "1"));
  EXPECT_TRUE(like({"a"}, "name"));
  EXPECT_TRUE(like({}, "name"));
}

}  // namespace
}  // namespace nam::csv
