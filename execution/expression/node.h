#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "execution/chunk.h"
#include "execution/expression/program.h"
#include "execution/expression/vector.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "plan/time_field.h"
#include "types/value.h"

/// The nodes of expressions. Only the files of this folder include it.
namespace nam::execution {

class DictionaryMemo;

/// The budget's bytes that the texts of one register hold.
class TextBytes {
 public:
  TextBytes() = default;
  TextBytes(TextBytes&& other) noexcept
      : memory_(other.memory_), held_(other.held_), taken_(std::exchange(other.taken_, 0)) {}
  TextBytes& operator=(TextBytes&&) = delete;
  ~TextBytes() {
    if (taken_ > 0) memory_->budget().Release(taken_);
  }

  /// A text replaces another one. False: the budget does not allow it. `memory`, which outlives it, is the
  /// same in all calls; nullptr: unlimited.
  [[nodiscard]] bool Replace(size_t before, size_t after, MemoShare* memory) {
    held_ = held_ - before + after;
    if (memory == nullptr || held_ <= kFreeBytes + taken_) return true;
    const uint64_t more = std::max(held_ - kFreeBytes - taken_, kStepBytes);
    if (!memory->budget().Reserve(more)) return false;
    memory_ = memory;
    taken_ += more;
    return true;
  }

 private:
  /// About the size of some nodes' other arrays, which are not counted either.
  static constexpr uint64_t kFreeBytes = 64 << 10;
  static constexpr uint64_t kStepBytes = 64 << 10;
  MemoShare* memory_ = nullptr;
  uint64_t held_ = 0, taken_ = 0;
};

/// The output of one node's evaluation; one thread's. The arrays have kChunkRows places, zeros at first.
/// Nodes whose results are not needed at the same time share arrays.
struct Register {
  Vector vector;
  std::byte* values = nullptr;
  uint8_t* nulls = nullptr;
  uint32_t* positions[2] = {};
  std::vector<std::string> texts;  // by position; only of nodes that make texts
  TextBytes text_bytes;            // of these
  DictionaryMemo* memo = nullptr;  // the one used last; the node owns it
};

struct Frame::Registers {
  std::vector<Register> registers;  // by Node::number
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Free> arrays;  // what the registers point to; aligned to a cache line
};

class FrameAccess {
 public:
  static Register& at(Frame& frame, uint32_t number) { return frame.registers_->registers[number]; }
  /// Keeps the first error. Always returns nullptr.
  static const Vector* Fail(Frame& frame, absl::Status error) {
    if (frame.error_.ok()) frame.error_ = std::move(error);
    return nullptr;
  }
};

/// One operation. Immutable once placed, shared by threads.
class Node {
 public:
  /// A node's needs in a frame.
  struct Needs {
    uint8_t value_bytes = 0;  // for each position
    bool nulls = false;
    uint8_t positions = 0;  // number of position arrays
    /// Its values are written while children are still evaluated, so it shares no array with them.
    bool while_children_run = false;
    bool own = false;  // written once, when the frame is made
    /// Its result may be that of its child, whose arrays must then last as long as its own.
    bool hands_on = false;
    bool texts = false;
  };

  explicit Node(Physical physical, plan::Bounds bounds = {}, std::vector<std::unique_ptr<Node>> children = {})
      : physical_(physical), bounds_(bounds), children_(std::move(children)) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Evaluates at the selected positions and writes nowhere else. nullptr: the frame has the error.
  virtual const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const = 0;
  virtual Needs needs() const { return {WidthOf(physical_), physical_ != Physical::kTruth}; }
  /// Fills what is the same for all chunks.
  virtual void Prepare(Register&) const {}
  /// The value, if it is the same everywhere.
  virtual const Value* constant() const { return nullptr; }

  Physical physical() const { return physical_; }
  const plan::Bounds& bounds() const { return bounds_; }
  std::span<const std::unique_ptr<Node>> children() const { return children_; }
  uint32_t number() const { return number_; }
  void set_number(uint32_t number) { number_ = number; }

 protected:
  const Node& child(size_t i) const { return *children_[i]; }
  Register& At(Frame& frame) const { return FrameAccess::at(frame, number_); }

  /// The register's vector over its own array; without NULLs.
  Vector& Out(Register& out) const {
    out.vector.physical = physical_;
    out.vector.narrow = reinterpret_cast<int64_t*>(out.values);
    out.vector.nulls = nullptr;
    return out.vector;
  }

 private:
  const Physical physical_;
  const plan::Bounds bounds_;
  const std::vector<std::unique_ptr<Node>> children_;
  uint32_t number_ = 0;
};
using NodePtr = std::unique_ptr<Node>;

template <typename... Nodes>
std::vector<NodePtr> Children(Nodes... nodes) {
  std::vector<NodePtr> children;
  (children.push_back(std::move(nodes)), ...);
  return children;
}

/// A value that is the same at all positions, in a loop over vectors.
template <typename T>
struct Same {
  T value;
  const T& operator[](uint32_t) const { return value; }
};
struct Widened {
  const int64_t* values;
  __int128 operator[](uint32_t position) const { return values[position]; }
};

/// Calls `body` with a number vector's values as 128 bits.
template <typename Body>
decltype(auto) WithWide(const Vector& vector, Body&& body) {
  if (vector.physical == Physical::kInt64) return body(Widened{vector.narrow});
  return body(static_cast<const __int128*>(vector.wide));
}

/// Makes `out` NULL where either is. Its nulls are then in `nulls`.
void UniteNulls(const Vector& a, const Vector& b, Selection rows, uint8_t* nulls, Vector& out);
/// Copies the NULLs of `a`.
void CopyNulls(const Vector& a, Selection rows, uint8_t* nulls, Vector& out);

inline constexpr __int128 kMostDigits = [] {
  __int128 n = 1;
  for (int i = 0; i < kMaxDecimalDigits; ++i) n *= 10;
  return n - 1;
}();
inline bool FitsDigits(__int128 n) {
  return n <= kMostDigits && n >= -kMostDigits;
}
inline bool FitDigits(const plan::Bounds& bounds) {
  return bounds.known && FitsDigits(bounds.low) && FitsDigits(bounds.high);
}
/// Numbers within the bounds fit 64 bits if the bounds do.
inline Physical NumberForm(const plan::Bounds& bounds) {
  return bounds.narrow() ? Physical::kInt64 : Physical::kInt128;
}

// --- load.cc ---

/// The bounds of a slot's values: the plan's, or else the type's.
plan::Bounds BoundsOf(const plan::Slot& slot);
/// A slot of the input.
NodePtr MakeLoad(uint32_t slot, const plan::Slot& type);
/// The value at all positions. `type` is the expression's: NULLs may lack one.
NodePtr MakeLiteral(const Value& value, const Type& type);
/// Writes the codes of a column of codes, `null_row` for kNullRow. They are below 2^32.
void LoadCodes(const Column& column, uint32_t null_row, Selection rows, uint32_t* codes);
/// The meaning if the column has codes, at rest or not; else nullptr.
const CodeMeaning* MeaningOf(const Column& column);
/// The slot's number if the node is a slot of texts.
const uint32_t* TextSlotOf(const Node& node);
/// Writes the dictionary's entry numbers of a column of codes. Returns whether it has NULLs, which then go to
/// `nulls`.
bool LoadEntries(const Column& column, Selection rows, int64_t* entries, uint8_t* nulls);

// --- arithmetic.cc: scales are those of the operands' types ---

/// + - * / % and the difference of dates, as `e` says; checked where the bounds do not rule errors out.
NodePtr MakeArithmetic(const plan::Expr& e, NodePtr a, NodePtr b);
NodePtr MakeNegate(NodePtr a);
/// Converts to another scale, rounded half away from zero. More than 38 digits are an error at `position`.
NodePtr MakeRescale(NodePtr a, int from, int to, int position);
/// Fails outside of low … high. Returns `a` itself if it cannot be outside.
NodePtr MakeWithinRange(NodePtr a, int64_t low, int64_t high, absl::Status error);

// --- compare.cc ---

/// = <> < <= > >= of two numbers (of any scales), dates, timestamps, texts or booleans.
NodePtr MakeComparison(const plan::Expr& e, NodePtr a, NodePtr b);
/// `list`: of the kind of `a`; NULLs make the rest unknown.
NodePtr MakeIn(NodePtr a, const Type& type, std::span<const plan::Expr> list);

// --- logic.cc ---

NodePtr MakeJunction(bool conjunction, std::vector<NodePtr> children);
NodePtr MakeNot(NodePtr a);
NodePtr MakeIsNull(NodePtr a);
/// Conditions and their branches, then the last branch with the condition nullptr. Branches that are nullptr
/// are NULL; `physical` is the form of a result whose branches are all NULL.
NodePtr MakeCase(std::vector<std::pair<NodePtr, NodePtr>> branches, Physical physical);

// --- text.cc ---

NodePtr MakeLike(NodePtr a, const Type& type, std::string pattern);
/// So many characters of a text, at least 0, from the 1-based `from` on.
NodePtr MakeSubstring(__int128 from, __int128 characters, NodePtr a);
NodePtr MakeCharacterCount(NodePtr a);

// --- dates.cc ---

NodePtr MakeExtract(plan::Op op, NodePtr date);
/// A whole-number field of a date or a timestamp.
NodePtr MakeTimeField(plan::TimeField field, bool date, NodePtr time);
NodePtr MakeTruncateTimestamp(plan::TimeField field, int position, NodePtr timestamp);
/// Moves by a constant, forward or back.
NodePtr MakeMoveTimestamp(const Interval& by, int sign, int position, NodePtr timestamp);
NodePtr MakeDateOfTimestamp(NodePtr timestamp);
NodePtr MakeTimestampOfDate(NodePtr date);

// --- reals.cc: values are in the order of the numbers (types/real.h) ---

/// + - * / of double precision or real.
NodePtr MakeRealArithmetic(const plan::Expr& e, NodePtr a, NodePtr b);
NodePtr MakeRealNegate(NodePtr a);
/// A kCast to double precision or real, or from one to an integer. nullptr: it has no vectorized form.
NodePtr MakeRealCast(const plan::Expr& e, NodePtr a);
bool CastsReals(const Type& from, const Type& to);

// --- numerics.cc: numbers with a scale of their own (types/numeric.h) ---

/// + - * / % as a numeric, of numerics or, without / and %, of numbers of a known scale.
NodePtr MakeNumericArithmetic(const plan::Expr& e, NodePtr a, NodePtr b);
NodePtr MakeNumericNegate(NodePtr a);
/// A numeric of a number of this scale. More than 36 digits before the point are an error at `position`.
NodePtr MakeNumeric(NodePtr a, int scale, int position);
/// The reverse, rounded half away from zero. More than 38 digits are an error at `position`.
NodePtr MakeDecimalOfNumeric(NodePtr a, int scale, int position);
NodePtr MakeDoubleOfNumeric(NodePtr a);
/// A call of kNumericKey, kNumericScale, or of one limb by a constant.
NodePtr MakeNumericPart(const plan::Expr& call, NodePtr a);
/// A call of kDecimalLimb by a constant.
NodePtr MakeDecimalLimb(const plan::Expr& call, NodePtr a);

// --- functions.cc ---

/// Whether a kFunction has a vectorized form.
bool HasVectorForm(const plan::Expr& call);
/// A kFunction that has one, over its operands other than literals.
NodePtr MakeFunction(const plan::Expr& call, std::vector<NodePtr> operands);

// --- by_row.cc ---

/// The operation `e`, whose operands are `children`, by the reference. For operations that evaluate all of
/// their operands.
NodePtr MakeByRow(const plan::Expr& e, std::vector<NodePtr> children, MemoShare* memory);

// --- dictionary_map.cc ---

/// Evaluates `general`, an expression over this slot alone, once for each code that occurs, while memory
/// lasts.
NodePtr MakeDictionaryMap(uint32_t slot, NodePtr general, MemoShare* memos);

}  // namespace nam::execution
