#include "fabric/datagram_rules.h"

#include "absl/strings/str_format.h"

namespace nam::fabric {
namespace {

constexpr size_t kShownBytes = 100;  // of a text that is no address

}  // namespace

absl::Status CheckDatagramOptions(const DatagramOptions& options, uint32_t depth_max) {
  if (options.send_depth >= 1 && options.send_depth <= depth_max && options.receive_depth <= depth_max) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("datagram options out of range: send_depth %d (1 to %d), receive_depth %d (0 to %d)",
                      options.send_depth, depth_max, options.receive_depth, depth_max));
}

absl::Status CheckDatagrams(std::span<const DatagramRequest> batch, uint32_t bytes_max, size_t targets,
                            uint64_t outstanding, uint32_t send_depth) {
  for (const DatagramRequest& request : batch) {
    if (request.local.bytes > bytes_max) {
      return absl::InvalidArgumentError(absl::StrFormat("a datagram of %d bytes: the most is %d, split it",
                                                        request.local.bytes, bytes_max));
    }
    if (request.to.handle == 0 || request.to.handle > targets) {
      return absl::InvalidArgumentError(
          absl::StrFormat("datagram target %d is not of this queue pair", request.to.handle));
    }
  }
  if (batch.size() <= send_depth - outstanding) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d datagrams are outstanding of at most %d: take completions first, signal some, or "
                      "raise send_depth",
                      outstanding, send_depth));
}

absl::Status CheckTargetRoom(size_t targets, size_t targets_max) {
  if (targets < targets_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("a queue pair sends datagrams to at most %d targets", targets_max));
}

absl::Status CheckGroupRoom(size_t groups, size_t groups_max) {
  if (groups < groups_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("a queue pair is a member of at most %d groups", groups_max));
}

absl::Status NotAnAddress(const std::string& text, std::string_view expected, std::string_view provider) {
  return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not the address of a %s on the %s fabric",
                                                    text.substr(0, kShownBytes), expected, provider));
}

absl::Status NotAGroup(DatagramTarget target) {
  return absl::InvalidArgumentError(absl::StrFormat("target %d is no group", target.handle));
}

absl::Status NotAMember(const std::string& group_address) {
  return absl::NotFoundError(absl::StrFormat("not a member of \"%s\"", group_address.substr(0, kShownBytes)));
}

absl::Status SenderCannotJoin() {
  return absl::InvalidArgumentError("the sender of a group is no member of it");
}

}  // namespace nam::fabric
