#include "bench/aggregate_workload.h"

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "bench/tuple_table.h"

namespace nam::bench {
namespace {

constexpr uint64_t kKeys = uint64_t{1} << 31;  // SQL's non-negative integers
// Each use derives its own seed from the caller's.
enum class Use : uint64_t { kPlaces, kKeys, kValues };

uint64_t SeedOf(uint64_t seed, Use use) {
  return MixBits(seed + kGoldenGamma * (static_cast<uint64_t>(use) + 1));
}

}  // namespace

std::string AggregateWorkload::TitleOf(size_t index) const {
  return absl::StrFormat("%s tuples, %s groups", CountLabel(at(index).tuples), CountLabel(at(index).groups));
}

Json AggregateWorkload::SettingsOf(size_t index) const {
  return {{"tuples", at(index).tuples}, {"groups", at(index).groups}};
}

std::string AggregateWorkload::sql() const {
  return "SELECT count(*), sum(s), max(c) FROM "
         "(SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k) AS g";
}

void AggregateWorkload::Make(size_t index) {
  Drop();
  made_ = index;
  const auto [n, groups] = at(index);
  tuples_.resize(n);
  const KeyPermutation places(n, SeedOf(options_.seed, Use::kPlaces));
  const KeyPermutation keys(kKeys, SeedOf(options_.seed, Use::kKeys));
  const uint64_t values = SeedOf(options_.seed, Use::kValues);
  const auto threads = static_cast<uint64_t>(options_.threads);
  OnThreads(options_.threads, [&, n = n, groups = groups](int thread) {
    const auto t = static_cast<uint64_t>(thread);
    for (uint64_t i = n * t / threads; i < n * (t + 1) / threads; ++i) {
      const uint64_t group = places(i) % groups;
      tuples_[i] = {.key = static_cast<uint32_t>(options_.dense ? group + 1 : keys(group)),
                    .payload = static_cast<uint32_t>(MixBits(values + i) >> 33)};
    }
  });
}

std::vector<TupleTable> AggregateWorkload::tables() const {
  return {{.name = "t", .payload = "v", .tuples = tuples_}};
}

Rows AggregateWorkload::Expected() const {
  const auto [n, groups] = at(made_);
  __int128 sum = 0;
  for (const JoinTuple& tuple : tuples_) sum += tuple.payload;
  return {{Value::Integer(groups), Value::Integer(sum), Value::Integer((n + groups - 1) / groups)}};
}

void AggregateWorkload::Drop() {
  tuples_ = {};
}

}  // namespace nam::bench
