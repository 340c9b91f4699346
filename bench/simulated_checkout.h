#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"
#include "tpcw/checkout.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"

/// Figure 6 of the redesign paper in virtual time: the real sessions and tpcw's transactions over the sim
/// fabric, with 3 servers that hold the rows, one for timestamps (or for the transaction manager), and the
/// clients on 4 machines.
namespace nam::bench {

inline constexpr int kRowServers = 3;
inline constexpr int kClientMachines = 4;

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
  /// Measured in virtual time, once all clients are there.
  int64_t measured_us = 4'000;
  /// Memory is ready for so many: no index is split while it is measured.
  uint64_t expected_orders = 1'000'000;
  // For two-phase commit:
  MessageCost message;
  int participants = kRowServers;  // threads, shared out over the servers
  int coordinators = 1;            // threads of the transaction manager's machine
};

/// How busy a way of a card was, as a fraction of what the model gives it.
struct Busiest {
  std::string what;  // `memory-1, out, bytes`
  double fraction = 0;
};

struct SimulatedRates {
  uint32_t clients = 0;
  double committed_per_s = 0;
  double p50_us = 0, p99_us = 0;
  double aborts_per_commit = 0;
  /// Through the cards of the servers that hold rows, both ways, by the simulator's counters.
  double bytes_per_commit = 0, messages_per_commit = 0;
  Busiest busiest;  // of all cards
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
  /// Hosts whose cards are looked at, those that hold rows first.
  virtual std::vector<std::string> hosts() const = 0;

  const SimulatedCheckoutOptions options_;
  fabric::sim::World world_;

 private:
  struct Moment {
    int64_t at_ns = 0;
    std::vector<fabric::sim::NicTraffic> cards;  // by host
  };
  Moment Now() const;
  void LookAtCards(const Moment& from, const Moment& to, SimulatedRates& rates) const;

  uint32_t clients_so_far_ = 0;
  std::vector<std::unique_ptr<tpcw::CheckoutDriver>> drivers_;
};

}  // namespace nam::bench
