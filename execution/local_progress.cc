#include "execution/local_progress.h"

#include <utility>

#include "execution/prepared_stage.h"

namespace nam::execution {
namespace {

class WatchedSource final : public SourceTask {
 public:
  WatchedSource(std::unique_ptr<SourceTask> source, LocalProgress& progress)
      : source_(std::move(source)), progress_(progress) {}
  Step Next(TaskContext& context, Chunk& out) override {
    const Step step = source_->Next(context, out);
    if (step == Step::kHaveMore) progress_.Add(context, out.selection().count);
    return step;
  }
  void Stop() override { source_->Stop(); }

 private:
  const std::unique_ptr<SourceTask> source_;
  LocalProgress& progress_;
};

class WatchedStep final : public StepOperator {
 public:
  WatchedStep(std::unique_ptr<StepOperator> step, LocalProgress& progress)
      : step_(std::move(step)), progress_(progress) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override {
    return std::make_unique<Task>(step_->NewTask(context), progress_);
  }

 private:
  class Task final : public StepTask {
   public:
    Task(std::unique_ptr<StepTask> task, LocalProgress& progress)
        : task_(std::move(task)), progress_(progress) {}
    Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
      const Step step = task_->Push(context, in, out);
      if (step != Step::kBlocked && step != Step::kFailed) progress_.Add(context, out.selection().count);
      return step;
    }
    Step Drain(TaskContext& context, Chunk& out) override {
      const Step step = task_->Drain(context, out);
      if (step == Step::kHaveMore) progress_.Add(context, out.selection().count);
      return step;
    }

   private:
    const std::unique_ptr<StepTask> task_;
    LocalProgress& progress_;
  };

  const std::unique_ptr<StepOperator> step_;
  LocalProgress& progress_;
};

}  // namespace

void LocalProgress::Watch(PreparedPipeline& pipeline) {
  for (PreparedPipeline::StepAndChunk& step : pipeline.steps)
    step.step = std::make_unique<WatchedStep>(std::move(step.step), *this);
}

std::unique_ptr<SourceTask> LocalProgress::Watched(std::unique_ptr<SourceTask> source) {
  if (!report_) return source;
  return std::make_unique<WatchedSource>(std::move(source), *this);
}

}  // namespace nam::execution
