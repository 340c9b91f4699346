#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fabric/fabric.h"
#include "fabric/request_rules.h"

/// Checks that the datagram queue pairs of all providers share, so that they refuse in the same words.
namespace nam::fabric {

/// INVALID_ARGUMENT names the option out of range.
absl::Status CheckDatagramOptions(const DatagramOptions& options, uint32_t depth_max = kQueueDepthMax);

/// Checks a batch for a datagram queue pair with `outstanding` of `send_depth` sends in use; valid handles
/// are 1 to `targets`. INVALID_ARGUMENT: too long, or unknown target. RESOURCE_EXHAUSTED: the send queue
/// lacks room.
absl::Status CheckDatagrams(std::span<const DatagramRequest> batch, uint32_t bytes_max, size_t targets,
                            uint64_t outstanding, uint32_t send_depth);

/// RESOURCE_EXHAUSTED if `targets` are the most that a queue pair may have.
absl::Status CheckTargetRoom(size_t targets, size_t targets_max);
/// RESOURCE_EXHAUSTED if `groups` are the most that a queue pair may join.
absl::Status CheckGroupRoom(size_t groups, size_t groups_max);

/// `expected`: what the text should address.
absl::Status NotAnAddress(const std::string& text, std::string_view expected, std::string_view provider);
absl::Status NotAGroup(DatagramTarget target);
absl::Status NotAMember(const std::string& group_address);
absl::Status SenderCannotJoin();

}  // namespace nam::fabric
