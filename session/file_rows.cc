#include "session/file_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "csv/row_splitter.h"
#include "partitioner/group_writer.h"
#include "plan/work_cost.h"
#include "types/wire.h"

namespace nam::session {
namespace {

using execution::Chunk;
using execution::Column;
using execution::kChunkRows;
using execution::Step;
using execution::TaskContext;
using partitioner::ColumnBatch;

/// Portions of rows of many short fields take ten times their text.
constexpr int kThreadsAheadMax = 7;
/// Waits are ended by events; looks for a cancellation meanwhile.
constexpr int64_t kLookUs = 100'000;

int ThreadsAhead(const FileRows::Options& options) {
  return std::clamp(partitioner::LoadThreads(options.fabric) - options.tasks, 0, kThreadsAheadMax);
}

std::vector<bool> FlowingColumns(const FileRows::Options& options) {
  std::vector<bool> flows(static_cast<size_t>(options.statement.insert.table.table->columns_size()));
  for (const uint32_t column : options.columns) flows[column] = true;
  return flows;
}

Column ColumnOfBatch(const ColumnBatch::Column& values, Physical physical, size_t first) {
  const void* base = values.numbers.data() + first;
  if (physical == Physical::kText) base = values.strings.data() + first;
  if (physical == Physical::kInt128) base = values.wide.data() + first;
  return {.kind = Column::Kind::kValues,
          .width = execution::WidthOf(physical),
          .physical = physical,
          .base = static_cast<const std::byte*>(base),
          .nulls = values.nulls.empty() ? nullptr : values.nulls.data() + first};
}

}  // namespace

class FileRows::Task final : public execution::SourceTask {
 public:
  explicit Task(FileRows& source) : source_(source), truths_(source.options_.columns.size()) {}
  ~Task() override { Stop(); }

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    while (portion_ == nullptr || at_ == portion_->batch.rows()) {
      if (context.cancelled()) return context.Fail(execution::QueryCancelled());
      if (portion_ != nullptr && !portion_->error.ok()) return context.Fail(portion_->error);
      Stop();
      absl::StatusOr<Parsed*> taken = source_.Take();
      if (!taken.ok()) return context.Fail(taken.status());
      if (*taken == nullptr) return Step::kDone;
      portion_ = *taken;
      at_ = 0;
    }
    const auto rows = static_cast<uint32_t>(std::min<size_t>(kChunkRows, portion_->batch.rows() - at_));
    for (size_t i = 0; i < source_.options_.columns.size(); ++i) out.columns()[i] = ColumnOf(i, rows);
    out.SelectAll(rows);
    at_ += rows;
    context.Charge(uint64_t{rows} * source_.options_.statement.insert.columns.size(),
                   plan::work_cost::kFileFieldPs);
    return Step::kHaveMore;
  }
  void Stop() override {
    if (portion_ != nullptr) source_.Release(std::exchange(portion_, nullptr));
  }

 private:
  Column ColumnOf(size_t i, uint32_t rows) {
    const ColumnBatch::Column& values = portion_->batch.column(source_.options_.columns[i]);
    if (PhysicalOf(source_.options_.rows[i].type) == Physical::kTruth)
      return TruthsOf(values, rows, truths_[i]);
    switch (source_.forms_[i]) {
      case partitioner::Form::kNumber:
        return ColumnOfBatch(values, Physical::kInt64, at_);
      case partitioner::Form::kWide:
        return ColumnOfBatch(values, Physical::kInt128, at_);
      case partitioner::Form::kText:
        break;
    }
    return ColumnOfBatch(values, Physical::kText, at_);
  }
  Column TruthsOf(const ColumnBatch::Column& values, uint32_t rows, std::vector<uint8_t>& truths) const {
    truths.resize(kChunkRows);
    for (uint32_t r = 0; r < rows; ++r) {
      const bool null = !values.nulls.empty() && values.nulls[at_ + r] != 0;
      truths[r] = null                           ? execution::kUnknown
                  : values.numbers[at_ + r] != 0 ? execution::kTrue
                                                 : execution::kFalse;
    }
    return {.kind = Column::Kind::kValues,
            .width = execution::WidthOf(Physical::kTruth),
            .physical = Physical::kTruth,
            .base = reinterpret_cast<const std::byte*>(truths.data())};
  }

  FileRows& source_;
  Parsed* portion_ = nullptr;
  size_t at_ = 0;                             // the next row of the portion
  std::vector<std::vector<uint8_t>> truths_;  // by slot; of booleans
};

FileRows::Parsed::Parsed(FileRows& of)
    : rows(of.options_.statement, of.reader_),
      columns(of.options_.statement, rows, /*whole=*/false, FlowingColumns(of.options_)),
      batch(static_cast<size_t>(of.options_.statement.insert.table.table->columns_size())) {}

FileRows::FileRows(Options options)
    : options_(std::move(options)),
      reader_(*FilesOf(options_.statement), options_.statement.dialect, options_.portion_bytes),
      places_max_(2 * static_cast<size_t>(options_.tasks + ThreadsAhead(options_))) {
  for (const uint32_t column : options_.columns) {
    const proto::Type& type = options_.statement.insert.table.table->columns(static_cast<int>(column)).type();
    forms_.push_back(partitioner::FormOf(TypeOf(type).value_or(Type::Null())));
  }
  reader_.Expect(VersionsOf(options_.statement));
}

FileRows::~FileRows() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  Wake();
}

std::unique_ptr<execution::SourceTask> FileRows::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::StatusOr<FileRows::Parsed*> FileRows::Take() {
  while (true) {
    Parsed* place = nullptr;
    std::shared_ptr<fabric::Event> event;
    bool starts = false;
    {
      const MutexLock lock(mutex_);
      if (options_.cancel) return execution::QueryCancelled();
      if (const auto next = parsed_.find(next_); next != parsed_.end()) {
        Parsed* const portion = next->second;
        parsed_.erase(next);
        ++next_;
        return portion;
      }
      if (ended_ && reading_ == 0 && next_ == read_) {
        NAM_RETURN_IF_ERROR(error_);
        return nullptr;
      }
      place = Reserve();
      if (place == nullptr) event = Await();
      starts = next_ > 0 && !std::exchange(started_, true);
    }
    if (starts) StartThreads();
    if (place != nullptr) {
      ParseInto(*place);
    } else {
      Wait(event);
    }
  }
}

void FileRows::Release(Parsed* portion) {
  portion->batch.Clear();
  const MutexLock lock(mutex_);
  free_.push_back(portion);
  Wake();
}

FileRows::Parsed* FileRows::Reserve() {
  if (ended_) return nullptr;
  if (free_.empty() && places_.size() < places_max_)
    free_.push_back(places_.emplace_back(std::make_unique<Parsed>(*this)).get());
  if (free_.empty()) return nullptr;
  Parsed* const place = free_.back();
  free_.pop_back();
  ++reading_;
  return place;
}

void FileRows::ParseInto(Parsed& portion) {
  const Interruption interruption(&options_.cancel);
  const absl::StatusOr<bool> more = portion.rows.NextPortion();
  {
    const MutexLock lock(mutex_);
    --reading_;
    if (!more.ok()) error_ = more.status();
    if (!more.ok() || !*more) {
      ended_ = true;
      free_.push_back(&portion);
      Wake();
      return;
    }
    ++read_;
  }
  Parse(portion);
  const MutexLock lock(mutex_);
  parsed_[portion.rows.portion().number] = &portion;
  Wake();
}

void FileRows::Parse(Parsed& portion) {
  std::vector<csv::Field> fields;
  portion.error = absl::OkStatus();
  while (true) {
    const absl::StatusOr<bool> more = portion.rows.Next(fields);
    portion.error = more.ok() && *more ? portion.columns.Add(fields, portion.batch) : more.status();
    if (!portion.error.ok() || !*more) return;
  }
}

void FileRows::ParseAhead() {
  while (true) {
    Parsed* place = nullptr;
    std::shared_ptr<fabric::Event> event;
    {
      const MutexLock lock(mutex_);
      if (stopped_ || ended_ || options_.cancel) return;
      place = Reserve();
      if (place == nullptr) event = Await();
    }
    if (place != nullptr) {
      ParseInto(*place);
    } else {
      Wait(event);
    }
  }
}

void FileRows::StartThreads() {
  if (reader_.bytes() > 0 && reader_.bytes() <= options_.portion_bytes) return;
  for (int t = 0; t < ThreadsAhead(options_); ++t) {
    auto started = options_.fabric.TryStartThread(absl::StrCat("nam-file-", t), [this] { ParseAhead(); });
    if (!started.ok()) return;  // tasks parse by themselves
    threads_.push_back(*std::move(started));
  }
}

std::shared_ptr<fabric::Event> FileRows::Await() {
  return waiting_.emplace_back(options_.fabric.CreateEvent());
}

void FileRows::Wake() {
  for (const std::shared_ptr<fabric::Event>& event : waiting_) event->Set();
  waiting_.clear();
}

void FileRows::Wait(const std::shared_ptr<fabric::Event>& event) {
  if (event->Wait(options_.fabric.clock().After(kLookUs))) return;
  const MutexLock lock(mutex_);
  std::erase(waiting_, event);
}

}  // namespace nam::session
