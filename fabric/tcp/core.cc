#include "fabric/tcp/core.h"

namespace nam::fabric::tcp {

std::atomic<uint64_t> Core::next_id_{1};

Core::Core(const FabricOptions& options) : options_(options) {
  for (int i = 0; i < options.nic_threads; ++i) {
    nics_.push_back(std::make_unique<NicThread>(regions_, options.peer_timeout_us, i));
  }
}

NicThread& Core::AssignNic() {
  return *nics_[next_nic_.fetch_add(1) % nics_.size()];
}

void Core::ReleaseRegion(uint32_t key) {
  regions_.Retire(key);
  for (const auto& nic : nics_) nic->ReleaseRegion(key);
  regions_.Recycle(key);
}

void Core::StopNics() {
  for (const auto& nic : nics_) nic->Stop();
}

}  // namespace nam::fabric::tcp
