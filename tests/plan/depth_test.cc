// Expressions as deep as they may be (plan/post_order.h) fit a thread's stack in all code that recurses on
// them.

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>
#include <utility>

#include "plan/codec.h"
#include "plan/expression_codec.h"
#include "plan/expression_tree.h"
#include "plan/post_order.h"
#include "plan/slot_of.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

Expr Leaf(Value value) {
  Expr e;
  e.type = value.type;
  e.literal = std::move(value);
  return e;
}

Expr Node(Op op, Type type, std::vector<Expr> children) {
  Expr e;
  e.op = op;
  e.type = type;
  e.children = std::move(children);
  return e;
}

/// `levels` levels, each made by `outer` of the level below.
Expr Deep(size_t levels, Expr leaf, const std::function<Expr(Expr)>& outer) {
  Expr e = std::move(leaf);
  while (--levels > 0) e = outer(std::move(e));
  return e;
}

Expr Sums(size_t levels) {
  return Deep(levels, Leaf(Value::Integer(1)), [](Expr below) {
    std::vector<Expr> sides(2);
    sides[0] = std::move(below);
    sides[1] = Leaf(Value::Integer(1));
    return Node(Op::kAdd, Type::Integer(), std::move(sides));
  });
}

/// Each level has three operands, the last of them deep.
Expr Cases(size_t levels) {
  return Deep(levels, Leaf(Value::Integer(7)), [](Expr below) {
    std::vector<Expr> parts(3);
    parts[0] = Leaf(Value::Bool(false));
    parts[1] = Leaf(Value::Integer(0));
    parts[2] = std::move(below);
    return Node(Op::kCase, Type::Integer(), std::move(parts));
  });
}

Expr Nots(size_t levels) {
  return Deep(levels, Leaf(Value::Bool(true)), [](Expr below) {
    std::vector<Expr> one(1);
    one[0] = std::move(below);
    return Node(Op::kNot, Type::Bool(), std::move(one));
  });
}

/// NOT and OR alternate, with a cast between text and boolean.
Expr Mixed(size_t levels) {
  size_t level = 0;
  return Deep(levels, Leaf(Value::Bool(false)), [&](Expr below) {
    std::vector<Expr> children(1);
    children[0] = std::move(below);
    switch (level++ % 4) {
      case 0:
        return Node(Op::kCast, Type::String(), std::move(children));
      case 1:
        return Node(Op::kCast, Type::Bool(), std::move(children));
      case 2:
        return Node(Op::kNot, Type::Bool(), std::move(children));
      default:
        children.push_back(Leaf(Value::Bool(false)));
        return Node(Op::kOr, Type::Bool(), std::move(children));
    }
  });
}

/// Half of what glibc gives a thread by default; the rest is for the callers. Less than 2 MiB are used, by
/// optimised code: sanitizers make every frame several times as large.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 64 << 20;
#else
constexpr size_t kStackBytes = 4 << 20;
#endif

void OnAThread(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto start = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
}

std::string ExpressionText(const Expr& e) {
  return ToString(e, [](const Expr&) { return std::string("x"); });
}

TEST(Depth, TheDeepestExpressionFitsHalfAStack) {
  OnAThread([] {
    const Expr sums = Sums(kDeepestExpression), cases = Cases(kDeepestExpression);
    const Expr nots = Nots(kDeepestExpression), mixed = Mixed(kDeepestExpression);
    for (const Expr* e : {&sums, &cases, &nots, &mixed}) {
      EXPECT_TRUE(SlotOf(*e, {}).ok());
      EXPECT_TRUE(Evaluate(*e, Resolver()).ok());
      EXPECT_GT(ExpressionText(*e).size(), kDeepestExpression);
      const Expr copy = *e;
      EXPECT_TRUE(SameExpr(copy, *e));
      EXPECT_TRUE(IsConstant(*e));
      EXPECT_GE(CountNodes(*e), kDeepestExpression);
      EXPECT_TRUE(ColumnsOf(*e).empty());
      const absl::StatusOr<Expr> back = FromProto(ToProto(*e));
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_TRUE(SameExpr(*back, *e));
    }
    EXPECT_EQ(Evaluate(sums, Resolver())->number, kDeepestExpression);
    EXPECT_EQ(Evaluate(cases, Resolver())->number, 7);
  });
}

TEST(Depth, OneLevelMoreIsRefused) {
  const auto too_complex = [](const absl::Status& status) {
    const auto error = SqlErrorOf(status);
    return error && error->sqlstate == sqlstate::kTooComplex;
  };
  const Expr deeper = Nots(kDeepestExpression + 1);
  EXPECT_TRUE(too_complex(SlotOf(deeper, {}).status()));
  proto::Expression sent = ToProto(Nots(kDeepestExpression));
  EXPECT_TRUE(FromProto(sent).ok());
  *sent.add_nodes() = sent.nodes(sent.nodes_size() - 1);
  EXPECT_TRUE(too_complex(FromProto(sent).status()));
}

/// The decoder stops on its own.
TEST(Depth, AMillionLevelsAreRefused) {
  proto::Expression sent = ToProto(Nots(2));
  for (int i = 0; i < 1'000'000; ++i) *sent.add_nodes() = sent.nodes(1);
  EXPECT_FALSE(FromProto(sent).ok());
}

}  // namespace
}  // namespace nam::plan
