#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/two_phase/cluster.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"
#include "txn/session.h"
#include "workload/checkout_backend.h"

namespace nam::bench {

/// Two-phase commit: MakeTables starts the servers, as threads of this process with a fabric each, so their
/// messages cross real connections. The servers and all rows end with this object.
class TwoPhaseBackend final : public CheckoutBackend {
 public:
  struct Options {
    two_phase::TransportOptions::Kind transport = two_phase::TransportOptions::Kind::kSend;
    fabric::Kind fabric = fabric::Kind::kShm;  // for kSend
    int participants = 3;
  };
  static absl::StatusOr<std::unique_ptr<TwoPhaseBackend>> Open(const Options& options);
  ~TwoPhaseBackend() override;

  fabric::Fabric& fabric() override { return *fabrics_.back(); }
  absl::Status MakeTables(const tpcw::CheckoutOptions& checkout,
                          const CheckoutTableOptions& options) override;
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession() override;

 private:
  explicit TwoPhaseBackend(const Options& options) : options_(options) {}

  const Options options_;
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics_;  // participants, coordinator, clients
  std::unique_ptr<two_phase::Cluster> cluster_;
};

/// The tables in the participants' form.
std::vector<two_phase::TableLayout> TwoPhaseTables(const tpcw::CheckoutOptions& checkout, uint32_t versions);
/// The cheapest snapshot: it arrives with the last answer.
inline constexpr two_phase::SessionOptions kTwoPhaseCheckout = {
    .snapshots = two_phase::SessionOptions::Snapshots::kLastAnswer};

}  // namespace nam::bench
