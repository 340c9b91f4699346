#include "bench/checkout_loop.h"

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

}  // namespace nam::bench
