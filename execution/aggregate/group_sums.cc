#include "execution/aggregate/group_sums.h"

#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::execution {

absl::Status GroupSums::Widen() {
  NAM_RETURN_IF_ERROR(wide_.Resize(narrow_.capacity()));
  std::copy_n(narrow_.data(), narrow_.capacity(), wide_.data());
  narrow_.Clear();
  is_wide_ = true;
  return absl::OkStatus();
}

absl::Status GroupSums::MakeRoom(unsigned __int128 more) {
  if (is_wide_) return absl::OkStatus();
  if (more > room_) return Widen();
  room_ -= static_cast<uint64_t>(more);
  return absl::OkStatus();
}

absl::Status GroupSums::AddOne(uint32_t group, __int128 number) {
  const auto distance = static_cast<unsigned __int128>(number);
  NAM_RETURN_IF_ERROR(MakeRoom(number < 0 ? -distance : distance));
  if (!is_wide_) {
    narrow_[group] += static_cast<int64_t>(number);
    return absl::OkStatus();
  }
  return __builtin_add_overflow(wide_[group], number, &wide_[group]) ? SumOutOfRange() : absl::OkStatus();
}

void GroupSums::Reset(uint32_t groups) {
  room_ = INT64_MAX;
  const auto zero = [groups]<typename T>(BudgetArray<T>& sums) {
    const uint64_t count = std::min<uint64_t>(groups, sums.capacity());
    if (count > 0) std::memset(static_cast<void*>(sums.data()), 0, count * sizeof(T));
  };
  zero(narrow_);
  zero(wide_);
}

}  // namespace nam::execution
