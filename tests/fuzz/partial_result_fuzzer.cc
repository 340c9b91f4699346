// Partial results as a compute server left them: the first byte picks the query that they are for.

#include <string>

#include "execution/partial_result.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace execution;
using plan::AggregateFunction;

const std::vector<Type> kKeys = {Type::Integer(), Type::String(), Type::Date(), Type::Bool()};

plan::Aggregate Over(AggregateFunction function, Type argument, Type type) {
  plan::Aggregate aggregate{.function = function, .type = type};
  aggregate.argument.type = argument;
  return aggregate;
}

std::vector<plan::Aggregate> AllAggregates() {
  const Type money = Type::Decimal(2);
  return {Over(AggregateFunction::kCountRows, money, Type::Integer()),
          Over(AggregateFunction::kCount, money, Type::Integer()),
          Over(AggregateFunction::kSum, money, money),
          Over(AggregateFunction::kMin, Type::String(), Type::String()),
          Over(AggregateFunction::kMax, money, money),
          Over(AggregateFunction::kAverage, money, Type::Decimal(6)),
          Over(AggregateFunction::kCountDistinct, Type::String(), Type::Integer())};
}

/// Query 0 returns rows, 1 groups, 2 one group without keys.
PartialMerger MergerOf(uint8_t query) {
  if (query == 0) return {kKeys, {}, PartialKind::kRows};
  return {query == 1 ? kKeys : std::vector<Type>{}, AllAggregates(), PartialKind::kGroups};
}

std::string Header(PartialKind kind, uint64_t count) {
  std::string out;
  PutU32(out, kPartialMagic);
  PutU32(out, static_cast<uint32_t>(kind));
  PutU64(out, count);
  return out;
}

std::string GroupOf(const std::string& text) {
  std::string out;
  for (const plan::Aggregate& aggregate : AllAggregates()) {
    PutU64(out, 3);  // count
    PutNumber(out, 1234);
    if (aggregate.function == AggregateFunction::kMin) PutText(out, false, text);
    if (aggregate.function == AggregateFunction::kMax) PutNumberValue(out, false, 99);
    if (aggregate.function != AggregateFunction::kCountDistinct) continue;
    PutU64(out, 2);
    PutText(out, false, text);
    PutText(out, true, "");
  }
  return out;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::string keys;
  PutNumberValue(keys, false, 1997);
  PutText(keys, false, "MFGR#12");
  PutNumberValue(keys, false, 9'000);
  PutNumberValue(keys, false, 1);
  std::string nulls;
  PutNumberValue(nulls, true, 0);
  PutText(nulls, true, "");
  PutNumberValue(nulls, true, 0);
  PutNumberValue(nulls, true, 0);
  return {std::string(1, '\0') + Header(PartialKind::kRows, 2) + keys + nulls,
          "\1" + Header(PartialKind::kGroups, 3) + keys + GroupOf("b") + nulls + GroupOf("") + keys +
              GroupOf("a"),
          "\2" + Header(PartialKind::kGroups, 1) + GroupOf("x"),
          std::string(1, '\0') + Header(PartialKind::kRows, 0)};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  using nam::execution::PartialMerger;
  Input input(data, size);
  PartialMerger merger = MergerOf(input.Byte() % 3);
  const auto bytes = input.Rest();
  // Twice: the second is merged into the groups of the first.
  for (int i = 0; i < 2; ++i) {
    if (!merger.Add(bytes).ok()) return 0;
  }
  for (const auto& row : merger.rows()) {
    for (const nam::Value& value : row) static_cast<void>(value.ToString());
  }
  const auto aggregates = AllAggregates();
  for (const auto& group : merger.groups()) {
    for (size_t i = 0; i < aggregates.size(); ++i) {
      const auto value = PartialMerger::Finish(aggregates[i], group.aggregates[i]);
      if (value.ok() && !value->null) static_cast<void>(value->ToString());
    }
  }
  return 0;
}
