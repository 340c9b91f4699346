#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "execution/rows/row_layout.h"
#include "plan/physical.h"

namespace nam::execution {

/// The layout of rows in messages, a packed page each (packed_page.h). It follows from the rows alone, so
/// that senders and receivers agree. Pages have 16 KiB, or 32 KiB if rows have texts or are wide: the largest
/// page size that fits a message with its header.
absl::StatusOr<RowLayout> ExchangeLayout(const plan::Schema& rows);

/// The messages of a stage's exchanges: pages of the largest of its layouts. A sender that asks Bloom filters
/// has an exchange of its own for these.
struct ExchangeShape {
  uint32_t exchanges = 0;
  uint32_t message_bytes = 0;
};
/// nullopt if the stage has no exchanges. The plan has passed Check.
absl::StatusOr<ExchangeShape> ExchangeShapeOf(const plan::PhysicalPlan& plan, uint32_t stage);
/// The number of an exchange of rows within its stage. Exchanges are numbered in the order of their
/// receivers: later ones are nearer to the result.
uint32_t ExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t exchange);
/// The number of the exchange for the Bloom filters that pipeline `sender` asks. The numbers follow those of
/// exchanges of rows.
uint32_t FilterExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t sender);

}  // namespace nam::execution
