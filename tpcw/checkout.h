#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "proto/table.pb.h"
#include "tpcw/product_choice.h"
#include "txn/check/history.h"
#include "txn/session.h"

/// The checkout of TPC-W over any session: reads 3 products, inserts an order with its 3 lines, and reduces
/// the products' stock. The tables are SQL tables with rows as in partitioner/record_row.h: words are bigint
/// NOT NULL (big-endian, sign bit flipped), the filler is a text.
///
///     products     id │ write │ check │ stock │ price │ filler…
///     orders       id │ write │ check │ lines │ total │ filler…
///     order_lines  id │ write │ check │ product │ quantity │ restocked │ price │ filler…
///
/// `write` identifies the write that made the row, `check` covers the words around it, and the filler repeats
/// two letters that stand for the write. One of them reveals a row that mixes two writes, except for one pair
/// in 65,536 with the same letters. A letter has four bytes, so that the text fills its column.
namespace nam::tpcw {

inline constexpr size_t kLinesPerOrder = 3;
inline constexpr char kProducts[] = "products";
inline constexpr char kOrders[] = "orders";
inline constexpr char kOrderLines[] = "order_lines";

/// Table numbers in histories.
enum HistoryTable : uint8_t { kProductsHistory = 1, kOrdersHistory = 2, kOrderLinesHistory = 3 };

struct CheckoutOptions {
  uint64_t products = 1'000'000;
  size_t product_bytes = 1024;  // of a row; a multiple of 8, as the others
  size_t order_bytes = 128;
  size_t line_bytes = 64;
  double zipf_theta = 0;  // below 1; 0: uniform
  int64_t initial_stock = 1000;
  int64_t restock_below = 10;
  int64_t restock_quantity = 1000;
  int64_t quantity_max = 10;  // per line

  absl::Status Validate() const;
};

struct TableSchema {
  std::string name;
  size_t key_bytes;  // at the row's beginning
  size_t row_bytes;
  proto::Table table;  // with columns and primary key
};
/// The tables that must exist before the load.
std::vector<TableSchema> CheckoutTables(const CheckoutOptions& options);

/// Clients number their orders without coordination.
constexpr uint64_t OrderId(uint32_t client, uint64_t number) {
  return uint64_t{client} << 40 | number;
}
constexpr uint64_t LineId(uint64_t order, size_t line) {
  return order * 4 + line;
}
/// The bytes of a key at the beginning of a row.
using Key = std::array<std::byte, 8>;
Key KeyOf(uint64_t id);

inline constexpr uint32_t kClientsMax = 1u << 20;

/// The words that every row begins with.
struct RowHeader {
  uint64_t id;
  uint64_t write;
  uint64_t check;
};
struct ProductRow : RowHeader {
  int64_t stock;
  int64_t price;
};
struct OrderRow : RowHeader {
  int64_t lines;
  int64_t total;
};
struct LineRow : RowHeader {
  uint64_t product;
  int64_t quantity;
  int64_t restocked;
  int64_t price;
};

/// Completes a row: writes `words` at its beginning, with a computed `check`, then the filler.
template <typename Row>
void WriteRow(const Row& words, std::span<std::byte> row);
/// The row's words; empty if WriteRow did not write the row.
template <typename Row>
std::optional<Row> ReadRow(std::span<const std::byte> row);
/// Identifies a row that was read: by its write, or by a digest if the row is unsound.
uint64_t ValueOfRow(std::span<const std::byte> row, bool sound);

/// Runs a transaction; retries a bounded number of times if a connection was lost.
template <typename Transaction>
absl::Status RunUnlessLost(const Transaction& transaction) {
  for (int left = 20;; --left) {
    const absl::Status status = transaction();
    if (left == 0 || txn::AbortReasonOf(status) != txn::AbortReason::kConnectionLost) return status;
  }
}

/// Inserts all products, some hundred per transaction. Calls `progress`, if set, with the rows so far; false
/// ends the load with CANCELLED. Returns the last commit's timestamp.
absl::StatusOr<uint64_t> LoadProducts(const CheckoutOptions& options, txn::Session& session,
                                      const std::function<bool(uint64_t)>& progress);

/// Draws successive purchases and fills in the rows that they write: all of a checkout except its
/// transaction. One thread.
///
///     Draw ─▶ Take: each product's row, as read ─▶ Fill…: the rows that the purchase writes
///
/// Fill… may be repeated, like a transaction; each repetition makes new writes.
class Purchase {
 public:
  /// `client` as in CheckoutClient. `choice` must outlive this object.
  Purchase(const CheckoutOptions& options, const ProductChoice& choice, uint32_t client, uint64_t seed)
      : options_(options), choice_(choice), client_(client), random_(seed) {}

  /// Draws different products, and quantities.
  void Draw();
  uint64_t product(size_t line) const { return bought_[line].product; }
  /// Checks the row of a line's product. False: it is torn, or another product's.
  bool Take(size_t line, std::span<const std::byte> row);
  /// Each returns the number of the row's write.
  uint64_t FillOrder(uint64_t order, std::span<std::byte> row);
  uint64_t FillLine(uint64_t order, size_t line, std::span<std::byte> row);
  uint64_t FillProduct(size_t line, std::span<std::byte> row);

 private:
  struct Line {
    uint64_t product;
    int64_t quantity;
  };
  uint64_t NextWrite() { return (uint64_t{client_} + 1) << 40 | ++writes_; }
  int64_t RestockedBy(size_t line) const;

  const CheckoutOptions options_;
  const ProductChoice& choice_;
  const uint32_t client_;
  RandomStream random_;
  uint64_t writes_ = 0;
  std::array<Line, kLinesPerOrder> bought_ = {};
  std::array<ProductRow, kLinesPerOrder> read_ = {};
};

/// Writes a product's row as it is before the first purchase.
void WriteNewProduct(const CheckoutOptions& options, uint64_t id, std::span<std::byte> row);

/// Successive checkouts of one client. Used by one thread.
class CheckoutClient {
 public:
  /// The outcome of an order number.
  enum class OrderState : uint8_t { kUnknown, kCommitted, kAborted };

  /// `client`: unique in the run, below kClientsMax. `recorder` (if any), `session` and `choice` must outlive
  /// this object.
  static absl::StatusOr<std::unique_ptr<CheckoutClient>> Open(const CheckoutOptions& options,
                                                              const ProductChoice& choice, uint32_t client,
                                                              uint64_t seed, txn::Session& session,
                                                              txn::HistoryRecorder* recorder);

  /// Draws the next purchase.
  void Next() { purchase_.Draw(); }
  /// Tries to buy it in one transaction, under a new order number. Empty: committed. After an error other
  /// than an abort the outcome is unknown.
  absl::StatusOr<std::optional<txn::AbortReason>> Try();

  uint32_t client() const { return client_; }
  /// By order number.
  const std::vector<OrderState>& orders() const { return orders_; }
  /// The number of unsound rows read.
  uint64_t torn_rows() const { return torn_rows_; }

 private:
  CheckoutClient(const CheckoutOptions& options, const ProductChoice& choice, uint32_t client, uint64_t seed,
                 txn::Session& session, txn::HistoryRecorder* recorder);
  absl::Status OpenTables();
  absl::Status BeginAndReadProducts();
  absl::Status Write();
  absl::Status Work();
  void Record(txn::OperationKind kind, HistoryTable table, uint64_t key, uint64_t value);
  std::span<std::byte> product_row(size_t line) {
    return std::span(product_rows_).subspan(line * options_.product_bytes, options_.product_bytes);
  }
  std::span<std::byte> line_row(size_t line) {
    return std::span(line_rows_).subspan(line * options_.line_bytes, options_.line_bytes);
  }
  txn::RowWrite& product_write(size_t line) { return writes_[1 + kLinesPerOrder + line]; }

  const CheckoutOptions options_;
  const uint32_t client_;
  Purchase purchase_;
  txn::Session& session_;
  txn::HistoryRecorder* const recorder_;

  std::vector<OrderState> orders_;
  uint64_t torn_rows_ = 0;
  // What each transaction reads and writes; keys and rows change.
  std::vector<std::byte> product_rows_, order_row_, line_rows_;
  std::array<Key, kLinesPerOrder> keys_ = {};
  std::array<txn::Lookup, kLinesPerOrder> lookups_;
  std::array<txn::RowWrite, 1 + 2 * kLinesPerOrder> writes_;  // the order, its lines, the products
};

}  // namespace nam::tpcw
