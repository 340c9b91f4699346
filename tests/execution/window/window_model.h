#pragma once

#include <span>
#include <vector>

#include "execution/sort/row_order.h"
#include "plan/window.h"
#include "tests/execution/tuples.h"

namespace nam::execution {

/// Whether no row stands before the one before it.
bool InOrder(const std::vector<Tuple>& rows, std::span<const OrderSlot> order);

/// What a call says of row i of one partition, from its definition: all rows are looked at.
Cell ModelOf(const plan::WindowCall& call, const plan::Schema& schema, const std::vector<Tuple>& rows,
             std::span<const OrderSlot> order, size_t i);

}  // namespace nam::execution
