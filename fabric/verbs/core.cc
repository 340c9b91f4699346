#include "fabric/verbs/core.h"

#include <errno.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/net/authentication.h"

namespace nam::fabric::verbs {
namespace {

/// With the highest bit set, a send would use the sender's own Q_Key instead of the given one.
constexpr uint32_t kControlledQueueKey = 0x8000'0000;

uint32_t DeriveQueueKey(const std::string& secret) {
  const net::Mac mac = net::Sign(secret, "nam verbs datagrams");
  uint32_t key = 0;
  std::memcpy(&key, mac.data(), sizeof(key));
  return key & ~kControlledQueueKey;
}

}  // namespace

uint32_t Core::NextId() {
  static std::atomic<uint32_t> next{1};
  return next.fetch_add(1);
}

absl::StatusOr<std::shared_ptr<Core>> Core::Open(const FabricOptions& options) {
  NAM_ASSIGN_OR_RETURN(Device device, Device::Open(options));
  const std::shared_ptr<Core> core(new Core(options, std::move(device)));
  core->idle_completions_.reset(ibv_create_cq(core->device_.context(), 1, nullptr, nullptr, 0));
  if (core->idle_completions_ == nullptr) {
    return VerbsError(core->device_, "cannot make a completion queue", errno,
                      "other processes may have used up the device's");
  }
  return core;
}

Core::Core(const FabricOptions& options, Device device)
    : options_(options), device_(std::move(device)), queue_key_(DeriveQueueKey(options.secret)) {}

}  // namespace nam::fabric::verbs
