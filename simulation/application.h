#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "catalog/attachment.h"
#include "txn/check/history.h"
#include "txn/check/history_checker.h"
#include "txn/cluster_tables.h"
#include "txn/rsi/session.h"
#include "txn/session.h"

/// Applications for the simulator: the clients' transactions, and the invariants that must hold whatever
/// happens to clients and cluster. One object per life of its tables; used by the threads of one world, which
/// run one at a time.
namespace nam::simulation {

/// For so long audits repeat what fails, although all faults are mended.
inline constexpr int64_t kAuditUs = 120'000'000;

/// Successive transactions of one session. Belongs to the session's thread, and ends before the session.
class Customer {
 public:
  virtual ~Customer() = default;
  /// True: committed, or nothing to do. False: aborted without effect. After an error the outcome is unknown.
  virtual absl::StatusOr<bool> RunOne() = 0;
};

class Application {
 public:
  virtual ~Application() = default;
  virtual std::vector<txn::RecordTableOptions> tables() const = 0;
  /// Options of the customers' sessions.
  virtual txn::RsiOptions session_options() const { return {}; }
  /// Makes the ordered indexes of the tables, which are empty.
  virtual absl::Status CreateIndexes(catalog::Attachment& /*attachment*/, txn::Session& /*session*/) {
    return absl::OkStatus();
  }
  /// Inserts all rows that must exist before the first customer.
  virtual absl::Status Fill(txn::Session& session) = 0;
  virtual absl::StatusOr<std::unique_ptr<Customer>> NewCustomer(txn::Session& session,
                                                                RandomStream random) = 0;
  /// Runs alone after all faults are mended: reads everything, and shows that all of it can be changed.
  virtual absl::Status Audit(txn::Session& session, Clock& clock) = 0;

  /// Violations seen since the last call.
  std::vector<std::string> TakeWrong() { return std::exchange(wrong_, {}); }
  std::vector<const txn::SessionHistory*> histories() const;
  const txn::CheckOptions& check() const { return check_; }

 protected:
  /// A recorder with a unique number for a session; lives as long as this object.
  txn::HistoryRecorder& NewRecorder();
  uint32_t sessions() const { return static_cast<uint32_t>(histories_.size()); }
  void Wrong(std::string what) { wrong_.push_back(std::move(what)); }
  /// For audits: repeats a transaction until it has committed, while it is aborted or servers are not there.
  /// `otherwise` says what is wrong if that takes too long.
  absl::Status UntilDone(Clock& clock, const std::string& otherwise,
                         const std::function<absl::Status()>& transaction);

  txn::CheckOptions check_;

 private:
  std::vector<std::string> wrong_;
  std::vector<std::unique_ptr<txn::SessionHistory>> histories_;
  std::vector<std::unique_ptr<txn::HistoryRecorder>> recorders_;
};

/// Accounts in two tables, with transfers between them; accounts are also opened and closed. The total is the
/// same in every snapshot.
std::unique_ptr<Application> NewBank(RandomStream random);
/// Goods and their orders, with a foreign key between them, unique and other indexes, rows that are locked
/// and not changed, and transactions of thousands of rows.
std::unique_ptr<Application> NewShop(RandomStream random);
/// tpcw's checkout.
std::unique_ptr<Application> NewCheckout(RandomStream random);

}  // namespace nam::simulation
