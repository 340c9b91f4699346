#include "execution/join/row_build.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/status_macros.h"
#include "execution/rows/row_hash.h"
#include "execution/rows/row_writer.h"
#include "execution/task.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

constexpr uint32_t kPagesPerPart = 16;

}  // namespace

class RowBuild::Task : public SinkTask {
 public:
  explicit Task(RowBuild& build)
      : build_(build),
        frame_(build.options_.program->NewFrame()),
        writer_(build.rows_->layout(), *build.options_.program) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    context.Charge(rows.count, plan::work_cost::kInsertRowPs);
    if (rows.count > 0) build_.SawRows();
    uint32_t done = 0;
    while (done < rows.count) {
      if (!open_) {
        const absl::StatusOr<uint32_t> page = build_.rows_->NewPage(writer_.next_page_bytes());
        if (!page.ok()) return context.Fail(page.status());
        writer_.Open(build_.rows_->page(*page), *page << build_.rows_->layout().rows_shift());
        open_ = true;
      }
      if (!writer_.Append(frame_, in, rows, done, nullptr)) return context.Fail(frame_.error());
      open_ = done == rows.count;  // else the page is full
    }
    return Step::kNeedInput;
  }

 private:
  RowBuild& build_;
  Frame frame_;
  RowWriter writer_;
  bool open_ = false;
};

absl::StatusOr<std::unique_ptr<RowBuild>> RowBuild::Make(Options options, MemoryBudget& budget) {
  NAM_CHECK(options.keys <= options.layout.fields());
  NAM_CHECK(options.layout.fields() == options.program->outputs());
  NAM_CHECK(!options.direct.has_value() || (options.keys == 1 && !options.direct->unique));
  NAM_CHECK(!options.domain.has_value() || (options.keys == 1 && options.layout.field(0).width <= 8));
  std::unique_ptr<RowBuild> build(new RowBuild(std::move(options), budget));
  const Options& made = build->options_;
  NAM_ASSIGN_OR_RETURN(build->rows_, RowTable::Make(made.layout, budget, made.pages_max));
  if (made.keys == 0) return build;
  std::vector<RowKeys::Key> keys(made.keys);
  for (size_t k = 0; k < made.keys; ++k) {
    keys[k].ignores_blanks = !made.ignores_blanks.empty() && made.ignores_blanks[k];
    const CodeMeaning* const meaning = made.layout.field(k).meaning;
    const bool entries = meaning != nullptr && meaning->dictionary != nullptr;
    build->texts_.push_back(entries ? std::make_unique<TextKeys>(*meaning, keys[k].ignores_blanks) : nullptr);
    keys[k].texts = build->texts_.back().get();
  }
  build->keys_ = std::make_unique<RowKeys>(build->rows_->layout(), std::move(keys));
  if (made.domain.has_value()) {
    NAM_ASSIGN_OR_RETURN(build->domain_, DomainTable::Make(*made.domain, budget));
  } else if (made.direct.has_value()) {
    NAM_ASSIGN_OR_RETURN(build->direct_, DirectTable::Make(*made.direct, budget));
  } else {
    build->hash_ = std::make_unique<HashTable>(*build->rows_, *build->keys_);
  }
  return build;
}

std::unique_ptr<SinkTask> RowBuild::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::Status RowBuild::AddPage(std::span<const std::byte> page) {
  NAM_ASSIGN_OR_RETURN(const uint32_t number, rows_->NewPage(static_cast<uint32_t>(page.size())));
  std::memcpy(rows_->page(number), page.data(), page.size());
  if (PageHeaderOf(rows_->page(number)).rows > 0) SawRows();
  return absl::OkStatus();
}

absl::Status RowBuild::Size() {
  const uint64_t row_numbers = uint64_t{rows_->pages()} << rows_->layout().rows_shift();
  if (options_.match_bits) {
    NAM_ASSIGN_OR_RETURN(matched_, MappedArray<uint32_t>::Make((row_numbers + 31) / 32, budget_));
  }
  if (options_.keys == 0) return absl::OkStatus();
  if (options_.false_positives > 0) {
    uint64_t rows = 0;
    for (uint32_t p = 0; p < rows_->pages(); ++p) rows += rows_->page_rows(p);
    NAM_ASSIGN_OR_RETURN(filter_,
                         BloomFilter::Make(BloomFilter::BytesFor(rows, options_.false_positives), budget_));
  }
  if (domain_.has_value()) return absl::OkStatus();
  return direct_ != nullptr ? direct_->SetRows(row_numbers, budget_) : hash_->Size(budget_);
}

uint64_t RowBuild::HeadsBytes() const {
  if (options_.domain.has_value()) return DomainTable::BytesNeeded(*options_.domain);
  if (hash_ != nullptr) return HashTable::BytesNeeded(rows_->rows(), rows_->pages(), options_.layout);
  return options_.direct.has_value() ? DirectTable::BytesNeeded(*options_.direct) : 0;
}

uint32_t RowBuild::CombineParts() {
  sized_ = Size();
  if (options_.keys > 0)
    SetTableBytes(uint64_t{rows_->pages()} * options_.layout.page_bytes() + HeadsBytes());
  if (sized_.ok() && options_.keys == 0) return 0;
  const uint32_t parts = (rows_->pages() + kPagesPerPart - 1) / kPagesPerPart;
  return sized_.ok() ? parts : 1;
}

absl::Status RowBuild::Combine(TaskContext& context, uint32_t part) {
  NAM_RETURN_IF_ERROR(sized_);
  const uint32_t first = part * kPagesPerPart;
  const uint32_t end = std::min(first + kPagesPerPart, rows_->pages());
  uint64_t rows = 0;
  for (uint32_t p = first; p < end; ++p) rows += rows_->page_rows(p);
  context.Charge(rows, plan::work_cost::kInsertRowPs);
  ChargeAccesses(context, rows, table_bytes());
  if (filter_.has_value()) {
    context.Charge(rows, plan::work_cost::kFilterRowPs);
    ChargeAccesses(context, rows, filter_->bytes().size());
    AddToFilter(first, end);
  }
  if (direct_ != nullptr) return InsertDirect(first, end);
  if (domain_.has_value()) return InsertInDomain(first, end);
  if (hash_->InsertPages(first, end) > 0) SawNullKey();
  return absl::OkStatus();
}

/// Uses the hashes of rows at rest, which an exchange uses, too.
void RowBuild::AddToFilter(uint32_t first_page, uint32_t end_page) {
  std::vector<uint32_t> keys(options_.keys);
  std::iota(keys.begin(), keys.end(), 0);
  uint64_t hashes[kInsertBatchRows];
  for (uint32_t p = first_page; p < end_page; ++p) {
    const uint32_t rows = rows_->page_rows(p);
    for (uint32_t done = 0; done < rows; done += kInsertBatchRows) {
      const uint32_t count = std::min(kInsertBatchRows, rows - done);
      HashRows(rows_->layout(), keys, rows_->page(p), done, count, hashes);
      for (uint32_t i = 0; i < count; ++i) {
        if (i + kInsertRowsAhead < count) filter_->AskToAdd(hashes[i + kInsertRowsAhead]);
        filter_->Add(hashes[i]);
      }
    }
  }
}

absl::Status RowBuild::InsertInDomain(uint32_t first_page, uint32_t end_page) {
  const RowField& key = options_.layout.field(0);
  const uint32_t stride = key.stride, shift = rows_->layout().rows_shift();
  DomainTable& table = *domain_;
  uint32_t positions[kInsertBatchRows];
  for (uint32_t p = first_page; p < end_page; ++p) {
    const std::byte* const first = rows_->page(p) + kPageHeaderBytes;
    const uint32_t rows = rows_->page_rows(p);
    for (uint32_t done = 0; done < rows; done += kInsertBatchRows) {
      const uint32_t count = std::min(kInsertBatchRows, rows - done), number = (p << shift) + done;
      const std::byte* const row = first + size_t{done} * stride;
      table.PositionsOf(key, row, count, positions);
      for (uint32_t i = 0; key.nullable() && i < count; ++i) {
        if (!key.IsNull(row + size_t{i} * stride)) continue;
        SawNullKey();
        positions[i] = table.nowhere();
      }
      for (uint32_t i = 0; i < count; ++i) {
        if (key.nullable() && positions[i] == table.nowhere()) continue;
        if (table.Insert(positions[i], number + i)) [[likely]]
          continue;
        NAM_RETURN_IF_ERROR(table.MakeChains(uint64_t{rows_->pages()} << shift, budget_));
        NAM_CHECK(table.Insert(positions[i], number + i));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RowBuild::InsertDirect(uint32_t first_page, uint32_t end_page) {
  int64_t keys[kInsertBatchRows];
  uint8_t nulls[kInsertBatchRows];
  int64_t least = INT64_MAX, greatest = INT64_MIN;
  uint64_t rows = 0;
  for (uint32_t p = first_page; p < end_page; ++p) {
    const std::byte* const page = rows_->page(p);
    const uint32_t page_rows = rows_->page_rows(p);
    for (uint32_t done = 0; done < page_rows; done += kInsertBatchRows) {
      const uint32_t count = std::min(kInsertBatchRows, page_rows - done);
      if (keys_->NumbersOf(page, done, count, keys, nulls)) SawNullKey();
      const uint32_t first_row = (p << rows_->layout().rows_shift()) + done;
      for (uint32_t i = 0; i < count; ++i) {
        if (nulls[i] == 1) continue;
        if (nulls[i] != 0 || !direct_->InDomain(keys[i]) || !direct_->IsHere(keys[i]))
          return absl::DataLossError("a key is outside of what the catalog says, or in another partition");
      }
      for (uint32_t i = 0; i < count; ++i) {
        if (i + kInsertRowsAhead < count && nulls[i + kInsertRowsAhead] == 0)
          Prefetch<true>(direct_->head_of(keys[i + kInsertRowsAhead]), sizeof(uint32_t));
        if (nulls[i] != 0) continue;
        direct_->Insert(keys[i], first_row + i);
        least = std::min(least, keys[i]);
        greatest = std::max(greatest, keys[i]);
        ++rows;
      }
    }
  }
  if (rows > 0) direct_->Inserted(least, greatest, rows);
  return absl::OkStatus();
}

}  // namespace nam::execution
