#include "execution/rows/page_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "execution/rows/row_appender.h"
#include "plan/expression.h"
#include "tests/execution/step_driver.h"

namespace nam::execution {
namespace {

const plan::Schema kSchema = {{Type::Integer(), true, {-5, 40'000, true}},
                              {Type::String(), true, {}},
                              {Type::Decimal(3), false, {}},
                              {Type::Bool(), true, {}}};

/// A table of some tuples, written by two appenders by turns.
class PageSourceTest : public ::testing::Test {
 protected:
  void Fill(uint64_t seed, size_t rows) {
    table_.reset();
    driver_.emplace(seed);
    std::vector<plan::Expr> slots;
    for (uint32_t i = 0; i < kSchema.size(); ++i) {
      plan::Expr& slot = slots.emplace_back();
      slot.op = plan::Op::kColumn;
      slot.type = kSchema[i].type;
      slot.column = {0, static_cast<int>(i)};
    }
    program_ = Program::Compile(slots, kSchema).value();
    const RowLayout layout = RowLayout::Of(kSchema, RowLayout::kSmallPageBytes).value();
    table_ = RowTable::Make(layout, driver_->budget(), UINT64_MAX).value();
    input_ = RandomTuples(kSchema, rows, 10'000, driver_->random());
    RowAppender appenders[] = {{*table_, *program_}, {*table_, *program_}};
    ChunkMaker maker(kSchema, driver_->random());
    const std::unique_ptr<Chunk> chunk = maker.NewChunk();
    for (size_t done = 0; done < input_.size(); done += kChunkRows) {
      maker.Fill(std::span(input_).subspan(done, std::min<size_t>(kChunkRows, input_.size() - done)), *chunk);
      ASSERT_TRUE(appenders[driver_->random().Below(2)].Append(*chunk, chunk->selection(), nullptr).ok());
    }
    std::sort(input_.begin(), input_.end());
  }
  /// The rows that this many tasks, on threads of their own, read together, sorted.
  absl::StatusOr<std::vector<Tuple>> Read(Source& source, size_t tasks) {
    std::vector<std::vector<Tuple>> rows(tasks);
    std::vector<absl::Status> status(tasks);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < tasks; ++t) {
      threads.emplace_back([&, t] {
        TaskContext context = driver_->NewContext();
        const std::unique_ptr<SourceTask> task = source.NewTask(context);
        Chunk chunk(kSchema.size(), 0);
        while (task->Next(context, chunk) == Step::kHaveMore) {
          for (Tuple& row : TuplesOf(chunk, kSchema.size())) rows[t].push_back(std::move(row));
        }
        status[t] = context.error();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<Tuple> all;
    for (size_t t = 0; t < tasks; ++t) {
      if (!status[t].ok()) return status[t];
      all.insert(all.end(), rows[t].begin(), rows[t].end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  /// Copies of the table's pages, as another server would have them.
  std::vector<std::vector<std::byte>> Sent(uint64_t attempt) {
    std::vector<std::span<const std::byte>> pages;
    SealPages(*table_, attempt, pages);
    std::vector<std::vector<std::byte>> out;
    for (const std::span<const std::byte> page : pages) out.emplace_back(page.begin(), page.end());
    return out;
  }
  static std::vector<std::span<const std::byte>> Spans(const std::vector<std::vector<std::byte>>& pages) {
    return {pages.begin(), pages.end()};
  }

  std::optional<StepDriver> driver_;  // declared before the members that use its budget
  std::unique_ptr<const Program> program_;
  std::unique_ptr<RowTable> table_;
  std::vector<Tuple> input_;
};

TEST_F(PageSourceTest, TasksReadEachRowOnce) {
  for (const uint64_t seed : TestSeeds(6)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    const size_t sizes[] = {0, 1, 1025, 15'000};
    Fill(seed, sizes[seed % 4]);
    PageSource own(*table_);
    EXPECT_EQ(Read(own, 1 + seed % 4).value(), input_);
    const std::vector<std::vector<std::byte>> pages = Sent(7);
    PageSource sent(table_->layout(), Spans(pages), 7);
    EXPECT_EQ(Read(sent, 1 + seed % 3).value(), input_);
  }
}

TEST_F(PageSourceTest, PagesFromElsewhereAreChecked) {
  Fill(1, 12'000);
  std::vector<std::vector<std::byte>> pages = Sent(7);
  ASSERT_GT(pages.size(), 3u);
  PageSource of_another(table_->layout(), Spans(pages), 8);
  EXPECT_TRUE(absl::IsDataLoss(Read(of_another, 2).status()));
  pages[2][kPageHeaderBytes + 1] ^= std::byte{1};
  PageSource damaged(table_->layout(), Spans(pages), 7);
  EXPECT_TRUE(absl::IsDataLoss(Read(damaged, 2).status()));
  PageSource cut(table_->layout(), {std::span<const std::byte>(pages[0]).first(100)}, 7);
  EXPECT_TRUE(absl::IsDataLoss(Read(cut, 1).status()));
}

TEST_F(PageSourceTest, ACancelledQueryReadsNoFurtherPage) {
  Fill(1, 5000);
  driver_->cancel() = true;
  PageSource own(*table_);
  EXPECT_TRUE(absl::IsCancelled(Read(own, 1).status()));
}

}  // namespace
}  // namespace nam::execution
