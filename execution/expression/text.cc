#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "execution/expression/operands.h"
#include "plan/text_functions.h"

namespace nam::execution {
namespace {

constexpr plan::Bounds kTextLengths{0, INT32_MAX, true};

/// A pattern of LIKE. Simple forms need only a comparison or a search.
class Pattern {
 public:
  explicit Pattern(std::string pattern) : text_(std::move(pattern)) {
    if (text_.find_first_of("_\\") != std::string::npos) return;
    const bool open_begin = text_.starts_with('%'), open_end = text_.ends_with('%') && text_.size() > 1;
    const std::string inner = text_.substr(open_begin, text_.size() - open_begin - open_end);
    if (inner.find('%') != std::string::npos) return;
    kind_ = open_begin && open_end ? Kind::kInside
            : open_begin           ? Kind::kEnd
            : open_end             ? Kind::kBegin
                                   : Kind::kWhole;
    text_ = inner;
  }

  template <typename Body>
  void With(Body&& body) const {
    const std::string_view part = text_;
    switch (kind_) {
      case Kind::kWhole:
        return body([part](std::string_view text) { return text == part; });
      case Kind::kBegin:
        return body([part](std::string_view text) { return text.starts_with(part); });
      case Kind::kEnd:
        return body([part](std::string_view text) { return text.ends_with(part); });
      case Kind::kInside:
        return body([part](std::string_view text) { return text.find(part) != std::string_view::npos; });
      case Kind::kAny:
        return body([part](std::string_view text) { return plan::MatchesLike(text, part); });
    }
  }

 private:
  enum class Kind : uint8_t { kWhole, kBegin, kEnd, kInside, kAny };
  Kind kind_ = Kind::kAny;
  std::string text_;
};

class Like final : public UnaryNode {
 public:
  /// `characters`: the length to which texts are padded with blanks.
  Like(uint32_t characters, std::string pattern, NodePtr a)
      : UnaryNode(Physical::kTruth, {}, std::move(a)),
        characters_(characters),
        pattern_(std::move(pattern)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    uint8_t* const truth = out.truth;
    std::string padded;
    pattern_.With([&](auto matches) {
      ForEach(rows, [&](uint32_t p) {
        if (a.null(p)) {
          truth[p] = kUnknown;
          return;
        }
        const std::string_view text = a.text[p];
        const size_t characters = characters_ == 0 ? 0 : CountCharacters(text);
        if (characters >= characters_) {
          truth[p] = matches(text);
          return;
        }
        padded.assign(text).append(characters_ - characters, ' ');
        truth[p] = matches(padded);
      });
    });
    return absl::OkStatus();
  }

  const uint32_t characters_;
  const Pattern pattern_;
};

/// Texts that are parts of others: views into these.
class Substring final : public UnaryNode {
 public:
  Substring(__int128 from, __int128 characters, NodePtr a)
      : UnaryNode(Physical::kText, {}, std::move(a)), from_(from), characters_(characters) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    ForEach(rows, [&](uint32_t p) {
      out.text[p] = a.null(p) ? std::string_view() : plan::Substring(a.text[p], from_, characters_);
    });
    return absl::OkStatus();
  }

  const __int128 from_, characters_;
};

class CharacterCount final : public UnaryNode {
 public:
  explicit CharacterCount(NodePtr a) : UnaryNode(Physical::kInt64, kTextLengths, std::move(a)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    ForEach(rows, [&](uint32_t p) {
      out.narrow[p] = a.null(p) ? 0 : static_cast<int64_t>(CountCharacters(a.text[p]));
    });
    return absl::OkStatus();
  }
};

}  // namespace

NodePtr MakeSubstring(__int128 from, __int128 characters, NodePtr a) {
  return std::make_unique<Substring>(from, characters, std::move(a));
}

NodePtr MakeCharacterCount(NodePtr a) {
  return std::make_unique<CharacterCount>(std::move(a));
}

NodePtr MakeLike(NodePtr a, const Type& type, std::string pattern) {
  return std::make_unique<Like>(plan::IsChar(type) ? type.length : 0, std::move(pattern), std::move(a));
}

}  // namespace nam::execution
