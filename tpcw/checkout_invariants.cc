#include "tpcw/checkout_invariants.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::tpcw {
namespace {

using OrderState = CheckoutClient::OrderState;

constexpr size_t kBatch = 64;  // lookups per round trip

/// Reads batches of rows by key.
class RowBatch {
 public:
  RowBatch(txn::Session& session, txn::TableHandle table, size_t row_bytes)
      : session_(session), table_(table), row_bytes_(row_bytes), rows_(kBatch * row_bytes) {}

  /// At most kBatch ids; the result stays valid until the next Read.
  absl::StatusOr<std::span<const txn::Lookup>> Read(std::span<const uint64_t> ids) {
    lookups_.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      keys_[i] = KeyOf(ids[i]);
      lookups_.push_back({table_, keys_[i], std::span(rows_).subspan(i * row_bytes_, row_bytes_)});
    }
    NAM_RETURN_IF_ERROR(session_.Read(std::span(lookups_)));
    return lookups_;
  }

 private:
  txn::Session& session_;
  const txn::TableHandle table_;
  const size_t row_bytes_;
  std::vector<std::byte> rows_;
  std::array<Key, kBatch> keys_;
  std::vector<txn::Lookup> lookups_;
};

class InvariantCheck {
 public:
  InvariantCheck(const CheckoutOptions& options, txn::Session& session)
      : options_(options), session_(session), stocks_(options.products, options.initial_stock) {}

  absl::StatusOr<CheckoutInvariants> Run(std::span<const std::vector<OrderState>* const> orders,
                                         uint64_t aborted_max);

 private:
  absl::Status CheckOrders(std::span<const std::vector<OrderState>* const> orders, uint64_t aborted_max);
  absl::Status CheckBatch(RowBatch& orders, RowBatch& lines);
  void CheckOrder(const txn::Lookup& order, OrderState state, std::span<const txn::Lookup> lines);
  absl::Status CheckStocks();

  const CheckoutOptions& options_;
  txn::Session& session_;
  CheckoutInvariants found_;
  std::vector<int64_t> stocks_;  // expected, by product
  std::vector<uint64_t> ids_;    // of the orders of a batch
  std::vector<OrderState> states_;
};

void InvariantCheck::CheckOrder(const txn::Lookup& order, OrderState state,
                                std::span<const txn::Lookup> lines) {
  const auto there = static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(), [](const txn::Lookup& line) { return line.found; }));
  if (state == OrderState::kAborted) {
    ++found_.aborted_looked_up;
    found_.aborted_visible += order.found || there > 0;
    return;
  }
  if (!order.found) {
    found_.missing_orders += state == OrderState::kCommitted;
    found_.broken_orders += there > 0;
    return;
  }
  ++found_.orders;
  found_.unknown_orders += state == OrderState::kUnknown;
  const auto words = ReadRow<OrderRow>(order.row);
  found_.unsound_rows += !words.has_value();
  int64_t total = words.has_value() ? words->total : 0;
  for (const txn::Lookup& line : lines) {
    if (!line.found) continue;
    const auto line_words = ReadRow<LineRow>(line.row);
    if (!line_words.has_value() || line_words->product >= stocks_.size()) {
      ++found_.unsound_rows;
      continue;
    }
    stocks_[line_words->product] += line_words->restocked - line_words->quantity;
    total -= line_words->quantity * line_words->price;
  }
  found_.broken_orders += there != kLinesPerOrder || total != 0;
}

absl::Status InvariantCheck::CheckBatch(RowBatch& orders, RowBatch& lines) {
  std::vector<uint64_t> line_ids;
  for (const uint64_t id : ids_) {
    for (size_t i = 0; i < kLinesPerOrder; ++i) line_ids.push_back(LineId(id, i));
  }
  std::span<const txn::Lookup> order_rows, line_rows;
  NAM_RETURN_IF_ERROR(RunUnlessLost([&]() -> absl::Status {
    NAM_RETURN_IF_ERROR(session_.Begin());
    NAM_ASSIGN_OR_RETURN(order_rows, orders.Read(ids_));
    NAM_ASSIGN_OR_RETURN(line_rows, lines.Read(line_ids));
    return session_.Commit().status();
  }));
  for (size_t i = 0; i < ids_.size(); ++i) {
    CheckOrder(order_rows[i], states_[i], line_rows.subspan(i * kLinesPerOrder, kLinesPerOrder));
  }
  ids_.clear();
  states_.clear();
  return absl::OkStatus();
}

absl::Status InvariantCheck::CheckOrders(std::span<const std::vector<OrderState>* const> orders,
                                         uint64_t aborted_max) {
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle order_table, session_.OpenTable(kOrders));
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle line_table, session_.OpenTable(kOrderLines));
  RowBatch order_rows(session_, order_table, options_.order_bytes);
  RowBatch line_rows(session_, line_table, options_.line_bytes);
  for (uint32_t client = 0; client < orders.size(); ++client) {
    uint64_t aborted = 0;
    for (uint64_t number = 0; number < orders[client]->size(); ++number) {
      const OrderState state = (*orders[client])[number];
      if (state == OrderState::kAborted && aborted++ >= aborted_max) continue;
      ids_.push_back(OrderId(client, number));
      states_.push_back(state);
      if (ids_.size() * kLinesPerOrder + kLinesPerOrder > kBatch) {
        NAM_RETURN_IF_ERROR(CheckBatch(order_rows, line_rows));
      }
    }
  }
  return ids_.empty() ? absl::OkStatus() : CheckBatch(order_rows, line_rows);
}

absl::Status InvariantCheck::CheckStocks() {
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle table, session_.OpenTable(kProducts));
  RowBatch rows(session_, table, options_.product_bytes);
  for (uint64_t first = 0; first < options_.products; first += kBatch) {
    ids_.clear();
    for (uint64_t id = first; id < std::min(first + kBatch, options_.products); ++id) ids_.push_back(id);
    std::span<const txn::Lookup> products;
    NAM_RETURN_IF_ERROR(RunUnlessLost([&]() -> absl::Status {
      NAM_RETURN_IF_ERROR(session_.Begin());
      NAM_ASSIGN_OR_RETURN(products, rows.Read(ids_));
      return session_.Commit().status();
    }));
    for (size_t i = 0; i < products.size(); ++i) {
      const auto words = products[i].found ? ReadRow<ProductRow>(products[i].row) : std::nullopt;
      if (!words.has_value() || words->id != ids_[i]) {
        ++found_.unsound_rows;
        continue;
      }
      found_.wrong_stocks += words->stock != stocks_[ids_[i]];
      found_.stock_difference += words->stock - stocks_[ids_[i]];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckoutInvariants> InvariantCheck::Run(std::span<const std::vector<OrderState>* const> orders,
                                                       uint64_t aborted_max) {
  NAM_RETURN_IF_ERROR(CheckOrders(orders, aborted_max));
  NAM_RETURN_IF_ERROR(CheckStocks());
  return found_;
}

}  // namespace

std::string CheckoutInvariants::ToString() const {
  return absl::StrFormat(
      "%d orders (%d of unknown outcome), %d missing, %d broken; of %d aborted ones %d visible; %d unsound "
      "rows; "
      "%d products with a wrong stock, %d in all",
      orders, unknown_orders, missing_orders, broken_orders, aborted_looked_up, aborted_visible, unsound_rows,
      wrong_stocks, stock_difference);
}

absl::StatusOr<CheckoutInvariants> CheckInvariants(
    const CheckoutOptions& options, std::span<const std::vector<CheckoutClient::OrderState>* const> orders,
    uint64_t aborted_max, txn::Session& session) {
  NAM_RETURN_IF_ERROR(options.Validate());
  return InvariantCheck(options, session).Run(orders, aborted_max);
}

}  // namespace nam::tpcw
