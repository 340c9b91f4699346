#include "execution/exchange/exchange_source.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/exchange/endpoint.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/partition/packed_page.h"
#include "execution/rows/long_page.h"
#include "execution/rows/page_columns.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"

namespace nam::execution {

class ExchangeSource::Task final : public SourceTask {
 public:
  Task(ExchangeSource& source, Clock& clock, Endpoint& endpoint)
      : source_(source),
        clock_(clock),
        endpoint_(endpoint),
        memory_(source.budget_),
        long_page_(source.budget_),
        arriving_(endpoint.options().members.size()) {}
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
    columns_.Show(source_.layout_, page_, done_, count, out);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  /// A long page whose pieces come one by one.
  struct Arriving {
    std::unique_ptr<LongPage> page;
    size_t bytes = 0;  // so far
  };

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
    const bool arrives = arriving_[message.sender].page != nullptr;
    if (message.payload.empty() && message.rows == 0)  // a sender's last message
      return arrives ? Named(message, "less of a page than it has") : absl::OkStatus();
    const size_t bytes = message.payload.size();
    context.Charge(bytes, plan::work_cost::kChecksumBytePs);
    if (arrives) return LoadPiece(message);
    NAM_RETURN_IF_ERROR(memory_.Resize(layout.page_bytes() / sizeof(uint64_t)));
    if (bytes < kPageHeaderBytes || bytes > layout.page_bytes())
      return Named(message, "a message of no page");
    const std::span<std::byte> whole(reinterpret_cast<std::byte*>(memory_.data()), layout.page_bytes());
    std::memcpy(whole.data(), message.payload.data(), bytes);
    if (const uint32_t all = PageHeaderOf(whole.data()).bytes; all > layout.page_bytes()) {
      if (!layout.IsPageSize(all)) return Named(message, "a page of no size");
      auto page = std::make_unique<LongPage>(source_.budget_);
      NAM_RETURN_IF_ERROR(page->Reserve(all));
      arriving_[message.sender] = {std::move(page), 0};
      return LoadPiece(message);
    }
    const absl::Status status = UnpackPage(layout, whole, bytes);
    return status.ok() ? Show(message, whole) : Named(message, status.message());
  }

  absl::Status LoadPiece(const Endpoint::Message& message) {
    Arriving& arriving = arriving_[message.sender];
    const std::span<std::byte> whole = arriving.page->bytes();
    if (message.payload.size() > whole.size() - arriving.bytes)
      return Named(message, "more of a page than it has");
    std::memcpy(whole.data() + arriving.bytes, message.payload.data(), message.payload.size());
    arriving.bytes += message.payload.size();
    if (arriving.bytes < whole.size()) return absl::OkStatus();
    long_page_ = std::move(*std::exchange(arriving, {}).page);
    return Show(message, long_page_.bytes());
  }

  /// Begins with the rows of a page that came with this message, or ended with it.
  absl::Status Show(const Endpoint::Message& message, std::span<const std::byte> page) {
    const absl::Status status = source_.layout_.CheckPage(page, source_.attempt_);
    if (!status.ok()) return Named(message, status.message());
    page_ = page.data();
    rows_ = PageHeaderOf(page_).rows;
    if (rows_ != message.rows) return Named(message, "another number of rows than its page has");
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
  BudgetArray<uint64_t> memory_;    // a page
  LongPage long_page_;              // or a long one
  std::vector<Arriving> arriving_;  // by sender
  const std::byte* page_ = nullptr;
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

void ExchangeSource::Count(proto::PipelineCounters& out) const {
  out.set_rows_in(rows());
  out.set_total_us(total_ns_.load(std::memory_order_relaxed) / 1000);
  out.set_exchange_bytes_received(bytes());
}

}  // namespace nam::execution
