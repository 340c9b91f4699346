#include "ssb/vocabulary.h"

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"

namespace nam::ssb {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 5> kRegions = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};
constexpr std::array<Nation, 25> kNations = {
    {{"ALGERIA", "AFRICA"},       {"ARGENTINA", "AMERICA"},  {"BRAZIL", "AMERICA"},
     {"CANADA", "AMERICA"},       {"EGYPT", "MIDDLE EAST"},  {"ETHIOPIA", "AFRICA"},
     {"FRANCE", "EUROPE"},        {"GERMANY", "EUROPE"},     {"INDIA", "ASIA"},
     {"INDONESIA", "ASIA"},       {"IRAN", "MIDDLE EAST"},   {"IRAQ", "MIDDLE EAST"},
     {"JAPAN", "ASIA"},           {"JORDAN", "MIDDLE EAST"}, {"KENYA", "AFRICA"},
     {"MOROCCO", "AFRICA"},       {"MOZAMBIQUE", "AFRICA"},  {"PERU", "AMERICA"},
     {"CHINA", "ASIA"},           {"ROMANIA", "EUROPE"},     {"SAUDI ARABIA", "MIDDLE EAST"},
     {"VIETNAM", "ASIA"},         {"RUSSIA", "EUROPE"},      {"UNITED KINGDOM", "EUROPE"},
     {"UNITED STATES", "AMERICA"}}};
constexpr std::array<std::string_view, 5> kSegments = {"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD",
                                                       "MACHINERY"};
constexpr std::array<std::string_view, 5> kPriorities = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
                                                         "5-LOW"};
constexpr std::array<std::string_view, 7> kShipModes = {"REG AIR", "AIR",  "RAIL", "SHIP",
                                                        "TRUCK",   "MAIL", "FOB"};
constexpr auto kColors = std::to_array<std::string_view>(
    {"almond",   "antique",   "aquamarine", "azure",      "beige",     "bisque",    "black",
     "blanched", "blue",      "blush",      "brown",      "burlywood", "burnished", "chartreuse",
     "chiffon",  "chocolate", "coral",      "cornflower", "cornsilk",  "cream",     "cyan",
     "dark",     "deep",      "dim",        "dodger",     "drab",      "firebrick", "floral",
     "forest",   "frosted",   "gainsboro",  "ghost",      "goldenrod", "green",     "grey",
     "honeydew", "hot",       "indian",     "ivory",      "khaki",     "lace",      "lavender",
     "lawn",     "lemon",     "light",      "lime",       "linen",     "magenta",   "maroon",
     "medium",   "metallic",  "midnight",   "mint",       "misty",     "moccasin",  "navajo",
     "navy",     "olive",     "orange",     "orchid",     "pale",      "papaya",    "peach",
     "peru",     "pink",      "plum",       "powder",     "puff",      "purple",    "red",
     "rose",     "rosy",      "royal",      "saddle",     "salmon",    "sandy",     "seashell",
     "sienna",   "sky",       "slate",      "smoke",      "snow",      "spring",    "steel",
     "tan",      "thistle",   "tomato",     "turquoise",  "violet",    "wheat",     "white",
     "yellow"});
static_assert(kColors.size() == 92);

/// Text that is put together once, by the first caller, and lives forever.
class Composed {
 public:
  void Add(std::string text) {
    text_.push_back(std::move(text));
    views_.push_back(text_.back());
  }
  Words words() const { return views_; }

 private:
  std::deque<std::string> text_;
  std::vector<std::string_view> views_;
};

template <typename Fill>
const Composed& Compose(Fill fill) {
  auto* composed = new Composed;
  fill(*composed);
  return *composed;
}

}  // namespace

Words Regions() {
  return kRegions;
}
std::span<const Nation> Nations() {
  return kNations;
}
Words MarketSegments() {
  return kSegments;
}
Words OrderPriorities() {
  return kPriorities;
}
Words ShipModes() {
  return kShipModes;
}
Words Colors() {
  return kColors;
}

Words Cities() {
  static const Composed& cities = Compose([](Composed& out) {
    for (const Nation& nation : kNations) {
      for (int i = 0; i < kCitiesPerNation; ++i)
        out.Add(absl::StrFormat("%-9s%d", nation.name.substr(0, 9), i));
    }
  });
  return cities.words();
}

Words Manufacturers() {
  static const Composed& manufacturers = Compose([](Composed& out) {
    for (int m = 1; m <= 5; ++m) out.Add(absl::StrFormat("MFGR#%d", m));
  });
  return manufacturers.words();
}

Words Categories() {
  static const Composed& categories = Compose([](Composed& out) {
    for (std::string_view manufacturer : Manufacturers()) {
      for (int n = 1; n <= 5; ++n) out.Add(absl::StrFormat("%s%d", manufacturer, n));
    }
  });
  return categories.words();
}

Words Brands() {
  static const Composed& brands = Compose([](Composed& out) {
    for (std::string_view category : Categories()) {
      for (int b = 1; b <= 40; ++b) out.Add(absl::StrFormat("%s%d", category, b));
    }
  });
  return brands.words();
}

Words PartTypes() {
  static const Composed& types = Compose([](Composed& out) {
    for (const char* size : {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"}) {
      for (const char* finish : {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"}) {
        for (const char* metal : {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"}) {
          out.Add(absl::StrFormat("%s %s %s", size, finish, metal));
        }
      }
    }
  });
  return types.words();
}

Words Containers() {
  static const Composed& containers = Compose([](Composed& out) {
    for (const char* size : {"SM", "LG", "MED", "JUMBO", "WRAP"}) {
      for (const char* kind : {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"}) {
        out.Add(absl::StrFormat("%s %s", size, kind));
      }
    }
  });
  return containers.words();
}

}  // namespace nam::ssb
