#include "execution/join/text_keys.h"

#include <algorithm>

#include "base/check.h"
#include "plan/expression.h"

namespace nam::execution {

TextKeys::TextKeys(const CodeMeaning& build, bool ignores_blanks)
    : build_(build.dictionary), build_id_(build.dictionary_id), ignores_blanks_(ignores_blanks) {
  NAM_CHECK(build_ != nullptr && build_id_ != 0);
  if (!ignores_blanks) return;
  canonical_.reserve(build_->size());
  for (size_t b = 0; b < build_->size(); ++b) {
    const auto entry = static_cast<uint32_t>(b);
    canonical_.push_back(first_.try_emplace(plan::WithoutBlanks((*build_)[b]), entry).first->second);
  }
}

const std::vector<uint32_t>& TextKeys::Of(const CodeMeaning& meaning) const {
  NAM_CHECK(meaning.dictionary != nullptr && meaning.dictionary_id != 0);
  if (meaning.dictionary_id == build_id_) return canonical_;
  const MutexLock lock(mutex_);
  std::unique_ptr<const std::vector<uint32_t>>& translation = translations_[meaning.dictionary_id];
  if (translation == nullptr) {
    translation = std::make_unique<const std::vector<uint32_t>>(Translate(*meaning.dictionary));
  }
  return *translation;
}

std::vector<uint32_t> TextKeys::Translate(const storage::Dictionary& from) const {
  // Without entries: one that no code reads, since an empty map means that entries are the same.
  std::vector<uint32_t> to(std::max<size_t>(from.size(), 1), kNoEntry);
  if (ignores_blanks_) {
    for (size_t i = 0; i < from.size(); ++i) to[i] = EntryOf(from[i]);
    return to;
  }
  const storage::Dictionary& build = *build_;
  for (size_t i = 0, b = 0; i < from.size(); ++i) {  // both are in order
    while (b < build.size() && build[b] < from[i]) ++b;
    if (b < build.size() && build[b] == from[i]) to[i] = static_cast<uint32_t>(b);
  }
  return to;
}

uint32_t TextKeys::EntryOf(std::string_view text) const {
  if (ignores_blanks_) {
    const auto found = first_.find(plan::WithoutBlanks(text));
    return found == first_.end() ? kNoEntry : found->second;
  }
  const auto found = build_->Find(text);
  return found.has_value() ? static_cast<uint32_t>(*found) : kNoEntry;
}

}  // namespace nam::execution
