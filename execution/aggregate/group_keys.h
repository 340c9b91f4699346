#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/rows/row_layout.h"
#include "plan/expression.h"
#include "plan/key_domain.h"
#include "plan/schema.h"

namespace nam::execution {

/// The form in which groups are identified and their keys kept.
enum class GroupForm : uint8_t {
  kDirect,  // all keys are one number, small or of a domain, which is an index
  kPacked,  // all keys are one number of 64 bits, which is hashed
  kRows,    // the keys are rows at rest, found by the hash of their values
};

/// The keys of a GROUP BY: the programs that compute them, and whether they make one number.
///
///     number = digit 0 + radix 0 · (digit 1 + radix 1 · (digit 2 + …))
///     digit  = value - low, plus 1 if the key may be NULL; NULL is 0
///
/// A text's value is its entry in the one dictionary that the key was prepared with; low, radix and bounds of
/// all other keys come from the plan. Prepared once for a stage, immutable, shared by its threads.
///
/// Where groups come by parts of a domain, number is the permuted key: the keys of a part are consecutive
/// (Groups::Range), however many numbers there are.
class GroupKeys {
 public:
  /// Up to so many numbers, every query and thread can afford to clear an array.
  static constexpr uint64_t kDirectNumbers = 1 << 17;

  struct Key {
    Type type;
    Physical physical = Physical::kInt64;
    std::optional<uint32_t> slot;  // of the input, if the key is a plain slot
    // Packed keys only:
    bool nullable = true;
    __int128 low = 0;
    uint64_t radix = 0;  // digits are below; 0: the key does not pack
    uint64_t weight = 1;
    const CodeMeaning* meaning = nullptr;  // text

    bool only = false;  // only key: its digit is the number
    uint64_t DigitOf(uint64_t number) const { return only ? number : number / weight % radix; }
  };

  /// `meanings[s]` is the meaning of the codes of slot s of the input, if all expected chunks share one; the
  /// span may be empty. A known domain belongs to the only key, which is never NULL. UNIMPLEMENTED for keys
  /// of types without a hash.
  static absl::StatusOr<std::unique_ptr<const GroupKeys>> Make(std::span<const plan::Expr> keys,
                                                               const plan::Schema& input,
                                                               std::span<const CodeMeaning* const> meanings,
                                                               uint32_t page_bytes,
                                                               MemoShare* memos = nullptr,
                                                               const plan::KeyDomain& domain = {});

  GroupForm form() const { return form_; }
  /// An upper bound of the numbers; kRows: 0.
  uint64_t numbers() const { return numbers_; }
  size_t size() const { return keys_.size(); }
  const Key& key(size_t i) const { return keys_[i]; }
  const plan::KeyDomain& domain() const { return domain_; }

  /// Computes the keys from the input.
  const Program& program() const { return *program_; }
  const plan::Schema& schema() const { return schema_; }
  /// The layout of keys at rest, and the programs that read them again.
  const RowLayout& layout() const { return layout_; }
  const Program& slots() const { return *slots_; }

 private:
  GroupKeys(RowLayout layout) : layout_(std::move(layout)) {}
  void Pack(const plan::Schema& input, std::span<const CodeMeaning* const> meanings);

  std::vector<Key> keys_;
  plan::KeyDomain domain_;
  GroupForm form_ = GroupForm::kRows;
  uint64_t numbers_ = 0;
  plan::Schema schema_;
  std::unique_ptr<const Program> program_;
  std::unique_ptr<const Program> slots_;
  RowLayout layout_;
};

/// A schema's slots as expressions.
std::vector<plan::Expr> SlotsOf(const plan::Schema& schema);

}  // namespace nam::execution
