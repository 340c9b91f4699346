// `./run lint` must refuse this: a guarded member is read without its mutex.
#include "base/mutex.h"

namespace nam {

class Counter {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
  }
  int count() const { return count_; }

 private:
  mutable Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

int CountOfOne() {
  Counter counter;
  counter.Add();
  return counter.count();
}

}  // namespace nam
