#include "plan/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plan/check.h"
#include "plan/expression_codec.h"
#include "plan/post_order.h"
#include "tests/plan/random_plan.h"
#include "types/wire.h"

namespace nam::plan {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using testing::Random;
using testing::RandomPlan;

TEST(Codec, RandomPlansComeBackAsTheyAre) {
  EXPECT_TRUE(rc::check("a plan that was sent is the plan", [] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    const PhysicalPlan plan = RandomPlan(seed).Make();
    const absl::Status checked = Check(plan);
    RC_LOG() << checked.ToString() << "\n";
    RC_ASSERT(checked.ok());
    const proto::PhysicalPlan sent = ToProto(plan);
    proto::PhysicalPlan received;
    RC_ASSERT(received.ParseFromString(sent.SerializeAsString()));
    const absl::StatusOr<PhysicalPlan> decoded = FromProto(received);
    RC_LOG() << decoded.status().ToString() << "\n";
    RC_ASSERT(decoded.ok());
    RC_ASSERT(ToProto(*decoded).SerializeAsString() == sent.SerializeAsString());
    RC_ASSERT(decoded->tables == plan.tables);
    for (size_t p = 0; p < plan.pipelines.size(); ++p) {
      const Pipeline &a = plan.pipelines[p], &b = decoded->pipelines[p];
      RC_ASSERT(a.schemas == b.schemas);
      RC_ASSERT(a.estimates == b.estimates);
      RC_ASSERT(a.after == b.after);
      RC_ASSERT(a.stage == b.stage);
      RC_ASSERT(a.source.index() == b.source.index());
      RC_ASSERT(a.sink.index() == b.sink.index());
    }
  }));
}

TEST(Codec, FilesComeBackAsTheyAre) {
  PhysicalPlan plan;
  Pipeline p;
  p.source = FileSource{3, "read_csv('a.csv')", {0, 2}, {"n", "m"}};
  p.schemas = {{{Type::Integer(), true, {}}, {Type::String(), true, {}}}};
  p.estimates = {{7, 1}};
  p.sink = ResultSink{};
  plan.pipelines = {p};
  plan.stages = {{0, {}, Stage::Site::kSession}};
  const absl::StatusOr<PhysicalPlan> decoded = FromProto(ToProto(plan));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& files = std::get<FileSource>(decoded->pipelines[0].source);
  EXPECT_EQ(files.files, 3u);
  EXPECT_EQ(files.name, "read_csv('a.csv')");
  EXPECT_EQ(files.columns, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(files.column_names, (std::vector<std::string>{"n", "m"}));
}

TEST(Codec, ExpressionsComeBackAsTheyAre) {
  EXPECT_TRUE(rc::check("an expression that was sent is the expression", [] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    Random random(seed);
    const Schema schema = random.ASchema(6);
    const Expr expr = random.AnExpr(schema, random.AType(), 5);
    const absl::StatusOr<Expr> back = FromProto(ToProto(expr));
    RC_ASSERT(back.ok());
    const auto text = [](const Expr& e) {
      return ToString(e, [](const Expr& column) { return "#" + std::to_string(column.column.column); });
    };
    RC_ASSERT(text(*back) == text(expr));
    RC_ASSERT(*SlotOf(*back, schema) == *SlotOf(expr, schema));
  }));
}

/// Calls back for every scalar of a message and of those below it.
void Collect(Message& message, std::vector<std::pair<Message*, const FieldDescriptor*>>& scalars) {
  const Reflection& r = *message.GetReflection();
  for (int f = 0; f < message.GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor* field = message.GetDescriptor()->field(f);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      scalars.emplace_back(&message, field);
    } else if (field->is_repeated()) {
      for (int i = 0; i < r.FieldSize(message, field); ++i)
        Collect(*r.MutableRepeatedMessage(&message, field, i), scalars);
    } else if (r.HasField(message, field)) {
      Collect(*r.MutableMessage(&message, field), scalars);
    }
  }
}

/// Puts another number there, near the old one or distant.
uint64_t Other(Random& random, uint64_t old) {
  switch (random.Below(4)) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return random.Below(8);
    default:
      return random.Chance(2) ? UINT64_MAX : uint64_t{1} << random.Below(64);
  }
}

void Damage(Random& random, Message& message, const FieldDescriptor* field) {
  const Reflection& r = *message.GetReflection();
  if (field->is_repeated()) {
    const int n = r.FieldSize(message, field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_UINT32) return;
    if (n == 0 || random.Chance(3)) return r.AddUInt32(&message, field, random.Below(6));
    if (random.Chance(3)) return r.RemoveLast(&message, field);
    const int i = static_cast<int>(random.Below(static_cast<uint32_t>(n)));
    const uint64_t other = Other(random, r.GetRepeatedUInt32(message, field, i));
    return r.SetRepeatedUInt32(&message, field, i, static_cast<uint32_t>(other));
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.SetUInt32(&message, field, static_cast<uint32_t>(Other(random, r.GetUInt32(message, field))));
    case FieldDescriptor::CPPTYPE_INT32:
      return r.SetInt32(
          &message, field,
          static_cast<int32_t>(Other(random, static_cast<uint64_t>(r.GetInt32(message, field)))));
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.SetUInt64(&message, field, Other(random, r.GetUInt64(message, field)));
    case FieldDescriptor::CPPTYPE_INT64:
      return r.SetInt64(
          &message, field,
          static_cast<int64_t>(Other(random, static_cast<uint64_t>(r.GetInt64(message, field)))));
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.SetBool(&message, field, !r.GetBool(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.SetDouble(&message, field, random.Chance(2) ? -1 : 3);
    default:
      return;
  }
}

/// A reference engine runs each plan that Check accepts. It stops where a plan names something that does not
/// exist, and where rows do not match their schema.
TEST(Codec, DamagedPlansAreRefusedOrCanBeRun) {
  uint64_t refused = 0, ran = 0;
  EXPECT_TRUE(rc::check("damage is refused or harmless", [&] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    Random random(seed);
    proto::PhysicalPlan plan = ToProto(RandomPlan(seed).Make());
    for (int i = 0; i < 40; ++i) {
      proto::PhysicalPlan damaged = plan;
      std::vector<std::pair<Message*, const FieldDescriptor*>> scalars;
      Collect(damaged, scalars);
      for (uint32_t n = 1 + random.Below(2); n > 0; --n) {
        const auto& [message, field] = random.Of(scalars);
        Damage(random, *message, field);
      }
      const absl::StatusOr<PhysicalPlan> decoded = FromProto(damaged);
      if (!decoded.ok()) {
        ++refused;
        continue;
      }
      RC_ASSERT(Check(*decoded).ok());
      RC_ASSERT(FromProto(ToProto(*decoded)).ok());
      try {
        const auto done = testing::Run(*decoded, RandomPlan(random.Below(UINT32_MAX)).ARowsOf(*decoded));
        ran += done.ok();
      } catch (const std::exception& broken) {
        RC_LOG() << broken.what() << "\n" << damaged.DebugString();
        RC_ASSERT(false);
      }
    }
  }));
  EXPECT_GT(refused, 100u);
  EXPECT_GT(ran, 100u);
}

TEST(Codec, RandomPlansRunAsTheirSchemasSay) {
  uint64_t ran = 0;
  EXPECT_TRUE(rc::check("what flows is what schemas say", [&] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    RandomPlan random(seed);
    const PhysicalPlan plan = random.Make();
    try {
      ran += testing::Run(plan, RandomPlan(seed + 1).ARowsOf(plan)).ok();
    } catch (const std::exception& broken) {
      RC_LOG() << broken.what() << "\n" << ToProto(plan).DebugString();
      RC_ASSERT(false);
    }
  }));
  EXPECT_GT(ran, 20u);
}

TEST(Codec, SurvivesDamagedBytes) {
  EXPECT_TRUE(rc::check("mutated bytes decode or are refused", [] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    Random random(seed);
    std::string bytes = ToProto(RandomPlan(seed).Make()).SerializeAsString();
    for (uint32_t i = 1 + random.Below(5); i > 0; --i)
      bytes[random.Below(static_cast<uint32_t>(bytes.size()))] = static_cast<char>(random.Below(256));
    proto::PhysicalPlan plan;
    if (!plan.ParseFromString(bytes)) return;
    const absl::StatusOr<PhysicalPlan> decoded = FromProto(plan);
    if (decoded.ok()) RC_ASSERT(Check(*decoded).ok());
  }));
}

proto::Expression Nodes(const std::vector<std::pair<Op, uint32_t>>& nodes) {
  proto::Expression out;
  for (const auto& [op, children] : nodes) {
    proto::ExpressionNode& node = *out.add_nodes();
    node.set_op(static_cast<uint32_t>(op));
    *node.mutable_type() = nam::ToProto(Type::Bool());
    node.set_children(children);
    if (op == Op::kLiteral) *node.mutable_literal() = nam::ToProto(Value::Bool(true));
  }
  return out;
}

TEST(Codec, RefusesNodesThatAreNoTree) {
  EXPECT_TRUE(FromProto(Nodes({{Op::kLiteral, 0}, {Op::kLiteral, 0}, {Op::kAnd, 2}})).ok());
  EXPECT_FALSE(FromProto(Nodes({})).ok());
  EXPECT_FALSE(FromProto(Nodes({{Op::kLiteral, 0}, {Op::kLiteral, 0}})).ok()) << "two roots";
  EXPECT_FALSE(FromProto(Nodes({{Op::kLiteral, 0}, {Op::kAnd, 2}})).ok()) << "a child that is not there";
  EXPECT_FALSE(FromProto(Nodes({{Op::kNot, UINT32_MAX}})).ok());
  proto::Expression unknown = Nodes({{Op::kLiteral, 0}});
  unknown.mutable_nodes(0)->set_op(200);
  EXPECT_FALSE(FromProto(unknown).ok());
  unknown = Nodes({{Op::kLiteral, 0}});
  unknown.mutable_nodes(0)->mutable_type()->set_kind(99);
  EXPECT_FALSE(FromProto(unknown).ok());
}

TEST(Codec, KeepsWidthsAndTypes) {
  Expr cast = Random::Node(Op::kCast, Type::Integer(), {});
  cast.index = 2;
  Expr column = Random::Column({{CharType(7), true, {}}}, 0);
  cast.children.push_back(column);
  const absl::StatusOr<Expr> back = FromProto(ToProto(cast));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->index, 2);
  EXPECT_EQ(back->children[0].type, CharType(7));
  Expr wide;
  wide.type = Type::Decimal(2);
  wide.literal = Value::Decimal(-(__int128{1} << 100), 2);
  EXPECT_EQ(FromProto(ToProto(wide))->literal.number, -(__int128{1} << 100));
  const Schema schema = {{Type::Integer(), false, {-(__int128{1} << 100), INT64_MIN, true}},
                         {Type::Integer(), true, {0, 0, true}},
                         {Type::Date(), true, {}}};
  EXPECT_EQ(*FromProto(ToProto(schema)), schema);
}

}  // namespace
}  // namespace nam::plan
