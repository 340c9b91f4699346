#include "bench/simulated_checkout.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "bench/two_phase/cluster.h"
#include "bench/two_phase_backend.h"
#include "simulation/cluster.h"
#include "storage/channel.h"
#include "txn/cluster_tables.h"
#include "txn/extent_space.h"
#include "txn/session.h"
#include "txn/transaction_state.h"
#include "workload/checkout_backend.h"

namespace nam::bench {
namespace {

using fabric::sim::NicModel;

/// Room for the transaction state, but for no extent of a table.
constexpr uint64_t kStateMemoryBytes = txn::kStateBytes + (uint64_t{64} << 10);
constexpr int kIntervals = 4;  // measured ones, after one that lets all clients start
constexpr int64_t kRunUsMax = 10'000'000;

/// The virtual computing time of a transaction client (Clock::Charge), besides posting and polling, which the
/// network's model charges. From a profile of `nam checkout` over shm with 2 clients on 2 cores: of 4.3 µs
/// per checkout, 1.6 µs were txn/ and storage/, and 0.35 µs making and checking rows. The rest was work of a
/// network card (copies, and waiting for cache lines) and fabric/, which the model charges.
namespace session_cost {
inline constexpr int64_t kBeginNs = 80;
inline constexpr int64_t kLookupNs = 140;     // a key, its record, the visible version
inline constexpr int64_t kWriteNs = 30;       // recorded in the client
inline constexpr int64_t kCommitRowNs = 130;  // log, lock, install, index
inline constexpr int64_t kRowBytePs = 55;     // made or checked by the client
}  // namespace session_cost

/// A session that charges its caller's virtual time before each call, as if all work were done at its start.
class ChargedSession final : public txn::Session {
 public:
  /// `warm` counts the sessions with a finished transaction, which has opened the tables; used by one
  /// simulated thread at a time.
  ChargedSession(std::unique_ptr<txn::Session> session, Clock& clock, uint32_t* warm)
      : session_(std::move(session)), clock_(clock), warm_(warm) {}

  absl::StatusOr<txn::TableHandle> OpenTable(const std::string& name) override {
    return session_->OpenTable(name);
  }
  absl::Status Begin() override {
    ChargeBegin();
    return session_->Begin();
  }
  absl::Status Read(std::span<txn::Lookup> lookups) override {
    ChargeRead(lookups);
    return session_->Read(lookups);
  }
  absl::Status BeginAndRead(std::span<txn::Lookup> lookups) override {
    ChargeBegin();
    ChargeRead(lookups);
    return session_->BeginAndRead(lookups);
  }
  absl::Status Write(std::span<const txn::RowWrite> writes) override {
    for (const txn::RowWrite& write : writes) {
      ++writes_;
      Charge(session_cost::kWriteNs, write.kind == txn::RowWrite::Kind::kDelete ? 0 : write.row.size());
    }
    return session_->Write(writes);
  }
  absl::StatusOr<uint64_t> Commit() override {
    clock_.Charge(session_cost::kCommitRowNs * writes_);
    return session_->Commit();
  }
  void Abort() override { session_->Abort(); }
  uint64_t snapshot() const override { return session_->snapshot(); }

 private:
  void ChargeBegin() {
    writes_ = 0;
    if (++begins_ == 2) ++*warm_;
    clock_.Charge(session_cost::kBeginNs);
  }
  void ChargeRead(std::span<const txn::Lookup> lookups) {
    for (const txn::Lookup& lookup : lookups) Charge(session_cost::kLookupNs, lookup.row.size());
  }
  void Charge(int64_t ns, size_t row_bytes) {
    clock_.Charge(ns + session_cost::kRowBytePs * static_cast<int64_t>(row_bytes) / 1'000);
  }

  const std::unique_ptr<txn::Session> session_;
  Clock& clock_;
  uint32_t* const warm_;
  uint64_t begins_ = 0;
  int64_t writes_ = 0;
};

fabric::sim::WorldOptions WorldFor(const SimulatedCheckoutOptions& options) {
  fabric::sim::WorldOptions world;
  world.seed = options.seed;
  world.nic = options.nic;
  if (options.message.port_bytes_per_us != 0) {
    world.nic.ports = 1;
    world.nic.port_bytes_per_us = options.message.port_bytes_per_us;
  }
  world.replay = "nam bench checkout --fabric=sim";
  return world;
}

/// Names the word at a position of the transaction state.
std::string NameOfStateWord(uint64_t position) {
  using Geometry = txn::StateGeometry;
  switch (position) {
    case txn::kNextOffset:
      return "the timestamp counter";
    case txn::kWatermarkOffset:
      return "the watermark";
    case txn::kHorizonOffset:
      return "the horizon";
    case txn::kSlotsUsedOffset:
      return "the count of slots";
    default:
      break;
  }
  if (position >= Geometry::ring()) return "an entry of the ring";
  return position >= Geometry::slot(0) ? "a client's slot" : "one word";
}

/// The real cluster, with one memory server that only has room for the transaction state, so that rows go to
/// the others.
class RsiCheckout final : public SimulatedCheckout {
 public:
  explicit RsiCheckout(const SimulatedCheckoutOptions& options) : SimulatedCheckout(options) {}
  ~RsiCheckout() override {
    backends_.clear();
    clients_.clear();
    cluster_.reset();
  }

  absl::Status Start() {
    const uint64_t rows_bytes = options_.checkout.products * (options_.checkout.product_bytes * 2 + 128) +
                                options_.expected_orders * 4'096;
    const uint64_t memory_bytes = rows_bytes + (uint64_t{512} << 20);
    NAM_ASSIGN_OR_RETURN(cluster_,
                         simulation::Cluster::Start(world_, {.memory_servers = options_.row_servers + 1,
                                                             .compute_servers = 0,
                                                             .memory_bytes = memory_bytes / 4096 * 4096,
                                                             .first_memory_bytes = kStateMemoryBytes,
                                                             .region_bytes = uint64_t{64} << 20}));
    for (int i = 0; i < options_.client_machines; ++i) {
      NAM_ASSIGN_OR_RETURN(clients_.emplace_back(), cluster_->NewClient(absl::StrCat("client-", i)));
      backends_.push_back(std::make_unique<RsiBackend>(clients_.back()->attachment()));
    }
    // Creates the transaction state before there are rows.
    NAM_RETURN_IF_ERROR(AimAtFirstServer());
    NAM_RETURN_IF_ERROR(backends_[0]->OpenSession().status());
    NAM_RETURN_IF_ERROR(FindState());
    NAM_RETURN_IF_ERROR(
        backends_[0]->MakeTables(options_.checkout, {.expected_orders = options_.expected_orders}));
    return Load();
  }

 private:
  std::vector<fabric::Fabric*> clients() override {
    std::vector<fabric::Fabric*> fabrics;
    for (const auto& client : clients_) fabrics.push_back(&client->fabric());
    return fabrics;
  }
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(size_t machine) override {
    return backends_[machine]->OpenSession();
  }
  std::vector<Card> cards() const override {
    std::vector<Card> cards;
    for (int i = 1; i <= options_.row_servers; ++i) {
      cards.push_back({absl::StrCat("memory-", i), CardRole::kRows});
    }
    cards.push_back({"memory-0", CardRole::kState});
    for (int i = 0; i < options_.client_machines; ++i) {
      cards.push_back({absl::StrCat("client-", i), CardRole::kClients});
    }
    return cards;
  }
  std::string NameOfWord(const Card& card, fabric::RemoteAddress where) const override {
    if (card.role == CardRole::kRows) return "a word of rows, indexes or logs";
    if (where.rkey != state_.rkey || where.offset < state_.offset) return "one word";
    return NameOfStateWord(where.offset - state_.offset);
  }
  /// An allocation's number picks the server where a table's extents begin (txn/table_extents.cc). Numbers
  /// come in order: spends those before one that picks memory-0.
  absl::Status AimAtFirstServer() {
    catalog::Attachment& attachment = clients_[0]->attachment();
    const auto servers = static_cast<uint64_t>(options_.row_servers) + 1;
    uint64_t spent = 0;
    do {
      NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                           attachment.catalog().BeginLoad(attachment.member(), "spent", /*replace=*/false));
      NAM_RETURN_IF_ERROR(attachment.catalog().AbortLoad(allocation));
      spent = allocation.value();
    } while ((spent + 1) % servers != 0);
    return absl::OkStatus();
  }
  absl::Status FindState() {
    catalog::Attachment& attachment = clients_[0]->attachment();
    NAM_ASSIGN_OR_RETURN(const auto channel, storage::Channel::Open(attachment.fabric(), attachment, {}));
    NAM_ASSIGN_OR_RETURN(const txn::TransactionState state, txn::ClusterTables(attachment).State());
    NAM_ASSIGN_OR_RETURN(txn::ExtentSpace space,
                         txn::ExtentSpace::Open(*channel, state.extents, txn::kStateBytes));
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target start, space.Resolve(0));
    state_ = start.address;
    return absl::OkStatus();
  }

  fabric::RemoteAddress state_;  // its beginning
  std::unique_ptr<simulation::Cluster> cluster_;
  std::vector<std::unique_ptr<simulation::Client>> clients_;
  std::vector<std::unique_ptr<RsiBackend>> backends_;
};

class TwoPhaseCheckout final : public SimulatedCheckout {
 public:
  explicit TwoPhaseCheckout(const SimulatedCheckoutOptions& options) : SimulatedCheckout(options) {}
  ~TwoPhaseCheckout() override {
    cluster_.reset();
    fabrics_.clear();
  }

  absl::Status Start() {
    two_phase::Cluster::Options cluster;
    cluster.transport = Transport();
    for (int i = 0; i < options_.row_servers; ++i) {
      NAM_RETURN_IF_ERROR(OpenFabric(absl::StrCat("rows-", i), CardRole::kRows));
      rows_.push_back(fabrics_.back().get());
    }
    for (int i = 0; i < options_.participants; ++i) {
      cluster.participants.push_back(rows_[static_cast<size_t>(i) % rows_.size()]);
    }
    NAM_RETURN_IF_ERROR(OpenFabric("manager", CardRole::kState));
    cluster.coordinators.assign(static_cast<size_t>(options_.coordinators), fabrics_.back().get());
    cluster.tables = TwoPhaseTables(options_.checkout, 1);
    NAM_ASSIGN_OR_RETURN(cluster_, two_phase::Cluster::Start(cluster));
    for (int i = 0; i < options_.client_machines; ++i) {
      NAM_RETURN_IF_ERROR(OpenFabric(absl::StrCat("client-", i), CardRole::kClients));
      clients_.push_back(fabrics_.back().get());
    }
    return Load();
  }

 private:
  /// The model already charges for each work request, and for doorbells and polls, which messages share.
  two_phase::TransportOptions Transport() const {
    const NicModel& nic = options_.nic;
    const MessageCost& message = options_.message;
    two_phase::TransportOptions transport;
    transport.host = "any";
    transport.coalesce = false;
    transport.connections_max = 512;
    transport.message_cpu_ns = std::max<int64_t>(0, message.message_cpu_ns - nic.post_ns);
    if (message.latency_ns != 0) {
      transport.extra_latency_ns =
          std::max<int64_t>(0, message.latency_ns - nic.write_ns - 2 * transport.message_cpu_ns);
    }
    return transport;
  }
  absl::Status OpenFabric(const std::string& host, CardRole role) {
    NAM_ASSIGN_OR_RETURN(fabrics_.emplace_back(),
                         world_.OpenFabric(host, {.secret = simulation::kClusterSecret}));
    cards_.push_back({host, role});
    return absl::OkStatus();
  }
  std::vector<fabric::Fabric*> clients() override { return clients_; }
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(size_t machine) override {
    two_phase::SessionOptions session = kTwoPhaseCheckout;
    session.coordinator = sessions_++;
    return cluster_->OpenSession(*clients_[machine], session);
  }
  std::vector<Card> cards() const override { return cards_; }

  std::vector<std::unique_ptr<fabric::Fabric>> fabrics_;
  std::vector<Card> cards_;
  std::vector<fabric::Fabric*> rows_, clients_;
  std::unique_ptr<two_phase::Cluster> cluster_;
  uint32_t sessions_ = 0;
};

template <typename T>
absl::StatusOr<std::unique_ptr<SimulatedCheckout>> Started(const SimulatedCheckoutOptions& options) {
  auto started = std::make_unique<T>(options);
  NAM_RETURN_IF_ERROR(started->Start());
  return std::unique_ptr<SimulatedCheckout>(std::move(started));
}

}  // namespace

SimulatedCheckout::SimulatedCheckout(const SimulatedCheckoutOptions& options)
    : options_(options), world_(WorldFor(options)) {}

absl::StatusOr<std::unique_ptr<SimulatedCheckout>> SimulatedCheckout::Rsi(
    const SimulatedCheckoutOptions& options) {
  return Started<RsiCheckout>(options);
}

absl::StatusOr<std::unique_ptr<SimulatedCheckout>> SimulatedCheckout::TwoPhase(
    const SimulatedCheckoutOptions& options) {
  return Started<TwoPhaseCheckout>(options);
}

absl::Status SimulatedCheckout::Load() {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, OpenSession(0));
  return tpcw::LoadProducts(options_.checkout, *session, nullptr).status();
}

absl::StatusOr<SimulatedRates> SimulatedCheckout::Run(uint32_t clients_wanted) {
  tpcw::DriverOptions run;
  run.clients = clients_wanted;
  run.first_client = clients_so_far_;
  run.seed = options_.seed;
  run.interval_us = options_.measured_us / kIntervals;
  run.run_us = kRunUsMax;
  clients_so_far_ += clients_wanted;
  const std::vector<fabric::Fabric*> fabrics = clients();
  uint32_t warm = 0;  // clients; a world's threads run one at a time
  const auto open = [&](uint32_t client) -> absl::StatusOr<std::unique_ptr<txn::Session>> {
    const size_t machine = client % fabrics.size();
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<txn::Session> session, OpenSession(machine));
    return std::make_unique<ChargedSession>(std::move(session), fabrics[machine]->clock(), &warm);
  };
  drivers_.push_back(std::make_unique<tpcw::CheckoutDriver>(fabrics, options_.checkout, run, open));
  SimulatedRates rates{.clients = clients_wanted};
  std::optional<CardWatch> watch;
  int64_t measured_ns = 0;
  uint64_t committed = 0, aborted = 0;
  int lines = 0;
  const auto line = [&](const tpcw::CheckoutRates& interval) {
    if (warm < clients_wanted || lines > kIntervals + 1) return;
    if (++lines == 2) watch.emplace(world_, WorldFor(options_).nic, cards());
    if (lines <= 2) return;
    measured_ns = watch->elapsed_ns();
    committed += interval.committed;
    for (const uint64_t aborts : interval.aborts) aborted += aborts;
    rates.p50_us += interval.p50_us / kIntervals;
    rates.p99_us += interval.p99_us / kIntervals;
    if (lines < kIntervals + 2) return;
    LookAtCards(*watch, rates);
    drivers_.back()->Stop();
  };
  NAM_RETURN_IF_ERROR(drivers_.back()->Run(line).status());
  if (committed == 0) return absl::DeadlineExceededError("nothing was committed while it was measured");
  const double commits = static_cast<double>(committed);
  rates.committed_per_s = commits * 1e9 / static_cast<double>(measured_ns);
  rates.aborts_per_commit = static_cast<double>(aborted) / commits;
  rates.bytes_per_commit /= commits;
  rates.messages_per_commit /= commits;
  return rates;
}

void SimulatedCheckout::LookAtCards(const CardWatch& watch, SimulatedRates& rates) const {
  rates.cards = watch.Uses();
  for (CardUse& use : rates.cards) {
    use.word_name = NameOfWord(use.card, use.where);
    if (use.card.role != CardRole::kRows) continue;
    rates.bytes_per_commit += static_cast<double>(use.bytes);
    rates.messages_per_commit += static_cast<double>(use.messages);
  }
  rates.busiest = BusiestOf(rates.cards)->Busiest();
}

absl::StatusOr<tpcw::CheckoutInvariants> SimulatedCheckout::Check() {
  std::vector<const std::vector<tpcw::CheckoutClient::OrderState>*> orders;
  for (const auto& driver : drivers_) {
    for (const auto* client : driver->orders()) orders.push_back(client);
  }
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<txn::Session> session, OpenSession(0));
  return tpcw::CheckInvariants(options_.checkout, orders, 100, *session);
}

}  // namespace nam::bench
