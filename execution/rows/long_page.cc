#include "execution/rows/long_page.h"

#include <cstring>

#include "base/status_macros.h"

namespace nam::execution {

absl::Status LongPage::Make(const RowLayout& layout, uint32_t bytes) {
  NAM_RETURN_IF_ERROR(Reserve(bytes));
  layout.Clear(data(), bytes);
  return absl::OkStatus();
}

void LongPage::Seal(const RowLayout& layout, uint64_t attempt) {
  const PageHeader written = PageHeaderOf(data());
  layout.Clear(data(), written.bytes);
  PageHeader header = PageHeaderOf(data());
  header.rows = written.rows;
  header.text_begin = written.text_begin;
  std::memcpy(data(), &header, sizeof(header));
  layout.Seal(data(), attempt);
}

}  // namespace nam::execution
