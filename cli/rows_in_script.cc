#include "cli/rows_in_script.h"

#include <algorithm>
#include <cstdint>
#include <istream>

#include "absl/status/status.h"

namespace nam::cli {

class RowsInScript::Source final : public csv::ByteSource {
 public:
  explicit Source(RowsInScript& rows) : rows_(rows) {}

  absl::StatusOr<size_t> Read(char* into, size_t bytes) override {
    if (at_ == lines_.size()) {
      lines_.clear();
      at_ = 0;
      for (std::string line; lines_.size() < bytes && rows_.Next(line);) lines_ += line;
    }
    // The rows may have ended too early.
    if (rows_.interrupts_.Seen()) return absl::CancelledError("canceling statement due to user request");
    const size_t n = lines_.copy(into, bytes, at_);
    at_ += n;
    return n;
  }
  const std::string& name() const override { return name_; }
  uint64_t bytes() const override { return 0; }

 private:
  RowsInScript& rows_;
  const std::string name_ = "STDIN";
  std::string lines_;
  size_t at_ = 0;  // in lines_
};

std::unique_ptr<csv::ByteSource> RowsInScript::Open() {
  return std::make_unique<Source>(*this);
}

void RowsInScript::SkipRest() {
  for (std::string line; Next(line);) {
  }
}

bool RowsInScript::Next(std::string& line) {
  if (ended_ || interrupts_.Seen() || !std::getline(script_, line)) return false;
  ++lines_;
  ended_ = line == "\\." || line == "\\.\r";
  if (!script_.eof()) line.push_back('\n');
  return !ended_;
}

}  // namespace nam::cli
