#include "tpch/query_parameters.h"

#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "dataset/vocabulary.h"

namespace nam::tpch {
namespace {

ParameterTexts ValidationValues() {
  return {{"Q1.DELTA", "90"},
          {"Q2.SIZE", "15"},
          {"Q2.TYPE", "BRASS"},
          {"Q2.REGION", "EUROPE"},
          {"Q3.SEGMENT", "BUILDING"},
          {"Q3.DATE", "1995-03-15"},
          {"Q4.DATE", "1993-07-01"},
          {"Q5.REGION", "ASIA"},
          {"Q5.DATE", "1994-01-01"},
          {"Q6.DATE", "1994-01-01"},
          {"Q6.DISCOUNT", "0.06"},
          {"Q6.QUANTITY", "24"},
          {"Q7.NATION1", "FRANCE"},
          {"Q7.NATION2", "GERMANY"},
          {"Q8.NATION", "BRAZIL"},
          {"Q8.REGION", "AMERICA"},
          {"Q8.TYPE", "ECONOMY ANODIZED STEEL"},
          {"Q9.COLOR", "green"},
          {"Q10.DATE", "1993-10-01"},
          {"Q11.NATION", "GERMANY"},
          {"Q12.SHIPMODE1", "MAIL"},
          {"Q12.SHIPMODE2", "SHIP"},
          {"Q12.DATE", "1994-01-01"},
          {"Q13.WORD1", "special"},
          {"Q13.WORD2", "requests"},
          {"Q14.DATE", "1995-09-01"},
          {"Q15.DATE", "1996-01-01"},
          {"Q16.BRAND", "Brand#45"},
          {"Q16.TYPE", "MEDIUM POLISHED"},
          {"Q16.SIZES", "49, 14, 23, 45, 19, 3, 36, 9"},
          {"Q17.BRAND", "Brand#23"},
          {"Q17.CONTAINER", "MED BOX"},
          {"Q18.QUANTITY", "300"},
          {"Q19.QUANTITY1", "1"},
          {"Q19.QUANTITY2", "10"},
          {"Q19.QUANTITY3", "20"},
          {"Q19.BRAND1", "Brand#12"},
          {"Q19.BRAND2", "Brand#23"},
          {"Q19.BRAND3", "Brand#34"},
          {"Q20.COLOR", "forest"},
          {"Q20.DATE", "1994-01-01"},
          {"Q20.NATION", "CANADA"},
          {"Q21.NATION", "SAUDI ARABIA"},
          {"Q22.CODES", "'13', '31', '23', '29', '30', '18', '17'"}};
}

/// Draws from the ranges of the specification's clauses 2.4.x.3.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  ParameterTexts Draw() {
    const std::vector<std::string> nations = Nations();
    const std::vector<std::string> pair = Distinct(nations, 2),
                                   modes = Distinct(Texts(dataset::ShipModes()), 2);
    const dataset::Nation& nation = dataset::Nations()[random_.Below(dataset::Nations().size())];
    const std::string type = One(Texts(dataset::PartTypes()));
    return {{"Q1.DELTA", Number(60, 120)},
            {"Q2.SIZE", Number(1, 50)},
            {"Q2.TYPE", type.substr(type.rfind(' ') + 1)},
            {"Q2.REGION", One(Texts(dataset::Regions()))},
            {"Q3.SEGMENT", One(Texts(dataset::MarketSegments()))},
            {"Q3.DATE", absl::StrFormat("1995-03-%02d", random_.Between(1, 31))},
            {"Q4.DATE", Month(1993, 1, 1997, 10)},
            {"Q5.REGION", One(Texts(dataset::Regions()))},
            {"Q5.DATE", Year()},
            {"Q6.DATE", Year()},
            {"Q6.DISCOUNT", absl::StrFormat("0.%02d", random_.Between(2, 9))},
            {"Q6.QUANTITY", Number(24, 25)},
            {"Q7.NATION1", pair[0]},
            {"Q7.NATION2", pair[1]},
            {"Q8.NATION", std::string(nation.name)},
            {"Q8.REGION", std::string(nation.region)},
            {"Q8.TYPE", One(Texts(dataset::PartTypes()))},
            {"Q9.COLOR", One(Texts(dataset::Colors()))},
            {"Q10.DATE", Month(1993, 2, 1995, 1)},
            {"Q11.NATION", One(nations)},
            {"Q12.SHIPMODE1", modes[0]},
            {"Q12.SHIPMODE2", modes[1]},
            {"Q12.DATE", Year()},
            {"Q13.WORD1", One({"special", "pending", "unusual", "express"})},
            {"Q13.WORD2", One({"packages", "requests", "accounts", "deposits"})},
            {"Q14.DATE", Month(1993, 1, 1997, 12)},
            {"Q15.DATE", Month(1993, 1, 1997, 10)},
            {"Q16.BRAND", Brand()},
            {"Q16.TYPE", type.substr(0, type.rfind(' '))},
            {"Q16.SIZES", Sizes()},
            {"Q17.BRAND", Brand()},
            {"Q17.CONTAINER", One(Texts(dataset::Containers()))},
            {"Q18.QUANTITY", Number(312, 315)},
            {"Q19.QUANTITY1", Number(1, 10)},
            {"Q19.QUANTITY2", Number(10, 20)},
            {"Q19.QUANTITY3", Number(20, 30)},
            {"Q19.BRAND1", Brand()},
            {"Q19.BRAND2", Brand()},
            {"Q19.BRAND3", Brand()},
            {"Q20.COLOR", One(Texts(dataset::Colors()))},
            {"Q20.DATE", Year()},
            {"Q20.NATION", One(nations)},
            {"Q21.NATION", One(nations)},
            {"Q22.CODES", Codes()}};
  }

 private:
  static std::vector<std::string> Texts(std::span<const std::string_view> words) {
    return {words.begin(), words.end()};
  }
  static std::vector<std::string> Nations() {
    std::vector<std::string> names;
    for (const dataset::Nation& nation : dataset::Nations()) names.emplace_back(nation.name);
    return names;
  }

  std::string One(const std::vector<std::string>& of) { return of[random_.Below(of.size())]; }
  std::vector<std::string> Distinct(std::vector<std::string> of, size_t count) {
    for (size_t i = 0; i < count; ++i) std::swap(of[i], of[i + random_.Below(of.size() - i)]);
    of.resize(count);
    return of;
  }
  std::string Number(int64_t low, int64_t high) { return absl::StrCat(random_.Between(low, high)); }
  std::string Year() { return absl::StrCat(random_.Between(1993, 1997), "-01-01"); }
  std::string Month(int first_year, int first_month, int last_year, int last_month) {
    const int64_t month = random_.Between(first_year * 12 + first_month - 1, last_year * 12 + last_month - 1);
    return absl::StrFormat("%d-%02d-01", month / 12, month % 12 + 1);
  }
  std::string Brand() { return absl::StrCat("Brand#", random_.Between(1, 5), random_.Between(1, 5)); }
  std::string Listed(int64_t low, int64_t high, size_t count, const char* quote) {
    std::vector<std::string> numbers;
    for (int64_t i = low; i <= high; ++i) numbers.push_back(absl::StrCat(quote, i, quote));
    std::string text;
    for (const std::string& number : Distinct(numbers, count))
      absl::StrAppend(&text, text.empty() ? "" : ", ", number);
    return text;
  }
  std::string Sizes() { return Listed(1, 50, 8, ""); }
  std::string Codes() { return Listed(10, 34, 7, "'"); }

  RandomStream random_;
};

}  // namespace

ParameterTexts MakeParameters(double scale_factor, std::optional<uint64_t> seed) {
  ParameterTexts texts = seed.has_value() ? RandomValues(*seed).Draw() : ValidationValues();
  texts["Q11.FRACTION"] = absl::StrFormat("%.10f", 0.0001 / scale_factor);
  return texts;
}

}  // namespace nam::tpch
