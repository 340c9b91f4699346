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

}  // namespace nam
