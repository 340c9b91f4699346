#include <algorithm>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/exchange/exchange_sink.h"
#include "execution/exchange/exchange_source.h"
#include "execution/pipeline_preparation.h"

/// Prepares both ends of exchanges.
namespace nam::execution {
namespace {

absl::Status NoMembers() {
  return absl::InvalidArgumentError("a stage with exchanges that has no members");
}

}  // namespace

absl::Status PipelinePreparation::MakeExchangeSource(const plan::ExchangeReceive& receive) {
  const StageInputs& inputs = stage_.inputs();
  if (inputs.members == 0) return NoMembers();
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<ExchangeSource> made,
      ExchangeSource::Make({.rows = plan_.schemas[0],
                            .exchange = ExchangeNumber(stage_.plan(), inputs.stage, receive.exchange),
                            .attempt = inputs.exchange_attempt()},
                           stage_.result_budget_));
  out_.source = std::move(made);
  return absl::OkStatus();
}

absl::Status PipelinePreparation::MakeExchangeSink(const plan::ExchangeSend& sink) {
  const StageInputs& inputs = stage_.inputs();
  if (inputs.members == 0) return NoMembers();
  // Other sources have no member's share: every member would send all rows.
  if (out_.scan == nullptr && !receives()) return NotRun("an exchange of these rows");
  if (sink.filtered_by.has_value()) {
    out_.key_filters = std::make_unique<KeyFilters>(
        KeyFilters::Options{.exchange = FilterExchangeNumber(stage_.plan(), inputs.stage, number_),
                            .self = inputs.member,
                            .members = inputs.members},
        stage_.build_budget());
  }
  NAM_ASSIGN_OR_RETURN(
      out_.sink, ExchangeSink::Make({.rows = schema(),
                                     .keys = sink.keys,
                                     .exchange = ExchangeNumber(stage_.plan(), inputs.stage, sink.exchange),
                                     .attempt = inputs.exchange_attempt(),
                                     .filters = out_.key_filters.get()},
                                    stage_.result_budget_));
  return absl::OkStatus();
}

bool PipelinePreparation::FiltersRows() const {
  const auto& pipelines = stage_.plan().pipelines;
  return std::any_of(pipelines.begin(), pipelines.end(), [&](const plan::Pipeline& pipeline) {
    const auto* send = std::get_if<plan::ExchangeSend>(&pipeline.sink);
    return send != nullptr && send->filtered_by == number_;
  });
}

}  // namespace nam::execution
