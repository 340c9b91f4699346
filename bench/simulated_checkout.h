#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/card_use.h"
#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"
#include "tpcw/checkout.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"

/// Figure 6 of the redesign paper in virtual time: the real sessions and tpcw's transactions over the sim
/// fabric, with row servers, a server for timestamps (or the transaction manager), and clients on their own
/// machines.
namespace nam::bench {

/// The message costs of two-phase commit, where they differ from the model's RDMA network.
struct MessageCost {
  int64_t message_cpu_ns = 0;     // for the sender, and for the receiver; complete
  int64_t latency_ns = 0;         // one way, with both CPU times; 0: the model's
  int64_t port_bytes_per_us = 0;  // of a single port; 0: the model's ports
};

struct SimulatedCheckoutOptions {
  fabric::sim::NicModel nic;
  tpcw::CheckoutOptions checkout;
  uint64_t seed = 1;
  int row_servers = 3;
  int client_machines = 4;
  /// Measured virtual time, once all clients have started.
  int64_t measured_us = 4'000;
  /// Orders with prepared memory: no index is split during the measurement.
  uint64_t expected_orders = 1'000'000;
  // For two-phase commit:
  MessageCost message;
  int participants = 3;  // threads, distributed over the servers
  int coordinators = 1;  // threads on the transaction manager's machine
};

struct SimulatedRates {
  uint32_t clients = 0;
  double committed_per_s = 0;
  double p50_us = 0, p99_us = 0;
  double aborts_per_commit = 0;
  /// Totals of the row servers' cards in both directions, from the simulator's counters.
  double bytes_per_commit = 0, messages_per_commit = 0;
  UnitUse busiest;             // the busiest unit of all cards
  std::vector<CardUse> cards;  // row servers first
};

/// One protocol in a separate world, loaded once. The creating thread drives the world.
class SimulatedCheckout {
 public:
  static absl::StatusOr<std::unique_ptr<SimulatedCheckout>> Rsi(const SimulatedCheckoutOptions& options);
  static absl::StatusOr<std::unique_ptr<SimulatedCheckout>> TwoPhase(const SimulatedCheckoutOptions& options);
  virtual ~SimulatedCheckout() = default;

  absl::StatusOr<SimulatedRates> Run(uint32_t clients);
  /// Checks the invariants over all runs.
  absl::StatusOr<tpcw::CheckoutInvariants> Check();

 protected:
  explicit SimulatedCheckout(const SimulatedCheckoutOptions& options);
  absl::Status Load();
  virtual std::vector<fabric::Fabric*> clients() = 0;
  virtual absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(size_t machine) = 0;
  /// The observed cards, row servers first.
  virtual std::vector<Card> cards() const = 0;
  /// Names the word at an address of a card's host.
  virtual std::string NameOfWord(const Card& /*card*/, fabric::RemoteAddress /*where*/) const {
    return "one word";
  }

  const SimulatedCheckoutOptions options_;
  fabric::sim::World world_;

 private:
  void LookAtCards(const CardWatch& watch, SimulatedRates& rates) const;

  uint32_t clients_so_far_ = 0;
  std::vector<std::unique_ptr<tpcw::CheckoutDriver>> drivers_;
};

}  // namespace nam::bench
