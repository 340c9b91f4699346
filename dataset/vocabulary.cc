#include "dataset/vocabulary.h"

#include <array>

#include "absl/strings/str_format.h"
#include "dataset/composed_words.h"

namespace nam::dataset {
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

Words PartTypes() {
  static const ComposedWords& types = ComposedWords::Make([](ComposedWords& out) {
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
  static const ComposedWords& containers = ComposedWords::Make([](ComposedWords& out) {
    for (const char* size : {"SM", "LG", "MED", "JUMBO", "WRAP"}) {
      for (const char* kind : {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"}) {
        out.Add(absl::StrFormat("%s %s", size, kind));
      }
    }
  });
  return containers.words();
}

}  // namespace nam::dataset
