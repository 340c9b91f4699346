#pragma once

#include <memory>
#include <utility>

#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

namespace nam::fabric::shm {

inline Channel& ChannelIn(const Mapping& mapping) {
  return *reinterpret_cast<Channel*>(mapping.data());
}

/// This process's end of a channel. Its destruction tells the peer that this process executes nothing any
/// more.
class ChannelEnd {
 public:
  ChannelEnd() = default;
  ChannelEnd(std::shared_ptr<const Mapping> mapping, int side) : mapping_(std::move(mapping)), side_(side) {}
  ChannelEnd(ChannelEnd&& other) noexcept = default;
  ChannelEnd& operator=(ChannelEnd&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(side_, other.side_);
    return *this;
  }
  ~ChannelEnd() {
    if (mapping_ != nullptr) own().executing.store(kNoInitiator, std::memory_order_release);
  }

  ChannelSide& own() const { return ChannelIn(*mapping_).sides[static_cast<size_t>(side_)]; }
  ChannelSide& peer() const { return ChannelIn(*mapping_).sides[static_cast<size_t>(1 - side_)]; }

 private:
  std::shared_ptr<const Mapping> mapping_;
  int side_ = 0;
};

}  // namespace nam::fabric::shm
