#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

class SimListener final : public Listener {
 public:
  SimListener(Network& network, std::shared_ptr<ListeningPort> port, bool in_place);
  ~SimListener() override;

  std::string address() const override { return port_->address; }
  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override;
  bool Fence(MemberId member, bool kill) override { return port_->connections->Fence(member, kill); }
  std::vector<MemberId> Members() override { return port_->connections->Members(); }

 private:
  Network& network_;
  const std::shared_ptr<ListeningPort> port_;
  const bool in_place_;
};

}  // namespace nam::fabric::sim
