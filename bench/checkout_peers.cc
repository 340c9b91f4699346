#include "bench/checkout_peers.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/prefetch.h"
#include "base/status_macros.h"
#include "tpcw/product_choice.h"

namespace nam::bench {
namespace {

using tpcw::kLinesPerOrder;

constexpr uint64_t kOrdersPerThread = uint64_t{1} << 17;  // much more than caches hold
constexpr size_t kCacheLineBytes = 64;

}  // namespace

/// Counters of one thread, on their own cache line.
struct alignas(kCacheLineBytes) CheckoutLoop::Lane {
  uint64_t transactions = 0;
  uint64_t torn_rows = 0;
  std::atomic<bool>* stop = nullptr;
};

CheckoutLoop::CheckoutLoop(fabric::Fabric& fabric, const CheckoutLoopOptions& options)
    : fabric_(fabric),
      options_(options),
      choice_(options.checkout.products, options.checkout.zipf_theta),
      order_bytes_(options.checkout.order_bytes + kLinesPerOrder * options.checkout.line_bytes) {}

absl::StatusOr<std::unique_ptr<CheckoutLoop>> CheckoutLoop::Load(fabric::Fabric& fabric,
                                                                 const CheckoutLoopOptions& options) {
  NAM_RETURN_IF_ERROR(options.checkout.Validate());
  if (options.threads < 1) return absl::InvalidArgumentError("checkout loop: no threads");
  std::unique_ptr<CheckoutLoop> loop(new CheckoutLoop(fabric, options));
  const fabric::AllocateOptions allocate = {.populate = true};
  NAM_ASSIGN_OR_RETURN(loop->products_,
                       fabric.Allocate(options.checkout.products * options.checkout.product_bytes, allocate));
  NAM_ASSIGN_OR_RETURN(loop->orders_, fabric.Allocate(static_cast<size_t>(options.threads) *
                                                          kOrdersPerThread * loop->order_bytes_,
                                                      allocate));
  for (uint64_t id = 0; id < options.checkout.products; ++id) {
    tpcw::WriteNewProduct(options.checkout, id, {loop->Product(id), options.checkout.product_bytes});
  }
  return loop;
}

// Checks a row in a copy, because other threads may write it meanwhile. Fills new rows in place.
void CheckoutLoop::CheckOut(int thread, Lane& lane) const {
  const tpcw::CheckoutOptions& checkout = options_.checkout;
  const size_t product_bytes = checkout.product_bytes;
  std::byte* const orders = orders_->data() + static_cast<size_t>(thread) * kOrdersPerThread * order_bytes_;
  std::vector<std::byte> copies(kLinesPerOrder * product_bytes);
  const auto copy = [&](size_t line) {
    return std::span(copies).subspan(line * product_bytes, product_bytes);
  };
  const auto client = static_cast<uint32_t>(thread);
  RandomStream seeds(options_.seed + client);
  tpcw::Purchase purchase(checkout, choice_, client, seeds.Next());
  uint64_t number = 0;
  for (; !lane.stop->load(std::memory_order_relaxed); ++number) {
    purchase.Draw();
    for (size_t i = 0; i < kLinesPerOrder; ++i) Prefetch<true>(Product(purchase.product(i)), product_bytes);
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      std::byte* const row = Product(purchase.product(i));
      std::memcpy(copy(i).data(), row, product_bytes);
      while (!purchase.Take(i, copy(i))) {
        ++lane.torn_rows;
        tpcw::WriteNewProduct(checkout, purchase.product(i), copy(i));
      }
    }
    std::byte* row = orders + number % kOrdersPerThread * order_bytes_;
    const uint64_t order = tpcw::OrderId(client, number);
    purchase.FillOrder(order, {row, checkout.order_bytes});
    row += checkout.order_bytes;
    for (size_t i = 0; i < kLinesPerOrder; ++i, row += checkout.line_bytes) {
      purchase.FillLine(order, i, {row, checkout.line_bytes});
    }
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      purchase.FillProduct(i, {Product(purchase.product(i)), product_bytes});
    }
  }
  lane.transactions = number;
}

CheckoutLoop::Outcome CheckoutLoop::Run() {
  std::atomic<bool> stop = false;
  std::vector<Lane> lanes(static_cast<size_t>(options_.threads));
  for (Lane& lane : lanes) lane.stop = &stop;
  Clock& clock = fabric_.clock();
  const int64_t from_ns = clock.NowNs();
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < options_.threads; ++i) {
      Lane& lane = lanes[static_cast<size_t>(i)];
      threads.push_back(
          fabric_.StartThread("loop-" + std::to_string(i), [this, i, &lane] { CheckOut(i, lane); }));
    }
    clock.SleepUntil(clock.After(options_.run_us));
    stop = true;
  }
  const double seconds = static_cast<double>(clock.NowNs() - from_ns) / 1e9;
  uint64_t transactions = 0;
  Outcome outcome;
  for (const Lane& lane : lanes) {
    transactions += lane.transactions;
    outcome.torn_rows += lane.torn_rows;
  }
  outcome.per_s = static_cast<double>(transactions) / seconds;
  return outcome;
}

/// A prepared statement for repeated use.
class CheckoutSqlite::Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database) {
    sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  /// Does not copy: `blob` must stay unchanged until Run returns.
  Statement& Bind(std::span<const std::byte> blob) {
    sqlite3_bind_blob64(statement_, ++bound_, blob.data(), blob.size(), SQLITE_STATIC);
    return *this;
  }
  /// Runs a statement without a result.
  absl::Status Run() { return End(sqlite3_step(statement_), SQLITE_DONE); }
  /// Runs a statement with one row, which is passed to `take`.
  template <typename Take>
  absl::Status RunRow(const Take& take) {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) take(statement_);
    return End(code, SQLITE_ROW);
  }

 private:
  absl::Status End(int code, int expected) {
    const std::string message = code == expected ? "" : sqlite3_errmsg(database_);
    sqlite3_reset(statement_);
    bound_ = 0;
    if (code == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("SQLite ", code, ": ", message));
  }

  sqlite3* const database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

struct CheckoutSqlite::Statements {
  explicit Statements(sqlite3* db)
      : begin(db, "BEGIN IMMEDIATE"),
        commit(db, "COMMIT"),
        read(db, "SELECT stock, price, rest FROM products WHERE id = ?"),
        insert_order(db, "INSERT INTO orders VALUES (?, ?, ?, ?)"),
        insert_line(db, "INSERT INTO order_lines VALUES (?, ?, ?, ?, ?)"),
        // Rewrites the whole row, as all contenders do.
        update(db, "UPDATE products SET stock = ?, rest = ? WHERE id = ?"),
        insert_product(db, "INSERT INTO products VALUES (?, ?, ?, ?)") {}
  Statement begin, commit, read, insert_order, insert_line, update, insert_product;
};

CheckoutSqlite::CheckoutSqlite(const tpcw::CheckoutOptions& checkout)
    : checkout_(checkout),
      choice_(checkout.products, checkout.zipf_theta),
      product_(checkout.product_bytes - 3 * 8),
      order_(checkout.order_bytes - 3 * 8),
      line_(checkout.line_bytes - 4 * 8) {}

CheckoutSqlite::~CheckoutSqlite() {
  statements_.reset();
  sqlite3_close_v2(database_);
}

absl::Status CheckoutSqlite::Execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("SQLite: ", sqlite3_errmsg(database_), " in: ", sql));
}

absl::StatusOr<std::unique_ptr<CheckoutSqlite>> CheckoutSqlite::Load(const tpcw::CheckoutOptions& checkout) {
  NAM_RETURN_IF_ERROR(checkout.Validate());
  std::unique_ptr<CheckoutSqlite> loaded(new CheckoutSqlite(checkout));
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(":memory:", &loaded->database_, kFlags, nullptr) != SQLITE_OK) {
    return absl::InternalError("SQLite does not open");
  }
  NAM_RETURN_IF_ERROR(loaded->Prepare());
  NAM_RETURN_IF_ERROR(loaded->LoadProducts());
  return loaded;
}

absl::Status CheckoutSqlite::Prepare() {
  for (const char* const sql :
       {"PRAGMA journal_mode = MEMORY", "PRAGMA synchronous = OFF", "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA temp_store = MEMORY",
        "CREATE TABLE products (id INTEGER PRIMARY KEY, stock INTEGER, price INTEGER, rest BLOB)",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, lines INTEGER, total INTEGER, rest BLOB)",
        "CREATE TABLE order_lines (id INTEGER PRIMARY KEY, product INTEGER, quantity INTEGER, price INTEGER, "
        "rest BLOB)"}) {
    NAM_RETURN_IF_ERROR(Execute(sql));
  }
  statements_ = std::make_unique<Statements>(database_);
  return absl::OkStatus();
}

absl::Status CheckoutSqlite::LoadProducts() {
  NAM_RETURN_IF_ERROR(statements_->begin.Run());
  for (uint64_t id = 0; id < checkout_.products; ++id) {
    NAM_RETURN_IF_ERROR(statements_->insert_product.Bind(static_cast<int64_t>(id))
                            .Bind(checkout_.initial_stock)
                            .Bind(100)
                            .Bind(product_)
                            .Run());
  }
  return statements_->commit.Run();
}

absl::Status CheckoutSqlite::CheckOut() {
  struct Line {
    int64_t product, stock, price, quantity;
  };
  std::array<Line, kLinesPerOrder> lines = {};
  NAM_RETURN_IF_ERROR(statements_->begin.Run());
  int64_t total = 0;
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    Line& line = lines[i];
    const auto taken = [&](int64_t product) {
      return std::any_of(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(i),
                         [&](const Line& other) { return other.product == product; });
    };
    do {
      line.product = static_cast<int64_t>(choice_.Draw(random_));
    } while (taken(line.product));
    line.quantity = 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(checkout_.quantity_max)));
    NAM_RETURN_IF_ERROR(statements_->read.Bind(line.product).RunRow([&](sqlite3_stmt* row) {
      line.stock = sqlite3_column_int64(row, 0);
      line.price = sqlite3_column_int64(row, 1);
      const auto bytes = static_cast<size_t>(sqlite3_column_bytes(row, 2));
      std::memcpy(product_.data(), sqlite3_column_blob(row, 2), std::min(bytes, product_.size()));
    }));
    total += line.quantity * line.price;
  }
  const int64_t order = orders_;
  NAM_RETURN_IF_ERROR(
      statements_->insert_order.Bind(order).Bind(kLinesPerOrder).Bind(total).Bind(order_).Run());
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    const Line& line = lines[i];
    const auto id = static_cast<int64_t>(tpcw::LineId(static_cast<uint64_t>(order), i));
    NAM_RETURN_IF_ERROR(statements_->insert_line.Bind(id)
                            .Bind(line.product)
                            .Bind(line.quantity)
                            .Bind(line.price)
                            .Bind(line_)
                            .Run());
  }
  for (const Line& line : lines) {
    int64_t stock = line.stock - line.quantity;
    if (stock < checkout_.restock_below) stock += checkout_.restock_quantity;
    NAM_RETURN_IF_ERROR(statements_->update.Bind(stock).Bind(product_).Bind(line.product).Run());
  }
  NAM_RETURN_IF_ERROR(statements_->commit.Run());
  ++orders_;
  return absl::OkStatus();
}

absl::StatusOr<double> CheckoutSqlite::Run(Clock& clock, int64_t run_us) {
  const int64_t from_ns = clock.NowNs(), from_orders = orders_;
  const Deadline end = clock.After(run_us);
  while (!clock.Passed(end)) NAM_RETURN_IF_ERROR(CheckOut());
  return static_cast<double>(orders_ - from_orders) * 1e9 / static_cast<double>(clock.NowNs() - from_ns);
}

absl::StatusOr<int64_t> CheckoutSqlite::Number(const std::string& sql) {
  int64_t number = 0;
  Statement statement(database_, sql.c_str());
  NAM_RETURN_IF_ERROR(statement.RunRow([&](sqlite3_stmt* row) { number = sqlite3_column_int64(row, 0); }));
  return number;
}

}  // namespace nam::bench
