#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "storage/multicast_layout.h"

namespace nam::storage {

/// Fault rates of sent datagrams, from 0 to 1.
struct DatagramFaults {
  double lost = 0;
  double duplicated = 0;
  double reordered = 0;      // swaps places with another one of its batch
  double damaged = 0;        // a bit of the payload
  std::string no_multicast;  // OpenGroup and Join fail with this
};

/// Sends through another queue pair, with faults drawn from a seed. Completions come from that one.
class FaultyDatagrams final : public fabric::DatagramQueuePair {
 public:
  FaultyDatagrams(std::unique_ptr<DatagramQueuePair> under, const DatagramFaults& faults, uint32_t seed)
      : under_(std::move(under)), faults_(faults), random_(seed) {}

  uint64_t id() const override { return under_->id(); }
  uint32_t bytes_max() const override { return under_->bytes_max(); }
  std::string address() const override { return under_->address(); }
  absl::StatusOr<fabric::DatagramTarget> Resolve(const std::string& address) override {
    return under_->Resolve(address);
  }
  absl::StatusOr<fabric::DatagramTarget> OpenGroup(uint32_t number) override {
    if (!faults_.no_multicast.empty()) return absl::FailedPreconditionError(faults_.no_multicast);
    return under_->OpenGroup(number);
  }
  absl::StatusOr<std::string> GroupAddress(fabric::DatagramTarget group) const override {
    return under_->GroupAddress(group);
  }
  absl::Status Join(const std::string& group) override {
    if (!faults_.no_multicast.empty()) return absl::FailedPreconditionError(faults_.no_multicast);
    return under_->Join(group);
  }
  absl::Status Leave(const std::string& group) override { return under_->Leave(group); }
  absl::Status PostReceive(std::span<const fabric::ReceiveRequest> batch) override {
    return under_->PostReceive(batch);
  }
  absl::Status Post(std::span<const fabric::DatagramRequest> batch) override {
    std::vector<fabric::DatagramRequest> out;
    for (fabric::DatagramRequest request : batch) {
      // Receivers ignore a datagram without its magic, as if it had not arrived.
      if (Draw(faults_.lost)) std::memset(request.local.data, 0, 4);
      if (Draw(faults_.damaged)) request.local.data[request.local.bytes - 1] ^= std::byte{1};
      if (Draw(faults_.duplicated)) {
        fabric::DatagramRequest again = request;
        again.signal = fabric::Signal::kUnsignaled;
        out.push_back(again);
      }
      out.push_back(request);
    }
    for (fabric::DatagramRequest& request : out) {
      if (Draw(faults_.reordered)) std::swap(request.local, out[random_() % out.size()].local);
    }
    return under_->Post(out);
  }

 private:
  bool Draw(double share) { return std::uniform_real_distribution<>()(random_) < share; }

  const std::unique_ptr<DatagramQueuePair> under_;
  const DatagramFaults faults_;
  std::mt19937 random_;
};

/// Another fabric, except for datagrams sent through this one.
class FaultyFabric final : public fabric::Fabric {
 public:
  FaultyFabric(fabric::Fabric& under, const DatagramFaults& faults, uint32_t seed)
      : under_(under), faults_(faults), seed_(seed) {}

  fabric::Kind kind() const override { return under_.kind(); }
  fabric::Capabilities capabilities() const override { return under_.capabilities(); }
  Clock& clock() override { return under_.clock(); }
  absl::StatusOr<std::unique_ptr<fabric::MemoryRegion>> Allocate(
      size_t bytes, const fabric::AllocateOptions& options) override {
    return under_.Allocate(bytes, options);
  }
  absl::StatusOr<std::unique_ptr<fabric::CompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return under_.CreateCompletionQueue(2 * depth);  // room for duplicates
  }
  absl::StatusOr<std::unique_ptr<fabric::Listener>> Listen(const fabric::ListenOptions& options) override {
    return under_.Listen(options);
  }
  absl::StatusOr<std::unique_ptr<fabric::QueuePair>> Connect(const std::string& address,
                                                             fabric::CompletionQueue& completions,
                                                             const fabric::QueuePairOptions& options,
                                                             Deadline deadline) override {
    return under_.Connect(address, completions, options, deadline);
  }
  absl::StatusOr<std::unique_ptr<fabric::DatagramQueuePair>> CreateDatagramQueuePair(
      fabric::CompletionQueue& completions, const fabric::DatagramOptions& options) override {
    fabric::DatagramOptions deeper = options;
    deeper.send_depth *= 2;
    auto queue_pair = under_.CreateDatagramQueuePair(completions, deeper);
    if (!queue_pair.ok()) return queue_pair.status();
    return std::make_unique<FaultyDatagrams>(*std::move(queue_pair), faults_, seed_++);
  }
  fabric::DatagramDrops datagram_drops() const override { return under_.datagram_drops(); }
  uint64_t Random() override { return under_.Random(); }
  std::unique_ptr<fabric::Event> CreateEvent() override { return under_.CreateEvent(); }
  std::unique_ptr<fabric::Thread> StartThread(const std::string& name, std::function<void()> body) override {
    return under_.StartThread(name, std::move(body));
  }

 private:
  fabric::Fabric& under_;
  const DatagramFaults faults_;
  uint32_t seed_;
};

}  // namespace nam::storage
