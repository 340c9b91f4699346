#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// What a join looks up by keys is made of those rows only whose keys the join may look up: groups, and large
/// tables whose rows a semi join would all have to build.
///
///     left(L, groups by k of R)  ──►  left(L, groups by k of inner(R, K))
///     semi(L, R)                 ──►  semi(L, inner(R, K))
///
/// K is a filtered scan in L that every row of L has a partner in, so that it has all keys of L, and few
/// others. It is copied: what it costs to scan a small table twice is little beside groups that nobody looks
/// up. Its key is unique, so that no row of R counts twice. Correlated aggregates have this shape once
/// Unnest has grouped them. Of a tree without dependent joins, whose filters PushFilters has moved to the
/// scans.
void FilterLookups(plan::logical::Query& query);

}  // namespace nam::optimizer
