#pragma once

#include <span>
#include <vector>

#include "execution/sort/row_order.h"
#include "plan/window.h"
#include "tests/execution/tuples.h"

namespace nam::execution {

/// Whether each row is at or behind the one before it.
bool InOrder(const std::vector<Tuple>& rows, std::span<const OrderSlot> order);

/// The result of a call for row i of one partition, computed from its definition by a look at all rows.
Cell ModelOf(const plan::WindowCall& call, const plan::Schema& schema, const std::vector<Tuple>& rows,
             std::span<const OrderSlot> order, size_t i);

}  // namespace nam::execution
