#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "txn/session.h"

namespace nam::txn {

struct Account {
  uint64_t key = 0;
  int64_t balance = 0;
  char padding[48] = {};
};
static_assert(sizeof(Account) == 64);

template <typename T>
std::span<const std::byte> Bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// A session, of any protocol, that knows the table of accounts.
struct AccountSession {
  explicit AccountSession(absl::StatusOr<std::unique_ptr<Session>> opened) {
    EXPECT_TRUE(opened.ok()) << opened.status();
    session = *std::move(opened);
    accounts = *session->OpenTable("accounts");
  }

  absl::StatusOr<std::optional<Account>> Read(uint64_t key) { return Read(accounts, key); }
  absl::StatusOr<std::optional<Account>> Read(TableHandle table, uint64_t key) {
    Account account;
    Lookup lookup{table, Bytes(key), std::as_writable_bytes(std::span(&account, 1))};
    const absl::Status status = session->Read({&lookup, 1});
    if (!status.ok()) return status;
    if (!lookup.found) return std::nullopt;
    return account;
  }
  absl::Status Insert(uint64_t key, int64_t balance) {
    return session->Insert(accounts, Bytes(Account{key, balance}));
  }
  absl::Status Update(uint64_t key, int64_t balance) {
    return session->Update(accounts, Bytes(Account{key, balance}));
  }
  absl::Status Delete(uint64_t key) { return session->Delete(accounts, Bytes(key)); }
  absl::Status Lock(uint64_t key) { return session->Lock(accounts, Bytes(key)); }
  /// Runs in a transaction of its own.
  std::optional<int64_t> BalanceOf(uint64_t key) {
    EXPECT_TRUE(session->Begin().ok());
    const auto account = Read(key);
    EXPECT_TRUE(account.ok()) << account.status();
    session->Abort();
    if (!account.ok() || !account->has_value()) return std::nullopt;
    return (*account)->balance;
  }
  void Create(uint64_t key, int64_t balance) {
    ASSERT_TRUE(session->Begin().ok());
    ASSERT_TRUE(Insert(key, balance).ok());
    Commits();
  }
  void Set(uint64_t key, int64_t balance) {
    ASSERT_TRUE(session->Begin().ok());
    ASSERT_TRUE((*Read(key)).has_value());
    ASSERT_TRUE(Update(key, balance).ok());
    Commits();
  }
  void Commits() {
    const auto committed = session->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
  }

  std::unique_ptr<Session> session;
  TableHandle accounts;
};

}  // namespace nam::txn
