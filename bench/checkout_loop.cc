#include "bench/checkout_loop.h"

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tpcw/checkout.h"
#include "tpcw/product_choice.h"

namespace nam::bench {
namespace {

using tpcw::kLinesPerOrder;
using Products = std::array<uint64_t, kLinesPerOrder>;

constexpr uint64_t kOrdersPerThread = uint64_t{1} << 17;  // much more than caches hold
constexpr size_t kCacheLineBytes = 64;

Products Draw(RandomStream& random, uint64_t products) {
  Products drawn;
  do {
    for (uint64_t& product : drawn) product = random.Below(products);
  } while (drawn[0] == drawn[1] || drawn[0] == drawn[2] || drawn[1] == drawn[2]);
  return drawn;
}

}  // namespace

/// Each thread's on a line of its own.
struct alignas(kCacheLineBytes) CheckoutLoop::Count {
  uint64_t transactions = 0;
  std::atomic<bool>* stop = nullptr;
};

absl::StatusOr<std::unique_ptr<CheckoutLoop>> CheckoutLoop::Load(fabric::Fabric& fabric,
                                                                 const CheckoutLoopOptions& options) {
  const tpcw::CheckoutOptions rows = {.products = options.products,
                                      .product_bytes = options.product_bytes,
                                      .order_bytes = options.order_bytes,
                                      .line_bytes = options.line_bytes};
  NAM_RETURN_IF_ERROR(rows.Validate());
  if (options.threads < 1) return absl::InvalidArgumentError("checkout loop: no threads");
  std::unique_ptr<CheckoutLoop> loop(new CheckoutLoop(fabric, options));
  const fabric::AllocateOptions allocate = {.huge_pages = options.huge_pages, .populate = true};
  NAM_ASSIGN_OR_RETURN(loop->products_, fabric.Allocate(options.products * options.product_bytes, allocate));
  const size_t order_bytes = options.order_bytes + kLinesPerOrder * options.line_bytes;
  NAM_ASSIGN_OR_RETURN(
      loop->orders_,
      fabric.Allocate(static_cast<size_t>(options.threads) * kOrdersPerThread * order_bytes, allocate));
  for (uint64_t id = 0; id < options.products; ++id) {
    const tpcw::ProductRow product{{.id = id, .write = id + 1, .check = 0}, rows.initial_stock, 100};
    std::memcpy(loop->products_->data() + id * options.product_bytes, &product, sizeof product);
  }
  return loop;
}

void CheckoutLoop::RunThread(int thread, Count& count) const {
  const size_t product_bytes = options_.product_bytes;
  const size_t order_bytes = options_.order_bytes + kLinesPerOrder * options_.line_bytes;
  std::byte* const products = products_->data();
  std::byte* const orders = orders_->data() + static_cast<size_t>(thread) * kOrdersPerThread * order_bytes;
  std::vector<std::byte> copies(kLinesPerOrder * product_bytes), order(order_bytes);
  RandomStream random(static_cast<uint64_t>(thread) + 1);

  Products next = Draw(random, options_.products);
  uint64_t number = 0;
  for (; !count.stop->load(std::memory_order_relaxed); ++number) {
    const Products now = next;
    next = Draw(random, options_.products);
    if (options_.prefetch_next) {
      for (const uint64_t product : next) Prefetch<true>(products + product * product_bytes, product_bytes);
    }
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      std::memcpy(copies.data() + i * product_bytes, products + now[i] * product_bytes, product_bytes);
    }
    auto* const order_row = reinterpret_cast<tpcw::OrderRow*>(order.data());
    order_row->id = number;
    order_row->lines = kLinesPerOrder;
    order_row->total = 0;
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      auto* const product = reinterpret_cast<tpcw::ProductRow*>(copies.data() + i * product_bytes);
      auto* const line =
          reinterpret_cast<tpcw::LineRow*>(order.data() + options_.order_bytes + i * options_.line_bytes);
      line->id = tpcw::LineId(number, i);
      line->product = now[i];
      line->quantity = 1 + static_cast<int64_t>(number % 10);
      order_row->total += line->quantity * product->price;
      product->stock -= line->quantity;
      if (product->stock < 10) product->stock += 1000;
      product->write = number;
    }
    std::memcpy(orders + number % kOrdersPerThread * order_bytes, order.data(), order_bytes);
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      std::memcpy(products + now[i] * product_bytes, copies.data() + i * product_bytes, product_bytes);
    }
  }
  count.transactions = number;
}

double CheckoutLoop::Run() const {
  std::atomic<bool> stop = false;
  std::vector<Count> counts(static_cast<size_t>(options_.threads));
  for (Count& count : counts) count.stop = &stop;
  Clock& clock = fabric_.clock();
  const int64_t from_ns = clock.NowNs();
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < options_.threads; ++i) {
      Count& count = counts[static_cast<size_t>(i)];
      threads.push_back(
          fabric_.StartThread("loop-" + std::to_string(i), [this, i, &count] { RunThread(i, count); }));
    }
    clock.SleepUntil(clock.After(options_.run_us));
    stop = true;
  }
  const double seconds = static_cast<double>(clock.NowNs() - from_ns) / 1e9;
  uint64_t transactions = 0;
  for (const Count& count : counts) transactions += count.transactions;
  return static_cast<double>(transactions) / seconds;
}

}  // namespace nam::bench
