#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"
#include "tpcw/checkout.h"
#include "txn/cluster_tables.h"
#include "txn/session.h"
#include "txn/two_phase/cluster.h"

namespace nam {

struct CheckoutTableOptions {
  uint32_t versions = 1;
  bool replace = false;
  uint64_t expected_orders = 0;  // memory that is made ready for them; more are taken as needed
};

/// Checkout's tables under one protocol, and the way to them. OpenSession by any thread.
class CheckoutBackend {
 public:
  virtual ~CheckoutBackend() = default;
  /// That of the clients' threads.
  virtual fabric::Fabric& fabric() = 0;
  virtual absl::Status MakeTables(const tpcw::CheckoutOptions& checkout,
                                  const CheckoutTableOptions& options) = 0;
  /// Takes away what MakeTables has made, and nothing else.
  virtual void DropTables() {}
  virtual absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession() = 0;
};

/// RSI on record tables of a cluster.
class RsiBackend final : public CheckoutBackend {
 public:
  /// The attachment outlives it.
  explicit RsiBackend(catalog::Attachment& attachment) : attachment_(attachment), tables_(attachment) {}
  fabric::Fabric& fabric() override { return attachment_.fabric(); }
  /// ALREADY_EXISTS unless the options say to replace.
  absl::Status MakeTables(const tpcw::CheckoutOptions& checkout,
                          const CheckoutTableOptions& options) override;
  void DropTables() override;
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession() override;

 private:
  absl::Status MakeTable(const txn::RecordTableOptions& table, bool after_drop);

  catalog::Attachment& attachment_;
  txn::ClusterTables tables_;
  std::vector<std::string> made_;
};

/// Two-phase commit: MakeTables starts the servers, as threads of this process with a fabric each, so what
/// they exchange crosses real connections. They end, with all rows, when this does.
class TwoPhaseBackend final : public CheckoutBackend {
 public:
  struct Options {
    txn::two_phase::TransportOptions::Kind transport = txn::two_phase::TransportOptions::Kind::kSend;
    fabric::Kind fabric = fabric::Kind::kShm;  // of kSend
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
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics_;  // participants', the coordinator's, the clients'
  std::unique_ptr<txn::two_phase::Cluster> cluster_;
};

/// The tables as participants know them.
std::vector<txn::two_phase::TableLayout> TwoPhaseTables(const tpcw::CheckoutOptions& checkout,
                                                        uint32_t versions);
/// The cheaper way to a snapshot: it comes with the last answer.
inline constexpr txn::two_phase::SessionOptions kTwoPhaseCheckout = {
    .snapshots = txn::two_phase::SessionOptions::Snapshots::kLastAnswer};

}  // namespace nam
