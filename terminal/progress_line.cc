#include "terminal/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "terminal/units.h"

namespace nam {

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::Show(const std::string& text) {
  if (!shown_) return;
  // Go to the start of the line, write the text, and erase the rest of the old one.
  std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  std::fflush(stderr);
  dirty_ = true;
}

void ProgressLine::Clear() {
  if (!dirty_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  dirty_ = false;
}

std::function<void(const dataset::Progress&)> ProgressLine::For(const std::string& doing) {
  if (!shown_) return {};
  return [this, doing](const dataset::Progress& progress) { Show(ProgressText(doing, progress)); };
}

std::string ProgressText(const std::string& doing, const dataset::Progress& progress) {
  const uint64_t expected = std::max(progress.rows_expected, progress.rows_done);
  const uint64_t percent = expected == 0 ? 100 : progress.rows_done * 100 / expected;
  return absl::StrCat(doing, " ", std::string(progress.table), ": ", FormatCount(progress.rows_done), " of ",
                      FormatCount(expected), " rows (", percent, " %), ",
                      FormatCount(static_cast<uint64_t>(std::max(progress.rows_per_second, 0.0))),
                      " rows/s, ", FormatDuration(std::lround(progress.seconds_left)), " left");
}

std::string ProgressText(const session::QueryProgress& progress) {
  if (progress.table.empty())
    return absl::StrCat("finishing: ", FormatCount(progress.rows_done), " rows so far, ",
                        FormatDuration(std::lround(progress.elapsed_ms / 1000)));
  const uint64_t rows = std::max(progress.rows, progress.rows_done);
  // While there is progress to report, work remains.
  const uint64_t percent = rows == 0 ? 0 : std::min<uint64_t>(99, progress.rows_done * 100 / rows);
  std::string text = absl::StrCat(progress.table, ": ", FormatCount(progress.rows_done), " of ",
                                  FormatCount(rows), " rows (", percent, " %)");
  if (progress.rows_done == 0) return text;
  const double left_ms = progress.elapsed_ms * static_cast<double>(rows - progress.rows_done) /
                         static_cast<double>(progress.rows_done);
  return absl::StrCat(text, ", ", FormatDuration(std::lround(left_ms / 1000)), " left");
}

}  // namespace nam
