#include "execution/scan/block_scan_task.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "partitioner/table_metadata.h"
#include "plan/work_cost.h"
#include "types/numeric.h"

namespace nam::execution {

namespace work_cost = plan::work_cost;

BlockScanTask::BlockScanTask(BlockScan& scan, TaskContext& context, BlockFeed* feed)
    : scan_(scan),
      feed_(feed),
      clock_(context.clock()),
      read_(scan.programs_.empty() ? 0 : scan.options_.columns.size(), 0) {
  if (feed_ == nullptr)
    claims_.emplace(scan.queue_, context.channels().claims, context.clock(), context.cancel());
  for (const auto& program : scan.programs_) frames_.push_back(program->NewFrame());
}

BlockScanTask::~BlockScanTask() {
  End();
}

void BlockScanTask::Stop() {
  End();
}

void BlockScanTask::Begin(TaskContext& context, Chunk& out) {
  out_ = &out;
  started_ns_ = clock_.NowNs();
  MakeSelectors();
  MakeColumns(out);
  EnterGroup(0);
  if (feed_ == nullptr) OpenStream(context);
}

void BlockScanTask::MakeSelectors() {
  for (size_t g = 0; g < scan_.columns_.size(); ++g) {
    selectors_.push_back(std::make_unique<RowSelector>(scan_.columns_[g], scan_.conditions_[g],
                                                       scan_.lookups_, scan_.sort_column_));
  }
}

void BlockScanTask::MakeColumns(Chunk& out) {
  const BlockScan::Options& options = scan_.options_;
  NAM_CHECK(out.columns().size() == options.outputs.size() && out.row_sets() == scan_.row_sets_);
  rows_ = out.row_set(0);
  for (size_t i = 0; i < options.outputs.size(); ++i) {
    const ScanOutput& output = options.outputs[i];
    Column& column = out.columns()[i];
    if (output.probe == ScanOutput::kScanned) {
      pages_.push_back({&column, output.column, options.columns[output.column]});
      continue;
    }
    const auto probe = static_cast<size_t>(output.probe);
    column = options.probes[probe].build->PayloadOf(output.column, out.row_set(scan_.row_set_of_[probe]));
  }
  for (uint32_t slot = 0; slot < read_.columns().size(); ++slot)
    pages_.push_back({&read_.columns()[slot], slot, options.columns[slot]});
  for (size_t probe = 0; probe < scan_.lookups_.size(); ++probe) {
    if (scan_.row_set_of_[probe] == 0) continue;
    const KeyLookup& lookup = scan_.lookups_[probe];
    partners_.push_back(
        {lookup.table, lookup.slot, options.columns[lookup.slot], out.row_set(scan_.row_set_of_[probe])});
  }
}

void BlockScanTask::OpenStream(TaskContext& context) {
  const BlockScan::Options& options = scan_.options_;
  NAM_CHECK(context.channels().blocks != nullptr, "a scan reads blocks over a channel");
  storage::Channel& channel = *context.channels().blocks;
  const storage::StreamTable table = partitioner::StreamTableOf(*options.table, options.columns);
  // The requested window, if the channel's buffer and queues carry it.
  const uint64_t by_buffer = channel.buffer().bytes() / std::max<uint64_t>(options.table->block_bytes(), 1);
  const uint64_t by_queue = channel.options().queue_depth / (table.columns.size() + 1);
  const uint64_t window = std::min({uint64_t{options.window}, by_buffer, by_queue, uint64_t{64}});
  const storage::StreamOptions stream{.window = static_cast<uint32_t>(std::max<uint64_t>(window, 1)),
                                      .in_place = options.in_place,
                                      .verify = options.verify,
                                      .known = options.known.get(),
                                      .sort_column = scan_.sort_column_,
                                      .slow_start = options.slow_start,
                                      .cancel = &context.cancel()};
  stream_ = std::make_unique<storage::BlockStream>(channel, table, stream, [this] { return NextChain(); });
}

std::optional<storage::ChainStart> BlockScanTask::NextChain() {
  const std::optional<uint32_t> next = claims_->Next();
  if (!next) return std::nullopt;
  const partitioner::Piece& piece = scan_.queue_[*next];
  const BlockScan::Options& options = scan_.options_;
  storage::ChainStart chain = partitioner::ChainStartOf(*options.table, piece.partition);
  chain.first = piece.first_block;
  chain.end = piece.first_block + piece.blocks;
  chain.group = options.group_of.empty() ? 0 : options.group_of[piece.partition];
  const RowSelector::CodeRange wanted = selectors_[chain.group]->SortCodes();
  chain.sort_min = wanted.low;
  chain.sort_max = wanted.high;
  return chain;
}

void BlockScanTask::End() {
  if (std::exchange(ended_, true) || out_ == nullptr) return;
  if (feed_ == nullptr) {
    totals_.stream = stream_->counters();
    stream_.reset();
    totals_.stream.blocks += totals_.stream.skipped_blocks;
    totals_.skipped_blocks += totals_.stream.skipped_blocks;
    totals_.total_ns = clock_.NowNs() - started_ns_;
  } else {
    CountFedTime();
  }
  for (const auto& selector : selectors_) totals_.conditions.Add(selector->counts());
  scan_.Add(totals_, claims_ ? &*claims_ : nullptr);
}

Step BlockScanTask::Next(TaskContext& context, Chunk& out) {
  if (ended_) return Step::kDone;
  if (out_ == nullptr) Begin(context, out);
  NAM_CHECK(&out == out_, "a task fills one chunk");
  while (true) {
    const uint32_t rows = Gather(context);
    if (rows == 0) {
      const Step step = NextBlock(context);
      if (step == Step::kHaveMore) continue;
      if (step != Step::kNeedInput) End();
      return step;
    }
    const Step step = Complete(context, rows);
    if (step == Step::kNeedInput) continue;
    if (step != Step::kHaveMore) End();
    return step;
  }
}

uint32_t BlockScanTask::Gather(TaskContext& context) {
  uint32_t rows = std::exchange(left_over_, 0);
  if (rows > 0) std::copy_n(rows_ + kChunkRows, rows, rows_);
  while (selector_->more() && rows < kChunkRows) rows += selector_->Next(rows_ + rows);
  const RowSelector::Work work = selector_->TakeWork();
  context.Charge(work.first_rows, work_cost::kFirstFilterRowPs);
  context.Charge(work.later_rows, work_cost::kFilterRowPs);
  if (rows <= kChunkRows) return rows;
  left_over_ = rows - kChunkRows;
  return kChunkRows;
}

Step BlockScanTask::NextBlock(TaskContext& context) {
  context.Settle();
  const Step step = feed_ == nullptr ? StreamBlock(context) : TakeFedBlock();
  if (step != Step::kHaveMore) return step;
  totals_.rows_in += block_.rows();
  context.Charge(1, work_cost::kBlockPs);
  if (selectors_.size() > 1 && GroupOfBlock() != group_) EnterGroup(GroupOfBlock());
  if (scan_.options_.verify) context.Charge(block_.rows() * row_bytes_, work_cost::kChecksumBytePs);
  bases_set_ = false;
  if (!selector_->Start(block_)) ++totals_.skipped_blocks;
  return Step::kHaveMore;
}

Step BlockScanTask::StreamBlock(TaskContext& context) {
  const absl::StatusOr<bool> more = stream_->Next(block_);
  if (!more.ok()) return context.Fail(more.status());
  if (*more) return Step::kHaveMore;
  return claims_->error().ok() ? Step::kDone : context.Fail(claims_->error());
}

Step BlockScanTask::TakeFedBlock() {
  CountFedTime();
  const std::optional<storage::BlockView> block = feed_->Take();
  if (!block) return feed_->closed() ? Step::kDone : Step::kNeedInput;
  NAM_CHECK(block->partition() < static_cast<uint32_t>(scan_.options_.table->partitions_size()),
            "a block of another table");
  block_ = *block;
  fed_block_ns_ = clock_.NowNs();
  return Step::kHaveMore;
}

void BlockScanTask::CountFedTime() {
  if (!fed_block_ns_) return;
  totals_.total_ns += clock_.NowNs() - *fed_block_ns_;
  fed_block_ns_.reset();
}

uint32_t BlockScanTask::GroupOfBlock() const {
  if (feed_ == nullptr) return stream_->chain().group;
  const std::vector<uint32_t>& group_of = scan_.options_.group_of;
  return group_of.empty() ? 0 : group_of[block_.partition()];
}

/// Makes room for the column's values.
Column BlockScanTask::PlainColumnOf(const CodeMeaning& meaning, PlainColumn& values) {
  const auto room = [](auto& of_kind) {
    of_kind.resize(kChunkRows);
    return reinterpret_cast<const std::byte*>(of_kind.data());
  };
  const Physical physical = PhysicalOf(meaning.type);
  if (meaning.null_code) values.nulls.resize(kChunkRows);
  values.words = meaning.type.kind == TypeKind::kNumeric;
  return {.kind = Column::Kind::kValues,
          .width = WidthOf(physical),
          .physical = physical,
          .base = physical == Physical::kText     ? room(values.texts)
                  : physical == Physical::kInt128 ? room(values.numbers)
                                                  : room(values.narrow_numbers),
          .nulls = meaning.null_code ? values.nulls.data() : nullptr};
}

void BlockScanTask::EnterGroup(uint32_t group) {
  group_ = group;
  selector_ = selectors_[group].get();
  const std::vector<ScanColumn>& columns = scan_.columns_[group];
  row_bytes_ = 0;
  for (const ScanColumn& column : columns) row_bytes_ += column.meaning->width;
  plain_.resize(columns.size());
  for (const PageColumn& page : pages_) {
    const CodeMeaning& meaning = *columns[page.slot].meaning;
    if (meaning.plain) {
      *page.column = PlainColumnOf(meaning, plain_[page.slot]);
      continue;
    }
    *page.column = {.kind = Column::Kind::kCodes,
                    .width = meaning.width,
                    .physical = PhysicalOf(meaning.type),
                    .rows = rows_,
                    .meaning = &meaning};
  }
}

/// Rows ascend: if none is left out, the place of the first one tells the others'.
void BlockScanTask::SetBases(uint32_t rows) {
  const std::vector<ScanColumn>& columns = scan_.columns_[group_];
  const bool all = rows_[rows - 1] - rows_[0] == rows - 1;
  if (bases_set_ && !all && !all_rows_) return;
  for (const PageColumn& page : pages_) {
    if (columns[page.slot].meaning->plain) continue;
    page.column->base = block_.page(page.number) + (all ? size_t{rows_[0]} * page.column->width : 0);
    page.column->rows = all ? nullptr : rows_;
  }
  all_rows_ = all;
  bases_set_ = true;
}

Step BlockScanTask::Complete(TaskContext& context, uint32_t rows) {
  SetBases(rows);
  const std::vector<ScanColumn>& columns = scan_.columns_[group_];
  const auto take_plain = [&](bool filtered, Selection selection) -> absl::Status {
    for (uint32_t slot = 0; slot < columns.size(); ++slot) {
      if (columns[slot].meaning->plain && (scan_.filtered_[slot] != 0) == filtered)
        NAM_RETURN_IF_ERROR(TakePlain(slot, selection));
    }
    return absl::OkStatus();
  };
  Selection selection{nullptr, rows};
  if (absl::Status taken = take_plain(/*filtered=*/true, selection); !taken.ok())
    return context.Fail(std::move(taken));
  if (!frames_.empty()) read_.SelectAll(rows);
  for (size_t i = 0; i < frames_.size(); ++i) {
    context.Charge(selection.count, work_cost::kFilterRowPs);
    const auto kept = SelectWhere(*scan_.programs_[i], frames_[i], read_, selection, positions_);
    if (!kept) return context.Fail(frames_[i].error());
    totals_.conditions.dropped += selection.count - *kept;
    if (*kept == 0) return Step::kNeedInput;
    if (*kept < selection.count) selection = {positions_, *kept};
  }
  if (absl::Status taken = take_plain(/*filtered=*/false, selection); !taken.ok())
    return context.Fail(std::move(taken));
  if (!partners_.empty()) FetchPartners(context, selection);
  out_->Reset(rows, selection);
  return Step::kHaveMore;
}

absl::Status BlockScanTask::TakePlain(uint32_t slot, Selection selection) {
  const uint32_t number = scan_.options_.columns[slot];
  const uint32_t* const rows = rows_;
  PlainColumn& to = plain_[slot];
  if (!to.texts.empty()) {
    const storage::TextPage texts = block_.texts(number);
    ForEach(selection, [&](uint32_t p) { to.texts[p] = texts[rows[p]]; });
    if (!to.nulls.empty()) ForEach(selection, [&](uint32_t p) { to.nulls[p] = texts.IsNull(rows[p]); });
    return absl::OkStatus();
  }
  const storage::NumberPage numbers(block_.page(number));
  bool whole = true;
  if (to.words) {
    ForEach(selection, [&](uint32_t p) {
      to.numbers[p] = numbers[rows[p]];
      whole &= IsNumericWord(to.numbers[p]);
    });
  } else if (to.narrow_numbers.empty()) {
    ForEach(selection, [&](uint32_t p) { to.numbers[p] = numbers[rows[p]]; });
  } else {
    ForEach(selection, [&](uint32_t p) { to.narrow_numbers[p] = static_cast<int64_t>(numbers[rows[p]]); });
  }
  if (!to.nulls.empty()) ForEach(selection, [&](uint32_t p) { to.nulls[p] = numbers.IsNull(rows[p]); });
  if (whole) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("block %d of partition %d is damaged: column %d has no number",
                                             block_.index(), block_.partition(), number));
}

void BlockScanTask::FetchPartners(TaskContext& context, Selection selection) {
  const uint32_t* const rows = rows_;
  for (const Partners& partners : partners_) {
    context.Charge(selection.count, work_cost::kPartnerRowPs);
    const DirectTable& table = *partners.table;
    const CodeMeaning& key = *scan_.columns_[group_][partners.slot].meaning;
    const auto base = static_cast<uint64_t>(key.base);
    uint32_t* const out = partners.rows;
    WithCodes(block_.page(partners.number), key.width, [&](const auto* codes) {
      ForEach(selection,
              [&](uint32_t p) { out[p] = table.PositionOf(static_cast<int64_t>(base + codes[rows[p]])); });
    });
  }
}

}  // namespace nam::execution
