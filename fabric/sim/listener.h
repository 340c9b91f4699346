#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

class SimListener final : public Listener {
 public:
  SimListener(Network& network, std::shared_ptr<ListeningPort> port, bool in_place);
  ~SimListener() override { network_.Close(*port_); }

  std::string address() const override { return port_->address; }
  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override;

 private:
  Network& network_;
  const std::shared_ptr<ListeningPort> port_;
  const bool in_place_;
};

}  // namespace nam::fabric::sim
