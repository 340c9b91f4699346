#include "bench/checkout_loop.h"

#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tpcw/product_choice.h"

namespace nam::bench {
namespace {

using tpcw::kLinesPerOrder;
using Products = std::array<uint64_t, kLinesPerOrder>;

constexpr uint64_t kOrdersPerThread = uint64_t{1} << 17;  // much more than caches hold
constexpr size_t kCacheLineBytes = 64;

Products DrawProducts(RandomStream& random, uint64_t products) {
  Products drawn;
  do {
    for (uint64_t& product : drawn) product = random.Below(products);
  } while (drawn[0] == drawn[1] || drawn[0] == drawn[2] || drawn[1] == drawn[2]);
  return drawn;
}

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
  const fabric::AllocateOptions allocate = {.huge_pages = options.huge_pages, .populate = true};
  NAM_ASSIGN_OR_RETURN(loop->products_,
                       fabric.Allocate(options.checkout.products * options.checkout.product_bytes, allocate));
  NAM_ASSIGN_OR_RETURN(loop->orders_, fabric.Allocate(static_cast<size_t>(options.threads) *
                                                          kOrdersPerThread * loop->order_bytes_,
                                                      allocate));
  return loop;
}

// The two kinds of work use different rows: words in native byte order, and rows as in tables.
void CheckoutLoop::FillProducts(Work work) {
  if (filled_for_ == work) return;
  const tpcw::CheckoutOptions& checkout = options_.checkout;
  for (uint64_t id = 0; id < checkout.products; ++id) {
    if (work == Work::kEqual) {
      tpcw::WriteNewProduct(checkout, id, {Product(id), checkout.product_bytes});
    } else {
      const tpcw::ProductRow product{{.id = id, .write = id + 1, .check = 0}, checkout.initial_stock, 100};
      std::memcpy(Product(id), &product, sizeof product);
    }
  }
  filled_for_ = work;
}

void CheckoutLoop::MoveMemory(int thread, Lane& lane) const {
  const size_t product_bytes = options_.checkout.product_bytes, line_bytes = options_.checkout.line_bytes;
  std::byte* const orders = orders_->data() + static_cast<size_t>(thread) * kOrdersPerThread * order_bytes_;
  std::vector<std::byte> copies(kLinesPerOrder * product_bytes), order(order_bytes_);
  RandomStream random(static_cast<uint64_t>(thread) + 1);
  uint64_t number = 0;
  for (; !lane.stop->load(std::memory_order_relaxed); ++number) {
    const Products drawn = DrawProducts(random, options_.checkout.products);
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      std::memcpy(copies.data() + i * product_bytes, Product(drawn[i]), product_bytes);
    }
    auto* const order_row = reinterpret_cast<tpcw::OrderRow*>(order.data());
    order_row->id = number;
    order_row->lines = kLinesPerOrder;
    order_row->total = 0;
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      auto* const product = reinterpret_cast<tpcw::ProductRow*>(copies.data() + i * product_bytes);
      auto* const line =
          reinterpret_cast<tpcw::LineRow*>(order.data() + options_.checkout.order_bytes + i * line_bytes);
      line->id = tpcw::LineId(number, i);
      line->product = drawn[i];
      line->quantity = 1 + static_cast<int64_t>(number % 10);
      order_row->total += line->quantity * product->price;
      product->stock -= line->quantity;
      if (product->stock < 10) product->stock += 1000;
      product->write = number;
    }
    std::memcpy(orders + number % kOrdersPerThread * order_bytes_, order.data(), order_bytes_);
    for (size_t i = 0; i < kLinesPerOrder; ++i) {
      std::memcpy(Product(drawn[i]), copies.data() + i * product_bytes, product_bytes);
    }
  }
  lane.transactions = number;
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

CheckoutLoop::Outcome CheckoutLoop::Run(Work work) {
  FillProducts(work);
  std::atomic<bool> stop = false;
  std::vector<Lane> lanes(static_cast<size_t>(options_.threads));
  for (Lane& lane : lanes) lane.stop = &stop;
  Clock& clock = fabric_.clock();
  const int64_t from_ns = clock.NowNs();
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < options_.threads; ++i) {
      Lane& lane = lanes[static_cast<size_t>(i)];
      threads.push_back(fabric_.StartThread("loop-" + std::to_string(i), [this, i, work, &lane] {
        work == Work::kEqual ? CheckOut(i, lane) : MoveMemory(i, lane);
      }));
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

}  // namespace nam::bench
