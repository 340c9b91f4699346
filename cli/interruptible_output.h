#pragma once

#include <cstddef>
#include <ostream>
#include <streambuf>

#include "cli/interrupts.h"

namespace nam::cli {

/// During its lifetime, output to the stream goes to the descriptor, and an interrupt ends a write that the
/// reader does not take: the stream is bad then. stdio would write on after the interrupt.
class InterruptibleOutput final : public std::streambuf {
 public:
  InterruptibleOutput(std::ostream& stream, int fd, const Interrupts& interrupts);
  ~InterruptibleOutput() override;
  InterruptibleOutput(const InterruptibleOutput&) = delete;
  InterruptibleOutput& operator=(const InterruptibleOutput&) = delete;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize bytes) override;
  int overflow(int c) override;

 private:
  /// False: the descriptor takes no more, or there was an interrupt.
  bool AwaitRoom() const;

  std::ostream& stream_;
  const int fd_;
  const Interrupts& interrupts_;
  std::streambuf* const former_;
};

}  // namespace nam::cli
