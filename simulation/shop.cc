#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "simulation/application.h"

namespace nam::simulation {
namespace {

using txn::HistoryRecorder;
using txn::Lookup;
using txn::OperationKind;
using txn::Outcome;
using txn::RowWrite;
using txn::Session;
using txn::TableHandle;

enum Stock : uint8_t { kGoods, kOrders };
constexpr std::array<const char*, 2> kShopTables = {"goods", "orders"};
constexpr char kByTag[] = "goods_tag";
constexpr char kByGood[] = "orders_good";
constexpr char kByBatch[] = "orders_batch";
constexpr int64_t kFirstStock = 100;
constexpr int64_t kBatchRowsMin = 64, kBatchRowsMax = 3'000;

/// A good or an order. Repeats its other fields, so that a mix of two rows is detectable.
struct ShopRow {
  uint64_t key = 0;
  uint64_t write = 0;
  uint64_t group = 0;  // a good's tag; an order's good
  uint64_t batch = 0;  // of an order; 0: it is alone
  uint64_t batch_rows = 0;
  int64_t stock = 0;  // of a good
  std::array<uint64_t, 10> copies = {};

  uint64_t Copy(size_t i) const {
    return MixBits(key + 3 * write + 5 * group + 7 * batch + 11 * batch_rows +
                   13 * static_cast<uint64_t>(stock) + 17 * i);
  }
  void Seal() {
    for (size_t i = 0; i < copies.size(); ++i) copies[i] = Copy(i);
  }
  bool sound() const {
    for (size_t i = 0; i < copies.size(); ++i) {
      if (copies[i] != Copy(i)) return false;
    }
    return true;
  }
};
static_assert(sizeof(ShopRow) == 128);
constexpr uint32_t kGroupOffset = offsetof(ShopRow, group), kBatchOffset = offsetof(ShopRow, batch);

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

proto::KeyPiece PieceAt(uint32_t offset) {
  proto::KeyPiece piece;
  piece.set_offset(offset);
  piece.set_bytes(sizeof(uint64_t));
  return piece;
}

proto::RecordPart IndexOver(const char* name, uint32_t offset, bool unique) {
  proto::RecordPart index;
  index.set_name(name);
  index.set_kind(proto::ORDERED_INDEX);
  index.set_key_bytes(sizeof(uint64_t));
  index.add_columns(1);
  *index.add_pieces() = PieceAt(offset);
  index.set_unique(unique);
  return index;
}

class Shop;

/// A session's transactions, which record their steps.
class Clerk final : public Customer {
 public:
  Clerk(Shop& shop, Session& session, HistoryRecorder& recorder, RandomStream random)
      : shop_(shop), session_(session), recorder_(recorder), random_(random) {}
  absl::Status Open();
  absl::StatusOr<bool> RunOne() override;

  absl::Status FillShop();
  /// Reads everything at one snapshot, twice, and reports what does not hold.
  absl::Status ReadAll();
  /// Changes every good, and removes every order.
  absl::Status ChangeAll();
  /// Commits, or ends what has failed.
  absl::Status Done(const absl::Status& status);

 private:
  absl::Status Begin();
  /// Looks the keys up; rows_ gets those that are there.
  absl::Status Read(Stock table, std::span<const uint64_t> keys);
  absl::Status Scan(Stock table, std::vector<ShopRow>& rows);
  absl::Status ScanIndex(const char* index, uint64_t from, std::vector<ShopRow>& rows,
                         const std::function<bool(const ShopRow&)>& wanted);
  absl::Status Note(Stock table, const ShopRow& row);
  absl::Status Write(Stock table, RowWrite::Kind kind, std::span<ShopRow> rows);
  absl::Status Write(Stock table, RowWrite::Kind kind, ShopRow row) { return Write(table, kind, {&row, 1}); }

  absl::Status RunAny();
  absl::Status Order();
  absl::Status ChangeOrder();
  absl::Status ChangeGood();
  absl::Status OpenOrClose();
  absl::Status ChangeBatch();
  absl::Status AddBatch();
  void Judge(const std::vector<ShopRow>& goods, const std::vector<ShopRow>& orders);
  void JudgeIndex(const std::vector<ShopRow>& orders, const std::vector<ShopRow>& by_good);
  uint64_t AnyGood();

  Shop& shop_;
  Session& session_;
  HistoryRecorder& recorder_;
  RandomStream random_;
  std::array<TableHandle, kShopTables.size()> tables_ = {};
  std::vector<ShopRow> rows_;
};

class Shop final : public Application {
 public:
  explicit Shop(RandomStream random)
      : goods_(2 * static_cast<uint64_t>(random.Magnitude(1, 16))), versions_(1u << random.Below(3)) {
    check_.read_own_commits = true;
  }

  std::vector<txn::RecordTableOptions> tables() const override {
    std::vector<txn::RecordTableOptions> tables;
    for (const char* name : kShopTables) {
      txn::RecordTableOptions& table = tables.emplace_back();
      table.name = name;
      table.row_bytes = sizeof(ShopRow);
      table.key_bytes = sizeof(uint64_t);
      table.versions = versions_;
      table.expected_rows = 1;
      for (const char* column : {"key", "group"}) table.table.add_columns()->set_name(column);
    }
    proto::ForeignKey& key = *tables[kOrders].table.mutable_record()->add_foreign_keys();
    key.set_name("orders_good_fkey");
    key.add_columns(1);
    key.set_parent(kShopTables[kGoods]);
    key.add_parent_columns(0);
    key.set_index(kByGood);
    *key.add_parent_pieces() = PieceAt(0);
    return tables;
  }

  absl::Status CreateIndexes(catalog::Attachment& attachment, Session& session) override {
    const std::pair<const char*, proto::RecordPart> indexes[] = {
        {kShopTables[kGoods], IndexOver(kByTag, kGroupOffset, /*unique=*/true)},
        {kShopTables[kOrders], IndexOver(kByGood, kGroupOffset, /*unique=*/false)},
        {kShopTables[kOrders], IndexOver(kByBatch, kBatchOffset, /*unique=*/false)}};
    for (const auto& [table, index] : indexes) {
      NAM_RETURN_IF_ERROR(txn::CreateIndex(attachment, session, table, index));
      NAM_ASSIGN_OR_RETURN(const auto made, attachment.catalog().GetTable(table));
      for (const proto::RecordPart& part : made->record().parts()) {
        if (part.name() == index.name() && !part.extents().empty())
          indexes_[index.name()] = AllocationId(part.extents(0).allocation());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Fill(Session& session) override {
    Clerk clerk(*this, session, NewRecorder(), RandomStream(0));
    NAM_RETURN_IF_ERROR(clerk.Open());
    return clerk.Done(clerk.FillShop());
  }

  absl::StatusOr<std::unique_ptr<Customer>> NewCustomer(Session& session, RandomStream random) override {
    auto clerk = std::make_unique<Clerk>(*this, session, NewRecorder(), random);
    NAM_RETURN_IF_ERROR(clerk->Open());
    return std::unique_ptr<Customer>(std::move(clerk));
  }

  absl::Status Audit(Session& session, Clock& clock) override {
    Clerk clerk(*this, session, NewRecorder(), RandomStream(0));
    NAM_RETURN_IF_ERROR(clerk.Open());
    NAM_RETURN_IF_ERROR(
        UntilDone(clock, "the shop cannot be read", [&] { return clerk.Done(clerk.ReadAll()); }));
    NAM_RETURN_IF_ERROR(
        UntilDone(clock, "the shop cannot be changed", [&] { return clerk.Done(clerk.ChangeAll()); }));
    return UntilDone(clock, "the shop cannot be read", [&] { return clerk.Done(clerk.ReadAll()); });
  }

  uint64_t goods() const { return goods_; }
  AllocationId index(const char* name) const { return indexes_.at(name); }
  void Report(std::string what) { Wrong(std::move(what)); }

 private:
  const uint64_t goods_;  // an even number: good 2n and good 2n + 1 are a pair
  const uint32_t versions_;
  std::map<std::string, AllocationId> indexes_;
};

absl::Status Clerk::Open() {
  for (size_t i = 0; i < kShopTables.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(tables_[i], session_.OpenTable(kShopTables[i]));
  }
  return absl::OkStatus();
}

uint64_t Clerk::AnyGood() {
  return random_.Below(shop_.goods());
}

absl::Status Clerk::Begin() {
  NAM_RETURN_IF_ERROR(session_.Begin());
  recorder_.Begin(session_.snapshot());
  rows_.clear();
  return absl::OkStatus();
}

absl::Status Clerk::Note(Stock table, const ShopRow& row) {
  const uint64_t named = row.sound() ? row.write : MixBits(row.write) | 1;
  recorder_.Read(txn::RecordId(table, row.key), named);
  if (row.sound()) return absl::OkStatus();
  shop_.Report(absl::StrFormat("%s %d: a row that no transaction has written", kShopTables[table], row.key));
  return absl::DataLossError("a row is torn");
}

absl::Status Clerk::Read(Stock table, std::span<const uint64_t> keys) {
  std::vector<ShopRow> rows(keys.size());
  std::vector<Lookup> lookups;
  for (size_t i = 0; i < keys.size(); ++i)
    lookups.push_back({tables_[table], BytesOf(keys[i]), std::as_writable_bytes(std::span(&rows[i], 1))});
  NAM_RETURN_IF_ERROR(session_.Read(lookups));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (lookups[i].found) {
      NAM_RETURN_IF_ERROR(Note(table, rows[i]));
      rows_.push_back(rows[i]);
    } else {
      recorder_.Read(txn::RecordId(table, keys[i]), txn::kNoValue);
    }
  }
  return absl::OkStatus();
}

absl::Status Clerk::Scan(Stock table, std::vector<ShopRow>& rows) {
  NAM_RETURN_IF_ERROR(session_.Scan(tables_[table], [&](std::span<const std::byte> bytes) {
    std::memcpy(&rows.emplace_back(), bytes.data(), sizeof(ShopRow));
    return true;
  }));
  for (const ShopRow& row : rows) NAM_RETURN_IF_ERROR(Note(table, row));
  return absl::OkStatus();
}

// Orders from the key on, in the order of the index, while they are wanted.
absl::Status Clerk::ScanIndex(const char* index, uint64_t from, std::vector<ShopRow>& rows,
                              const std::function<bool(const ShopRow&)>& wanted) {
  NAM_RETURN_IF_ERROR(session_.ScanIndex(tables_[kOrders], shop_.index(index), BytesOf(from), {},
                                         [&](std::span<const std::byte> bytes) {
                                           ShopRow row;
                                           std::memcpy(&row, bytes.data(), sizeof(row));
                                           if (!wanted(row)) return false;
                                           rows.push_back(row);
                                           return true;
                                         }));
  for (const ShopRow& row : rows) NAM_RETURN_IF_ERROR(Note(kOrders, row));
  return absl::OkStatus();
}

absl::Status Clerk::Write(Stock table, RowWrite::Kind kind, std::span<ShopRow> rows) {
  const bool whole = kind == RowWrite::Kind::kInsert || kind == RowWrite::Kind::kUpdate;
  std::vector<RowWrite> writes;
  std::vector<uint64_t> read;
  for (ShopRow& row : rows) {
    read.push_back(row.write);
    if (whole) {
      row.write = recorder_.NextValue();
      row.Seal();
    }
    writes.push_back({.kind = kind, .table = tables_[table], .row = whole ? BytesOf(row) : BytesOf(row.key)});
  }
  NAM_RETURN_IF_ERROR(session_.Write(writes));
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t record = txn::RecordId(table, rows[i].key);
    if (kind == RowWrite::Kind::kLock) {
      recorder_.Lock(record, read[i]);
    } else if (kind == RowWrite::Kind::kDelete) {
      recorder_.Write(OperationKind::kDelete, record, txn::kNoValue);
    } else {
      const bool insert = kind == RowWrite::Kind::kInsert;
      recorder_.Write(insert ? OperationKind::kInsert : OperationKind::kUpdate, record, rows[i].write);
    }
  }
  return absl::OkStatus();
}

absl::Status Clerk::FillShop() {
  NAM_RETURN_IF_ERROR(Begin());
  std::vector<ShopRow> goods;
  for (uint64_t key = 0; key < shop_.goods(); ++key)
    goods.push_back({.key = key, .group = key, .stock = kFirstStock});
  return Write(kGoods, RowWrite::Kind::kInsert, goods);
}

/// An order locks its good.
absl::Status Clerk::Order() {
  NAM_RETURN_IF_ERROR(Begin());
  const uint64_t good = AnyGood();
  NAM_RETURN_IF_ERROR(Read(kGoods, {&good, 1}));
  if (rows_.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kLock, rows_[0]));
  return Write(kOrders, RowWrite::Kind::kInsert, {.key = recorder_.NextValue(), .group = good});
}

/// Cancels a good's first order, or makes it one of another good.
absl::Status Clerk::ChangeOrder() {
  NAM_RETURN_IF_ERROR(Begin());
  const uint64_t good = AnyGood(), other = AnyGood();
  std::vector<ShopRow> orders;
  NAM_RETURN_IF_ERROR(ScanIndex(kByGood, good, orders, [&](const ShopRow& row) {
    return row.group == good && row.batch == 0 && orders.empty();
  }));
  if (orders.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Read(kOrders, {&orders[0].key, 1}));
  if (rows_.empty()) {
    shop_.Report(absl::StrFormat("order %d is in an index, and not in its table", orders[0].key));
    return absl::OkStatus();
  }
  if (random_.OneIn(2)) return Write(kOrders, RowWrite::Kind::kDelete, rows_[0]);
  ShopRow order = rows_[0];
  NAM_RETURN_IF_ERROR(Read(kGoods, {&other, 1}));
  if (rows_.size() == 1) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kLock, rows_[1]));
  order.group = other;
  return Write(kOrders, RowWrite::Kind::kUpdate, order);
}

/// A pair never has less than nothing: who takes from one good locks the other.
absl::Status Clerk::ChangeGood() {
  NAM_RETURN_IF_ERROR(Begin());
  const uint64_t own = AnyGood();
  NAM_RETURN_IF_ERROR(Read(kGoods, std::array{own, own ^ 1}));
  if (rows_.size() < 2) return absl::OkStatus();
  ShopRow changed = rows_[0];
  const int64_t some = random_.Between(1, kFirstStock);
  if (random_.OneIn(4)) {
    changed.group = random_.Below(2 * shop_.goods());  // another good may have the tag
  } else if (random_.OneIn(2)) {
    changed.stock += some;
  } else {
    if (rows_[0].stock + rows_[1].stock < some) return absl::OkStatus();
    changed.stock -= some;
    NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kLock, rows_[1]));
  }
  return Write(kGoods, RowWrite::Kind::kUpdate, changed);
}

/// A good goes if it has no stock; a commit refuses that while there are orders of it.
absl::Status Clerk::OpenOrClose() {
  NAM_RETURN_IF_ERROR(Begin());
  const uint64_t good = AnyGood();
  NAM_RETURN_IF_ERROR(Read(kGoods, {&good, 1}));
  if (rows_.empty())
    return Write(kGoods, RowWrite::Kind::kInsert, {.key = good, .group = random_.Below(2 * shop_.goods())});
  if (rows_[0].stock == 0) return Write(kGoods, RowWrite::Kind::kDelete, rows_[0]);
  ShopRow sold = rows_[0];
  if (sold.stock < 0) return absl::OkStatus();
  const uint64_t other = good ^ 1;
  NAM_RETURN_IF_ERROR(Read(kGoods, {&other, 1}));
  if (rows_.size() < 2 || rows_[1].stock < 0) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kLock, rows_[1]));
  sold.stock = 0;
  return Write(kGoods, RowWrite::Kind::kUpdate, sold);
}

/// Thousands of orders in one transaction, which are there together. Removes a batch before it makes another.
absl::Status Clerk::ChangeBatch() {
  NAM_RETURN_IF_ERROR(Begin());
  std::vector<ShopRow> batch;
  constexpr uint64_t kFirst = uint64_t{1} << 56;  // behind the orders that are alone, byte by byte
  NAM_RETURN_IF_ERROR(ScanIndex(kByBatch, kFirst, batch, [&](const ShopRow& row) {
    return batch.empty() || row.batch == batch[0].batch;
  }));
  if (batch.empty()) return AddBatch();
  if (batch.size() != batch[0].batch_rows) {
    shop_.Report(absl::StrFormat("a snapshot (%d) with %d of %d rows of a transaction", session_.snapshot(),
                                 batch.size(), batch[0].batch_rows));
  }
  std::vector<uint64_t> keys;
  for (const ShopRow& row : batch) keys.push_back(row.key);
  NAM_RETURN_IF_ERROR(Read(kOrders, keys));
  return Write(kOrders, RowWrite::Kind::kDelete, rows_);
}

absl::Status Clerk::AddBatch() {
  const uint64_t good = AnyGood();
  NAM_RETURN_IF_ERROR(Read(kGoods, std::array{good, good ^ 1}));
  if (rows_.empty()) return absl::OkStatus();
  std::vector<ShopRow> goods = rows_;
  const auto rows = static_cast<uint64_t>(random_.Magnitude(kBatchRowsMin, kBatchRowsMax));
  const uint64_t number = recorder_.NextValue();
  std::vector<ShopRow> batch;
  for (uint64_t i = 0; i < rows; ++i) {
    batch.push_back({.key = recorder_.NextValue(),
                     .group = goods[i % goods.size()].key,
                     .batch = number,
                     .batch_rows = rows});
  }
  NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kLock, goods));
  return Write(kOrders, RowWrite::Kind::kInsert, batch);
}

absl::Status Clerk::ReadAll() {
  NAM_RETURN_IF_ERROR(Begin());
  std::vector<ShopRow> goods, orders, by_good;
  NAM_RETURN_IF_ERROR(Scan(kGoods, goods));
  NAM_RETURN_IF_ERROR(Scan(kOrders, orders));
  NAM_RETURN_IF_ERROR(ScanIndex(kByGood, 0, by_good, [](const ShopRow&) { return true; }));
  Judge(goods, orders);
  JudgeIndex(orders, by_good);
  return absl::OkStatus();
}

void Clerk::Judge(const std::vector<ShopRow>& goods, const std::vector<ShopRow>& orders) {
  const auto wrong = [&](const std::string& what) {
    shop_.Report(absl::StrFormat("a snapshot (%d) with %s", session_.snapshot(), what));
  };
  std::map<uint64_t, int64_t> stocks;  // by good
  std::set<uint64_t> tags;
  for (const ShopRow& good : goods) {
    stocks[good.key] = good.stock;
    if (!tags.insert(good.group).second) wrong(absl::StrFormat("two goods of tag %d", good.group));
  }
  for (const auto& [good, stock] : stocks) {
    const auto other = stocks.find(good ^ 1);
    if (stock + (other == stocks.end() ? 0 : other->second) < 0)
      wrong(absl::StrFormat("less than nothing of good %d and its pair", good));
  }
  struct Rows {
    uint64_t there = 0, all = 0;
  };
  std::map<uint64_t, Rows> batches;
  for (const ShopRow& order : orders) {
    if (!stocks.contains(order.group))
      wrong(absl::StrFormat("an order of good %d, and no good", order.group));
    if (order.batch == 0) continue;
    Rows& rows = batches[order.batch];
    rows = {rows.there + 1, order.batch_rows};
  }
  for (const auto& [batch, rows] : batches) {
    if (rows.there != rows.all)
      wrong(absl::StrFormat("%d of %d rows of a transaction", rows.there, rows.all));
  }
}

void Clerk::JudgeIndex(const std::vector<ShopRow>& orders, const std::vector<ShopRow>& by_good) {
  const auto named = [](const std::vector<ShopRow>& rows) {
    std::set<std::pair<uint64_t, uint64_t>> names;
    for (const ShopRow& row : rows) names.emplace(row.key, row.write);
    return names;
  };
  if (orders.size() == by_good.size() && named(orders) == named(by_good)) return;
  shop_.Report(absl::StrFormat("a snapshot (%d) in which the table has %d orders, and its index %d",
                               session_.snapshot(), orders.size(), by_good.size()));
}

absl::Status Clerk::ChangeAll() {
  NAM_RETURN_IF_ERROR(Begin());
  std::vector<ShopRow> goods, orders;
  NAM_RETURN_IF_ERROR(Scan(kGoods, goods));
  NAM_RETURN_IF_ERROR(Scan(kOrders, orders));
  std::vector<uint64_t> keys;
  for (const ShopRow& good : goods) keys.push_back(good.key);
  NAM_RETURN_IF_ERROR(Read(kGoods, keys));
  NAM_RETURN_IF_ERROR(Write(kGoods, RowWrite::Kind::kUpdate, rows_));
  keys.clear();
  rows_.clear();
  for (const ShopRow& order : orders) keys.push_back(order.key);
  NAM_RETURN_IF_ERROR(Read(kOrders, keys));
  return rows_.empty() ? absl::OkStatus() : Write(kOrders, RowWrite::Kind::kDelete, rows_);
}

absl::Status Clerk::Done(const absl::Status& status) {
  if (!status.ok()) {
    recorder_.End(Outcome::kAborted, 0);
    if (status.code() == absl::StatusCode::kDataLoss) session_.Abort();
    return status;
  }
  recorder_.Committing();
  const absl::StatusOr<uint64_t> committed = session_.Commit();
  const bool aborted = txn::AbortReasonOf(committed.status()).has_value();
  if (committed.ok() || aborted)
    recorder_.RecordOutcome(aborted ? Outcome::kAborted : Outcome::kCommitted, committed.value_or(0));
  return committed.status();
}

absl::Status Clerk::RunAny() {
  switch (random_.Below(16)) {
    case 0:
      return ReadAll();
    case 1:
      return ChangeBatch();
    case 2:
    case 3:
      return OpenOrClose();
    case 4:
    case 5:
    case 6:
      return ChangeOrder();
    case 7:
    case 8:
    case 9:
    case 10:
      return ChangeGood();
    default:
      return Order();
  }
}

absl::StatusOr<bool> Clerk::RunOne() {
  const absl::Status done = Done(RunAny());
  if (done.ok()) return true;
  return txn::AbortReasonOf(done).has_value() ? absl::StatusOr<bool>(false) : done;
}

}  // namespace

std::unique_ptr<Application> NewShop(RandomStream random) {
  return std::make_unique<Shop>(random);
}

}  // namespace nam::simulation
