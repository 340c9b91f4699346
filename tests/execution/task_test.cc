#include "execution/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "tests/execution/step_driver.h"

namespace nam::execution {
namespace {

const plan::Schema kNumbers = {{Type::Integer(), false, {0, 100'000, true}}};

std::vector<Tuple> Numbers(int64_t count) {
  std::vector<Tuple> tuples;
  for (int64_t i = 0; i < count; ++i) tuples.push_back({Cell::Number(i)});
  return tuples;
}

// --- Scripted tasks: what is called, in which order --------------------------------------------------------

/// The effect of one call: the step that it returns, and how many rows it puts out.
struct Call {
  Step step;
  uint32_t rows = 0;
};

/// The calls of all tasks of a pipeline, as text: "next push0 consume …".
struct Script {
  std::string log;
  std::deque<Call> next, finish, consume;
  std::vector<std::deque<Call>> push, drain;
  Gate gate;
  std::atomic<bool> cancel = false;
  /// The call after which the query is cancelled.
  std::string cancel_after;

  Step Play(const std::string& name, std::deque<Call>& calls, TaskContext& context, Chunk* out,
            Step otherwise) {
    log += (log.empty() ? "" : " ") + name;
    Call call{otherwise};
    if (!calls.empty()) {
      call = calls.front();
      calls.pop_front();
    }
    if (out != nullptr) out->SelectAll(call.rows);
    if (name == cancel_after) cancel = true;
    if (call.step == Step::kBlocked) return context.BlockOn(gate);
    if (call.step == Step::kFailed) return context.Fail(absl::InternalError(name + " failed"));
    return call.step;
  }
};

class ScriptedSource final : public SourceTask {
 public:
  explicit ScriptedSource(Script& script) : script_(script) {}
  ~ScriptedSource() override { script_.log += " ~source"; }
  Step Next(TaskContext& context, Chunk& out) override {
    return script_.Play("next", script_.next, context, &out, Step::kDone);
  }
  void Stop() override { script_.log += " stop"; }

 private:
  Script& script_;
};

class ScriptedStep final : public StepTask {
 public:
  ScriptedStep(Script& script, size_t number) : script_(script), number_(number) {}
  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const uint32_t rows = in.selection().count;
    EXPECT_GT(rows, 0U);
    const bool passes = script_.push[number_].empty();
    const Step step = script_.Play("push" + std::to_string(number_), script_.push[number_], context, &out,
                                   Step::kNeedInput);
    if (passes) out.SelectAll(rows);
    return step;
  }
  Step Drain(TaskContext& context, Chunk& out) override {
    return script_.Play("drain" + std::to_string(number_), script_.drain[number_], context, &out,
                        Step::kDone);
  }

 private:
  Script& script_;
  const size_t number_;
};

class ScriptedSink final : public SinkTask {
 public:
  explicit ScriptedSink(Script& script) : script_(script) {}
  Step Consume(TaskContext& context, const Chunk& in) override {
    return script_.Play("consume" + std::to_string(in.selection().count), script_.consume, context, nullptr,
                        Step::kNeedInput);
  }
  Step Finish(TaskContext& context) override {
    return script_.Play("finish", script_.finish, context, nullptr, Step::kDone);
  }

 private:
  Script& script_;
};

class Pipeline : public testing::Test {
 protected:
  void Make(size_t steps) {
    script_.push.resize(steps);
    script_.drain.resize(steps);
    std::vector<std::unique_ptr<StepTask>> tasks;
    std::vector<std::unique_ptr<Chunk>> chunks;
    chunks.push_back(std::make_unique<Chunk>(0, 0));
    for (size_t i = 0; i < steps; ++i) {
      tasks.push_back(std::make_unique<ScriptedStep>(script_, i));
      chunks.push_back(std::make_unique<Chunk>(0, 0));
    }
    task_.emplace(std::make_unique<ScriptedSource>(script_), std::move(tasks),
                  std::make_unique<ScriptedSink>(script_), std::move(chunks));
  }
  /// The calls since the last time.
  std::string Log() { return std::exchange(script_.log, ""); }
  std::vector<uint64_t> Rows() const { return {task_->rows().begin(), task_->rows().end()}; }

  Script script_;
  MemoryBudget budget_{0};
  TaskContext context_{RealClock(), budget_, script_.cancel};
  std::optional<PipelineTask> task_;
};

TEST_F(Pipeline, StepsWithMoreAreAskedFromTheLastBackwards) {
  Make(2);
  script_.next = {{Step::kHaveMore, 5}};
  script_.push[0] = {{Step::kHaveMore, 2}, {Step::kNeedInput, 1}};
  script_.push[1] = {
      {Step::kHaveMore, 3}, {Step::kHaveMore, 0}, {Step::kNeedInput, 0}, {Step::kNeedInput, 4}};
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "next push0 push1 consume3 push1 push1 push0 push1 consume4 next drain0 drain1 finish");
  EXPECT_EQ(Rows(), (std::vector<uint64_t>{5, 3, 7}));
}

TEST_F(Pipeline, ABlockedCallIsMadeAgain) {
  Make(2);
  const Call blocked{Step::kBlocked};
  script_.next = {blocked, {Step::kHaveMore, 5}};
  script_.push[0] = {blocked, {Step::kHaveMore, 2}, blocked, {Step::kNeedInput, 0}};
  script_.push[1] = {blocked, {Step::kNeedInput, 2}};
  script_.consume = {blocked, {Step::kNeedInput}};
  script_.drain[1] = {blocked, {Step::kHaveMore, 7}, blocked, {Step::kDone}};
  script_.finish = {blocked, {Step::kHaveMore}, blocked, {Step::kDone}};
  for (const char* calls :
       {"next", "next push0", "push0 push1", "push1 consume2", "consume2 push0", "push0 next drain0 drain1",
        "drain1 consume7 drain1", "drain1 finish", "finish finish"}) {
    EXPECT_EQ(task_->Run(context_), Step::kBlocked);
    EXPECT_EQ(context_.gate(), &script_.gate);
    EXPECT_EQ(Log(), calls);
  }
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "finish");
  EXPECT_EQ(Rows(), (std::vector<uint64_t>{5, 2, 9})) << "no row is counted twice";
}

TEST_F(Pipeline, AFedSourceNeedsInputAndGoesOn) {
  Make(1);
  script_.next = {{Step::kNeedInput}, {Step::kHaveMore, 1}, {Step::kNeedInput}};
  EXPECT_EQ(task_->Run(context_), Step::kNeedInput);
  EXPECT_EQ(task_->Run(context_), Step::kNeedInput);
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "next next push0 consume1 next next drain0 finish");
}

TEST_F(Pipeline, AStepThatIsDoneEndsAllBeforeIt) {
  Make(3);
  script_.next = {{Step::kHaveMore, 9}};
  script_.push[0] = {{Step::kHaveMore, 8}};
  script_.push[1] = {{Step::kDone, 7}};
  script_.push[2] = {{Step::kHaveMore, 6}, {Step::kNeedInput, 5}};
  script_.drain[2] = {{Step::kHaveMore, 4}};
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  // The source's rows are used up before it is stopped; steps 0 and 1 are not asked again.
  EXPECT_EQ(Log(), "next push0 push1 push2 consume6 push2 consume5 stop drain2 consume4 drain2 finish");
}

TEST_F(Pipeline, ASinkThatIsDoneEndsAll) {
  Make(2);
  script_.next = {{Step::kHaveMore, 9}};
  script_.push[0] = {{Step::kHaveMore, 8}};
  script_.push[1] = {{Step::kHaveMore, 7}};
  script_.consume = {{Step::kBlocked}, {Step::kDone}};
  EXPECT_EQ(task_->Run(context_), Step::kBlocked);
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "next push0 push1 consume7 consume7 stop finish");
  EXPECT_EQ(task_->Run(context_), Step::kDone) << "which it stays";
  EXPECT_EQ(Log(), "");
}

TEST_F(Pipeline, AStepThatIsDoneWithoutRowsEndsAtOnce) {
  Make(1);
  script_.next = {{Step::kHaveMore, 9}};
  script_.push[0] = {{Step::kDone, 0}};
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "next push0 stop finish");
}

TEST_F(Pipeline, StepsAreDrainedInOrderThroughThoseBehind) {
  Make(3);
  script_.drain[0] = {{Step::kHaveMore, 3}, {Step::kHaveMore, 2}};
  script_.push[1] = {{Step::kHaveMore, 1}};
  script_.drain[2] = {{Step::kHaveMore, 5}};
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(),
            "next drain0 push1 push2 consume1 push1 push2 consume3 drain0 push1 push2 consume2 drain0 "
            "drain1 drain2 consume5 drain2 finish");
}

TEST_F(Pipeline, AStepThatIsDoneWhileOthersAreDrainedEndsThem) {
  Make(3);
  script_.drain[0] = {{Step::kHaveMore, 3}, {Step::kHaveMore, 2}};
  script_.push[1] = {{Step::kDone, 1}};
  EXPECT_EQ(task_->Run(context_), Step::kDone);
  EXPECT_EQ(Log(), "next drain0 push1 push2 consume1 drain2 finish") << "the source had ended by itself";
}

TEST_F(Pipeline, AnErrorEndsWithoutAnotherCall) {
  for (int place = 0; place < 5; ++place) {
    script_.log.clear();
    Make(1);
    const Call failed{Step::kFailed};
    const char* const names[] = {"next", "push0", "consume1", "drain0", "finish"};
    script_.next = {{Step::kHaveMore, 1}};
    if (place == 0) script_.next = {failed};
    if (place == 1) script_.push[0] = {failed};
    if (place == 2) script_.consume = {failed};
    if (place == 3) script_.drain[0] = {failed};
    if (place == 4) script_.finish = {failed};
    TaskContext context(RealClock(), budget_, script_.cancel);
    EXPECT_EQ(task_->Run(context), Step::kFailed);
    EXPECT_EQ(context.error(), absl::InternalError(std::string(names[place]) + " failed"));
    EXPECT_TRUE(script_.log.ends_with(names[place])) << script_.log;
  }
}

TEST_F(Pipeline, ACancelledTaskMakesNoOtherCall) {
  for (const char* call : {"next", "push0", "consume3", "drain0", "finish"}) {
    script_.cancel = false;
    script_.log.clear();
    Make(1);
    script_.cancel_after = call;
    script_.next = {{Step::kHaveMore, 4}};
    // The step would never end.
    script_.push[0].assign(100, {Step::kHaveMore, 3});
    if (std::string_view(call) == "drain0" || std::string_view(call) == "finish")
      script_.push[0] = {{Step::kNeedInput, 2}};
    script_.drain[0] = {{Step::kHaveMore, 1}};
    script_.finish = {{Step::kHaveMore}};
    TaskContext context(RealClock(), budget_, script_.cancel);
    EXPECT_EQ(task_->Run(context), Step::kFailed);
    EXPECT_TRUE(absl::IsCancelled(context.error()));
    EXPECT_TRUE(script_.log.ends_with(call)) << script_.log;
  }
}

TEST_F(Pipeline, ATaskThatIsCancelledWhileItWaitsIsNotAskedAgain) {
  Make(1);
  script_.next = {{Step::kHaveMore, 4}};
  script_.push[0] = {{Step::kBlocked}, {Step::kBlocked}};
  EXPECT_EQ(task_->Run(context_), Step::kBlocked);
  script_.cancel = true;
  EXPECT_EQ(task_->Run(context_), Step::kFailed);
  EXPECT_EQ(Log(), "next push0");
  task_.reset();
  EXPECT_EQ(Log(), " ~source") << "its end gives up what is under way";
}

class CountingClock final : public Clock {
 public:
  int64_t NowNs() const override { return ns; }
  void SleepUntil(Deadline) override {}
  void Charge(int64_t more) override {
    ns += more;
    ++charges;
  }
  int64_t ns = 0;
  int charges = 0;
};

/// Charges 300 ps a call, waits once in the middle, and gives ten chunks.
class ChargingSource final : public SourceTask {
 public:
  explicit ChargingSource(Gate& gate) : gate_(gate) {}
  Step Next(TaskContext& context, Chunk& out) override {
    context.Charge(3, 100);
    if (++calls_ == 5) return context.BlockOn(gate_);
    out.SelectAll(1);
    return calls_ == 12 ? Step::kDone : Step::kHaveMore;
  }

 private:
  Gate& gate_;
  int calls_ = 0;
};

TEST(TaskContext, ChargesWhatWasComputedBeforeItWaits) {
  CountingClock clock;
  MemoryBudget budget(0);
  std::atomic<bool> cancel = false;
  TaskContext context(clock, budget, cancel);
  Script script;
  Gate gate;
  std::vector<std::unique_ptr<Chunk>> chunks;
  chunks.push_back(std::make_unique<Chunk>(0, 0));
  PipelineTask task(std::make_unique<ChargingSource>(gate), {}, std::make_unique<ScriptedSink>(script),
                    std::move(chunks));
  EXPECT_EQ(task.Run(context), Step::kBlocked);
  EXPECT_EQ(clock.ns, 1) << "1,500 ps";
  EXPECT_EQ(task.Run(context), Step::kDone);
  EXPECT_EQ(clock.ns, 3) << "3,600 ps";
  EXPECT_EQ(clock.charges, 2);
  context.Settle();
  EXPECT_EQ(clock.charges, 2) << "less than a nanosecond waits";
}

TEST(TaskContext, KeepsTheFirstError) {
  MemoryBudget budget(0);
  std::atomic<bool> cancel = false;
  TaskContext context(RealClock(), budget, cancel);
  EXPECT_EQ(context.Fail(absl::InternalError("first")), Step::kFailed);
  EXPECT_EQ(context.Fail(absl::InternalError("second")), Step::kFailed);
  EXPECT_EQ(context.error(), absl::InternalError("first"));
}

// --- Random pipelines against a model
// -----------------------------------------------------------------------

/// Emits each row of the input `fold` times and drops every third of these. Keeps back the last row of each
/// chunk until it is drained; wants at most `most` rows.
struct Behaviour {
  uint32_t fold = 1;
  bool thins = false;
  bool keeps = false;
  size_t most = SIZE_MAX;
};

/// Numbers its rows itself, so that the model need not know chunks.
class RandomStep final : public StepTask {
 public:
  RandomStep(const Behaviour& behaviour, uint64_t seed) : behaviour_(behaviour), random_(seed) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    if (random_.OneIn(8)) return Block(context);
    const std::vector<Tuple> rows = TuplesOf(in, 1);
    std::vector<Tuple> some;
    const uint64_t room = random_.Below(kChunkRows + 1);
    while (at_ < rows.size() && some.size() < room && put_ < behaviour_.most) {
      Take(rows[at_], some);
      if (++copy_ < behaviour_.fold) continue;
      copy_ = 0;
      ++at_;
    }
    Put(some, out);
    if (put_ == behaviour_.most && behaviour_.most != SIZE_MAX) return Step::kDone;
    if (at_ < rows.size()) return Step::kHaveMore;
    at_ = 0;
    return Step::kNeedInput;
  }

  Step Drain(TaskContext& context, Chunk& out) override {
    if (random_.OneIn(3)) return Block(context);
    const size_t count = std::min<size_t>(kept_.size(), 1 + random_.Below(kChunkRows));
    Put({kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(count)}, out);
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(count));
    return count > 0 ? Step::kHaveMore : Step::kDone;
  }

  /// The step's whole output, made at once.
  static std::vector<Tuple> Model(const Behaviour& behaviour, const std::vector<Tuple>& input) {
    RandomStep step(behaviour, 0);
    std::vector<Tuple> output;
    for (const Tuple& row : input) {
      for (uint32_t copy = 0; copy < behaviour.fold && step.put_ < behaviour.most; ++copy)
        step.Take(row, output);
    }
    if (step.put_ < behaviour.most) output.insert(output.end(), step.kept_.begin(), step.kept_.end());
    return output;
  }

 private:
  void Take(const Tuple& row, std::vector<Tuple>& out) {
    const uint64_t number = seen_++;
    if (behaviour_.thins && number % 3 == 1) return;
    if (behaviour_.keeps && number % 5 == 2) {
      kept_.push_back(row);
      return;
    }
    out.push_back(row);
    ++put_;
  }
  void Put(const std::vector<Tuple>& rows, Chunk& out) {
    out.SelectAll(static_cast<uint32_t>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) values_[i] = static_cast<int64_t>(rows[i][0].number);
    out.columns()[0] = {.base = reinterpret_cast<const std::byte*>(values_)};
  }
  Step Block(TaskContext& context) {
    gate_.Open();
    return context.BlockOn(gate_);
  }

  const Behaviour behaviour_;
  RandomStream random_;
  int64_t values_[kChunkRows];
  std::vector<Tuple> kept_;
  uint64_t seen_ = 0;
  size_t put_ = 0;
  size_t at_ = 0;
  uint32_t copy_ = 0;
  Gate gate_;
};

class RandomOperator final : public StepOperator {
 public:
  RandomOperator(const Behaviour& behaviour, uint64_t seed) : behaviour_(behaviour), seed_(seed) {}
  std::unique_ptr<StepTask> NewTask(TaskContext&) override {
    return std::make_unique<RandomStep>(behaviour_, seed_);
  }

 private:
  const Behaviour behaviour_;
  const uint64_t seed_;
};

TEST(PipelineProperty, GivesWhatItsStepsGiveOneAfterTheOther) {
  for (const uint64_t seed : TestSeeds(200)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const int64_t sizes[] = {0, 1, 1023, 1024, 1025, random.Between(0, 4000)};
    const std::vector<Tuple> input = Numbers(sizes[random.Below(6)]);
    std::vector<Tuple> expected = input;
    std::deque<RandomOperator> operators;
    std::vector<StepOperator*> steps;
    std::vector<ChunkShape> shapes;
    for (uint64_t left = random.Below(5); left > 0; --left) {
      const Behaviour behaviour{static_cast<uint32_t>(random.Between(1, 3)), random.OneIn(2), random.OneIn(2),
                                random.OneIn(4) ? 1 + random.Below(3000) : SIZE_MAX};
      expected = RandomStep::Model(behaviour, expected);
      steps.push_back(&operators.emplace_back(behaviour, random.Next()));
      shapes.push_back({1, 0});
    }
    const auto result = driver.Run(kNumbers, input, steps, shapes);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectTuples(*result, expected);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace nam::execution
