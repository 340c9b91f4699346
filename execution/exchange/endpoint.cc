#include "execution/exchange/endpoint.h"

#include <numeric>

#include "absl/strings/str_format.h"
#include "fabric/fabric.h"

namespace nam::execution {
namespace {

absl::Status CheckGroups(const std::vector<TransmissionGroup>& groups, size_t members) {
  std::vector<bool> reached(members);
  size_t count = 0;
  for (const TransmissionGroup& group : groups) {
    if (group.empty()) return absl::InvalidArgumentError("a transmission group without members");
    for (const uint32_t member : group) {
      if (member >= members || reached[member])
        return absl::InvalidArgumentError("a member that does not exist, or is in two transmission groups");
      reached[member] = true;
      ++count;
    }
  }
  if (count < members) return absl::InvalidArgumentError("a member that is in no transmission group");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptions(const EndpointOptions& options) {
  const size_t members = options.members.size(), exchanges = options.exchanges.size();
  if (members < 1 || members > EndpointOptions::kMembersMax || options.self >= members || exchanges < 1 ||
      exchanges > EndpointOptions::kExchangesMax) {
    return absl::InvalidArgumentError(absl::StrFormat("%d exchanges (1 to %d) of member %d of %d (1 to %d)",
                                                      exchanges, EndpointOptions::kExchangesMax, options.self,
                                                      members, EndpointOptions::kMembersMax));
  }
  if (options.credits < 2 || options.credits % 2 != 0 || options.credits > EndpointOptions::kCreditsMax ||
      options.message_bytes < 1024 || options.message_bytes > fabric::kMaxSendBytes ||
      options.message_bytes % 64 != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "an exchange of messages of %d bytes (1024 to %d in steps of 64) with %d credits (2 to %d, even)",
        options.message_bytes, fabric::kMaxSendBytes, options.credits, EndpointOptions::kCreditsMax));
  }
  for (const std::vector<TransmissionGroup>& groups : options.exchanges) {
    if (absl::Status status = CheckGroups(groups, members); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<TransmissionGroup> RepartitionAmong(uint32_t members) {
  std::vector<TransmissionGroup> groups;
  for (uint32_t member = 0; member < members; ++member) groups.push_back({member});
  return groups;
}

std::vector<TransmissionGroup> BroadcastAmong(uint32_t members) {
  TransmissionGroup all(members);
  std::iota(all.begin(), all.end(), 0u);
  return {std::move(all)};
}

}  // namespace nam::execution
