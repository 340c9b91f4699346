#pragma once

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "plan/aggregate.h"
#include "plan/schema.h"

/// What aggregates take, travel in and yield.
namespace nam::plan {

/// How many arguments a function takes.
size_t ArgumentsOf(AggregateFunction function);

/// INVALID_ARGUMENT unless the function yields this type over arguments of these types.
absl::Status CheckCall(AggregateFunction function, std::span<const Type> arguments, const Type& result);

/// The same of an aggregate of an aggregation: string_agg, whose rows have an order, is one of windows alone.
absl::Status CheckAggregate(const Aggregate& aggregate);

/// What the aggregate yields over arguments of these slots.
Slot AggregateResult(AggregateFunction function, const Type& type, std::span<const Slot> arguments);

/// The slots that groups travel in: the keys, then for each aggregate
///
///     count(*), count            how many
///     sum                        upper half of 128 bits, NULL without a value; lower half
///     avg                        as sum; how many
///                                of floating point: the sum; what rounding has lost of it
///     min, max, and, or, xor     the best so far, NULL without a value
///     variances, deviations      how many; 3 words of the sum; 5 of the sum of squares; lowest first
///     functions of two           how many; 3 words of either sum; 5 of each of the sums of x², y² and x·y
///     the same of floating point how many; the sum and the squared distances (types/real.h), of two
///                                arguments also those of the second, and the products
///     distinct ones              nothing: their values travel as pairs, in a layout of their own
///
/// Words of sums have the argument's type, so that states of another type are told apart. A sum that is not
/// at its end may have more than 38 digits: a number of a page's layout may not. If all this is no slot at
/// all, there is one, which is 0. `keys` are those of the groups, `arguments` the first arguments of the
/// aggregates (anything where one has none).
Schema StatesOf(std::span<const Slot> keys, std::span<const Aggregate> aggregates,
                std::span<const Slot> arguments);

/// How many of these slots are an aggregate's.
size_t StateSlotsOf(const Aggregate& aggregate);

/// Whether the aggregate looks at each value of a group once.
bool IsDistinct(const Aggregate& aggregate);

/// As plans show it.
const char* NameOf(AggregateFunction function);

/// variance, deviation, covariance, correlation, regression: computed from sums of products.
bool HasMoments(AggregateFunction function);

/// Whether the function yields the same if each value comes once: as of what is alike the least and the
/// greatest are the same.
bool IgnoresRepeats(AggregateFunction function);

}  // namespace nam::plan
