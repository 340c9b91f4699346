#include "execution/sort/page_window.h"

#include <algorithm>

namespace nam::execution {

void PageWindow::Add(std::span<const uint32_t> pages, RowAppender& appender) {
  if (pages.empty()) return;
  bool filled = false;
  {
    const MutexLock lock(mutex_);
    pages_.insert(pages_.end(), pages.begin(), pages.end());
    bytes_ += appender.BytesOf(pages);
    const size_t reused = std::min(pages.size(), free_.size());
    appender.Reuse(std::span(free_).last(reused));
    free_.resize(free_.size() - reused);
    filled = gate_ == nullptr && bytes_ >= bytes_max_;
    if (filled) {
      gate_ = std::make_shared<Gate>();
      full_now_.store(true, std::memory_order_release);
    }
  }
  if (filled && told_) told_();
}

std::vector<uint32_t> PageWindow::Store(uint64_t attempt, StoredPages& pages) {
  std::vector<uint32_t> taken = Take();
  for (const uint32_t page : taken) {
    table_.layout().Seal(table_.page(page), attempt);
    pages.emplace_back(table_.page(page), table_.page_bytes(page));
  }
  return taken;
}

std::vector<uint32_t> PageWindow::Take() {
  const MutexLock lock(mutex_);
  if (gate_ != nullptr) gate_->Open();
  gate_.reset();
  full_now_.store(false, std::memory_order_release);
  bytes_ = 0;
  return std::exchange(pages_, {});
}

void PageWindow::GiveBack(std::span<const uint32_t> pages) {
  const MutexLock lock(mutex_);
  free_.insert(free_.end(), pages.begin(), pages.end());
}

}  // namespace nam::execution
