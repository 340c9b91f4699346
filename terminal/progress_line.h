#pragma once

#include <functional>
#include <string>

#include "dataset/chunk_run.h"
#include "session/session.h"

namespace nam {

/// One line on standard error that is rewritten in place; nothing unless that is a terminal. Used by one
/// thread at a time.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return shown_; }
  void Show(const std::string& text);
  void Clear();
  /// For dataset::WorkOptions: `loading lineorder: 1,200,000 of 6,001,215 rows (20 %), 812,000 rows/s, 0:06
  /// left`.
  std::function<void(const dataset::Progress&)> For(const std::string& doing);

 private:
  const bool shown_;
  bool dirty_ = false;
};

std::string ProgressText(const std::string& doing, const dataset::Progress& progress);
/// `lineorder: 1,200,000 of 6,001,215 rows (20 %), 0:06 left`.
std::string ProgressText(const session::QueryProgress& progress);

}  // namespace nam
