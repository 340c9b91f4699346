#pragma once

#include <functional>
#include <map>
#include <memory>
#include <typeindex>

#include "base/mutex.h"

namespace nam {

/// Objects shared by the users of one owner: one per type. The first user creates the object, and the last
/// one to release it destroys it. Thread-safe.
class SharedObjects {
 public:
  template <typename T>
  std::shared_ptr<T> Get(const std::function<std::shared_ptr<T>()>& make) {
    const MutexLock lock(mutex_);
    std::weak_ptr<void>& known = objects_[typeid(T)];
    auto object = std::static_pointer_cast<T>(known.lock());
    if (object == nullptr) known = object = make();
    return object;
  }

 private:
  Mutex mutex_;
  std::map<std::type_index, std::weak_ptr<void>> objects_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam
