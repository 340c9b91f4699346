#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

/// A table's blocks on a memory server.
struct LostBlocks {
  std::string table;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

/// `memory server 3 (10.0.0.2:4710, host a, pid 77)`; clients have no address.
std::string NameOf(const proto::Member& member);
/// Returns `lineorder (12 blocks, 3.4 MiB), date (1 block, 0.1 MiB)`. If there are many tables, names the
/// first ones and counts the others.
std::string TextOf(const std::vector<LostBlocks>& lost);

struct MemberEvent {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};

/// Events of members, for the catalog's log. Kept until the catalog's process takes them, because logging
/// must not run under a lock. Beyond the limit the oldest are dropped.
class MemberEvents {
 public:
  void Add(LogLevel level, std::string text) {
    if (events_.size() == kEventsMax) events_.pop_front();
    events_.push_back({level, std::move(text)});
  }
  std::vector<MemberEvent> Take() {
    const std::deque<MemberEvent> taken = std::exchange(events_, {});
    return {taken.begin(), taken.end()};
  }

 private:
  static constexpr size_t kEventsMax = 1'000;
  std::deque<MemberEvent> events_;
};

}  // namespace nam::catalog
