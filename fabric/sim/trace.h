#pragma once

#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace nam::fabric::sim {

/// A world's history: a running XXH3 hash of fixed-size records, and their text on request. Records hold
/// nothing that differs between two runs of one seed: no addresses, no real time, no thread ids of the
/// operating system, no work-request ids (which may be addresses).
class Trace {
 public:
  enum class Kind : uint32_t {
    kRun,       // thread
    kStart,     // thread, process
    kEnd,       // thread
    kPost,      // queue pair, operation, opcode, rkey, offset, bytes
    kExecute,   // queue pair, operation, status
    kComplete,  // queue pair, operation, status
    kReceive,   // queue pair, bytes, status
    kConnect,   // queue pair, peer's queue pair
    kFail,      // queue pair, status
    kDatagram,  // queue pair, bytes, receiver's queue pair, outcome
    kFault,     // kind, subject
    kRandom,    // value
  };

  /// An empty path means no text. Stops the process if the file cannot be written.
  explicit Trace(const std::string& path);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void Add(Kind kind, int64_t now_ns, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
           uint64_t e = 0, uint64_t f = 0);
  uint64_t Hash() const;
  /// Writes the text so far to the file.
  void Flush();
  uint64_t events() const { return events_; }

 private:
  XXH3_state_t* const state_;
  std::FILE* file_ = nullptr;
  uint64_t events_ = 0;
};

}  // namespace nam::fabric::sim
