#include "bench/two_phase_backend.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/threads.h"

namespace nam::bench {

absl::StatusOr<std::unique_ptr<TwoPhaseBackend>> TwoPhaseBackend::Open(const Options& options) {
  std::unique_ptr<TwoPhaseBackend> backend(new TwoPhaseBackend(options));
  const std::string secret = absl::StrFormat("%016x%016x", fabric::RandomBits(), fabric::RandomBits());
  for (int i = 0; i < options.participants + 2; ++i) {
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<fabric::Fabric> fabric,
                         fabric::Open({.kind = options.fabric, .secret = secret, .host = "127.0.0.1"}));
    backend->fabrics_.push_back(std::move(fabric));
  }
  return backend;
}

TwoPhaseBackend::~TwoPhaseBackend() = default;

absl::Status TwoPhaseBackend::MakeTables(const tpcw::CheckoutOptions& checkout,
                                         const CheckoutTableOptions& options) {
  two_phase::Cluster::Options cluster;
  cluster.transport = {.kind = options_.transport, .host = "127.0.0.1"};
  for (int i = 0; i < options_.participants; ++i) {
    cluster.participants.push_back(fabrics_[static_cast<size_t>(i)].get());
  }
  cluster.coordinators = {fabrics_[cluster.participants.size()].get()};
  cluster.tables = TwoPhaseTables(checkout, options.versions);
  NAM_ASSIGN_OR_RETURN(cluster_, two_phase::Cluster::Start(cluster));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<txn::Session>> TwoPhaseBackend::OpenSession() {
  return cluster_->OpenSession(fabric(), kTwoPhaseCheckout);
}

std::vector<two_phase::TableLayout> TwoPhaseTables(const tpcw::CheckoutOptions& checkout, uint32_t versions) {
  std::vector<two_phase::TableLayout> tables;
  for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(checkout)) {
    tables.push_back({.name = schema.name,
                      .row_bytes = static_cast<uint32_t>(schema.row_bytes),
                      .key_bytes = static_cast<uint32_t>(schema.key_bytes),
                      .versions = versions});
  }
  return tables;
}

}  // namespace nam::bench
