#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "session/session.h"
#include "terminal/table_printer.h"

namespace nam {

/// Prints a statement's rows in one of the formats. An aligned table is printed at the end, because its
/// columns are as wide as their widest values; other formats print rows as they come. One thread.
class RowPrinter : public session::RowReceiver {
 public:
  /// `out` must outlive the printer.
  static std::unique_ptr<RowPrinter> Make(const PrintOptions& options, std::ostream& out);

  /// Call after the last row.
  virtual absl::Status End() = 0;
  /// True if rows are printed as they come.
  virtual bool prints_at_once() const { return true; }
  /// True once `out` is closed by its reader. The last call has returned CANCELLED.
  bool closed() const { return closed_; }

 protected:
  explicit RowPrinter(std::ostream& out) : out_(out) {}
  /// Writes the text and clears it.
  absl::Status Write(std::string& text);

 private:
  std::ostream& out_;
  bool closed_ = false;
};

}  // namespace nam
