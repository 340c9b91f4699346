#pragma once

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "plan/aggregate.h"
#include "plan/schema.h"

/// The types of aggregates' arguments, states and results.
namespace nam::plan {

/// The number of a function's arguments.
size_t ArgumentsOf(AggregateFunction function);

/// INVALID_ARGUMENT unless the function yields this type over arguments of these types.
absl::Status CheckCall(AggregateFunction function, std::span<const Type> arguments, const Type& result);

/// The same for an aggregation's aggregate: string_agg, whose rows have an order, is for windows only.
absl::Status CheckAggregate(const Aggregate& aggregate);

/// The aggregate's result over arguments of these slots.
Slot AggregateResult(AggregateFunction function, const Type& type, std::span<const Slot> arguments);

/// The slots in which groups travel: the keys, then for each aggregate
///
///     count(*), count            how many
///     sum                        upper half of 128 bits, NULL without a value; lower half
///     avg                        as sum; how many
///                                of floating point: the sum; its rounding error
///     min, max, and, or, xor     the best so far, NULL without a value
///     variances, deviations      how many; 3 words of the sum; 5 of the sum of squares; lowest first
///     functions of two           how many; 3 words of either sum; 5 of each of the sums of x², y² and x·y
///     the same of floating point how many; the sum and the squared distances (types/real.h), of two
///                                arguments also those of the second, and the products
///     distinct ones              nothing: their values travel as pairs, in a layout of their own
///
/// Words of sums have the argument's type, so that states of other types differ. A partial sum may have more
/// than 38 digits, unlike a number of a page's layout. If there would be no slot at all, there is one, which
/// is 0. `keys` are those of the groups, `arguments` the first arguments of the aggregates (arbitrary where
/// one has none).
Schema StatesOf(std::span<const Slot> keys, std::span<const Aggregate> aggregates,
                std::span<const Slot> arguments);

/// The number of an aggregate's slots among these.
size_t StateSlotsOf(const Aggregate& aggregate);

/// Whether the aggregate takes each value of a group once.
bool IsDistinct(const Aggregate& aggregate);

/// The name in EXPLAIN.
const char* NameOf(AggregateFunction function);

/// Whether the function is computed from sums of products: variance, deviation, covariance, correlation,
/// regression.
bool HasMoments(AggregateFunction function);

/// Whether repeated values do not change the result, as for min and max.
bool IgnoresRepeats(AggregateFunction function);

}  // namespace nam::plan
