#include "base/interruption.h"

namespace nam {
namespace {

thread_local const std::atomic<bool>* current = nullptr;

}  // namespace

Interruption::Interruption(const std::atomic<bool>* flag) : outer_(current) {
  current = flag;
}

Interruption::~Interruption() {
  current = outer_;
}

const std::atomic<bool>* Interruption::flag() {
  return current;
}

}  // namespace nam
