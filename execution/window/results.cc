#include "execution/window/results.h"

#include <cstring>

#include "base/status_macros.h"

namespace nam::execution {

WindowResults::WindowResults(Form form, const RowTable& table, uint32_t slot, MemoryBudget& budget)
    : form_(form),
      table_(table),
      slot_(slot),
      rows_(budget),
      narrow_(budget),
      wide_(budget),
      truths_(budget),
      texts_(budget),
      views_(budget),
      nulls_(budget),
      bytes_(budget) {}

absl::Status WindowResults::Begin(uint64_t rows) {
  text_bytes_ = 0;
  if (form_ != Form::kRow && form_ != Form::kTruth) NAM_RETURN_IF_ERROR(nulls_.Grow(rows));
  switch (form_) {
    case Form::kRow:
      return rows_.Grow(rows);
    case Form::kNarrow:
      return narrow_.Grow(rows);
    case Form::kWide:
      return wide_.Grow(rows);
    case Form::kTruth:
      return truths_.Grow(rows);
    case Form::kText:
      if (read_ == nullptr) read_ = std::make_unique<std::string_view[]>(kChunkRows);
      return texts_.Grow(rows);
    case Form::kViews:
      return views_.Grow(rows);
  }
  return absl::OkStatus();
}

absl::Status WindowResults::AddText(std::string_view text) {
  if (text.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(bytes_.Grow(text_bytes_ + text.size()));
  std::memcpy(bytes_.data() + text_bytes_, text.data(), text.size());
  text_bytes_ += text.size();
  return absl::OkStatus();
}

absl::Status WindowResults::RepeatText(uint64_t begin, uint64_t end) {
  if (begin == end) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(bytes_.Grow(text_bytes_ + (end - begin)));
  std::memcpy(bytes_.data() + text_bytes_, bytes_.data() + begin, end - begin);
  text_bytes_ += end - begin;
  return absl::OkStatus();
}

Column WindowResults::Read(uint64_t first, uint32_t count) {
  const auto column = [&](const void* values, Physical physical) {
    return Column{.kind = Column::Kind::kValues,
                  .width = WidthOf(physical),
                  .physical = physical,
                  .base = static_cast<const std::byte*>(values),
                  .nulls = physical == Physical::kTruth ? nullptr : nulls_.data() + first};
  };
  switch (form_) {
    case Form::kRow:
      return table_.ColumnOf(slot_, rows_.data() + first);
    case Form::kNarrow:
      return column(narrow_.data() + first, Physical::kInt64);
    case Form::kWide:
      return column(wide_.data() + first, Physical::kInt128);
    case Form::kTruth:
      return column(truths_.data() + first, Physical::kTruth);
    case Form::kViews:
      return column(views_.data() + first, Physical::kText);
    case Form::kText:
      break;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Run& run = texts_[first + i];
    read_[i] =
        nulls_[first + i] != 0 ? std::string_view() : std::string_view(bytes_.data() + run.begin, run.bytes);
  }
  return column(read_.get(), Physical::kText);
}

}  // namespace nam::execution
