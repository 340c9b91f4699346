#include "bench/algorithm_case.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "bench/join_input.h"

namespace nam::bench {
namespace {

constexpr uint64_t kKeys = uint64_t{1} << 31;  // SQL's non-negative integers
// Uses of the caller's seed.
enum class AggregateUse : uint64_t { kPlaces, kKeys, kValues };

}  // namespace

AlgorithmCase CaseOf(JoinCase with, uint64_t seed, int threads) {
  std::string of_s;  // empty: both relations have the same size
  if (with.s_tuples == 0) {
    with.s_tuples = with.tuples;
  } else if (with.s_tuples != with.tuples) {
    of_s = absl::StrCat(" and ", CountLabel(with.s_tuples));
  }
  return {.title = absl::StrFormat("%s%s tuples, selectivity %g, Zipf %g", CountLabel(with.tuples), of_s,
                                   with.selectivity, with.zipf),
          .settings = {{"tuples", with.tuples}, {"selectivity", with.selectivity}, {"zipf", with.zipf}},
          .tuples = with.tuples + with.s_tuples,
          .sql = "SELECT count(*), sum(r.p) + sum(s.p) FROM r, s WHERE r.k = s.k",
          .make = [=] {
            JoinInput input = MakeJoinInput({.r_tuples = with.tuples,
                                             .s_tuples = with.s_tuples,
                                             .zipf = with.zipf,
                                             .selectivity = with.selectivity,
                                             .seed = seed,
                                             .threads = threads});
            const JoinAnswer answer = ExpectedAnswer(input);
            const Value sum = answer.matches == 0 ? Value::Null() : Value::Integer(answer.checksum);
            return CaseData{.tables = {{.name = "r", .tuples = std::move(input.r)},
                                       {.name = "s", .tuples = std::move(input.s)}},
                            .expected = {{Value::Integer(answer.matches), sum}}};
          }};
}

AlgorithmCase CaseOf(const AggregateCase& with, uint64_t seed, int threads) {
  const auto make = [=, n = with.tuples] {
    std::vector<JoinTuple> tuples(n);
    const KeyPermutation places(n, SeedOf(seed, AggregateUse::kPlaces)),
        keys(kKeys, SeedOf(seed, AggregateUse::kKeys));
    const uint64_t values = SeedOf(seed, AggregateUse::kValues);
    OnThreads(threads, [&](int thread) {
      const auto t = static_cast<uint64_t>(thread), all = static_cast<uint64_t>(threads);
      for (uint64_t i = n * t / all; i < n * (t + 1) / all; ++i) {
        const uint64_t group = places(i) % with.groups;
        tuples[i] = {.key = static_cast<uint32_t>(with.dense ? group + 1 : keys(group)),
                     .payload = static_cast<uint32_t>(MixBits(values + i) >> 33)};
      }
    });
    __int128 sum = 0;
    for (const JoinTuple& tuple : tuples) sum += tuple.payload;
    const uint64_t most = (n + with.groups - 1) / with.groups;
    return CaseData{.tables = {{.name = "t", .payload = "v", .tuples = std::move(tuples)}},
                    .expected = {{Value::Integer(with.groups), Value::Integer(sum), Value::Integer(most)}}};
  };
  return {.title = absl::StrFormat("%s tuples, %s groups", CountLabel(with.tuples), CountLabel(with.groups)),
          .settings = {{"tuples", with.tuples}, {"groups", with.groups}},
          .tuples = with.tuples,
          .sql =
              "SELECT count(*), sum(s), max(c) FROM "
              "(SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k) AS g",
          .make = make};
}

}  // namespace nam::bench
