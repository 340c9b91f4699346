#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "simulation/application.h"

namespace nam::simulation {
namespace {

using txn::HistoryRecorder;
using txn::Lookup;
using txn::OperationKind;
using txn::Outcome;
using txn::Session;
using txn::TableHandle;

constexpr int64_t kFirstBalance = 1'000;

/// Repeats its write's number and the balance, so that a mix of two rows is detectable.
struct AccountRow {
  uint64_t key = 0;
  uint64_t write = 0;
  int64_t balance = 0;
  std::array<uint64_t, 13> copies = {};

  static AccountRow Of(uint64_t key, uint64_t write, int64_t balance) {
    AccountRow row{key, write, balance, {}};
    for (size_t i = 0; i < row.copies.size(); ++i) row.copies[i] = row.Copy(i);
    return row;
  }
  uint64_t Copy(size_t i) const {
    return MixBits(key + 3 * write + 5 * static_cast<uint64_t>(balance) + 7 * i);
  }
  bool sound() const {
    for (size_t i = 0; i < copies.size(); ++i) {
      if (copies[i] != Copy(i)) return false;
    }
    return true;
  }
  /// The write to record in a history; a number that no write has, if the row is torn.
  uint64_t Named() const {
    if (sound()) return write;
    uint64_t digest = write;
    for (const uint64_t copy : copies) digest = MixBits(digest ^ copy);
    return digest | 1;
  }
};
static_assert(sizeof(AccountRow) == 128);

struct Account {
  size_t table = 0;
  uint64_t key = 0;
  bool operator==(const Account&) const = default;
  uint64_t record() const { return txn::RecordId(static_cast<uint8_t>(table), key); }
};

constexpr std::array<const char*, 2> kTables = {"checking", "savings"};

class Bank;

/// A session's tables, and its transactions, which record their steps.
class Teller final : public Customer {
 public:
  Teller(Bank& bank, Session& session, HistoryRecorder& recorder, RandomStream random)
      : bank_(bank), session_(session), recorder_(recorder), random_(random) {}
  absl::Status Open();
  absl::StatusOr<bool> RunOne() override;

  /// Reads all accounts, and reports an inconsistent total.
  absl::Status ReadAll();
  absl::Status Insert(const Account& account, int64_t balance);
  /// Writes a row that was read.
  absl::Status Put(const Account& account, int64_t balance);
  absl::Status Remove(const Account& account);
  absl::StatusOr<bool> Commit();
  /// Handles an error: false for an abort, else the error.
  absl::StatusOr<bool> End(const absl::Status& status);
  /// As End, with an error for an abort.
  absl::Status Done(const absl::Status& status);

  struct Seen {
    Account account;
    bool found = false;
    AccountRow row;
  };
  absl::Status Read(std::span<const Account> accounts);
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  absl::Status Transfer();
  absl::Status Scan();
  void Judge();

  Bank& bank_;
  Session& session_;
  HistoryRecorder& recorder_;
  RandomStream random_;
  std::array<TableHandle, kTables.size()> tables_ = {};
  std::vector<Seen> seen_;
};

class Bank final : public Application {
 public:
  explicit Bank(RandomStream random)
      : accounts_(static_cast<uint64_t>(random.Magnitude(2, 40))),
        versions_(1u << random.Below(3)),
        closings_percent_(random.OneIn(3) ? 0 : random.Below(40)) {
    check_.read_own_commits = true;
  }

  std::vector<txn::RecordTableOptions> tables() const override {
    std::vector<txn::RecordTableOptions> tables;
    for (const char* name : kTables) {
      tables.push_back({.name = name,
                        .row_bytes = sizeof(AccountRow),
                        .key_bytes = sizeof(uint64_t),
                        .versions = versions_,
                        .expected_rows = 1});
    }
    return tables;
  }

  absl::Status Fill(Session& session) override {
    Teller teller(*this, session, NewRecorder(), RandomStream(0));
    if (absl::Status opened = teller.Open(); !opened.ok()) return opened;
    const std::vector<Account> all = Accounts();
    if (absl::Status read = teller.Read(all); !read.ok()) return read;
    for (const Account& account : all) {
      if (absl::Status status = teller.Insert(account, kFirstBalance); !status.ok()) return status;
    }
    const absl::StatusOr<bool> committed = teller.Commit();
    if (!committed.ok() || *committed) return committed.status();
    return txn::AbortStatus(txn::AbortReason::kConnectionLost, "the accounts were not opened");
  }

  absl::StatusOr<std::unique_ptr<Customer>> NewCustomer(Session& session, RandomStream random) override {
    auto teller = std::make_unique<Teller>(*this, session, NewRecorder(), random);
    if (absl::Status opened = teller->Open(); !opened.ok()) return opened;
    return std::unique_ptr<Customer>(std::move(teller));
  }

  absl::Status Audit(Session& session, Clock& clock) override {
    Teller teller(*this, session, NewRecorder(), RandomStream(0));
    if (absl::Status opened = teller.Open(); !opened.ok()) return opened;
    const absl::Status rewritten =
        UntilDone(clock, "accounts cannot be changed", [&] { return teller.Done(ReadAndRewrite(teller)); });
    if (!rewritten.ok()) return rewritten;
    return UntilDone(clock, "accounts cannot be read", [&] { return teller.Done(teller.ReadAll()); });
  }

  std::vector<Account> Accounts() const {
    std::vector<Account> all;
    for (uint64_t key = 0; key < accounts_; ++key) {
      for (size_t table = 0; table < kTables.size(); ++table) all.push_back({table, key});
    }
    return all;
  }
  uint64_t accounts() const { return accounts_; }
  uint64_t closings_percent() const { return closings_percent_; }
  int64_t Total() const { return kFirstBalance * static_cast<int64_t>(accounts_ * kTables.size()); }
  void Report(std::string what) { Wrong(std::move(what)); }

 private:
  static absl::Status ReadAndRewrite(Teller& teller) {
    if (absl::Status read = teller.ReadAll(); !read.ok()) return read;
    for (const Teller::Seen& seen : std::vector(teller.seen())) {
      if (!seen.found) continue;
      if (absl::Status put = teller.Put(seen.account, seen.row.balance); !put.ok()) return put;
    }
    return absl::OkStatus();
  }

  const uint64_t accounts_;  // per table
  const uint32_t versions_;
  const uint64_t closings_percent_;
};

absl::Status Teller::Open() {
  for (size_t i = 0; i < kTables.size(); ++i) {
    const absl::StatusOr<TableHandle> handle = session_.OpenTable(kTables[i]);
    if (!handle.ok()) return handle.status();
    tables_[i] = *handle;
  }
  return absl::OkStatus();
}

// Also begins the transaction.
absl::Status Teller::Read(std::span<const Account> accounts) {
  seen_.clear();
  for (const Account& account : accounts) seen_.push_back({.account = account});
  std::vector<Lookup> lookups;
  for (Seen& seen : seen_) {
    lookups.push_back({tables_[seen.account.table], std::as_bytes(std::span(&seen.account.key, 1)),
                       std::as_writable_bytes(std::span(&seen.row, 1))});
  }
  if (random_.OneIn(2)) {
    if (absl::Status read = session_.BeginAndRead(lookups); !read.ok()) return read;
    recorder_.Begin(session_.snapshot());
  } else {
    if (absl::Status begun = session_.Begin(); !begun.ok()) return begun;
    recorder_.Begin(session_.snapshot());
    if (absl::Status read = session_.Read(lookups); !read.ok()) return read;
  }
  for (size_t i = 0; i < seen_.size(); ++i) {
    Seen& seen = seen_[i];
    seen.found = lookups[i].found;
    recorder_.Read(seen.account.record(), seen.found ? seen.row.Named() : txn::kNoValue);
    if (seen.found && (!seen.row.sound() || seen.row.key != seen.account.key)) {
      bank_.Report(absl::StrFormat("account %d of %s: a row that no transaction has written",
                                   seen.account.key, kTables[seen.account.table]));
      return absl::DataLossError("an account is torn");
    }
  }
  return absl::OkStatus();
}

absl::Status Teller::ReadAll() {
  if (absl::Status read = Read(bank_.Accounts()); !read.ok()) return read;
  Judge();
  return absl::OkStatus();
}

absl::Status Teller::Scan() {
  seen_.clear();
  if (absl::Status begun = session_.Begin(); !begun.ok()) return begun;
  recorder_.Begin(session_.snapshot());
  for (size_t table = 0; table < kTables.size(); ++table) {
    const absl::Status scanned = session_.Scan(tables_[table], [&](std::span<const std::byte> bytes) {
      Seen& seen = seen_.emplace_back(Seen{.account = {.table = table}, .found = true});
      std::memcpy(&seen.row, bytes.data(), sizeof(seen.row));
      seen.account.key = seen.row.key;
      return true;
    });
    if (!scanned.ok()) return scanned;
  }
  for (const Seen& seen : seen_) recorder_.Read(seen.account.record(), seen.row.Named());
  Judge();
  return absl::OkStatus();
}

void Teller::Judge() {
  int64_t total = 0;
  for (const Seen& seen : seen_) total += seen.found ? seen.row.balance : 0;
  if (total == bank_.Total()) return;
  bank_.Report(absl::StrFormat("a snapshot (%d) in which there are %d, and not %d", session_.snapshot(),
                               total, bank_.Total()));
}

absl::Status Teller::Insert(const Account& account, int64_t balance) {
  const AccountRow row = AccountRow::Of(account.key, recorder_.NextValue(), balance);
  const absl::Status status = session_.Insert(tables_[account.table], std::as_bytes(std::span(&row, 1)));
  if (status.ok()) recorder_.Write(OperationKind::kInsert, account.record(), row.write);
  return status;
}

absl::Status Teller::Put(const Account& account, int64_t balance) {
  const AccountRow row = AccountRow::Of(account.key, recorder_.NextValue(), balance);
  const absl::Status status = session_.Update(tables_[account.table], std::as_bytes(std::span(&row, 1)));
  if (status.ok()) recorder_.Write(OperationKind::kUpdate, account.record(), row.write);
  return status;
}

absl::Status Teller::Remove(const Account& account) {
  const absl::Status status =
      session_.Delete(tables_[account.table], std::as_bytes(std::span(&account.key, 1)));
  if (status.ok()) recorder_.Write(OperationKind::kDelete, account.record(), txn::kNoValue);
  return status;
}

// Transfers between two accounts; may open the target, and close an emptied account.
absl::Status Teller::Transfer() {
  Account from{random_.Below(kTables.size()), random_.Below(bank_.accounts())}, to = from;
  while (to == from) to = {random_.Below(kTables.size()), random_.Below(bank_.accounts())};
  if (absl::Status read = Read(std::array{from, to}); !read.ok()) return read;
  const Seen source = seen_[0], target = seen_[1];
  if (!source.found) return absl::OkStatus();
  const bool closes = random_.Below(100) < bank_.closings_percent();
  const int64_t amount = closes ? source.row.balance : random_.Between(1, 100);
  const absl::Status taken = closes ? Remove(from) : Put(from, source.row.balance - amount);
  if (!taken.ok()) return taken;
  return target.found ? Put(to, target.row.balance + amount) : Insert(to, amount);
}

absl::StatusOr<bool> Teller::Commit() {
  recorder_.Committing();
  const absl::StatusOr<uint64_t> committed = session_.Commit();
  if (committed.ok()) {
    recorder_.RecordOutcome(Outcome::kCommitted, *committed);
    return true;
  }
  if (!txn::AbortReasonOf(committed.status()).has_value()) return committed.status();
  recorder_.RecordOutcome(Outcome::kAborted, 0);
  return false;
}

absl::StatusOr<bool> Teller::End(const absl::Status& status) {
  if (status.ok()) return Commit();
  recorder_.End(Outcome::kAborted, 0);
  if (status.code() == absl::StatusCode::kDataLoss) session_.Abort();
  if (txn::AbortReasonOf(status).has_value()) return false;
  return status;
}

absl::Status Teller::Done(const absl::Status& status) {
  const absl::StatusOr<bool> done = End(status);
  if (!done.ok() || *done) return done.status();
  return status.ok() ? txn::AbortStatus(txn::AbortReason::kWriteWrite, "the commit") : status;
}

absl::StatusOr<bool> Teller::RunOne() {
  switch (random_.Below(10)) {
    case 0:
      return End(ReadAll());
    case 1:
      return End(Scan());
    default:
      return End(Transfer());
  }
}

}  // namespace

std::unique_ptr<Application> NewBank(RandomStream random) {
  return std::make_unique<Bank>(random);
}

}  // namespace nam::simulation
