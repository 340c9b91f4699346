#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nam::dataset {

/// Texts that are composed once, by the first caller, and live forever.
class ComposedWords {
 public:
  /// `fill` Adds them all. The object is never destroyed.
  template <typename Fill>
  static const ComposedWords& Make(Fill fill) {
    auto* composed = new ComposedWords;
    fill(*composed);
    return *composed;
  }

  void Add(std::string text) {
    text_.push_back(std::move(text));
    views_.push_back(text_.back());
  }
  std::span<const std::string_view> words() const { return views_; }

 private:
  std::deque<std::string> text_;
  std::vector<std::string_view> views_;
};

}  // namespace nam::dataset
