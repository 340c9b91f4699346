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

/// The checkout of TPC-W over any session: reads 3 products, inserts an order and its 3 lines, takes what was
/// bought out of the products' stock. They are tables of SQL, with rows as partitioner/record_row.h lays them
/// out: words are bigint NOT NULL (big-endian, the sign bit flipped), the filler is a text.
///
///     products     id │ write │ check │ stock │ price │ filler…
///     orders       id │ write │ check │ lines │ total │ filler…
///     order_lines  id │ write │ check │ product │ quantity │ restocked │ price │ filler…
///
/// `write` names the write that made the row, `check` covers the words around it, and the filler is two
/// letters that stand for the write, over and over: of a row that mixes two writes one of them tells (but for
/// one pair in 65,536 that have the same letters). A letter has four bytes, so that the text fills its
/// column.
namespace nam::tpcw {

inline constexpr size_t kLinesPerOrder = 3;
inline constexpr char kProducts[] = "products";
inline constexpr char kOrders[] = "orders";
inline constexpr char kOrderLines[] = "order_lines";

/// In histories.
enum HistoryTable : uint8_t { kProductsHistory = 1, kOrdersHistory = 2, kOrderLinesHistory = 3 };

struct CheckoutOptions {
  uint64_t products = 1'000'000;
  size_t product_bytes = 1024;  // of a row; like the others a multiple of 8
  size_t order_bytes = 128;
  size_t line_bytes = 64;
  double zipf_theta = 0;  // below 1; 0: every product as likely
  int64_t initial_stock = 1000;
  int64_t restock_below = 10;
  int64_t restock_quantity = 1000;
  int64_t quantity_max = 10;  // of a line

  absl::Status Validate() const;
};

struct TableSchema {
  std::string name;
  size_t key_bytes;  // the row's first
  size_t row_bytes;
  proto::Table table;  // its columns and its primary key
};
/// What must be there before the load.
std::vector<TableSchema> CheckoutTables(const CheckoutOptions& options);

/// Orders are numbered by their clients without asking anybody.
constexpr uint64_t OrderId(uint32_t client, uint64_t number) {
  return uint64_t{client} << 40 | number;
}
constexpr uint64_t LineId(uint64_t order, size_t line) {
  return order * 4 + line;
}
/// The bytes of a key, as a row begins with them.
using Key = std::array<std::byte, 8>;
Key KeyOf(uint64_t id);

inline constexpr uint32_t kClientsMax = 1u << 20;

/// Words of every row.
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

/// Completes a row: `words` at its beginning, of which `check` is computed, and then the filler.
template <typename Row>
void WriteRow(Row words, std::span<std::byte> row);
/// Its words; none if the row is not one that WriteRow has made.
template <typename Row>
std::optional<Row> ReadRow(std::span<const std::byte> row);
/// Names what was read: the write, or for a row that nobody has written a digest of it.
uint64_t ValueOfRow(std::span<const std::byte> row, bool sound);

/// Runs a transaction; again, some times, if a connection was lost.
template <typename Transaction>
absl::Status RunUnlessLost(const Transaction& transaction) {
  for (int left = 20;; --left) {
    const absl::Status status = transaction();
    if (left == 0 || txn::AbortReasonOf(status) != txn::AbortReason::kConnectionLost) return status;
  }
}

/// Inserts all products, some hundred in a transaction. `progress`, if there: rows so far; false ends it with
/// CANCELLED. The last commit's timestamp.
absl::StatusOr<uint64_t> LoadProducts(const CheckoutOptions& options, txn::Session& session,
                                      const std::function<bool(uint64_t)>& progress);

/// What checkouts buy, one after the other, and the rows that they write: all of a checkout but its
/// transaction. One thread's.
///
///     Draw ─▶ Take: each product's row, as it was read ─▶ Fill…: the rows that the purchase makes
///
/// Fill… may be repeated, as a transaction is; every row is then another write.
class Purchase {
 public:
  /// `client` as CheckoutClient's. `choice` outlives it.
  Purchase(const CheckoutOptions& options, const ProductChoice& choice, uint32_t client, uint64_t seed)
      : options_(options), choice_(choice), client_(client), random_(seed) {}

  /// Draws products, all different, and quantities.
  void Draw();
  uint64_t product(size_t line) const { return bought_[line].product; }
  /// Checks the row of a line's product. False: it is torn, or another's.
  bool Take(size_t line, std::span<const std::byte> row);
  /// The result is the number of the write that the row carries.
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

/// A product as it is before the first purchase.
void WriteNewProduct(const CheckoutOptions& options, uint64_t id, std::span<std::byte> row);

/// A client's checkouts, one after the other. Used by one thread.
class CheckoutClient {
 public:
  /// What became of an order number.
  enum class OrderState : uint8_t { kUnknown, kCommitted, kAborted };

  /// `client`: unique in the run, below kClientsMax. `recorder` (if any), `session` and `choice` outlive it.
  static absl::StatusOr<std::unique_ptr<CheckoutClient>> Open(const CheckoutOptions& options,
                                                              const ProductChoice& choice, uint32_t client,
                                                              uint64_t seed, txn::Session& session,
                                                              txn::HistoryRecorder* recorder);

  /// Draws what is bought next.
  void Next() { purchase_.Draw(); }
  /// One transaction that buys it, under a new order number. None: committed. Another error than an abort
  /// leaves open what became of it.
  absl::StatusOr<std::optional<txn::AbortReason>> Try();

  uint32_t client() const { return client_; }
  /// By order number.
  const std::vector<OrderState>& orders() const { return orders_; }
  /// Rows that nobody has written, as their words tell.
  uint64_t torn_rows() const { return torn_rows_; }

 private:
  CheckoutClient(const CheckoutOptions& options, const ProductChoice& choice, uint32_t client, uint64_t seed,
                 txn::Session& session, txn::HistoryRecorder* recorder);
  absl::Status BeginAndReadProducts();
  absl::Status Write();
  absl::Status Work();
  void Record(txn::OperationKind kind, HistoryTable table, uint64_t key, uint64_t value);

  const CheckoutOptions options_;
  const uint32_t client_;
  Purchase purchase_;
  txn::Session& session_;
  txn::HistoryRecorder* const recorder_;
  txn::TableHandle products_, orders_table_, lines_;

  std::vector<OrderState> orders_;
  uint64_t torn_rows_ = 0;
  std::vector<std::byte> product_rows_, order_row_, line_rows_;
  std::array<uint32_t, kLinesPerOrder> products_met_ = {};  // Lookup::met
};

}  // namespace nam::tpcw
