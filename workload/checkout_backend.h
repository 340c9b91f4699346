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
  uint64_t expected_orders = 0;  // memory is prepared for them; more is allocated as needed
};

/// Checkout's tables under one protocol, and access to them. Any thread may call OpenSession.
class CheckoutBackend {
 public:
  virtual ~CheckoutBackend() = default;
  /// The fabric of the clients' threads.
  virtual fabric::Fabric& fabric() = 0;
  virtual absl::Status MakeTables(const tpcw::CheckoutOptions& checkout,
                                  const CheckoutTableOptions& options) = 0;
  /// Drops the tables of MakeTables, and nothing else.
  virtual void DropTables() {}
  virtual absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession() = 0;
};

/// RSI on record tables of a cluster.
class RsiBackend final : public CheckoutBackend {
 public:
  /// The attachment must outlive this object.
  explicit RsiBackend(catalog::Attachment& attachment) : attachment_(attachment), tables_(attachment) {}
  fabric::Fabric& fabric() override { return attachment_.fabric(); }
  /// ALREADY_EXISTS unless the options allow replacing.
  absl::Status MakeTables(const tpcw::CheckoutOptions& checkout,
                          const CheckoutTableOptions& options) override;
  void DropTables() override;
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession() override;

 private:
  /// FAILED_PRECONDITION names a table of the same name that no run of checkout has made.
  absl::Status CheckOwnTables(const tpcw::CheckoutOptions& checkout) const;
  absl::Status MakeTable(const txn::RecordTableOptions& table, bool after_drop);

  catalog::Attachment& attachment_;
  txn::ClusterTables tables_;
  std::vector<std::string> made_;
};

/// Two-phase commit: MakeTables starts the servers, as threads of this process with a fabric each, so their
/// messages cross real connections. The servers and all rows end with this object.
class TwoPhaseBackend final : public CheckoutBackend {
 public:
  struct Options {
    txn::two_phase::TransportOptions::Kind transport = txn::two_phase::TransportOptions::Kind::kSend;
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
  std::unique_ptr<txn::two_phase::Cluster> cluster_;
};

/// The tables in the participants' form.
std::vector<txn::two_phase::TableLayout> TwoPhaseTables(const tpcw::CheckoutOptions& checkout,
                                                        uint32_t versions);
/// The cheapest snapshot: it arrives with the last answer.
inline constexpr txn::two_phase::SessionOptions kTwoPhaseCheckout = {
    .snapshots = txn::two_phase::SessionOptions::Snapshots::kLastAnswer};

}  // namespace nam
