#include "tests/fabric/child.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "fabric/fabric.h"
#include "tests/fabric/datagram_end.h"
#include "tests/fabric/provider.h"

namespace nam::fabric::conformance {
namespace {

const int64_t kRoleTimeoutUs = 60'000'000 * TimeoutFactor();

/// serve SECRET: a passive memory server with one region. Prints its address and the rkey.
absl::Status Serve(Fabric& fabric, Console& console) {
  NAM_ASSIGN_OR_RETURN(const auto region, fabric.Allocate(64 << 10, {.huge_pages = false}));
  NAM_ASSIGN_OR_RETURN(const auto listener,
                       fabric.Listen({.address = CurrentProvider().ListenAddress(), .passive = true}));
  console.Print(absl::StrCat(listener->address(), " ", region->rkey().value));
  console.AwaitEnd();
  return absl::OkStatus();
}

/// accept SECRET: listens, prints its address, accepts one queue pair without using it, and reports that.
absl::Status AcceptOne(Fabric& fabric, Console& console) {
  NAM_ASSIGN_OR_RETURN(const auto listener,
                       fabric.Listen({.address = CurrentProvider().ListenAddress(), .passive = false}));
  NAM_ASSIGN_OR_RETURN(const auto completions, fabric.CreateCompletionQueue(64));
  console.Print(listener->address());
  NAM_ASSIGN_OR_RETURN(const auto queue_pair,
                       listener->Accept(*completions, {.send_depth = 16, .receive_depth = 16},
                                        fabric.clock().After(kRoleTimeoutUs)));
  console.Print("accepted");
  console.AwaitEnd();
  return absl::OkStatus();
}

/// add SECRET ADDRESS RKEY COUNT: adds 1 COUNT times to word 0 by FETCH_ADD, to word 1 by CAS.
absl::Status Add(Fabric& fabric, const std::string& address, uint32_t rkey, int count) {
  NAM_ASSIGN_OR_RETURN(const auto local,
                       fabric.Allocate(4096, {.access = Access::kNone, .huge_pages = false}));
  NAM_ASSIGN_OR_RETURN(const auto completions, fabric.CreateCompletionQueue(64));
  const Deadline deadline = fabric.clock().After(kRoleTimeoutUs);
  NAM_ASSIGN_OR_RETURN(
      const auto queue_pair,
      fabric.Connect(address, *completions, {.send_depth = 16, .receive_depth = 0}, deadline));
  const auto run = [&](const WorkRequest& request) -> absl::StatusOr<uint64_t> {
    NAM_RETURN_IF_ERROR(queue_pair->Post({&request, 1}));
    Completion completion;
    if (completions->Wait({&completion, 1}, deadline) != 1)
      return absl::DeadlineExceededError("no completion");
    NAM_RETURN_IF_ERROR(CompletionError(completion, *queue_pair));
    uint64_t old;
    std::memcpy(&old, local->data(), sizeof(old));
    return old;
  };
  uint64_t expected = 0;
  for (int i = 0; i < count; ++i) {
    NAM_RETURN_IF_ERROR(run(WorkRequest::FetchAdd(1, local->Slice(0, 8), {{rkey}, 0}, 1)).status());
    for (bool swapped = false; !swapped;) {
      NAM_ASSIGN_OR_RETURN(
          const uint64_t old,
          run(WorkRequest::CompareAndSwap(2, local->Slice(0, 8), {{rkey}, 8}, expected, expected + 1)));
      swapped = old == expected;
      expected = swapped ? expected + 1 : old;
    }
  }
  return absl::OkStatus();
}

/// member SECRET GROUP: joins, prints its own address, reports the first datagram, continues receiving.
absl::Status JoinGroup(Fabric& fabric, const std::string& group, Console& console) {
  End member(fabric);
  if (!member.valid()) return absl::InternalError("no datagrams");
  NAM_RETURN_IF_ERROR(member.pair().Join(group));
  member.PostReceives();
  console.Print(member.pair().address());
  if (!member.Next(fabric.clock().After(kRoleTimeoutUs)).has_value()) {
    return absl::DeadlineExceededError("no datagram");
  }
  console.Print("received");
  while (member.Next(fabric.clock().After(kRoleTimeoutUs)).has_value()) {
  }
  return absl::OkStatus();
}

/// multicast SECRET NUMBER: opens the group, prints its address, sends numbered datagrams forever.
absl::Status Multicast(Fabric& fabric, uint32_t number, Console& console) {
  End sender(fabric, {.send_depth = 64, .receive_depth = 0});
  if (!sender.valid()) return absl::InternalError("no datagrams");
  NAM_ASSIGN_OR_RETURN(const DatagramTarget group, sender.pair().OpenGroup(number));
  NAM_ASSIGN_OR_RETURN(const std::string address, sender.pair().GroupAddress(group));
  console.Print(address);
  for (uint64_t i = 0;; ++i) {
    const uint32_t bytes = NumberedBytes(i, sender.pair().bytes_max());
    if (!sender.Send(group, bytes, [&](std::byte* at) { FillNumbered(at, i, bytes); })) {
      return absl::UnavailableError("a datagram was not sent");
    }
    if (i % 32 == 0) fabric.clock().SleepUntil(fabric.clock().After(500));
  }
}

absl::Status Play(const std::vector<std::string>& role, Fabric& fabric, Console& console) {
  const auto number = [&](size_t i) { return std::strtoul(role[i].c_str(), nullptr, 10); };
  if (role[0] == "serve") return Serve(fabric, console);
  if (role[0] == "accept") return AcceptOne(fabric, console);
  if (role[0] == "member" && role.size() == 3) return JoinGroup(fabric, role[2], console);
  if (role[0] == "multicast" && role.size() == 3) {
    return Multicast(fabric, static_cast<uint32_t>(number(2)), console);
  }
  if (role[0] == "add" && role.size() == 5) {
    return Add(fabric, role[2], static_cast<uint32_t>(number(3)), static_cast<int>(number(4)));
  }
  return absl::InvalidArgumentError("no role " + role[0]);
}

}  // namespace

int PlayRole(const std::vector<std::string>& role, Fabric& fabric, Console& console) {
  const absl::Status played = Play(role, fabric, console);
  if (!played.ok()) std::fprintf(stderr, "child %s: %s\n", role[0].c_str(), played.ToString().c_str());
  return played.ok() ? 0 : 1;
}

}  // namespace nam::fabric::conformance
