#include "execution/sort/run_merge.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/partition/packed_page.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// The memory of a run: its pages, and the prefixes of one chunk.
uint64_t RunBytes(const RowLayout& layout) {
  return uint64_t{storage::ScratchStreams::kPagesOfAList} * layout.page_bytes() +
         kChunkRows * sizeof(uint64_t) + 256;
}

std::vector<std::vector<storage::ScratchPage>> PagesOfRuns(std::span<const ScratchRun> runs) {
  std::vector<std::vector<storage::ScratchPage>> pages;
  for (const ScratchRun& run : runs) pages.push_back(run.pages);
  return pages;
}

/// Number and bytes of each long page, the last first.
std::vector<std::pair<size_t, uint32_t>> LongPagesOf(const ScratchRun& run) {
  std::vector<std::pair<size_t, uint32_t>> long_pages;
  size_t page = 0;
  for (size_t i = 0; i < run.pages.size(); ++i) {
    if (!run.pages[i].continues) {
      ++page;
    } else if (long_pages.empty() || long_pages.back().first != page - 1) {
      long_pages.emplace_back(page - 1, run.pages[i - 1].bytes + run.pages[i].bytes);
    } else {
      long_pages.back().second += run.pages[i].bytes;
    }
  }
  std::reverse(long_pages.begin(), long_pages.end());
  return long_pages;
}

uint64_t LongBytes(std::span<const ScratchRun> runs) {
  uint64_t bytes = 0;
  for (const ScratchRun& run : runs) bytes += LongestPageOf(run);
  return bytes;
}

absl::Status Broken(const char* what) {
  return absl::DataLossError(absl::StrCat("a sorted run in scratch memory is damaged: ", what));
}

}  // namespace

uint32_t RunMerge::RunsMax(const RowsPlan& plan, std::span<const ScratchRun> runs_to_merge,
                           const MemoryBudget& budget) {
  const RowLayout& layout = plan.layout();
  uint32_t longest = 0;
  for (const ScratchRun& run : runs_to_merge) longest = std::max(longest, LongestPageOf(run));
  const uint64_t left = budget.bytes() - std::min(budget.used(), budget.bytes());
  const uint64_t pages = storage::ScratchStreams::kPagesOfAList + longest / layout.page_bytes();
  const uint64_t runs = std::min(left / 2 / (RunBytes(layout) + longest), layout.pages_max() / pages);
  return runs < 2 ? 0 : static_cast<uint32_t>(runs);
}

absl::StatusOr<std::unique_ptr<RunMerge>> RunMerge::Make(const RowsPlan& plan,
                                                         std::span<const OrderSlot> order,
                                                         std::vector<ScratchRun> runs,
                                                         const OpenChannel& open, MemoryBudget& budget,
                                                         const std::atomic<bool>& cancel) {
  const uint64_t long_bytes = LongBytes(runs);
  const uint64_t bytes = runs.size() * RunBytes(plan.layout()) + long_bytes;
  if (!budget.Reserve(bytes)) return OverBudget(budget);
  absl::StatusOr<std::unique_ptr<storage::Channel>> channel = open(std::max<uint64_t>(
      uint64_t{storage::ScratchStreams::kPagesOfAList} * plan.layout().page_bytes() * runs.size() +
          long_bytes,
      1));
  if (!channel.ok()) {
    budget.Release(bytes);
    return channel.status();
  }
  return std::unique_ptr<RunMerge>(
      new RunMerge(plan, order, std::move(runs), *std::move(channel), budget, bytes, cancel));
}

RunMerge::RunMerge(const RowsPlan& plan, std::span<const OrderSlot> order, std::vector<ScratchRun> runs,
                   std::unique_ptr<storage::Channel> channel, MemoryBudget& budget, uint64_t bytes,
                   const std::atomic<bool>& cancel)
    : plan_(plan),
      shift_(plan.layout().rows_shift()),
      budget_(budget),
      bytes_(bytes),
      channel_(std::move(channel)),
      streams_(*channel_, plan.layout().page_bytes(), PagesOfRuns(runs), cancel),
      order_(plan.layout(), channel_->buffer().data(), order),
      frame_(plan.slots().NewFrame()),
      keys_(plan.schema().size(), 0),
      cursors_(runs.size()),
      places_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      numbers_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {
  NAM_CHECK(!order_.empty(), "runs are sorted");
  const uint32_t page_bytes = plan.layout().page_bytes();
  auto long_slot = static_cast<uint32_t>(storage::ScratchStreams::kPagesOfAList * runs.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    Cursor& cursor = cursors_[r];
    cursor.attempt = runs[r].attempt;
    cursor.rows_left = runs[r].rows;
    cursor.long_slot = long_slot;
    long_slot += LongestPageOf(runs[r]) / page_bytes;
    cursor.long_pages = LongPagesOf(runs[r]);
  }
  for (size_t i = 0; i < keys_.columns().size(); ++i) {
    const RowField& field = plan.layout().field(i);
    keys_.columns()[i] = {.kind = Column::Kind::kField,
                          .width = field.width,
                          .physical = field.physical,
                          .base = channel_->buffer().data(),
                          .rows = places_.get(),
                          .field = &field};
  }
}

RunMerge::~RunMerge() {
  budget_.Release(bytes_);
}

absl::Status RunMerge::Start(TaskContext& context) {
  started_ = true;
  NAM_RETURN_IF_ERROR(streams_.Prefetch());
  for (uint32_t r = 0; r < cursors_.size(); ++r) {
    cursors_[r].prefixes = std::make_unique_for_overwrite<uint64_t[]>(kChunkRows);
    NAM_ASSIGN_OR_RETURN(const bool more, BeginPage(context, r));
    if (more) heads_.push_back({RowOf(cursors_[r]), r});
  }
  for (size_t i = heads_.size() / 2; i-- > 0;) SiftDown(i);
  return absl::OkStatus();
}

absl::StatusOr<bool> RunMerge::BeginPage(TaskContext& context, uint32_t run) {
  Cursor& cursor = cursors_[run];
  if (streams_.pages_left(run) == 0) {
    if (cursor.rows_left != 0) return Broken("it has fewer rows than its directory says");
    cursor.prefixes.reset();
    return false;
  }
  std::span<std::byte> page;
  cursor.is_long = NextIsLong(cursor);
  if (cursor.is_long) {
    cursor.slot = cursor.long_slot;
    NAM_ASSIGN_OR_RETURN(page, ReadLongPage(run, cursor.long_pages.back().second));
    cursor.long_pages.pop_back();
  } else {
    NAM_ASSIGN_OR_RETURN(cursor.slot, streams_.Next(run));
    page = streams_.Slot(cursor.slot);
    NAM_RETURN_IF_ERROR(UnpackPage(plan_.layout(), page, streams_.bytes(cursor.slot)));
  }
  ++cursor.page;
  NAM_RETURN_IF_ERROR(plan_.layout().CheckPage(page, cursor.attempt));
  context.Charge(page.size(), plan::work_cost::kChecksumBytePs);
  PageHeader header;
  std::memcpy(&header, page.data(), sizeof(header));
  if (header.rows == 0 || header.rows > cursor.rows_left)
    return Broken("it has other rows than its directory says");
  cursor.rows_left -= header.rows;
  cursor.rows = header.rows;
  cursor.place = cursor.end = 0;
  NAM_RETURN_IF_ERROR(LoadPrefixes(cursor));
  return true;
}

absl::StatusOr<std::span<std::byte>> RunMerge::ReadLongPage(uint32_t run, uint32_t bytes) {
  const uint64_t offset = uint64_t{cursors_[run].long_slot} * plan_.layout().page_bytes();
  const std::span<std::byte> page(channel_->buffer().data() + offset, bytes);
  for (size_t done = 0; done < bytes;) {
    NAM_ASSIGN_OR_RETURN(const uint32_t slot, streams_.Next(run));
    const std::span<const std::byte> piece = streams_.Slot(slot).first(streams_.bytes(slot));
    std::memcpy(page.data() + done, piece.data(), piece.size());
    done += piece.size();
    NAM_RETURN_IF_ERROR(streams_.Release(run));
  }
  return page;
}

absl::Status RunMerge::LoadPrefixes(Cursor& cursor) {
  cursor.first = cursor.end;
  const uint32_t count = std::min(kChunkRows, cursor.rows - cursor.first);
  cursor.end = cursor.first + count;
  std::iota(places_.get(), places_.get() + count, cursor.slot << shift_ | cursor.first);
  keys_.SelectAll(count);
  const Vector* const first = plan_.slots().Evaluate(order_.first().slot, frame_, keys_, keys_.selection());
  if (first == nullptr) return frame_.error();
  order_.PrefixesOf(*first, keys_.selection(), cursor.prefixes.get());
  uint64_t before = cursor.last_prefix;
  bool sorted = true;
  for (uint32_t i = 0; i < count; ++i) {
    sorted = sorted && before <= cursor.prefixes[i];
    before = cursor.prefixes[i];
  }
  cursor.last_prefix = before;
  return sorted ? absl::OkStatus() : Broken("it is not sorted");
}

void RunMerge::SiftDown(size_t at) {
  while (true) {
    size_t least = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heads_.size(); ++child) {
      if (order_.Before(heads_[child].row, heads_[least].row)) least = child;
    }
    if (least == at) return;
    std::swap(heads_[at], heads_[least]);
    at = least;
  }
}

absl::StatusOr<bool> RunMerge::Advance(TaskContext& context) {
  const uint32_t run = heads_[0].run;
  Cursor& cursor = cursors_[run];
  bool more = true;
  const bool waited = std::exchange(waits_, false);
  if (!waited && ++cursor.place == cursor.rows && !cursor.is_long) used_up_.push_back(run);
  if (cursor.place == cursor.rows) {
    // The chunk points to both of its pages, or to one that must be released before a long one is READ.
    if (streams_.pages_left(run) > 0 && (!streams_.HasRoom(run) || (NextIsLong(cursor) && !waited))) {
      waits_ = true;
      return false;
    }
    NAM_ASSIGN_OR_RETURN(more, BeginPage(context, run));
  } else if (cursor.place == cursor.end) {
    NAM_RETURN_IF_ERROR(LoadPrefixes(cursor));
  }
  if (more) {
    heads_[0].row = RowOf(cursor);
  } else {
    heads_[0] = heads_.back();
    heads_.pop_back();
  }
  if (!heads_.empty()) SiftDown(0);
  return true;
}

absl::StatusOr<bool> RunMerge::Next(TaskContext& context, Chunk& out) {
  if (context.cancelled()) return absl::CancelledError("the query was cancelled");
  if (!started_) NAM_RETURN_IF_ERROR(Start(context));
  for (const uint32_t run : used_up_) NAM_RETURN_IF_ERROR(streams_.Release(run));
  used_up_.clear();
  if (waits_) NAM_RETURN_IF_ERROR(Advance(context).status());
  uint32_t count = 0;
  for (bool room = true; room && count < kChunkRows && !heads_.empty();) {
    numbers_[count++] = heads_[0].row.row;
    NAM_ASSIGN_OR_RETURN(room, Advance(context));
  }
  context.Charge(count, plan::work_cost::kFinishRowPs);
  for (size_t i = 0; i < keys_.columns().size(); ++i) {
    out.columns()[i] = keys_.columns()[i];
    out.columns()[i].rows = numbers_.get();
  }
  out.SelectAll(count);
  return count > 0;
}

}  // namespace nam::execution
