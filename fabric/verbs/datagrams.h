#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/anonymous_mapping.h"
#include "fabric/fabric.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/local_regions.h"

namespace nam::fabric::verbs {

/// An unreliable queue pair of the NIC. Its places work as in VerbsQueuePair.
///
/// Protection: every datagram carries a Q_Key of 31 bits derived from the cluster's secret, and the NIC drops
/// those with a different key. That excludes peers without the secret, but not an attacker who can listen on
/// the network between the hosts, which is trusted as for one-sided operations.
///
/// A receive is posted with a second part that takes the excess of a datagram: the NIC would fail the queue
/// pair on a datagram that is too long, while the contract is to drop it.
class VerbsDatagramQueuePair final : public DatagramQueuePair, private CompletionSource {
 public:
  static absl::StatusOr<std::unique_ptr<DatagramQueuePair>> Create(std::shared_ptr<Core> core,
                                                                   VerbsCompletionQueue& queue,
                                                                   const DatagramOptions& options);
  ~VerbsDatagramQueuePair() override;

  uint64_t id() const override { return id_; }
  uint32_t bytes_max() const override;
  std::string address() const override;
  absl::StatusOr<DatagramTarget> Resolve(const std::string& address) override;
  absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number) override;
  absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const override;
  absl::Status Join(const std::string& group_address) override;
  absl::Status Leave(const std::string& group_address) override;
  absl::Status Post(std::span<const DatagramRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;

 private:
  static constexpr uint32_t kOverflowBytes = kDatagramHeadroomBytes + kMaxDatagramBytes;

  struct Target {
    AddressHandle handle;
    uint32_t queue_pair = 0;
    std::optional<ibv_gid> group;  // set if this is the group's sender
  };
  struct Joined {
    verbs::GroupAddress address;
    UniqueFd membership;  // in the kernel, for the network interface
  };
  struct SendPlace {
    uint64_t id = 0;
    Signal signal = Signal::kSignaled;
    CompletionStatus status = CompletionStatus::kOk;
  };
  struct ReceivePlace {
    ReceiveRequest request;
    uint32_t nic_lkey = 0;
  };

  VerbsDatagramQueuePair(std::shared_ptr<Core> core, VerbsCompletionQueue& queue,
                         const DatagramOptions& options);
  absl::Status Prepare();
  absl::Status BringUp();
  absl::StatusOr<DatagramTarget> AddTarget(const DatagramAddress& address, std::optional<ibv_gid> group);
  std::optional<Completion> Translate(const ibv_wc& completion) override;
  std::optional<Completion> TranslateSend(const ibv_wc& completion);
  std::optional<Completion> TranslateReceive(const ibv_wc& completion);
  /// True if a joined group has this multicast address. Successive senders of a group share it.
  bool InGroup(const ibv_gid& group) const;
  /// True unless the datagram went to a group but not from the group's sender.
  bool IsWanted(const ibv_wc& completion, const ReceivePlace& place) const;
  int PostPlaces(uint64_t begin, uint64_t end);

  const std::shared_ptr<Core> core_;
  VerbsCompletionQueue& queue_;
  const DatagramOptions options_;
  const uint32_t id_;
  std::unique_ptr<AnonymousMapping> overflow_;  // on pages of its own, see memory.h
  MemoryRegionHandle overflow_region_;
  QueuePairHandle handle_;
  bool attached_ = false;

  std::vector<Target> targets_;  // [0]: a dead target, for sends that must not leave
  std::unordered_map<std::string, DatagramTarget> resolved_;
  std::map<std::string, Joined> joined_;

  std::vector<SendPlace> sends_;
  uint64_t sends_taken_ = 0;
  uint64_t sends_posted_ = 0;
  std::vector<ReceivePlace> receives_;
  uint64_t receives_taken_ = 0;
  uint64_t receives_posted_ = 0;
  LocalRegions local_regions_;
};

}  // namespace nam::fabric::verbs
