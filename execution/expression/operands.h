#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "execution/expression/node.h"

/// The bases of nodes over one and over two operands. They evaluate these and pass NULLs on, so that a node
/// adds its loop. Only the files of this folder include it.
namespace nam::execution {

/// A node over one operand. A result is NULL where the operand is, unless it is a boolean: of these the loop
/// writes all values.
class UnaryNode : public Node {
 public:
  UnaryNode(Physical physical, const plan::Bounds& bounds, NodePtr a)
      : Node(physical, bounds, Children(std::move(a))) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const final {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    if (physical() != Physical::kTruth) CopyNulls(*a, rows, at.nulls, out);
    absl::Status status = Compute(*a, rows, out);
    return status.ok() ? &out : FrameAccess::Fail(frame, std::move(status));
  }

 private:
  /// Writes the results at `rows`. Values at NULLs are of no consequence.
  virtual absl::Status Compute(const Vector& a, Selection rows, Vector& out) const = 0;
};

/// A node over two operands. A result is NULL where one of them is, as above.
class BinaryNode : public Node {
 public:
  BinaryNode(Physical physical, const plan::Bounds& bounds, NodePtr a, NodePtr b)
      : Node(physical, bounds, Children(std::move(a), std::move(b))) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    const Vector* b = child(1).Evaluate(frame, chunk, rows);
    if (b == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    if (physical() != Physical::kTruth) UniteNulls(*a, *b, rows, at.nulls, out);
    absl::Status status = Compute(*a, *b, rows, out);
    return status.ok() ? &out : FrameAccess::Fail(frame, std::move(status));
  }

 private:
  virtual absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const = 0;
};

/// How a function of numbers fails: not at all, so that it is called at NULLs, too.
struct NeverFails {
  template <typename Function, typename Number, typename To>
  static void Call(const Function& function, Number n, bool, To& out, bool&) {
    out = function(n);
  }
  absl::Status error() const { return absl::OkStatus(); }
};
/// By returning nullopt. At NULLs it is not called, and the result is 0.
class FailsWith {
 public:
  explicit FailsWith(absl::Status error) : error_(std::move(error)) {}
  template <typename Function, typename Number, typename To>
  static void Call(const Function& function, Number n, bool null, To& out, bool& failed) {
    const std::optional<To> result = null ? std::optional<To>(0) : function(n);
    failed |= !result.has_value();
    out = result.value_or(To{});
  }
  const absl::Status& error() const { return error_; }

 private:
  absl::Status error_;
};

/// A number of each number. `From`: int64_t if all operands are of 64 bits, or __int128. `To`: likewise of
/// the results.
template <typename From, typename To, typename Function, typename ErrorPolicy>
class MapNumbers final : public UnaryNode {
 public:
  MapNumbers(Function function, ErrorPolicy errors, const plan::Bounds& bounds, NodePtr a)
      : UnaryNode(std::is_same_v<To, int64_t> ? Physical::kInt64 : Physical::kInt128, bounds, std::move(a)),
        function_(std::move(function)),
        errors_(std::move(errors)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    bool failed = false;
    const auto loop = [&](auto from, To* to) {
      ForEach(rows, [&failed, from, to, nulls = out.nulls, function = function_](uint32_t p) {
        ErrorPolicy::Call(function, static_cast<From>(from[p]), nulls != nullptr && nulls[p] != 0, to[p],
                          failed);
      });
    };
    const auto into = [&](auto from) {
      if constexpr (std::is_same_v<To, int64_t>) {
        loop(from, out.narrow);
      } else {
        loop(from, out.wide);
      }
    };
    if constexpr (std::is_same_v<From, int64_t>) {
      into(static_cast<const int64_t*>(a.narrow));
    } else {
      WithWide(a, into);
    }
    return failed ? errors_.error() : absl::OkStatus();
  }

  const Function function_;
  const ErrorPolicy errors_;
};

template <typename From, typename To, typename Function, typename ErrorPolicy = NeverFails>
NodePtr MakeMapNumbers(Function function, const plan::Bounds& bounds, NodePtr a, ErrorPolicy errors = {}) {
  return std::make_unique<MapNumbers<From, To, Function, ErrorPolicy>>(std::move(function), std::move(errors),
                                                                       bounds, std::move(a));
}

}  // namespace nam::execution
