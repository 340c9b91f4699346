#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/receive_ring.h"
#include "fabric/sim/completion_queue.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

/// One end of a datagram queue pair. The switch replicates: one send at the sender's port, one receive at
/// each member's port. For each receiver, the fault plan decides whether a datagram is lost, duplicated or
/// late.
class DatagramEndpoint {
 public:
  DatagramEndpoint(Network& network, Process& process, SimCompletionQueue& completions,
                   const DatagramOptions& options);
  ~DatagramEndpoint();

  uint64_t id() const { return id_; }
  const std::string& address() const { return address_; }
  uint32_t bytes_max() const;

  absl::StatusOr<DatagramTarget> Resolve(const std::string& address);
  absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number);
  absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const;
  absl::Status Join(const std::string& group);
  absl::Status Leave(const std::string& group);
  absl::Status Post(std::span<const DatagramRequest> batch);
  absl::Status PostReceive(std::span<const ReceiveRequest> batch);

  /// Flushes everything pending; from now on nothing is sent or received.
  void EndProcess();

 private:
  struct Target {
    bool group;
    std::string address;
  };
  using Payload = std::shared_ptr<const std::vector<std::byte>>;

  void Send(const DatagramRequest& request);
  void CompleteSend(const DatagramRequest& request, CompletionStatus status);
  std::vector<DatagramEndpoint*> ReceiversOf(const Target& target) const;
  void Forward(int64_t leaves_ns, DatagramEndpoint& to, const Payload& payload);
  void Arrive(const Process& sender, const Payload& payload);
  void Deliver(const Process& sender, const Payload& payload);
  /// Like At, but skips the step if this end is gone by then.
  void Schedule(int64_t at_ns, std::function<void()> step);

  Network& network_;
  Process& process_;
  SimCompletionQueue& completions_;
  const DatagramOptions options_;
  const uint64_t id_;
  const std::string address_;
  std::vector<Target> targets_;  // handle 1 is the first
  ReceiveRing receives_;
  uint32_t receives_used_ = 0;
  uint32_t sends_used_ = 0;
  uint32_t unsignaled_ = 0;
  int64_t queue_free_ns_ = 0;  // the send queue handles one datagram at a time
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class SimDatagramQueuePair final : public DatagramQueuePair {
 public:
  SimDatagramQueuePair(Network& network, Process& process, SimCompletionQueue& completions,
                       const DatagramOptions& options)
      : end_(network, process, completions, options) {}

  uint64_t id() const override { return end_.id(); }
  uint32_t bytes_max() const override { return end_.bytes_max(); }
  std::string address() const override { return end_.address(); }
  absl::StatusOr<DatagramTarget> Resolve(const std::string& address) override {
    return end_.Resolve(address);
  }
  absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number) override { return end_.OpenGroup(number); }
  absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const override {
    return end_.GroupAddress(group);
  }
  absl::Status Join(const std::string& group) override { return end_.Join(group); }
  absl::Status Leave(const std::string& group) override { return end_.Leave(group); }
  absl::Status Post(std::span<const DatagramRequest> batch) override { return end_.Post(batch); }
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override { return end_.PostReceive(batch); }

 private:
  DatagramEndpoint end_;
};

}  // namespace nam::fabric::sim
