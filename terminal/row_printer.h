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

/// Prints the rows of a statement in one of the formats: those of an aligned table at the end, since its
/// columns are as wide as their widest value, all others as they come. One thread.
class RowPrinter : public session::RowReceiver {
 public:
  /// `out` outlives the printer.
  static std::unique_ptr<RowPrinter> Make(const PrintOptions& options, std::ostream& out);

  /// After the last row.
  virtual absl::Status End() = 0;
  /// Whether rows are printed as they come.
  virtual bool prints_at_once() const { return true; }
  /// `out` took no more: nobody reads it any longer. What was called last has said CANCELLED.
  bool closed() const { return closed_; }

 protected:
  explicit RowPrinter(std::ostream& out) : out_(out) {}
  /// Writes the text, and empties it.
  absl::Status Write(std::string& text);

 private:
  std::ostream& out_;
  bool closed_ = false;
};

}  // namespace nam
