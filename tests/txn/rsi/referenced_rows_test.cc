#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/teller.h"
#include "txn/rsi/session.h"

/// Foreign keys: a commit that deletes a parent looks for children; one that makes a child locks the parent.
namespace nam::txn {
namespace {

constexpr uint64_t kOrder = 7;

/// An index over Account::balance; an order keeps there the account that it references, or NULL.
IndexDescription ByAccount() {
  return {.name = "orders_account_idx",
          .fields = {{.offset = 8, .bytes = 8, .nullable = true, .null_bit = 8 * 16}},
          .key_bytes = 9};
}
/// Orders reference accounts by their keys, or by their balances.
ReferenceDescription ToAccounts(bool by_key) {
  return {.name = "orders_account_fkey",
          .child = "orders",
          .index = "orders_account_idx",
          .fields = {{.offset = by_key ? 0u : 8u, .bytes = 8}}};
}

/// A teller that also knows orders.
struct Trader : Teller {
  Trader(RecordCluster& cluster, uint32_t id, fabric::Fabric& fabric)
      : Teller(cluster, id, fabric), orders(*session->OpenTable("orders")) {}
  Trader(RecordCluster& cluster, uint32_t id) : Trader(cluster, id, cluster.client()) {}

  absl::Status InsertOrder(uint64_t order, uint64_t account) {
    return session->Insert(orders, Bytes(Account{order, static_cast<int64_t>(account)}));
  }
  /// A transaction that makes an order for account 1; 0 if it fails.
  uint64_t Orders(uint64_t order = kOrder) {
    if (!session->Begin().ok()) return 0;
    const auto account = Read(1);
    if (!account.ok()) return 0;
    if (!account->has_value()) {
      session->Abort();
      return 0;
    }
    if (!Lock(1).ok() || !InsertOrder(order, 1).ok()) return 0;
    return Committed(session->Commit());
  }
  /// One that deletes account 1.
  uint64_t Deletes() {
    if (!session->Begin().ok() || !Read(1).ok() || !Delete(1).ok()) return 0;
    return Committed(session->Commit());
  }
  /// One that deletes the order.
  uint64_t DeletesOrder() {
    if (!session->Begin().ok() || !Read(orders, kOrder).ok()) return 0;
    if (!session->Delete(orders, Bytes(kOrder)).ok()) return 0;
    return Committed(session->Commit());
  }
  /// Whether there is an order without its account, at a snapshot.
  bool Orphans() {
    EXPECT_TRUE(session->Begin().ok());
    const auto order = Read(orders, kOrder), account = Read(1);
    session->Abort();
    EXPECT_TRUE(order.ok() && account.ok());
    return order->has_value() && !account->has_value();
  }

  absl::Status why;  // the last commit failed
  TableHandle orders;

 private:
  uint64_t Committed(const absl::StatusOr<uint64_t>& commit) {
    why = commit.status();
    return commit.value_or(0);
  }
};

/// Account 1, and orders that reference accounts.
class ReferencedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make(bool referenced = true, bool by_key = true) {
    cluster_.reset();  // before the next world begins
    cluster_ = std::make_unique<RecordCluster>(RecordCluster::Options{.kind = fabric::Kind::kSim});
    cluster_->AddTable("accounts", {});
    cluster_->AddTable("orders", {});
    if (referenced) {
      cluster_->SetUsable("orders", cluster_->AddIndex("orders", ByAccount()), 1);
      cluster_->AddReference("accounts", ToAccounts(by_key));
    }
    Teller(*cluster_, 1).Create(1, 100);
  }
  static std::optional<AbortReason> ReasonOf(const Trader& trader) { return AbortReasonOf(trader.why); }

  std::unique_ptr<RecordCluster> cluster_;
};

/// A client that makes an order stalls before each of its verbs, while another one deletes the account.
TEST_F(ReferencedRowsTest, AnOrderIsOvertakenByTheDeletionOfItsAccount) {
  int ordered = 0, deleted = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Trader child(*cluster_, kVictim, fabric), parent(*cluster_, 3);
    uint64_t deletion = 0;
    fabric.PauseAfter(requests, [&] { deletion = parent.Deletes(); });
    const uint64_t order = child.Orders();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_FALSE(order != 0 && deletion != 0);
    EXPECT_FALSE(Trader(*cluster_, 4).Orphans());
    ordered += order != 0 && paused;
    deleted += deletion != 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(ordered, 3);
  EXPECT_GT(deleted, 3);
}

/// The same with the roles exchanged.
TEST_F(ReferencedRowsTest, ADeletionIsOvertakenByAnOrder) {
  int ordered = 0, deleted = 0, violations = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Trader parent(*cluster_, kVictim, fabric), child(*cluster_, 3);
    uint64_t order = 0;
    fabric.PauseAfter(requests, [&] { order = child.Orders(); });
    const uint64_t deletion = parent.Deletes();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_FALSE(order != 0 && deletion != 0);
    EXPECT_FALSE(Trader(*cluster_, 4).Orphans());
    ordered += order != 0;
    deleted += deletion != 0 && paused;
    violations += ReasonOf(parent) == AbortReason::kForeignKey;
    if (HasFailure()) return;
  }
  EXPECT_GT(ordered, 3);
  EXPECT_GT(deleted, 3);
  EXPECT_GT(violations, 3);
}

/// A client dies after each work request of a transaction that makes an order: then either the order is
/// there, or its account can be deleted.
TEST_F(ReferencedRowsTest, AClientDiesWhileItMakesAnOrder) {
  int died_decided = 0;
  for (uint64_t requests = 0, finished = false; !finished; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    {
      MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
      Trader victim(*cluster_, kVictim, mortal);
      mortal.DieAfter(requests);
      finished = victim.Orders() != 0 && !mortal.dead();
      mortal.DieAfter(0);
    }
    cluster_->SetDead(MemberId(kVictim));
    Trader other(*cluster_, 3);
    uint64_t deletion = 0;
    for (int tries = 0; tries < 5 && deletion == 0 && ReasonOf(other) != AbortReason::kForeignKey; ++tries)
      deletion = other.Deletes();
    ASSERT_TRUE(other.session->Begin().ok());
    const bool ordered = (*other.Read(other.orders, kOrder)).has_value();
    other.session->Abort();
    EXPECT_EQ(ordered, deletion == 0) << other.why;
    died_decided += ordered && !finished;
    if (HasFailure()) return;
  }
  EXPECT_GT(died_decided, 1);
}

/// A client that deletes an account stalls while another one deletes its only order: a snapshot between the
/// two commits must not see the order alone.
TEST_F(ReferencedRowsTest, AnOrderThatGoesLaterIsAConflict) {
  int both = 0, conflicts = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make();
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Trader parent(*cluster_, kVictim, fabric), child(*cluster_, 3);
    ASSERT_NE(child.Orders(), 0u) << child.why;
    uint64_t gone = 0;
    fabric.PauseAfter(requests, [&] { gone = child.DeletesOrder(); });
    const uint64_t deletion = parent.Deletes();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    if (deletion != 0) {
      EXPECT_NE(gone, 0u);
      EXPECT_LT(gone, deletion);
    }
    both += deletion != 0;
    conflicts += ReasonOf(parent) == AbortReason::kWriteWrite;
    if (HasFailure()) return;
  }
  EXPECT_GT(both, 3);
  EXPECT_GT(conflicts, 1);
}

/// The same, but the other one dies: then the order's row may be locked and its deletion decided, though its
/// header does not say so.
TEST_F(ReferencedRowsTest, AnOrderWhoseDeletionIsInDoubtIsAConflict) {
  int in_doubt = 0, both = 0;
  for (uint64_t death = 6, died = true; died; ++death) {
    died = false;
    for (uint64_t requests = 2, paused = true; paused; requests += 2) {
      SCOPED_TRACE(absl::StrCat(requests, " ", death));
      Make();
      MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
      MortalFabric mortal(cluster_->client(), MortalFabric::kNever);
      Trader parent(*cluster_, kVictim, fabric);
      auto child = std::make_unique<Trader>(*cluster_, 3, mortal);
      ASSERT_NE(child->Orders(), 0u) << child->why;
      uint64_t gone = 0;
      fabric.PauseAfter(requests, [&] {
        mortal.DieAfter(death);
        gone = child->DeletesOrder();
      });
      const uint64_t deletion = parent.Deletes();
      paused = fabric.paused();
      if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
      if (deletion != 0 && !absl::IsUnavailable(child->why)) {
        EXPECT_NE(gone, 0u);
        EXPECT_LT(gone, deletion);
      }
      died = died || mortal.dead();
      in_doubt += gone != 0 && mortal.dead() && deletion == 0;
      both += gone != 0 && deletion != 0;
      mortal.DieAfter(0);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(in_doubt, 3);
  EXPECT_GT(both, 3);
}

/// Orders begin to reference accounts while a session has accounts open, and is about to delete one.
TEST_F(ReferencedRowsTest, SessionsHearOfAForeignKeyThatComes) {
  int ordered = 0;
  for (uint64_t requests = 0, paused = true; paused; ++requests) {
    SCOPED_TRACE(requests);
    Make(/*referenced=*/false);
    MortalFabric fabric(cluster_->client(), MortalFabric::kNever);
    Trader parent(*cluster_, kVictim, fabric), child(*cluster_, 3);
    uint64_t order = 0;
    fabric.PauseAfter(requests, [&] {
      cluster_->AddReference("accounts", ToAccounts(/*by_key=*/true));
      const AllocationId index = cluster_->AddIndex("orders", ByAccount());
      // Until then no client may change orders.
      if (child.session->FillIndex(child.orders, index).ok()) order = child.Orders();
    });
    const uint64_t deletion = parent.Deletes();
    paused = fabric.paused();
    if (!paused) fabric.PauseAfter(MortalFabric::kNever, [] {});
    EXPECT_FALSE(order != 0 && deletion != 0);
    EXPECT_FALSE(Trader(*cluster_, 4).Orphans());
    ordered += order != 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(ordered, 3);
}

/// The transaction's own changes count.
TEST_F(ReferencedRowsTest, TheTransactionsOwnOrdersCount) {
  Trader trader(*cluster_, 2);
  ASSERT_NE(trader.Orders(), 0u);
  EXPECT_EQ(trader.Deletes(), 0u);
  EXPECT_EQ(ReasonOf(trader), AbortReason::kForeignKey);
  EXPECT_TRUE(absl::IsFailedPrecondition(trader.why));
  EXPECT_NE(trader.why.message().find("violates foreign key constraint \"orders_account_fkey\" on table "
                                      "\"orders\""),
            absl::string_view::npos)
      << trader.why;
  // The order goes with its account.
  ASSERT_TRUE(trader.session->Begin().ok() && trader.Read(1).ok() && trader.Delete(1).ok());
  ASSERT_TRUE(trader.Read(trader.orders, kOrder).ok());
  ASSERT_TRUE(trader.session->Delete(trader.orders, Bytes(kOrder)).ok());
  trader.Commits();
  // An order is inserted whose account is deleted.
  trader.Create(1, 100);
  ASSERT_TRUE(trader.session->Begin().ok() && trader.Read(1).ok() && trader.Lock(1).ok());
  ASSERT_TRUE(trader.InsertOrder(kOrder, 1).ok() && trader.Delete(1).ok());
  EXPECT_EQ(AbortReasonOf(trader.session->Commit().status()), AbortReason::kForeignKey);
  // An order changes to another account.
  trader.Create(2, 100);
  ASSERT_NE(trader.Orders(), 0u) << trader.why;
  ASSERT_TRUE(trader.session->Begin().ok() && trader.Read(1).ok() && trader.Read(2).ok());
  ASSERT_TRUE(trader.Read(trader.orders, kOrder).ok() && trader.Lock(2).ok() && trader.Delete(1).ok());
  ASSERT_TRUE(trader.session->Update(trader.orders, Bytes(Account{kOrder, 2})).ok());
  trader.Commits();
  EXPECT_EQ(trader.BalanceOf(1), std::nullopt);
}

/// Its entry remains for a while.
TEST_F(ReferencedRowsTest, AnOrderThatHasTurnedAwayDoesNotCount) {
  Trader trader(*cluster_, 2), other(*cluster_, 3);
  trader.Create(2, 100);
  ASSERT_NE(trader.Orders(), 0u);
  ASSERT_TRUE(trader.session->Begin().ok() && trader.Read(2).ok() && trader.Lock(2).ok());
  ASSERT_TRUE(trader.Read(trader.orders, kOrder).ok());
  ASSERT_TRUE(trader.session->Update(trader.orders, Bytes(Account{kOrder, 2})).ok());
  trader.Commits();
  EXPECT_NE(other.Deletes(), 0u) << other.why;
}

/// NULL references nothing.
TEST_F(ReferencedRowsTest, NullReferencesNothing) {
  Trader trader(*cluster_, 2);
  ASSERT_TRUE(trader.session->Begin().ok());
  Account order{kOrder, 1};
  order.padding[0] = 1;
  ASSERT_TRUE(trader.session->Insert(trader.orders, Bytes(order)).ok());
  trader.Commits();
  EXPECT_NE(trader.Deletes(), 0u) << trader.why;
}

/// An account gives its balance, which orders reference, to another account, or to none.
TEST_F(ReferencedRowsTest, AKeyMayChangeHandsAndMustNotGo) {
  Make(/*referenced=*/true, /*by_key=*/false);
  Trader trader(*cluster_, 2);
  trader.Create(2, 200);
  ASSERT_TRUE(trader.session->Begin().ok() && trader.Read(1).ok() && trader.Lock(1).ok());
  ASSERT_TRUE(trader.InsertOrder(kOrder, 100).ok());
  trader.Commits();
  const auto set = [&](int64_t one, int64_t two) {
    EXPECT_TRUE(trader.session->Begin().ok() && trader.Read(1).ok() && trader.Read(2).ok());
    EXPECT_TRUE(trader.Update(1, one).ok() && trader.Update(2, two).ok());
    return AbortReasonOf(trader.session->Commit().status());
  };
  EXPECT_EQ(set(100, 300), std::nullopt) << "the key that is referenced stays";
  EXPECT_EQ(set(101, 300), AbortReason::kForeignKey);
  EXPECT_EQ(set(300, 100), std::nullopt);
  EXPECT_EQ(set(300, 101), AbortReason::kForeignKey);
  EXPECT_EQ(set(301, 100), std::nullopt);
}

/// A dropped child is not asked any more.
TEST_F(ReferencedRowsTest, AForeignKeyThatWentIsNotAsked) {
  Trader trader(*cluster_, 2), parent(*cluster_, 3);
  ASSERT_NE(trader.Orders(), 0u);
  EXPECT_EQ(parent.Deletes(), 0u);
  cluster_->RemoveReferences("accounts");
  ASSERT_TRUE(trader.session->AwaitCommits().ok());
  cluster_->DropTable("orders");
  EXPECT_NE(parent.Deletes(), 0u) << parent.why;
}

/// Clients make orders and delete accounts, and die. At every snapshot each order has its account.
class ReferenceScenario {
 public:
  explicit ReferenceScenario(uint64_t seed) : random_(seed), cluster_(OptionsOf(seed)) {
    cluster_.AddTable("accounts", {});
    cluster_.AddTable("orders", {});
    cluster_.SetUsable("orders", cluster_.AddIndex("orders", ByAccount()), 1);
    cluster_.AddReference("accounts", ToAccounts(/*by_key=*/true));
  }

  void Run() {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(
          cluster_.client().StartThread("client", [this, seed = random_()] { Work(seed, 30); }));
    }
    threads.clear();  // joins
  }

  int ordered = 0, deleted = 0, violations = 0, deaths = 0, looked = 0;

 private:
  static constexpr uint64_t kAccounts = 3, kOrders = 6;

  static RecordCluster::Options OptionsOf(uint64_t seed) {
    RecordCluster::Options options{.kind = fabric::Kind::kSim, .seed = seed};
    options.memory_bytes = uint64_t{20} << 20;
    options.timestamps = seed % 2 == 0 ? TimestampKind::kLeased : TimestampKind::kBitVector;
    options.faults.delay_probability = 0.1;
    options.faults.delay_ns_max = 20'000;
    return options;
  }

  void Work(uint64_t seed, int left) {
    std::mt19937_64 random(seed);
    while (left > 0) {
      const uint32_t id = ++members_;
      const std::unique_ptr<fabric::Fabric> fabric = cluster_.OpenFabric("client");
      MortalFabric mortal(*fabric, random() % 2 == 0 ? MortalFabric::kNever : 100 + random() % 1'000);
      RecordCluster::Member member(cluster_, mortal, id);
      auto session = OpenRsiSession(member, {});
      --left;
      if (session.ok()) {
        const auto accounts = (*session)->OpenTable("accounts"), orders = (*session)->OpenTable("orders");
        for (bool goes_on = accounts.ok() && orders.ok(); goes_on && left > 0; --left)
          goes_on = Transact(**session, *accounts, *orders, random);
      }
      if (!mortal.dead()) continue;
      ++deaths;
      cluster_.world().KillProcess(cluster_.world().ProcessOf(*fabric));
      cluster_.SetDead(MemberId(id));
    }
  }

  /// False: the session cannot be used any more.
  bool Transact(Session& session, TableHandle accounts, TableHandle orders, std::mt19937_64& random) {
    const auto usable = [&](const absl::Status& status) {
      violations += AbortReasonOf(status) == AbortReason::kForeignKey;
      return status.ok() || AbortReasonOf(status).has_value();
    };
    if (absl::Status status = session.Begin(); !status.ok()) return usable(status);
    if (random() % 2 == 0) {
      if (absl::Status status = Look(session, accounts, orders); !status.ok()) return usable(status);
    }
    bool deletes = false;
    const absl::Status changed = Change(session, accounts, orders, random, deletes);
    if (!changed.ok()) return usable(changed);
    const absl::StatusOr<uint64_t> committed = session.Commit();
    deleted += committed.ok() && *committed != 0 && deletes;
    ordered += committed.ok() && *committed != 0 && !deletes;
    return usable(committed.status());
  }

  static absl::Status Change(Session& session, TableHandle accounts, TableHandle orders,
                             std::mt19937_64& random, bool& deletes) {
    Account account, order;
    const uint64_t key = random() % kAccounts, order_key = random() % kOrders;
    Lookup lookups[] = {{accounts, Bytes(key), std::as_writable_bytes(std::span(&account, 1))},
                        {orders, Bytes(order_key), std::as_writable_bytes(std::span(&order, 1))}};
    if (absl::Status status = session.Read(lookups); !status.ok()) return status;
    if (!lookups[0].found) return session.Insert(accounts, Bytes(Account{key, 1}));
    if (random() % 3 == 0) {
      deletes = true;
      return session.Delete(accounts, Bytes(key));
    }
    if (lookups[1].found && random() % 2 == 0) return session.Delete(orders, Bytes(order_key));
    if (absl::Status status = session.Lock(accounts, Bytes(key)); !status.ok()) return status;
    const Account now{order_key, static_cast<int64_t>(key)};
    return lookups[1].found ? session.Update(orders, Bytes(now)) : session.Insert(orders, Bytes(now));
  }

  absl::Status Look(Session& session, TableHandle accounts, TableHandle orders) {
    std::set<int64_t> keys, referenced;
    const auto collect = [](std::set<int64_t>& into, bool key) {
      return [&into, key](std::span<const std::byte> row) {
        const Account& account = *reinterpret_cast<const Account*>(row.data());
        into.insert(key ? static_cast<int64_t>(account.key) : account.balance);
        return true;
      };
    };
    if (absl::Status status = session.Scan(accounts, collect(keys, true)); !status.ok()) return status;
    if (absl::Status status = session.Scan(orders, collect(referenced, false)); !status.ok()) return status;
    for (const int64_t key : referenced)
      EXPECT_TRUE(keys.contains(key)) << "at snapshot " << session.snapshot() << " of account " << key;
    ++looked;
    return absl::OkStatus();
  }

  std::mt19937_64 random_;
  RecordCluster cluster_;
  std::atomic<uint32_t> members_ = 1;
};

TEST(ReferencedRowsSimTest, EveryOrderHasItsAccountAtEverySnapshot) {
  int ordered = 0, deleted = 0, violations = 0, deaths = 0, looked = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ReferenceScenario scenario(seed);
    scenario.Run();
    ordered += scenario.ordered;
    deleted += scenario.deleted;
    violations += scenario.violations;
    deaths += scenario.deaths;
    looked += scenario.looked;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ordered, 80);
  EXPECT_GT(deleted, 20);
  EXPECT_GT(violations, 20);
  EXPECT_GT(deaths, 8);
  EXPECT_GT(looked, 80);
}

}  // namespace
}  // namespace nam::txn
