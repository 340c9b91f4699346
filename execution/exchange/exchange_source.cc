#include "execution/exchange/exchange_source.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/exchange/endpoint.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/partition/packed_page.h"
#include "execution/rows/page_columns.h"
#include "plan/work_cost.h"

namespace nam::execution {

class ExchangeSource::Task final : public SourceTask {
 public:
  Task(ExchangeSource& source, Clock& clock, Endpoint& endpoint)
      : source_(source), clock_(clock), endpoint_(endpoint), memory_(source.budget_) {}
  ~Task() override {
    source_.rows_.fetch_add(received_, std::memory_order_relaxed);
    source_.bytes_.fetch_add(received_bytes_, std::memory_order_relaxed);
    if (began_ns_.has_value())
      source_.total_ns_.fetch_add(clock_.NowNs() - *began_ns_, std::memory_order_relaxed);
  }

  Step Next(TaskContext& context, Chunk& out) override {
    if (!began_ns_.has_value()) began_ns_ = clock_.NowNs();
    out.SelectAll(0);
    while (done_ == rows_) {
      const Step step = NextPage(context);
      if (step != Step::kHaveMore) return step;
    }
    const uint32_t count = std::min(kChunkRows, rows_ - done_);
    columns_.Show(source_.layout_, page(), done_, count, out);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  std::byte* page() { return reinterpret_cast<std::byte*>(memory_.data()); }

  /// kHaveMore: there is one, perhaps without rows.
  Step NextPage(TaskContext& context) {
    const uint32_t exchange = source_.exchange_;
    std::optional<Endpoint::Message> message = endpoint_.GetData(exchange, exchange + 1);
    if (!message.has_value() && !endpoint_.Ended(exchange)) {
      const absl::Status polled = endpoint_.Poll(/*wait=*/false, context.cancel());
      if (!polled.ok()) return context.Fail(polled);
      message = endpoint_.GetData(exchange, exchange + 1);
    }
    if (!message.has_value()) return endpoint_.Ended(exchange) ? Step::kDone : Step::kNeedInput;
    context.CountMessage();
    if (message->sender != endpoint_.options().self)
      received_bytes_ += sizeof(MessageHeader) + message->payload.size();
    absl::Status status = LoadPage(context, *message);
    if (status.ok()) status = endpoint_.Release(*message);
    return status.ok() ? Step::kHaveMore : context.Fail(status);
  }

  absl::Status LoadPage(TaskContext& context, const Endpoint::Message& message) {
    const RowLayout& layout = source_.layout_;
    done_ = rows_ = 0;
    if (message.payload.empty() && message.rows == 0) return absl::OkStatus();  // a sender's last message
    NAM_RETURN_IF_ERROR(memory_.Resize(layout.page_bytes() / sizeof(uint64_t)));
    const size_t bytes = message.payload.size();
    if (bytes < kPageHeaderBytes || bytes > layout.page_bytes())
      return Named(message, "a message of no page");
    std::memcpy(page(), message.payload.data(), bytes);
    context.Charge(bytes, plan::work_cost::kChecksumBytePs);
    const std::span<std::byte> whole(page(), layout.page_bytes());
    absl::Status status = UnpackPage(layout, whole, bytes);
    if (status.ok()) status = layout.CheckPage(whole, source_.attempt_);
    if (!status.ok()) return Named(message, status.message());
    PageHeader header;
    std::memcpy(&header, page(), sizeof(header));
    if (header.rows != message.rows) return Named(message, "another number of rows than its page has");
    rows_ = header.rows;
    received_ += rows_;
    return absl::OkStatus();
  }

  absl::Status Named(const Endpoint::Message& message, absl::string_view what) const {
    absl::Status error = absl::DataLossError(
        absl::StrCat(endpoint_.options().members[message.sender], " sends by an exchange: ", what));
    error.SetPayload(kExchangeMemberLost, absl::Cord(absl::StrCat(message.sender)));
    return error;
  }

  ExchangeSource& source_;
  Clock& clock_;
  Endpoint& endpoint_;
  BudgetArray<uint64_t> memory_;  // a page
  uint32_t rows_ = 0, done_ = 0;  // in the page
  uint64_t received_ = 0, received_bytes_ = 0;
  std::optional<int64_t> began_ns_;
  PageColumns columns_;
};

absl::StatusOr<std::unique_ptr<ExchangeSource>> ExchangeSource::Make(const Options& options,
                                                                     MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(RowLayout layout, ExchangeLayout(options.rows));
  return std::unique_ptr<ExchangeSource>(new ExchangeSource(options, std::move(layout), budget));
}

std::unique_ptr<SourceTask> ExchangeSource::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().exchange != nullptr, "rows are received by an endpoint");
  return std::make_unique<Task>(*this, context.clock(), *context.channels().exchange);
}

}  // namespace nam::execution
