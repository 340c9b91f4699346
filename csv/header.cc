#include "csv/header.h"

#include <map>
#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "types/characters.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

std::string_view TextOfName(const std::optional<std::string>& field) {
  return field.has_value() ? TrimBlanks(*field) : std::string_view();
}

/// `column07` of twelve.
std::string PlaceName(size_t column, size_t width) {
  const std::string number = absl::StrCat(column);
  const size_t digits = absl::StrCat(width - 1).size();
  return absl::StrCat("column", std::string(digits - number.size(), '0'), number);
}

}  // namespace

bool HasHeader(const Sample& sample) {
  bool typed = false, alike = true, empty = true;
  for (size_t c = 0; c < sample.width(); ++c) {
    const std::string_view name = TextOfName(sample.first[c]);
    FieldForms others = sample.below[c];
    if (sample.rows == 1 && !name.empty()) others.Add(name);
    const FieldForm form = others.First();
    empty = empty && name.empty();
    typed = typed || (form != FieldForm::kText && form != FieldForm::kNone);
    alike = alike && others.IsAlike(name);
  }
  if (empty) return sample.rows > 1;
  return !typed || !alike;
}

std::vector<std::string> WrittenNamesOf(const Sample& sample, bool header) {
  std::vector<std::string> names(sample.width());
  for (size_t c = 0; header && c < names.size(); ++c) names[c] = TextOfName(sample.first[c]);
  return names;
}

absl::StatusOr<std::vector<std::string>> NamesOf(const Sample& sample, bool header) {
  std::vector<std::string> names = WrittenNamesOf(sample, header);
  std::map<std::string, int> taken;  // with how often each was wanted again
  for (size_t c = 0; c < names.size(); ++c) {
    std::string& name = names[c];
    if (int bad = 0; !IsCleanUtf8(name, &bad)) {
      return UserError(sqlstate::kBadEncoding,
                       absl::StrCat(sample.name, ":1: the name of column ", c + 1,
                                    " is not UTF-8, from its byte ", bad + 1, " on"),
                       -1, "convert the file to UTF-8, or say header => false");
    }
    name = name.empty() ? PlaceName(c, sample.width()) : absl::AsciiStrToLower(name);
    for (auto same = taken.find(name); same != taken.end(); same = taken.find(name))
      name = absl::StrCat(name, "_", ++same->second);
    taken.emplace(name, 0);
  }
  return names;
}

}  // namespace nam::csv
