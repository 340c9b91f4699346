#include "execution/exchange/exchange_layout.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/exchange/endpoint.h"

namespace nam::execution {
namespace {

constexpr uint32_t kMostPageBytes = 32 << 10;

bool HasTexts(const plan::Schema& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const plan::Slot& slot) { return PhysicalOf(slot.type) == Physical::kText; });
}

bool IsFiltered(const plan::Pipeline& pipeline) {
  const auto* send = std::get_if<plan::ExchangeSend>(&pipeline.sink);
  return send != nullptr && send->filtered_by.has_value();
}

}  // namespace

absl::StatusOr<RowLayout> ExchangeLayout(const plan::Schema& rows) {
  if (!HasTexts(rows)) {
    absl::StatusOr<RowLayout> small = RowLayout::Of(rows, RowLayout::kLeastPageBytes);
    if (small.ok()) return small;
  }
  return RowLayout::Of(rows, kMostPageBytes);
}

absl::StatusOr<ExchangeShape> ExchangeShapeOf(const plan::PhysicalPlan& plan, uint32_t stage) {
  ExchangeShape shape;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    if (pipeline.stage != stage || !std::holds_alternative<plan::ExchangeReceive>(pipeline.source)) continue;
    NAM_ASSIGN_OR_RETURN(const RowLayout layout, ExchangeLayout(pipeline.schemas[0]));
    const auto bytes = static_cast<uint32_t>(layout.page_bytes() + sizeof(MessageHeader));
    shape.message_bytes = std::max(shape.message_bytes, (bytes + 63) / 64 * 64);
    ++shape.exchanges;
  }
  for (const plan::Pipeline& pipeline : plan.pipelines)
    shape.exchanges += pipeline.stage == stage && IsFiltered(pipeline);
  return shape;
}

uint32_t FilterExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t sender) {
  uint32_t number = 0;
  for (uint32_t p = 0; p < plan.pipelines.size(); ++p) {
    const plan::Pipeline& pipeline = plan.pipelines[p];
    if (pipeline.stage != stage) continue;
    number += std::holds_alternative<plan::ExchangeReceive>(pipeline.source);
    number += p < sender && IsFiltered(pipeline);
  }
  return number;
}

uint32_t ExchangeNumber(const plan::PhysicalPlan& plan, uint32_t stage, uint32_t exchange) {
  uint32_t number = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    const auto* receive = std::get_if<plan::ExchangeReceive>(&pipeline.source);
    if (receive == nullptr || pipeline.stage != stage) continue;
    if (receive->exchange == exchange) return number;
    ++number;
  }
  NAM_CHECK(false, "a checked plan receives what it sends");
  return number;
}

}  // namespace nam::execution
