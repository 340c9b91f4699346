#include "tpcw/checkout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "simulation/application.h"
#include "tpcw/checkout_invariants.h"
#include "tpcw/product_choice.h"

namespace nam::simulation {
namespace {

using tpcw::CheckoutClient;

constexpr int kLastCheckouts = 20;
constexpr uint64_t kAbortedMax = 100;

class Checkout;

class Shopper final : public Customer {
 public:
  Shopper(Checkout& checkout, std::unique_ptr<CheckoutClient> client)
      : checkout_(checkout), client_(std::move(client)) {}
  ~Shopper() override;
  absl::StatusOr<bool> RunOne() override {
    if (!again_) client_->Next();
    const absl::StatusOr<std::optional<txn::AbortReason>> aborted = client_->Try();
    if (!aborted.ok()) return aborted.status();
    again_ = aborted->has_value();
    return !again_;
  }

 private:
  Checkout& checkout_;
  const std::unique_ptr<CheckoutClient> client_;
  bool again_ = false;
};

class Checkout final : public Application {
 public:
  explicit Checkout(RandomStream random)
      : options_{.products = static_cast<uint64_t>(random.Magnitude(4, 60)),
                 .product_bytes = random.OneIn(4) ? size_t{2'304} : size_t{128},
                 .order_bytes = 64,
                 .line_bytes = 64,
                 .initial_stock = 50},
        versions_(1u << random.Below(3)),
        choice_(options_.products, 0) {}

  std::vector<txn::RecordTableOptions> tables() const override {
    std::vector<txn::RecordTableOptions> tables;
    for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(options_)) {
      tables.push_back({.name = schema.name,
                        .row_bytes = static_cast<uint32_t>(schema.row_bytes),
                        .key_bytes = static_cast<uint32_t>(schema.key_bytes),
                        .versions = versions_,
                        .expected_rows = 1,
                        .table = schema.table});
    }
    return tables;
  }
  txn::RsiOptions session_options() const override { return {.sees_own_commits = false}; }

  absl::Status Fill(txn::Session& session) override {
    const absl::StatusOr<uint64_t> loaded = tpcw::LoadProducts(options_, session, nullptr);
    if (loaded.ok()) check_.loaded_until = *loaded;
    return loaded.status();
  }

  absl::StatusOr<std::unique_ptr<Customer>> NewCustomer(txn::Session& session, RandomStream random) override {
    const auto number = static_cast<uint32_t>(orders_.size());
    orders_.emplace_back();
    absl::StatusOr<std::unique_ptr<CheckoutClient>> client =
        CheckoutClient::Open(options_, choice_, number, random.Next(), session, &NewRecorder());
    if (!client.ok()) return client.status();
    return std::make_unique<Shopper>(*this, *std::move(client));
  }

  absl::Status Audit(txn::Session& session, Clock& clock) override {
    absl::StatusOr<std::unique_ptr<Customer>> last = NewCustomer(session, RandomStream(1));
    if (!last.ok()) return last.status();
    const Deadline deadline = clock.After(kAuditUs);
    for (int left = kLastCheckouts; left > 0;) {
      const absl::StatusOr<bool> done = (*last)->RunOne();
      if (!done.ok() && !absl::IsUnavailable(done.status())) return done.status();
      left -= done.ok() && *done ? 1 : 0;
      if (!clock.Passed(deadline)) continue;
      Wrong(absl::StrCat("though all is mended, nothing is sold: ", done.status().ToString()));
      return absl::OkStatus();
    }
    last->reset();
    if (const absl::StatusOr<uint64_t> seen = session.AwaitCommits(); !seen.ok()) return seen.status();
    std::vector<const std::vector<CheckoutClient::OrderState>*> orders;
    for (const auto& client : orders_) orders.push_back(&client);
    const auto found = tpcw::CheckInvariants(options_, orders, kAbortedMax, session);
    if (!found.ok()) return found.status();
    if (!found->ok()) Wrong(found->ToString());
    return absl::OkStatus();
  }

  void Keep(const CheckoutClient& client) {
    orders_[client.client()] = client.orders();
    if (client.torn_rows() > 0) Wrong(absl::StrCat(client.torn_rows(), " rows were torn"));
  }

 private:
  const tpcw::CheckoutOptions options_;
  const uint32_t versions_;
  const tpcw::ProductChoice choice_;
  std::vector<std::vector<CheckoutClient::OrderState>> orders_;  // by client
};

Shopper::~Shopper() {
  checkout_.Keep(*client_);
}

}  // namespace

std::unique_ptr<Application> NewCheckout(RandomStream random) {
  return std::make_unique<Checkout>(random);
}

}  // namespace nam::simulation
