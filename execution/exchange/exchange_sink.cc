#include "execution/exchange/exchange_sink.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/group_keys.h"
#include "execution/budget_array.h"
#include "execution/exchange/endpoint.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/partition/packed_page.h"
#include "execution/rows/long_page.h"
#include "execution/rows/row_hash.h"
#include "execution/rows/row_writer.h"
#include "execution/task.h"
#include "plan/slot_of.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"
#include "types/hash.h"

namespace nam::execution {

class ExchangeSink::Task final : public SinkTask {
 public:
  Task(ExchangeSink& sink, Endpoint& endpoint)
      : sink_(sink),
        layout_(sink.layout_),
        options_(sink.options_),
        endpoint_(endpoint),
        writer_(sink.layout_, *sink.slots_),
        frame_(sink.slots_->NewFrame()),
        groups_(static_cast<uint32_t>(endpoint.options().exchanges[sink.options_.exchange].size())),
        open_(groups_),
        staging_(sink.budget_),
        long_row_(sink.budget_),
        hashes_(std::make_unique_for_overwrite<uint64_t[]>(sink.layout_.rows_max())),
        kept_(std::make_unique_for_overwrite<uint32_t[]>(sink.layout_.rows_max())) {
    std::iota(kept_.get(), kept_.get() + layout_.rows_max(), 0);
    for (size_t i = 0; i < layout_.fields(); ++i) {
      if (layout_.field(i).physical == Physical::kText) texts_.push_back(i);
    }
  }

  ~Task() override { sink_.bytes_.fetch_add(sent_bytes_, std::memory_order_relaxed); }

  Step Consume(TaskContext& context, const Chunk& in) override {
    const absl::Status room = staging_.Resize(layout_.page_bytes() / sizeof(uint64_t));
    if (!room.ok()) return context.Fail(room);
    while (true) {
      const Step step = Scatter(context);
      if (step != Step::kDone) return step;
      if (consumed_ == in.selection().count) break;
      const absl::Status staged = Stage(context, in);
      if (!staged.ok()) return context.Fail(staged);
    }
    consumed_ = 0;
    return Step::kNeedInput;
  }

  /// Sends the last message to each group; members begin with different groups.
  Step Finish(TaskContext& context) override {
    for (; finished_ < groups_; ++finished_) {
      const uint32_t group = (endpoint_.options().self + finished_) % groups_;
      if (!open_[group].buffer.has_value()) {
        const Step step = AcquireBuffer(context, group);
        if (step != Step::kDone) return step;
      }
      const Step step = Send(context, group, /*last=*/true);
      if (step != Step::kDone) return step;
    }
    return Step::kDone;
  }

 private:
  /// The page in a group's message. No buffer: the group has no row yet.
  struct OpenPage {
    std::optional<Endpoint::Buffer> buffer;
    uint32_t rows = 0;
    uint32_t text_begin = 0;
    uint32_t packed_bytes = 0;  // set once it waits to be sent
    uint32_t piece_bytes = 0;   // the message is a piece of a long page
    std::byte* bytes() const { return buffer->payload.data(); }
  };

  std::byte* staging() { return reinterpret_cast<std::byte*>(staging_.data()); }

  /// Writes the chunk's next tuples to the staging page, or one that is too long for it to a page of its own.
  absl::Status Stage(TaskContext& context, const Chunk& in) {
    std::byte* page = staging();
    layout_.Clear(page);
    writer_.Open(page, 0);
    const uint32_t before = consumed_;
    if (!writer_.Append(frame_, in, in.selection(), consumed_, nullptr)) return frame_.error();
    if (consumed_ == before) {
      NAM_RETURN_IF_ERROR(long_row_.Make(layout_, writer_.next_page_bytes()));
      page = long_row_.data();
      writer_.Open(page, 0);
      if (!writer_.Append(frame_, in, in.selection(), consumed_, nullptr)) return frame_.error();
      long_row_.Seal(layout_, options_.attempt);
      long_sent_ = 0;
    }
    staged_ = consumed_ - before;
    next_ = 0;
    context.Charge(staged_, plan::work_cost::kRouteRowPs);
    context.Charge(uint64_t{staged_} * layout_.fields(), plan::work_cost::kRouteCodePs);
    if (!options_.keys.empty()) HashRows(layout_, options_.keys, page, 0, staged_, hashes_.get());
    if (options_.filters == nullptr) return absl::OkStatus();
    ChargeAccesses(context, staged_, options_.filters->bytes());
    context.Charge(staged_, plan::work_cost::kFilterRowPs);
    staged_ = options_.filters->Keep(hashes_.get(), staged_, kept_.get());
    return absl::OkStatus();
  }

  /// Sends the long page, in pieces that are the group's next messages. kDone: all of them.
  Step SendLongRow(TaskContext& context) {
    const uint32_t group = GroupOf(0);
    OpenPage& page = open_[group];
    const std::span<const std::byte> bytes = long_row_.bytes();
    while (long_sent_ < bytes.size()) {
      const bool is_piece = page.piece_bytes > 0;
      if (!is_piece) {
        if (page.buffer.has_value() && page.rows > 0) {
          const Step step = Send(context, group, /*last=*/false);
          if (step != Step::kDone) return step;
        }
        if (!page.buffer.has_value()) {
          const Step step = AcquireBuffer(context, group);
          if (step != Step::kDone) return step;
        }
        page.piece_bytes =
            static_cast<uint32_t>(std::min<size_t>(layout_.page_bytes(), bytes.size() - long_sent_));
        std::memcpy(page.bytes(), bytes.data() + long_sent_, page.piece_bytes);
        context.Charge(page.piece_bytes, plan::work_cost::kChecksumBytePs);
        context.Settle();
        page.packed_bytes = page.piece_bytes;
        page.rows = long_sent_ + page.piece_bytes == bytes.size();
      }
      const uint32_t sent = page.piece_bytes;
      const Step step = Send(context, group, /*last=*/false);
      if (step != Step::kDone) return step;
      long_sent_ += sent;
    }
    ++next_;
    return Step::kDone;
  }

  uint32_t GroupOf(uint32_t place) const {
    return options_.keys.empty() ? 0 : ExchangePart(hashes_[place], groups_);
  }

  /// Copies rows of the staging page to their groups' pages. kDone: all of them.
  Step Scatter(TaskContext& context) {
    if (!long_row_.empty()) {
      const Step step = next_ < staged_ ? SendLongRow(context) : Step::kDone;
      if (step == Step::kDone) long_row_.Clear();
      return step;
    }
    const uint32_t stride = layout_.stride();
    for (; next_ < staged_; ++next_) {
      const uint32_t place = kept_[next_];
      const std::byte* const row = staging() + kPageHeaderBytes + size_t{place} * stride;
      const uint32_t group = GroupOf(place);
      OpenPage& page = open_[group];
      if (!page.buffer.has_value() || page.rows == layout_.rows_max() || !texts_.empty()) [[unlikely]] {
        const Step step = MakeRoom(context, group, TextBytes(row));
        if (step != Step::kDone) return step;
      }
      std::byte* const to = page.bytes() + kPageHeaderBytes + size_t{page.rows++} * stride;
      std::memcpy(to, row, stride);
      if (!texts_.empty()) CopyTexts(row, page, to);
    }
    return Step::kDone;
  }

  uint32_t TextBytes(const std::byte* row) const {
    uint32_t bytes = 0;
    for (const size_t field : texts_) bytes += layout_.field(field).Stored<uint32_t>(row + sizeof(uint32_t));
    return bytes;
  }

  void CopyTexts(const std::byte* row, OpenPage& page, std::byte* to) {
    for (const size_t f : texts_) {
      const RowField& field = layout_.field(f);
      const std::string_view text = field.Text(staging(), row);
      if (text.empty()) continue;
      page.text_begin -= static_cast<uint32_t>(text.size());
      std::memcpy(page.bytes() + page.text_begin, text.data(), text.size());
      std::memcpy(to + field.offset, &page.text_begin, sizeof(uint32_t));
    }
  }

  /// Makes room for a row with so many bytes of text. kDone: there is room.
  Step MakeRoom(TaskContext& context, uint32_t group, uint32_t text_bytes) {
    OpenPage& page = open_[group];
    if (page.buffer.has_value()) {
      const uint64_t end = kPageHeaderBytes + uint64_t{page.rows + 1} * layout_.stride() + text_bytes;
      const bool fits = page.rows < layout_.rows_max() && end <= page.text_begin;
      if (fits && page.packed_bytes == 0) return Step::kDone;
      const Step step = Send(context, group, /*last=*/false);
      if (step != Step::kDone) return step;
    }
    return AcquireBuffer(context, group);
  }

  Step AcquireBuffer(TaskContext& context, uint32_t group) {
    OpenPage& page = open_[group];
    page.buffer = endpoint_.GetFree(options_.exchange, group);
    if (!page.buffer.has_value()) {
      const absl::Status polled = endpoint_.Poll(/*wait=*/false, context.cancel());
      if (!polled.ok()) return context.Fail(polled);
      page.buffer = endpoint_.GetFree(options_.exchange, group);
    }
    if (!page.buffer.has_value()) return context.BlockOnExchange();
    layout_.Clear(page.bytes());
    page.text_begin = layout_.page_bytes();
    return Step::kDone;
  }

  /// Sends the page; a last one may have no rows.
  Step Send(TaskContext& context, uint32_t group, bool last) {
    OpenPage& page = open_[group];
    if (page.rows > 0 && page.packed_bytes == 0) Seal(context, page);  // pieces are of a sealed one
    const Endpoint::Contents contents{page.packed_bytes, page.rows, last};
    absl::StatusOr<bool> sent = endpoint_.Send(*page.buffer, contents);
    if (sent.ok() && !*sent) {
      const absl::Status polled = endpoint_.Poll(/*wait=*/false, context.cancel());
      if (!polled.ok()) return context.Fail(polled);
      sent = endpoint_.Send(*page.buffer, contents);
    }
    if (!sent.ok()) return context.Fail(sent.status());
    if (!*sent) return context.BlockOnExchange();
    page = {};
    sent_bytes_ += OthersOf(group) * (sizeof(MessageHeader) + contents.payload_bytes);
    context.CountMessage();
    return Step::kDone;
  }

  /// The members of the group that get a message by the fabric.
  uint64_t OthersOf(uint32_t group) const {
    const EndpointOptions& options = endpoint_.options();
    const TransmissionGroup& members = options.exchanges[options_.exchange][group];
    return members.size() - static_cast<size_t>(std::count(members.begin(), members.end(), options.self));
  }

  void Seal(TaskContext& context, OpenPage& page) {
    PageHeader header;
    std::memcpy(&header, page.bytes(), sizeof(header));
    header.rows = page.rows;
    header.text_begin = page.text_begin;
    std::memcpy(page.bytes(), &header, sizeof(header));
    layout_.Seal(page.bytes(), options_.attempt);
    page.packed_bytes = PackPage(layout_, page.bytes());
    context.Charge(page.packed_bytes, plan::work_cost::kChecksumBytePs);
    context.Settle();
  }

  ExchangeSink& sink_;
  const RowLayout& layout_;
  const Options& options_;
  Endpoint& endpoint_;
  RowWriter writer_;
  Frame frame_;
  const uint32_t groups_;
  std::vector<size_t> texts_;      // fields
  std::vector<OpenPage> open_;     // by group
  BudgetArray<uint64_t> staging_;  // a page
  LongPage long_row_;              // a staged row that does not fit it, alone
  size_t long_sent_ = 0;           // its bytes
  std::unique_ptr<uint64_t[]> hashes_;
  std::unique_ptr<uint32_t[]> kept_;  // places of the rows to send; all, without filters
  uint32_t staged_ = 0, next_ = 0;    // number of those, and the first unsent one
  uint32_t consumed_ = 0;             // tuples of the chunk
  uint32_t finished_ = 0;             // groups
  uint64_t sent_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<ExchangeSink>> ExchangeSink::Make(const Options& options,
                                                                 MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(RowLayout layout, ExchangeLayout(options.rows));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> slots,
                       Program::Compile(SlotsOf(options.rows), options.rows));
  return std::unique_ptr<ExchangeSink>(
      new ExchangeSink(options, std::move(layout), std::move(slots), budget));
}

std::unique_ptr<SinkTask> ExchangeSink::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().exchange != nullptr, "rows are sent by an endpoint");
  return std::make_unique<Task>(*this, *context.channels().exchange);
}

void ExchangeSink::Count(proto::PipelineCounters& out) const {
  out.set_exchange_bytes_sent(bytes());
}

}  // namespace nam::execution
