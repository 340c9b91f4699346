#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "execution/rows/row_layout.h"
#include "plan/physical.h"

namespace nam::execution {

/// The layout of rows in messages, a packed page each (packed_page.h): follows from the rows alone, so that
/// senders and receivers agree. Pages have 16 KiB, or 32 KiB if rows have texts or are wide: of the sizes of
/// pages the largest that fits a message with its header.
absl::StatusOr<RowLayout> ExchangeLayout(const plan::Schema& rows);

/// What the messages of a stage's exchanges are: pages of the largest of its layouts. A sender that asks
/// Bloom filters has an exchange of its own for these.
struct ExchangeShape {
  uint32_t exchanges = 0;
  uint32_t message_bytes = 0;
};
/// None if the stage has no exchanges. Of a plan that passed Check.
absl::StatusOr<ExchangeShape> ExchangeShapeOf(const plan::PhysicalPlan& plan, uint32_t stage);
/// The place of an exchange among those of its stage, in the order of their receivers: what comes later is
/// nearer to the result.
uint32_t ExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t exchange);
/// … and of the filters that this pipeline, which sends, asks: behind those of rows.
uint32_t FilterExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t sender);

}  // namespace nam::execution
