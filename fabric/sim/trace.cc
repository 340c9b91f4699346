#include "fabric/sim/trace.h"

#include <array>

#include "base/check.h"

namespace nam::fabric::sim {
namespace {

constexpr std::array kNames = {"run",     "start",   "end",  "post",     "execute", "complete",
                               "receive", "connect", "fail", "datagram", "fault",   "random"};

}  // namespace

Trace::Trace(const std::string& path) : state_(XXH3_createState()) {
  NAM_CHECK(state_ != nullptr && XXH3_64bits_reset(state_) == XXH_OK);
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "w");
  NAM_CHECK(file_ != nullptr, "the trace's file cannot be written");
}

Trace::~Trace() {
  if (file_ != nullptr) std::fclose(file_);
  XXH3_freeState(state_);
}

void Trace::Add(Kind kind, int64_t now_ns, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                uint64_t f) {
  const std::array<uint64_t, 8> record = {
      static_cast<uint64_t>(kind), static_cast<uint64_t>(now_ns), a, b, c, d, e, f};
  XXH3_64bits_update(state_, record.data(), sizeof(record));
  ++events_;
  if (file_ == nullptr) return;
  std::fprintf(file_, "%12lld %-8s", static_cast<long long>(now_ns), kNames[static_cast<size_t>(kind)]);
  for (size_t i = 2; i < record.size(); ++i) {
    std::fprintf(file_, " %llu", static_cast<unsigned long long>(record[i]));
  }
  std::fputc('\n', file_);
}

void Trace::Flush() {
  if (file_ != nullptr) std::fflush(file_);
}

uint64_t Trace::Hash() const {
  return XXH3_64bits_digest(state_);
}

}  // namespace nam::fabric::sim
