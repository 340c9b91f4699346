#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "optimizer/plan.h"

namespace nam::optimizer {
namespace {

plan::Expr Column(int table, int column) {
  plan::Expr e;
  e.op = plan::Op::kColumn;
  e.type = Type::Integer();
  e.column = {table, column};
  return e;
}

Plan SomePlan() {
  Plan plan;
  plan.tables = {{.name = "f", .allocation = 3, .columns = {0, 2}},
                 {.name = "d", .allocation = 4, .columns = {1}}};
  plan::Expr literal;
  literal.type = Type::Decimal(2);
  literal.literal = Value::Decimal((static_cast<__int128>(1) << 100) * -1, 2);
  plan::Expr less;
  less.op = plan::Op::kLess;
  less.type = Type::Bool();
  less.children = {Column(0, 2), literal};
  plan.tables[0].filters = {less};
  plan.joins.push_back({.table = 1, .probe_key = Column(0, 0), .build_key = Column(1, 1)});
  plan.aggregated = true;
  plan.group_by = {Column(1, 1)};
  plan.aggregates = {{plan::AggregateFunction::kSum, Column(0, 2), Type::Integer()}};
  return plan;
}

TEST(PlanCodec, KeepsEverything) {
  const auto decoded = FromProto(ToProto(SomePlan()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(ToProto(*decoded).SerializeAsString(), ToProto(SomePlan()).SerializeAsString());
  EXPECT_EQ(decoded->tables[0].filters[0].children[1].literal.number, (static_cast<__int128>(1) << 100) * -1);
}

TEST(PlanCodec, KeepsTypesWidthsAndLimits) {
  Plan plan = SomePlan();
  plan.aggregated = false;
  plan.group_by.clear();
  plan.aggregates.clear();
  plan::Expr cast;
  cast.op = plan::Op::kCast;
  cast.type = Type::Integer();
  cast.index = 2;
  cast.children = {Column(0, 2)};
  plan::Expr text = Column(1, 1);
  text.type = plan::CharType(7);
  plan.output = {cast, text};
  plan.order = {{text, true, false}};
  plan.row_limit = 12;
  const auto decoded = FromProto(ToProto(plan));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->output.size(), 2u);
  EXPECT_EQ(decoded->output[0].index, 2);
  EXPECT_EQ(decoded->output[1].type, plan::CharType(7));
  EXPECT_EQ(decoded->row_limit, 12);
  ASSERT_EQ(decoded->order.size(), 1u);
  EXPECT_TRUE(decoded->order[0].descending);
  EXPECT_FALSE(decoded->order[0].nulls_first);
  plan.output[0].index = 3;
  EXPECT_FALSE(FromProto(ToProto(plan)).ok());
}

TEST(PlanCodec, RefusesWhatIsNoPlan) {
  const auto refused = [](const std::function<void(proto::Plan&)>& change) {
    proto::Plan plan = ToProto(SomePlan());
    change(plan);
    return !FromProto(plan).ok();
  };
  EXPECT_TRUE(refused([](proto::Plan& p) { p.clear_tables(); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.set_driving(2); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_steps(0)->set_table(0); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_steps(0)->mutable_probe_key()->set_table(1); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_steps(0)->mutable_build_key()->set_table(0); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_group_by(0)->set_op(999); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_group_by(0)->set_table(-1); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_tables(0)->mutable_filters(0)->clear_children(); }));
  EXPECT_TRUE(refused([](proto::Plan& p) { p.mutable_aggregates(0)->set_function(77); }));
  EXPECT_TRUE(refused([](proto::Plan& p) {
    proto::Expr deep;
    for (int i = 0; i < 1000; ++i) {
      proto::Expr outer;
      outer.set_op(static_cast<uint32_t>(plan::Op::kNot));
      outer.add_children()->Swap(&deep);
      deep.Swap(&outer);
    }
    *p.mutable_group_by(0) = deep;
  }));
}

TEST(PlanCodec, SurvivesDamagedBytes) {
  EXPECT_TRUE(rc::check("mutated plans decode or are refused", [] {
    std::string bytes = ToProto(SomePlan()).SerializeAsString();
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
      bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = static_cast<char>(*rc::gen::inRange(0, 256));
    }
    proto::Plan plan;
    if (plan.ParseFromString(bytes)) (void)FromProto(plan);
  }));
}

}  // namespace
}  // namespace nam::optimizer
