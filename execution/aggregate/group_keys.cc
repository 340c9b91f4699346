#include "execution/aggregate/group_keys.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/slot_of.h"

namespace nam::execution {
namespace {

/// Bounds the digits of one key, so that sums of a digit and a low bound do not wrap.
constexpr uint64_t kRadixMax = uint64_t{1} << 62;

absl::Status CheckHashed(const plan::Schema& keys) {
  for (const plan::Slot& key : keys) {
    switch (PhysicalOf(key.type)) {
      case Physical::kTruth:
      case Physical::kInt64:
      case Physical::kInt128:
      case Physical::kText:
        break;
      default:
        return absl::UnimplementedError(absl::StrCat("groups by ", TypeName(key.type), " are not supported"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const GroupKeys>> GroupKeys::Make(std::span<const plan::Expr> keys,
                                                                 const plan::Schema& input,
                                                                 std::span<const CodeMeaning* const> meanings,
                                                                 uint32_t page_bytes, MemoShare* memos,
                                                                 const plan::KeyDomain& domain) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program, Program::Compile(keys, input, memos));
  plan::Schema schema;
  for (size_t i = 0; i < keys.size(); ++i) {
    // As the plan states it, so that states match.
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOf(keys[i], input));
    if (!slot.bounds.known) slot.bounds = program->bounds(i);
    schema.push_back(std::move(slot));
  }
  NAM_RETURN_IF_ERROR(CheckHashed(schema));
  // Without keys there is one group, and rows are never used.
  const plan::Schema rows = schema.empty() ? plan::Schema{{.type = Type::Bool(), .bounds = {}}} : schema;
  NAM_ASSIGN_OR_RETURN(RowLayout layout, RowLayout::Of(rows, page_bytes));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> slots, Program::Compile(SlotsOf(schema), schema));
  std::unique_ptr<GroupKeys> made(new GroupKeys(std::move(layout)));
  made->schema_ = std::move(schema);
  made->program_ = std::move(program);
  made->slots_ = std::move(slots);
  made->Pack(input, meanings);
  if (domain.known()) {
    NAM_CHECK(made->keys_.size() == 1 && !made->keys_[0].nullable && made->keys_[0].low == domain.low &&
                  made->keys_[0].radix <= domain.size(),
              "a domain of other keys");
    made->domain_ = domain;
    made->form_ = GroupForm::kDirect;
    made->numbers_ = domain.size();
  }
  return made;
}

void GroupKeys::Pack(const plan::Schema& input, std::span<const CodeMeaning* const> meanings) {
  unsigned __int128 numbers = 1;
  bool packs = true;
  for (size_t i = 0; i < schema_.size(); ++i) {
    Key& key = keys_.emplace_back();
    key.type = schema_[i].type;
    key.physical = program_->physical(i);
    key.slot = program_->slot_of(i);
    key.nullable = schema_[i].nullable;
    const CodeMeaning* meaning = key.slot && *key.slot < meanings.size() && input[*key.slot].type == key.type
                                     ? meanings[*key.slot]
                                     : nullptr;
    if (meaning != nullptr && meaning->null_code) key.nullable = true;
    const plan::Bounds& bounds = schema_[i].bounds;
    if (key.physical == Physical::kTruth) {
      key.nullable = true;
      key.radix = 3;
    } else if (key.physical == Physical::kText) {
      if (meaning != nullptr && meaning->dictionary != nullptr) {
        key.meaning = meaning;
        key.radix = meaning->dictionary->size() + key.nullable;
      }
    } else if (bounds.known && bounds.low <= bounds.high &&
               // The distance of decimals of 38 digits has more than 127 bits.
               static_cast<unsigned __int128>(bounds.high) - static_cast<unsigned __int128>(bounds.low) <
                   kRadixMax) {
      key.low = bounds.low;
      key.radix = static_cast<uint64_t>(bounds.high - bounds.low) + 1 + key.nullable;
    }
    key.weight = packs ? static_cast<uint64_t>(numbers) : 0;
    numbers *= key.radix;
    if (numbers == 0 || numbers > UINT64_MAX) packs = false;
    if (!packs) numbers = 1;
  }
  if (!packs) return;
  if (keys_.size() == 1) keys_[0].only = true;
  numbers_ = static_cast<uint64_t>(numbers);
  form_ = numbers_ <= kDirectNumbers ? GroupForm::kDirect : GroupForm::kPacked;
}

std::vector<plan::Expr> SlotsOf(const plan::Schema& schema) {
  std::vector<plan::Expr> slots;
  for (size_t i = 0; i < schema.size(); ++i) {
    plan::Expr& slot = slots.emplace_back();
    slot.op = plan::Op::kColumn;
    slot.type = schema[i].type;
    slot.column = {0, static_cast<int>(i)};
  }
  return slots;
}

}  // namespace nam::execution
