#pragma once

#include "plan/logical.h"

namespace nam::optimizer {

/// Restricts the input of a join that it looks up by keys to rows whose keys may be looked up: groups, and
/// large tables whose rows a semi join would all have to build.
///
///     left(L, groups by k of R)  ──►  left(L, groups by k of inner(R, K))
///     semi(L, R)                 ──►  semi(L, inner(R, K))
///
/// K is a filtered scan in L in which every row of L has a partner, so that it has all keys of L, and few
/// others. It is copied: scanning a small table twice costs little compared with unused groups. Its key is
/// unique, so that no row of R counts twice. Correlated aggregates have this shape after Unnest has grouped
/// them. For a tree without dependent joins, whose filters PushFilters has moved to the scans.
void FilterLookups(plan::logical::Query& query);

}  // namespace nam::optimizer
