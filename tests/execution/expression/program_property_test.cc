#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "execution/expression/program.h"
#include "tests/base/seeds.h"
#include "tests/execution/expression/random_columns.h"
#include "tests/execution/expression/random_expression.h"

/// Random expressions over random columns, compared with the reference, which evaluates them row by row.
/// NAM_SEED=N runs one case again, NAM_SEEDS=N runs that many.
namespace nam::execution {
namespace {

using nam::testing::Below;
using nam::testing::Chance;
using nam::testing::OneOf;
using nam::testing::Random;
using nam::testing::RandomChunk;
using nam::testing::RandomExpression;
using nam::testing::RandomSlot;

std::string Print(const plan::Expr& e) {
  return plan::ToString(e,
                        [](const plan::Expr& column) { return "s" + std::to_string(column.column.column); });
}

/// The contents of a vector's arrays, to tell what an evaluation wrote.
struct Snapshot {
  const void* values;
  std::vector<std::byte> bytes;
  const uint8_t* nulls;
  std::vector<uint8_t> null_bytes;

  explicit Snapshot(const Vector& vector) : values(vector.narrow), nulls(vector.nulls) {
    const auto* of = reinterpret_cast<const std::byte*>(vector.narrow);
    bytes.assign(of, of + size_t{kChunkRows} * WidthOf(vector.physical));
    if (nulls != nullptr) null_bytes.assign(nulls, nulls + kChunkRows);
  }
};

/// Whether the vector is a column's array as it is.
bool IsColumn(const Vector& vector, const RandomChunk& chunk) {
  for (const Column& column : chunk.chunk().columns()) {
    if (column.base == reinterpret_cast<const std::byte*>(vector.narrow)) return true;
  }
  return false;
}

void CheckGuard(const Snapshot& before, const Vector& after, const std::vector<bool>& selected) {
  if (after.narrow != before.values) return;  // a look-up could not yield that
  const Snapshot now(after);
  const size_t width = WidthOf(after.physical);
  for (uint32_t p = 0; p < kChunkRows; ++p) {
    if (selected[p]) continue;
    ASSERT_EQ(std::memcmp(&before.bytes[p * width], &now.bytes[p * width], width), 0)
        << "position " << p << " was not selected and has been written";
    if (before.nulls != nullptr && now.nulls == before.nulls) {
      ASSERT_EQ(before.null_bytes[p], now.null_bytes[p]) << "position " << p << " was not selected";
    }
  }
}

class Case {
 public:
  explicit Case(uint64_t seed)
      : random_(seed),
        slots_(nam::testing::RandomSlots(random_)),
        others_bytes_(kMemoBytes - OneOf<uint64_t>(random_, {0, 1'000, 100'000, kMemoBytes})) {
    EXPECT_TRUE(memos_.Reserve(others_bytes_));
    e_ = RandomExpression(random_, slots_).Any(static_cast<int>(1 + Below(random_, 5)));
    auto program = Program::Compile({&e_, 1}, nam::testing::SchemaOf(slots_), &memos_);
    EXPECT_TRUE(program.ok()) << program.status() << "\n" << Print(e_);
    if (program.ok()) program_ = *std::move(program);
  }
  ~Case() {
    program_.reset();
    memos_.Release(others_bytes_);
  }
  std::string text() const { return Print(e_); }

  void Run() {
    if (program_ == nullptr) return;
    std::optional<Frame> frame = program_->NewFrame();
    for (int i = 0; i < 4; ++i) {
      const uint32_t rows = OneOf<uint32_t>(random_, {0, 1, 100, 1023, 1024});
      const RandomChunk chunk(random_, slots_, rows);
      // An error ends a frame, so the first evaluation, which tells what is written later, has its own.
      const Vector* whole = program_->Evaluate(0, *frame, chunk.chunk(), {nullptr, rows});
      if (whole == nullptr) frame = program_->NewFrame();
      std::optional<Snapshot> before;
      if (whole != nullptr && !IsColumn(*whole, chunk)) before.emplace(*whole);
      const auto positions =
          nam::testing::RandomPositions(random_, rows, OneOf<int>(random_, {2, 50, 97, 100}));
      const bool all = positions.size() == rows && Chance(random_, 50);
      const Selection selection{all ? nullptr : positions.data(), static_cast<uint32_t>(positions.size())};
      const Vector* vector = program_->Evaluate(0, *frame, chunk.chunk(), selection);
      Compare(vector, *frame, chunk, positions);
      if (::testing::Test::HasFatalFailure()) return;
      if (vector == nullptr) {
        frame = program_->NewFrame();
      } else if (before.has_value()) {
        std::vector<bool> selected(kChunkRows);
        for (const uint32_t p : positions) selected[p] = true;
        CheckGuard(*before, *vector, selected);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }

 private:
  void Compare(const Vector* vector, const Frame& frame, const RandomChunk& chunk,
               const std::vector<uint32_t>& positions) {
    std::vector<std::string> errors;
    for (const uint32_t p : positions) {
      const auto expected = plan::Evaluate(
          e_, [&](const plan::Expr& c) { return chunk.At(static_cast<uint32_t>(c.column.column), p); });
      if (!expected.ok()) {
        errors.push_back(expected.status().ToString(absl::StatusToStringMode::kWithEverything));
        continue;
      }
      if (vector != nullptr) CompareValue(*vector, p, *expected);
      if (::testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(vector == nullptr, !errors.empty())
        << (errors.empty() ? frame.error().ToString() : "no error; expected " + errors[0]);
    if (vector != nullptr) return;
    const std::string error = frame.error().ToString(absl::StatusToStringMode::kWithEverything);
    ASSERT_NE(std::find(errors.begin(), errors.end(), error), errors.end())
        << error << "\n not as " << errors[0];
  }

  void CompareValue(const Vector& vector, uint32_t p, const Value& expected) {
    ASSERT_EQ(vector.physical, program_->physical(0));
    ASSERT_EQ(vector.null(p), expected.null) << "position " << p << ", expected " << expected.ToString();
    if (expected.null) return;
    if (vector.physical == Physical::kText) {
      ASSERT_EQ(vector.text[p], expected.text) << "position " << p;
      return;
    }
    ASSERT_TRUE(vector.number(p) == expected.number)
        << "position " << p << ": " << Int128ToString(vector.number(p)) << ", expected "
        << Int128ToString(expected.number);
    const plan::Bounds& bounds = program_->bounds(0);
    if (bounds.known && vector.physical != Physical::kTruth) {
      ASSERT_TRUE(bounds.low <= expected.number && expected.number <= bounds.high) << "beyond its bounds";
    }
  }

  Random random_;
  const std::vector<RandomSlot> slots_;
  // Memos have a quarter, or what other users have left of it.
  static constexpr uint64_t kMemoBytes = 256 << 20;
  MemoryBudget budget_{4 * kMemoBytes};
  MemoShare memos_{budget_};
  const uint64_t others_bytes_;
  plan::Expr e_;
  std::unique_ptr<const Program> program_;
};

TEST(ProgramProperty, AsTheReferenceAtTheSelectedPositions) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 500);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Case one(seed);
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed) + ": " + one.text());
    one.Run();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace nam::execution
