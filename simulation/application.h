#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/random.h"
#include "txn/check/history.h"
#include "txn/check/history_checker.h"
#include "txn/cluster_tables.h"
#include "txn/rsi/session.h"
#include "txn/session.h"

/// What clients do with transactions, and what must hold whatever happens to them and to the cluster. One
/// object for the life of its tables: of the threads of one world, which run one at a time.
namespace nam::simulation {

/// One session's transactions, one after the other. Of the session's thread; ends before the session.
class Customer {
 public:
  virtual ~Customer() = default;
  /// True: committed, or there was nothing to do; false: aborted, nothing has happened. An error: its outcome
  /// is open.
  virtual absl::StatusOr<bool> RunOne() = 0;
};

class Application {
 public:
  virtual ~Application() = default;
  virtual std::vector<txn::RecordTableOptions> tables() const = 0;
  /// Of customers' sessions.
  virtual txn::RsiOptions session_options() const { return {}; }
  /// All rows that are there before the first customer.
  virtual absl::Status Fill(txn::Session& session) = 0;
  virtual absl::StatusOr<std::unique_ptr<Customer>> NewCustomer(txn::Session& session,
                                                                RandomStream random) = 0;
  /// Nobody else is at work, all is mended: looks at everything, and shows that all of it can be changed.
  virtual absl::Status Audit(txn::Session& session, Clock& clock) = 0;

  /// What was seen that must not be, since the last call.
  std::vector<std::string> TakeWrong() { return std::exchange(wrong_, {}); }
  std::vector<const txn::SessionHistory*> histories() const;
  const txn::CheckOptions& check() const { return check_; }

 protected:
  /// Recorders of sessions, each with a number of its own; they stay as long as this.
  txn::HistoryRecorder& NewRecorder();
  uint32_t sessions() const { return static_cast<uint32_t>(histories_.size()); }
  void Wrong(std::string what) { wrong_.push_back(std::move(what)); }

  txn::CheckOptions check_;

 private:
  std::vector<std::string> wrong_;
  std::vector<std::unique_ptr<txn::SessionHistory>> histories_;
  std::vector<std::unique_ptr<txn::HistoryRecorder>> recorders_;
};

/// Accounts in two tables, and money that goes from one to another; accounts are opened and closed, too. What
/// is there of it stays the same, in every snapshot.
std::unique_ptr<Application> NewBank(RandomStream random);
/// tpcw's checkout.
std::unique_ptr<Application> NewCheckout(RandomStream random);

}  // namespace nam::simulation
