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
/// fabric, with servers that hold the rows, one for timestamps (or for the transaction manager), and the
/// clients on machines of their own.
namespace nam::bench {

/// What carries messages of two-phase commit: how it differs from the RDMA network of the model.
struct MessageCost {
  int64_t message_cpu_ns = 0;     // of whoever sends, and of whoever receives; all of it
  int64_t latency_ns = 0;         // one way, with the CPU of both; 0: the model's
  int64_t port_bytes_per_us = 0;  // of the one port; 0: the model's ports
};

struct SimulatedCheckoutOptions {
  fabric::sim::NicModel nic;
  tpcw::CheckoutOptions checkout;
  uint64_t seed = 1;
  int row_servers = 3;
  int client_machines = 4;
  /// Measured in virtual time, once all clients are there.
  int64_t measured_us = 4'000;
  /// Memory is ready for so many: no index is split while it is measured.
  uint64_t expected_orders = 1'000'000;
  // For two-phase commit:
  MessageCost message;
  int participants = 3;  // threads, shared out over the servers
  int coordinators = 1;  // threads of the transaction manager's machine
};

struct SimulatedRates {
  uint32_t clients = 0;
  double committed_per_s = 0;
  double p50_us = 0, p99_us = 0;
  double aborts_per_commit = 0;
  /// Through the cards of the servers that hold rows, both ways, by the simulator's counters.
  double bytes_per_commit = 0, messages_per_commit = 0;
  UnitUse busiest;             // the busiest unit of all cards
  std::vector<CardUse> cards;  // those that hold rows first
};

/// One protocol in a world of its own, loaded once. The thread that makes it drives the world.
class SimulatedCheckout {
 public:
  static absl::StatusOr<std::unique_ptr<SimulatedCheckout>> Rsi(const SimulatedCheckoutOptions& options);
  static absl::StatusOr<std::unique_ptr<SimulatedCheckout>> TwoPhase(const SimulatedCheckoutOptions& options);
  virtual ~SimulatedCheckout() = default;

  absl::StatusOr<SimulatedRates> Run(uint32_t clients);
  /// What all runs together must add up to.
  absl::StatusOr<tpcw::CheckoutInvariants> Check();

 protected:
  explicit SimulatedCheckout(const SimulatedCheckoutOptions& options);
  absl::Status Load();
  virtual std::vector<fabric::Fabric*> clients() = 0;
  virtual absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(size_t machine) = 0;
  /// Cards that are looked at, those of servers that hold rows first.
  virtual std::vector<Card> cards() const = 0;
  /// Names what lies at an address of a card's host.
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
