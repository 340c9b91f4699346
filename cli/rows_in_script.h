#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/interrupts.h"
#include "csv/byte_source.h"

namespace nam::cli {

/// The rows behind a COPY … FROM STDIN in a script, up to a line `\.` or the script's end:
///
///     copy t from stdin;
///     1,one
///     \.
///     select …
///
/// One thread at a time, the shell's or one of those that copy.
class RowsInScript {
 public:
  /// Counts the lines that it takes from the script. Borrows all.
  RowsInScript(std::istream& script, size_t& lines, Interrupts& interrupts)
      : script_(script), lines_(lines), interrupts_(interrupts) {}

  /// What COPY reads. Lives no longer than this.
  std::unique_ptr<csv::ByteSource> Open();
  /// Leaves the script behind the last row: those that COPY did not take are no statements.
  void SkipRest();

 private:
  class Source;

  /// False behind the last row, and after an interrupt.
  bool Next(std::string& line);

  std::istream& script_;
  size_t& lines_;
  Interrupts& interrupts_;
  bool ended_ = false;
};

}  // namespace nam::cli
