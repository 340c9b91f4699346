#include "ssb/vocabulary.h"

#include "absl/strings/str_format.h"
#include "dataset/composed_words.h"
#include "dataset/vocabulary.h"

namespace nam::ssb {
namespace {

using dataset::ComposedWords;
using Words = std::span<const std::string_view>;

}  // namespace

Words Cities() {
  static const ComposedWords& cities = ComposedWords::Make([](ComposedWords& out) {
    for (const dataset::Nation& nation : dataset::Nations()) {
      for (int i = 0; i < kCitiesPerNation; ++i)
        out.Add(absl::StrFormat("%-9s%d", nation.name.substr(0, 9), i));
    }
  });
  return cities.words();
}

Words Manufacturers() {
  static const ComposedWords& manufacturers = ComposedWords::Make([](ComposedWords& out) {
    for (int m = 1; m <= 5; ++m) out.Add(absl::StrFormat("MFGR#%d", m));
  });
  return manufacturers.words();
}

Words Categories() {
  static const ComposedWords& categories = ComposedWords::Make([](ComposedWords& out) {
    for (std::string_view manufacturer : Manufacturers()) {
      for (int n = 1; n <= 5; ++n) out.Add(absl::StrFormat("%s%d", manufacturer, n));
    }
  });
  return categories.words();
}

Words Brands() {
  static const ComposedWords& brands = ComposedWords::Make([](ComposedWords& out) {
    for (std::string_view category : Categories()) {
      for (int b = 1; b <= 40; ++b) out.Add(absl::StrFormat("%s%d", category, b));
    }
  });
  return brands.words();
}

}  // namespace nam::ssb
