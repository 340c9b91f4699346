#include "workload/checkout_size.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/record_extents.h"
#include "terminal/units.h"

namespace nam {
namespace {

constexpr uint64_t kIndexEntryBytes =
    64;  // 8, in segments that are half full, beside split ones and empty roots
constexpr uint64_t kFixedBytes = uint64_t{16}
                                 << 20;  // the transaction state, and the initial memory of small tables
constexpr uint64_t kProductsMax = 1'000'000;
constexpr uint64_t kOrdersMin = 1'000;

uint64_t BytesPerRow(size_t row_bytes, uint32_t versions) {
  const uint64_t slots = std::max<uint64_t>(versions, 2);
  const uint64_t block_bytes = 8 + slots * (8 + row_bytes);  // storage/record_block.h
  return (block_bytes + 63) / 64 * 64 + kIndexEntryBytes;
}

absl::Status TooSmall(const std::string& what, uint64_t needed_bytes, uint64_t free_bytes,
                      const std::string& instead) {
  std::string needed = FormatBytes(needed_bytes), free = FormatBytes(free_bytes);
  if (needed == free) needed = FormatCount(needed_bytes) + " B", free = FormatCount(free_bytes) + " B";
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s take about %s, and the memory servers have %s free; %s", what, needed, free, instead));
}

uint64_t HeldBytes(const proto::Table& table) {
  uint64_t bytes = 0;
  for (const proto::RecordPart& part : table.record().parts()) {
    for (const proto::RecordExtent& extent : part.extents())
      bytes += catalog::BytesOf(table.record(), part.kind(), extent);
  }
  return bytes;
}

}  // namespace

uint64_t BytesPerProduct(const tpcw::CheckoutOptions& checkout, uint32_t versions) {
  return BytesPerRow(checkout.product_bytes, versions);
}

uint64_t BytesPerOrder(const tpcw::CheckoutOptions& checkout, uint32_t versions) {
  return BytesPerRow(checkout.order_bytes, versions) +
         tpcw::kLinesPerOrder * BytesPerRow(checkout.line_bytes, versions);
}

absl::StatusOr<uint64_t> FreeForCheckout(catalog::Attachment& attachment, bool replace) {
  uint64_t free_bytes = 0;
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment.Members(proto::ROLE_MEMORY));
  for (const proto::Member& server : servers) {
    // Current figures; the catalog's are up to a renewal old.
    const auto usage = attachment.MemoryUsage(MemoryServerId(static_cast<uint16_t>(server.id())));
    const uint64_t used = usage.ok() ? usage->used_bytes() : server.used_bytes();
    free_bytes += server.memory_bytes() - std::min<uint64_t>(used, server.memory_bytes());
  }
  if (!replace) return free_bytes;
  for (const char* name : {tpcw::kProducts, tpcw::kOrders, tpcw::kOrderLines}) {
    const auto table = attachment.catalog().GetTable(name);
    if (table.ok()) free_bytes += HeldBytes(**table);
  }
  return free_bytes;
}

absl::StatusOr<CheckoutRunOptions> FitCheckout(CheckoutRunOptions run, uint64_t products,
                                               uint64_t free_bytes) {
  const uint64_t product_bytes = BytesPerProduct(run.checkout, run.tables.versions);
  const uint64_t order_bytes = BytesPerOrder(run.checkout, run.tables.versions);
  const uint64_t usable_bytes = (free_bytes - std::min(free_bytes, kFixedBytes)) / 20 * 17;
  const std::string larger = "give the memory servers more (`nam up --memory=SIZE`), or start others";
  if (products == 0) {
    products = std::min(kProductsMax, usable_bytes / 5 * 2 / product_bytes);
    if (products < tpcw::kLinesPerOrder)
      return TooSmall("A few products", 10 * product_bytes, free_bytes, larger);
  }
  run.checkout.products = products;
  const uint64_t least_orders = run.driver.transactions != 0 ? run.driver.transactions : kOrdersMin;
  const uint64_t needed_bytes = kFixedBytes + products * product_bytes + least_orders * order_bytes;
  if (needed_bytes > free_bytes) {
    const std::string what =
        absl::StrCat(FormatCount(products), " products and ", FormatCount(least_orders), " orders");
    return TooSmall(what, needed_bytes, free_bytes,
                    absl::StrCat("choose fewer (--products, --transactions), or ", larger));
  }
  const uint64_t orders_max =
      std::max(least_orders, (usable_bytes - std::min(usable_bytes, products * product_bytes)) / order_bytes);
  // Prepared memory is unavailable to tables that grow faster than others.
  run.tables.expected_orders = std::min(run.tables.expected_orders, orders_max / 2);
  if (run.driver.transactions == 0) run.driver.transactions = orders_max;
  return run;
}

}  // namespace nam
