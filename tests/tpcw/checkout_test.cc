#include "tpcw/checkout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "partitioner/record_row.h"
#include "tests/txn/reference_session.h"
#include "tpcw/checkout_driver.h"
#include "tpcw/checkout_invariants.h"
#include "txn/check/history_checker.h"

namespace nam::tpcw {
namespace {

/// Runs a hook before each commit.
class InterruptedSession final : public txn::Session {
 public:
  /// `refuses`, if set: whether everything is aborted.
  InterruptedSession(std::unique_ptr<txn::Session> session, std::function<void()> before_commit,
                     const bool* refuses = nullptr)
      : session_(std::move(session)), before_commit_(std::move(before_commit)), refuses_(refuses) {}

  absl::StatusOr<txn::TableHandle> OpenTable(const std::string& name) override {
    return session_->OpenTable(name);
  }
  absl::Status Begin() override { return session_->Begin(); }
  absl::Status Read(std::span<txn::Lookup> lookups) override { return session_->Read(lookups); }
  absl::Status Write(std::span<const txn::RowWrite> writes) override { return session_->Write(writes); }
  absl::StatusOr<uint64_t> Commit() override {
    if (before_commit_) before_commit_();
    if (refuses_ == nullptr || !*refuses_) return session_->Commit();
    session_->Abort();
    return txn::AbortStatus(txn::AbortReason::kWriteWrite, "whatever it is");
  }
  void Abort() override { session_->Abort(); }
  uint64_t snapshot() const override { return session_->snapshot(); }

 private:
  const std::unique_ptr<txn::Session> session_;
  const std::function<void()> before_commit_;
  const bool* const refuses_;
};

/// Checkouts over a database in this process, recorded and checked.
class Checkout : public ::testing::Test {
 protected:
  void SetUp() override {
    auto fabric = fabric::Open({.kind = fabric::Kind::kShm});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    fabric_ = std::move(*fabric);
    options_.products = 40;
    options_.product_bytes = 256;
    options_.initial_stock = 30;
    options_.restock_quantity = 50;
  }

  void Load() {
    for (const TableSchema& table : CheckoutTables(options_)) {
      database_.CreateTable(table.name, table.key_bytes, table.row_bytes);
    }
    uint64_t rows = 0;
    const auto loaded = LoadProducts(options_, *database_.NewSession(), [&](uint64_t n) {
      rows = n;
      return true;
    });
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(rows, options_.products);
    loaded_until_ = *loaded;
  }

  void Run(const DriverOptions& options) {
    driver_ = std::make_unique<CheckoutDriver>(
        std::vector<fabric::Fabric*>{fabric_.get()}, options_, options,
        [this](uint32_t) -> absl::StatusOr<std::unique_ptr<txn::Session>> { return database_.NewSession(); });
    auto rates = driver_->Run([&](const CheckoutRates& line) { lines_.push_back(line); });
    ASSERT_TRUE(rates.ok()) << rates.status();
    rates_ = *rates;
  }

  CheckoutClient* AddClient(uint32_t number, std::function<void()> before_commit = nullptr) {
    if (choice_ == nullptr) choice_ = std::make_unique<ProductChoice>(options_.products, 0);
    sessions_.push_back(
        std::make_unique<InterruptedSession>(database_.NewSession(), std::move(before_commit)));
    histories_.push_back(txn::SessionHistory::InMemory());
    recorders_.push_back(std::make_unique<txn::HistoryRecorder>(number, *histories_.back()));
    clients_.push_back(*CheckoutClient::Open(options_, *choice_, number, 77 + number, *sessions_.back(),
                                             recorders_.back().get()));
    return clients_.back().get();
  }

  /// Two clients buy the same products. The second one finishes before the first one commits.
  void MeetAtCommit() {
    CheckoutClient* second = nullptr;
    CheckoutClient* const first = AddClient(0, [&] { ASSERT_TRUE(second->Try().ok()); });
    second = AddClient(1);
    first->Next();
    second->Next();
    const auto result = first->Try();
    ASSERT_TRUE(result.ok()) << result.status();
    first_result_ = *result;
  }

  std::vector<const std::vector<CheckoutClient::OrderState>*> Orders() const {
    if (driver_ != nullptr) return driver_->orders();
    std::vector<const std::vector<CheckoutClient::OrderState>*> orders;
    for (const auto& client : clients_) orders.push_back(&client->orders());
    return orders;
  }
  std::vector<const txn::SessionHistory*> Histories() const {
    if (driver_ != nullptr) return driver_->histories();
    std::vector<const txn::SessionHistory*> histories;
    for (const auto& history : histories_) histories.push_back(history.get());
    return histories;
  }

  CheckoutInvariants Invariants() {
    const auto found = CheckInvariants(options_, Orders(), 1'000'000, *database_.NewSession());
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(CheckoutInvariants{});
  }
  txn::CheckReport ByTimestamps() {
    return txn::CheckTimestamps(Histories(), {.loaded_until = loaded_until_});
  }
  txn::CheckReport ByDependencies() {
    return txn::CheckDependencies(Histories(), {.loaded_until = loaded_until_});
  }
  uint64_t AbortsCounted() const {
    uint64_t sum = 0;
    for (const uint64_t count : rates_.aborts) sum += count;
    return sum;
  }

  CheckoutOptions options_;
  std::unique_ptr<fabric::Fabric> fabric_;
  txn::ReferenceDatabase database_;
  uint64_t loaded_until_ = 0;
  std::unique_ptr<CheckoutDriver> driver_;
  std::vector<CheckoutRates> lines_;
  CheckoutRates rates_;

  // Without the driver: clients step by step.
  std::unique_ptr<ProductChoice> choice_;
  std::vector<std::unique_ptr<txn::Session>> sessions_;
  std::vector<std::unique_ptr<txn::SessionHistory>> histories_;
  std::vector<std::unique_ptr<txn::HistoryRecorder>> recorders_;
  std::vector<std::unique_ptr<CheckoutClient>> clients_;
  std::optional<txn::AbortReason> first_result_;
};

TEST_F(Checkout, CountsWhatItDoesAndInvariantsHold) {
  Load();
  Run({.clients = 4, .run_us = 0, .transactions = 5'000, .interval_us = 20'000, .record_history = true});
  EXPECT_EQ(rates_.committed, 5'000u);
  EXPECT_GT(rates_.committed_per_s, 0);
  EXPECT_GT(rates_.p50_us, 0);
  EXPECT_LE(rates_.p50_us, rates_.p90_us);
  EXPECT_LE(rates_.p90_us, rates_.p99_us);
  EXPECT_LE(rates_.p99_us, rates_.p999_us);
  uint64_t in_lines = 0;
  for (const CheckoutRates& line : lines_) in_lines += line.committed;
  EXPECT_LE(in_lines, rates_.committed);

  const CheckoutInvariants found = Invariants();
  EXPECT_TRUE(found.ok()) << found.ToString();
  EXPECT_EQ(found.orders, 5'000u);
  EXPECT_EQ(found.unknown_orders, 0u);
  EXPECT_EQ(found.aborted_looked_up, AbortsCounted());
  for (const txn::CheckReport& report : {ByTimestamps(), ByDependencies()}) {
    EXPECT_TRUE(report.ok()) << report.ToString();
    EXPECT_EQ(report.committed, 5'000u);
    EXPECT_EQ(report.transactions, 5'000u + AbortsCounted());
  }
}

/// In virtual time clients take time for each commit, so their conflicts follow from the seed.
TEST_F(Checkout, RunsInTheSimulator) {
  options_.products = 10;
  std::vector<uint64_t> aborts;
  for (const int run : {1, 2}) {
    SCOPED_TRACE(run);
    fabric::sim::World world({.seed = 7});
    auto fabric = world.OpenFabric("clients", {});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    txn::ReferenceDatabase database;
    for (const TableSchema& table : CheckoutTables(options_)) {
      database.CreateTable(table.name, table.key_bytes, table.row_bytes);
    }
    ASSERT_TRUE(LoadProducts(options_, *database.NewSession(), nullptr).ok());
    Clock& clock = (*fabric)->clock();
    CheckoutDriver driver({fabric->get()}, options_, {.clients = 5, .run_us = 100'000, .interval_us = 20'000},
                          [&](uint32_t client) -> absl::StatusOr<std::unique_ptr<txn::Session>> {
                            return std::make_unique<InterruptedSession>(
                                database.NewSession(),
                                [&clock, client] { clock.SleepUntil(clock.After(90 + client)); });
                          });
    int lines = 0;
    const auto rates = driver.Run([&](const CheckoutRates&) { ++lines; });
    ASSERT_TRUE(rates.ok()) << rates.status();
    EXPECT_EQ(lines, 5);
    EXPECT_GT(rates->committed, 1'000u);
    EXPECT_GE(rates->p50_us, 85);
    aborts.push_back(rates->aborts[static_cast<size_t>(txn::AbortReason::kWriteWrite)]);
    EXPECT_GT(aborts.back(), 0u);
    const auto found = CheckInvariants(options_, driver.orders(), 1'000, *database.NewSession());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->ok()) << found->ToString();
  }
  EXPECT_EQ(aborts[0], aborts[1]);
}

TEST_F(Checkout, RunsForATimeOrUntilItIsStopped) {
  Load();
  Run({.clients = 2, .run_us = 50'000, .interval_us = 10'000});
  EXPECT_GT(rates_.committed, 0u);
  EXPECT_GE(rates_.elapsed_s, 0.05);
  EXPECT_TRUE(Invariants().ok());

  driver_ = std::make_unique<CheckoutDriver>(
      std::vector<fabric::Fabric*>{fabric_.get()}, options_,
      DriverOptions{.clients = 2, .run_us = 0, .interval_us = 1'000},
      [this](uint32_t) -> absl::StatusOr<std::unique_ptr<txn::Session>> { return database_.NewSession(); });
  driver_->Stop();
  EXPECT_TRUE(driver_->Run(nullptr).ok());
}

TEST_F(Checkout, AClientsErrorEndsTheRun) {
  Load();
  CheckoutDriver driver({fabric_.get()}, options_, {.clients = 3, .run_us = 0},
                        [this](uint32_t client) -> absl::StatusOr<std::unique_ptr<txn::Session>> {
                          if (client == 1) return absl::UnavailableError("no memory server");
                          return database_.NewSession();
                        });
  EXPECT_EQ(driver.Run(nullptr).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Checkout, EndsWhenNothingIsCommittedAnyMore) {
  fabric::sim::World world({.seed = 7});
  auto fabric = world.OpenFabric("clients", {});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  Clock& clock = (*fabric)->clock();
  for (const TableSchema& table : CheckoutTables(options_)) {
    database_.CreateTable(table.name, table.key_bytes, table.row_bytes);
  }
  ASSERT_TRUE(LoadProducts(options_, *database_.NewSession(), nullptr).ok());
  bool refuses = false;
  CheckoutDriver driver({fabric->get()}, options_, {.clients = 2, .run_us = 0, .stall_us_max = 5'000'000},
                        [&](uint32_t) -> absl::StatusOr<std::unique_ptr<txn::Session>> {
                          return std::make_unique<InterruptedSession>(
                              database_.NewSession(), [&] { clock.SleepUntil(clock.After(1'000)); },
                              &refuses);
                        });
  const int64_t from_ns = clock.NowNs();
  const auto rates = driver.Run([&](const CheckoutRates& line) { refuses = line.elapsed_s > 3; });
  EXPECT_TRUE(absl::IsUnavailable(rates.status())) << rates.status();
  EXPECT_GT(clock.NowNs() - from_ns, 8'000'000'000) << "it was doing well";
  EXPECT_LT(clock.NowNs() - from_ns, 15'000'000'000);
}

TEST_F(Checkout, APlantedLostUpdateIsCaughtByInvariantsAndChecker) {
  options_.products = 3;
  database_.set_faults({.skip_validation = 1});
  Load();
  MeetAtCommit();
  const CheckoutInvariants found = Invariants();
  EXPECT_EQ(found.orders, 2u);
  EXPECT_EQ(found.wrong_stocks, 3u) << found.ToString();
  EXPECT_TRUE(ByTimestamps().Has(txn::AnomalyKind::kLostUpdate)) << ByTimestamps().ToString();
  EXPECT_TRUE(ByDependencies().Has(txn::AnomalyKind::kLostUpdate)) << ByDependencies().ToString();
}

TEST_F(Checkout, WhatAnAbortedTransactionLeavesIsCaught) {
  options_.products = 3;
  database_.set_faults({.keep_aborted = 1});
  Load();
  MeetAtCommit();
  const CheckoutInvariants found = Invariants();
  EXPECT_EQ(found.orders, 1u);
  EXPECT_EQ(found.aborted_looked_up, 1u);
  EXPECT_FALSE(found.ok()) << found.ToString();
  // A client must read it.
  AddClient(2)->Next();
  ASSERT_TRUE(clients_.back()->Try().ok());
  EXPECT_TRUE(ByTimestamps().Has(txn::AnomalyKind::kAbortedRead)) << ByTimestamps().ToString();
  EXPECT_TRUE(ByDependencies().Has(txn::AnomalyKind::kAbortedRead)) << ByDependencies().ToString();
}

TEST_F(Checkout, ConflictsAbortAndLeaveNothing) {
  options_.products = 3;
  Load();
  MeetAtCommit();
  EXPECT_EQ(first_result_, txn::AbortReason::kWriteWrite);
  const CheckoutInvariants found = Invariants();
  EXPECT_TRUE(found.ok()) << found.ToString();
  EXPECT_EQ(found.aborted_looked_up, 1u);
  EXPECT_TRUE(ByTimestamps().ok()) << ByTimestamps().ToString();
}

TEST_F(Checkout, ALostWriteIsCaught) {
  database_.set_faults({.lose_write = 50});
  Load();
  Run({.clients = 2, .run_us = 0, .transactions = 500, .record_history = true});
  const CheckoutInvariants found = Invariants();
  EXPECT_GT(found.missing_orders + found.broken_orders, 0u) << found.ToString();
}

TEST(CheckoutRows, OnlyWhatWasWrittenIsSound) {
  std::vector<std::byte> row(256), other(256);
  WriteRow(ProductRow{{.id = 7, .write = 70, .check = 0}, 5, 6}, row);
  WriteRow(ProductRow{{.id = 7, .write = 71, .check = 0}, 4, 6}, other);
  ASSERT_TRUE(ReadRow<ProductRow>(row).has_value());
  EXPECT_EQ(ReadRow<ProductRow>(row)->stock, 5);
  EXPECT_EQ(ValueOfRow(row, true), 70u);
  for (size_t cut = 16; cut < row.size(); cut += 8) {
    std::vector<std::byte> torn = row;
    std::copy(other.begin() + static_cast<ptrdiff_t>(cut), other.end(),
              torn.begin() + static_cast<ptrdiff_t>(cut));
    EXPECT_FALSE(ReadRow<ProductRow>(torn).has_value()) << cut;
  }
}

/// SQL's view of the row: its numbers, then its filler.
template <typename Row>
std::pair<std::vector<int64_t>, std::string> Decoded(const TableSchema& schema, const Row& words) {
  std::vector<std::byte> row(schema.row_bytes);
  WriteRow(words, row);
  std::vector<int64_t> numbers;
  std::string text;
  for (const Value& value : partitioner::RecordLayout(schema.table).Decode(row)) {
    EXPECT_FALSE(value.null);
    if (value.type.kind == TypeKind::kString) {
      text = value.text;
    } else {
      numbers.push_back(static_cast<int64_t>(value.number));
    }
  }
  numbers.erase(numbers.begin() + 2);  // the check
  return {numbers, text};
}

TEST(CheckoutRows, AreRowsOfSql) {
  const std::vector<TableSchema> tables = CheckoutTables({.line_bytes = 56});
  ASSERT_EQ(tables.size(), 3u);
  for (const TableSchema& schema : tables) {
    const partitioner::RecordLayout layout(schema.table);
    EXPECT_EQ(layout.key_bytes(), schema.key_bytes) << schema.name;
    EXPECT_EQ(layout.row_bytes(), schema.row_bytes) << schema.name;
  }
  const auto [product, filler] =
      Decoded(tables[0], ProductRow{{.id = 7, .write = 0x19af, .check = 0}, -5, 6});
  EXPECT_THAT(product, ::testing::ElementsAre(7, 0x19af, -5, 6));
  ASSERT_EQ(filler.size(), 1024u - 5 * 8);  // the text is as long as its column, and in UTF-8
  for (size_t i = 0; i < filler.size(); i += 4) {
    ASSERT_EQ(filler.substr(i, 2), "\xf0\x9d");
    const auto third = static_cast<uint8_t>(filler[i + 2]), last = static_cast<uint8_t>(filler[i + 3]);
    ASSERT_TRUE(third >= 0x90 && third <= 0x93 && last >= 0x80 && last <= 0xbf);
  }
  EXPECT_THAT(Decoded(tables[1], OrderRow{{.id = 1, .write = 2, .check = 0}, 3, 4}).first,
              ::testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Decoded(tables[2], LineRow{{.id = 1, .write = 2, .check = 0}, 3, 4, 5, 6}),
              ::testing::Pair(::testing::ElementsAre(1, 2, 3, 4, 5, 6), ""));
}

TEST(CheckoutOptions, RefusesWhatCannotBe) {
  EXPECT_TRUE(CheckoutOptions{}.Validate().ok());
  EXPECT_FALSE(CheckoutOptions{.product_bytes = 1023}.Validate().ok());
  EXPECT_FALSE(CheckoutOptions{.line_bytes = 32}.Validate().ok());
  EXPECT_FALSE(CheckoutOptions{.products = 2}.Validate().ok());
  EXPECT_FALSE(CheckoutOptions{.zipf_theta = 1}.Validate().ok());
  EXPECT_FALSE(CheckoutOptions{.restock_below = 3}.Validate().ok());
}

}  // namespace
}  // namespace nam::tpcw
