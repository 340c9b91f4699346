#include "execution/partition/parted_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/charge_groups.h"
#include "execution/partition/parts.h"
#include "execution/positions.h"
#include "execution/scan/stored_rows.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"

namespace nam::execution {
namespace {

/// A table pays if 32 rows make fewer groups than this: otherwise keeping a group costs more than writing a
/// row.
constexpr uint64_t kGroupsOf32Rows = 30;
/// About so many bytes of table, keys and states for each group besides its row, while arrays grow.
constexpr uint64_t kGroupBytes = 96;

std::vector<uint32_t> FirstFields(size_t count) {
  std::vector<uint32_t> fields(count);
  std::iota(fields.begin(), fields.end(), 0);
  return fields;
}

/// A quarter of the budget serves the tables of all threads, and as much their open pages of states and of
/// rows. Some rows have come in before a table is found full.
uint64_t ShareOf(const PartedGroups::Options& options, const MemoryBudget& budget) {
  return budget.bytes() / 4 / static_cast<uint64_t>(std::max(options.threads, 1));
}

uint32_t TableGroups(const PartedGroups::Options& options, const RowLayout& layout, uint64_t share) {
  const uint64_t groups = share / (kGroupBytes + 2 * uint64_t{layout.stride()});
  return static_cast<uint32_t>(std::clamp<uint64_t>(groups, 1, options.table_groups));
}

uint32_t OpenPages(const PartedGroups::Options& options, const RowLayout& layout, uint64_t share) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(share / 2 / layout.page_bytes(), 1, options.parts));
}

PartedRows RowsOf(const AggregatePlan& plan, const RowLayout& layout, const PartedGroups::Options& options,
                  const MemoryBudget& budget) {
  return {layout,
          {FirstFields(plan.keys().size()), options.parts, plan.domain()},
          options.attempt,
          OpenPages(options, layout, ShareOf(options, budget))};
}

bool HasTexts(const plan::Schema& states) {
  return std::any_of(states.begin(), states.end(),
                     [](const plan::Slot& slot) { return PhysicalOf(slot.type) == Physical::kText; });
}

}  // namespace

/// One thread's table, and its writer once it has written.
class PartedGroups::Task final : public SinkTask {
 public:
  Task(PartedGroups& sink, GroupSet& set)
      : sink_(sink),
        set_(set),
        some_(0, 0),
        rows_max_(HasTexts(sink.plan_.partial_schema()) ? kFirstRows : kChunkRows) {}

  /// A chunk's texts may exceed the table's share: takes in only so many rows at once that theirs are a small
  /// part of it.
  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    const uint32_t* const positions = PositionsOf(rows);
    for (uint32_t first = 0; first < rows.count;) {
      const uint32_t left = rows.count - first, count = without_table_ > 0 ? left : std::min(rows_max_, left);
      const bool whole = count == rows.count;
      if (!whole) {
        some_.columns() = in.columns();
        some_.Reset(in.size(), {positions + first, count});
      }
      const Chunk& some = whole ? in : some_;
      const absl::Status status = without_table_ > 0 ? WriteRows(context, some) : Group(context, some);
      if (!status.ok()) return context.Fail(status);
      first += count;
    }
    return Step::kNeedInput;
  }

  Step Finish(TaskContext& context) override {
    // What others have written is checked when all have ended.
    if (writers_ == nullptr && set_.size() <= sink_.options_.few_groups) {
      const absl::StatusOr<bool> small = sink_.IsSmall(set_);
      if (!small.ok()) return context.Fail(small.status());
      if (*small) return Step::kDone;
    }
    absl::Status status = WriteTable(context);
    if (status.ok()) status = writers_->Finish(context, sink_.output_);
    if (status.ok()) writers_.reset();
    return status.ok() ? Step::kDone : context.Fail(status);
  }

 private:
  /// For texts of unknown size, and of any size.
  static constexpr uint32_t kFirstRows = 8, kFewestRows = 1;
  /// Rows taken in at once have at most this fraction of the table's share.
  static constexpr uint64_t kPartOfTable = 8;

  /// Notes that `rows` rows have taken so many bytes.
  void LearnSize(uint32_t rows, uint64_t bytes) {
    const uint64_t fit =
        bytes == 0 ? 2 * uint64_t{rows_max_} : sink_.table_bytes_ / kPartOfTable * rows / bytes;
    rows_max_ = static_cast<uint32_t>(std::clamp<uint64_t>(fit, kFewestRows, kChunkRows));
  }

  absl::Status Group(TaskContext& context, const Chunk& in) {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const uint64_t before = set_.value_bytes();
    NAM_RETURN_IF_ERROR(set_.Consume(in));
    ChargeGroups(context, sink_.plan_, set_, in.selection().count);
    LearnSize(in.selection().count, set_.value_bytes() - before);
    rows_ += in.selection().count;
    const uint32_t sample = std::min(sink_.options_.sample_groups, sink_.table_groups_);
    const bool sampled = !pays_ && set_.size() >= sample;
    if (sampled) pays_ = set_.size() * uint64_t{32} < rows_ * kGroupsOf32Rows;
    if (sampled && !pays_) {
      without_table_ = sink_.options_.rows_without_table;
      return WriteTable(context);
    }
    const uint64_t bytes = set_.value_bytes();
    // Expressions that make texts use the budget, too.
    const bool pressed = bytes > 0 && sink_.budget_.used() > sink_.budget_.bytes() / 4 * 3;
    const bool full = set_.size() >= sink_.table_groups_ || bytes > sink_.table_bytes_ || pressed;
    return full ? WriteTable(context) : absl::OkStatus();
  }

  absl::Status WriteTable(TaskContext& context) {
    if (writers_ == nullptr) writers_ = std::make_unique<Writers>(sink_, context);
    rows_ = 0;
    pays_ = false;
    return sink_.Write(context, set_, writers_->states);
  }

  /// Bypasses the table, which has been written.
  absl::Status WriteRows(TaskContext& context, const Chunk& in) {
    without_table_ -= std::min<uint64_t>(in.selection().count, without_table_);
    return writers_->rows.Append(context, in, in.selection());
  }

  PartedGroups& sink_;
  GroupSet& set_;
  std::unique_ptr<Writers> writers_;
  Chunk some_;                  // rows of a chunk
  uint32_t rows_max_;           // taken in at once from a chunk
  uint64_t rows_ = 0;           // taken in by the table
  bool pays_ = false;           // the table reduces rows
  uint64_t without_table_ = 0;  // rows left to write unaggregated
};

PartedGroups::PartedGroups(const AggregatePlan& plan, const Options& options, storage::ScratchSpace& space,
                           MemoryBudget& budget)
    : plan_(plan),
      options_(options),
      states_(RowsOf(plan, plan.partial_layout(), options, budget)),
      rows_(RowsOf(plan, plan.row_layout(), options, budget)),
      table_bytes_(ShareOf(options, budget)),
      table_groups_(TableGroups(options, plan.partial_layout(), table_bytes_)),
      space_(space),
      budget_(budget),
      groups_(plan, budget) {
  NAM_CHECK(!plan.has_distinct() && plan.keys().size() > 0 && plan.input() == AggregateInput::kRows,
            "states that do not go by parts");
}

std::unique_ptr<SinkTask> PartedGroups::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().scratch != nullptr, "parts are written over a channel of their own");
  GroupSet& set = groups_.NewSet();
  const MutexLock lock(mutex_);
  sets_.push_back(&set);
  return std::make_unique<Task>(*this, set);
}

absl::StatusOr<bool> PartedGroups::IsSmall(GroupSet& set) const {
  const plan::Schema& schema = plan_.partial_schema();
  if (!HasTexts(schema)) return true;
  const Program& slots = plan_.partial_slots();
  Frame frame = slots.NewFrame();
  Chunk states(schema.size(), 0);
  GroupSet::Memory memory;
  uint64_t bytes = 0;
  for (uint32_t first = 0; first < set.size() && bytes <= table_bytes_; first += kChunkRows) {
    set.ReadPartial(first, std::min(kChunkRows, set.size() - first), memory, states);
    for (size_t i = 0; i < schema.size(); ++i) {
      if (PhysicalOf(schema[i].type) != Physical::kText) continue;
      const Vector* const texts = slots.Evaluate(i, frame, states, states.selection());
      if (texts == nullptr) return frame.error();
      ForEach(states.selection(), [&](uint32_t p) { bytes += texts->null(p) ? 0 : texts->text[p].size(); });
    }
  }
  return bytes <= table_bytes_;
}

PartedGroups::Writers::Writers(PartedGroups& sink, TaskContext& context)
    : scratch(sink.space_, *context.channels().scratch, sink.states_.layout.page_bytes(), context.cancel()),
      states(sink.states_, sink.plan_.partial_slots(), scratch, sink.budget_),
      rows(sink.rows_, sink.plan_.row_program(), scratch, sink.budget_) {
  sink.parted_ = true;
}

absl::Status PartedGroups::Writers::Finish(TaskContext& context, ScratchOutput& output) {
  for (PartitionWriter* writer : {&states, &rows}) {
    NAM_RETURN_IF_ERROR(writer->Finish(context));
    output.Add(*writer);
  }
  return absl::OkStatus();
}

absl::Status PartedGroups::Write(TaskContext& context, GroupSet& set, PartitionWriter& writer) {
  Chunk states(plan_.partial_schema().size(), 0);
  GroupSet::Memory memory;
  for (uint32_t first = 0; first < set.size(); first += kChunkRows) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    set.ReadPartial(first, std::min(kChunkRows, set.size() - first), memory, states);
    NAM_RETURN_IF_ERROR(writer.Append(context, states, states.selection()));
  }
  set.Reset();
  return absl::OkStatus();
}

uint32_t PartedGroups::CombineParts() {
  if (!parted_) return groups_.CombineParts();
  // Drops tasks without groups.
  std::erase_if(sets_, [](const GroupSet* set) { return set->size() == 0; });
  return static_cast<uint32_t>(sets_.size());
}

absl::Status PartedGroups::Combine(TaskContext& context, uint32_t part) {
  if (!parted_) return groups_.Combine(context, part);
  Writers writers(*this, context);
  NAM_RETURN_IF_ERROR(Write(context, *sets_[part], writers.states));
  return writers.Finish(context, output_);
}

void PartedGroups::Count(proto::PipelineCounters& out) const {
  groups_.Count(out);
  if (parted_) output_.Count(out);
}

absl::StatusOr<std::unique_ptr<const KeptGroups>> KeptGroups::Make(const plan::AggregateSink& sink,
                                                                   const plan::Schema& rows) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const AggregatePlan> plan,
                       AggregatePlan::Make({.group_by = sink.group_by,
                                            .aggregates = sink.aggregates,
                                            .schema = rows,
                                            .meanings = {},
                                            .input = AggregateInput::kGroups,
                                            .parts = sink.parts}));
  return std::unique_ptr<const KeptGroups>(new KeptGroups(std::move(plan), sink.parts));
}

absl::StatusOr<PartDirectory> KeptGroups::Write(TaskContext& context, std::span<const std::byte> pages,
                                                uint64_t attempt, storage::ScratchSpace& space) const {
  const RowLayout& layout = plan_->partial_layout();
  const PartedRows parted = RowsOf(*plan_, layout, {.parts = parts_, .attempt = attempt}, context.budget());
  storage::ScratchWriter scratch(space, *context.channels().scratch, layout.page_bytes(), context.cancel());
  PartitionWriter writer(parted, plan_->partial_slots(), scratch, context.budget());
  StoredRows groups(layout);
  NAM_RETURN_IF_ERROR(groups.Feed(pages, attempt));
  groups.End();
  Chunk chunk(layout.fields(), 0);
  Step step = groups.Next(context, chunk);
  for (; step == Step::kHaveMore; step = groups.Next(context, chunk))
    NAM_RETURN_IF_ERROR(writer.Append(context, chunk, chunk.selection()));
  if (step == Step::kFailed) return context.error();
  NAM_RETURN_IF_ERROR(writer.Finish(context));
  return writer.directory();
}

}  // namespace nam::execution
