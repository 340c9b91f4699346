#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "execution/task.h"
#include "storage/scratch.h"
#include "tests/execution/step_driver.h"
#include "tests/storage/chains.h"

namespace nam::execution {

/// Two memory servers with scratch memory, and tasks that write and read it.
class ScratchCluster {
 public:
  explicit ScratchCluster(StepDriver& driver, fabric::Kind kind = fabric::Kind::kShm)
      : driver_(driver), servers_(kind), client_(storage::OpenFabric(kind)) {}

  /// Takes slabs of both servers in turn, until their memory is used up.
  std::unique_ptr<storage::ScratchSpace> NewSpace() {
    return std::make_unique<storage::ScratchSpace>(
        [] {
          return std::vector{MemoryServerId(1), MemoryServerId(2)};
        },
        0,
        [this](MemoryServerId server, uint64_t bytes, const std::atomic<bool>&) {
          return Allocate(server, bytes);
        });
  }
  /// A context with channels of its own, for one task.
  std::unique_ptr<TaskContext> NewContext() {
    return std::make_unique<TaskContext>(
        RealClock(), driver_.budget(), driver_.cancel(),
        TaskChannels{.blocks = NewChannel(), .claims = nullptr, .scratch = NewChannel()});
  }
  /// Runs `input` into the sink with this many tasks, whose chunks come in any order, then combines the
  /// sink's parts.
  absl::Status RunInto(const plan::Schema& schema, const std::vector<Tuple>& input, Sink& sink, int tasks) {
    RandomStream& random = driver_.random();
    std::vector<std::unique_ptr<TaskContext>> contexts;
    std::vector<std::unique_ptr<SinkTask>> running;
    for (int t = 0; t < tasks; ++t) {
      contexts.push_back(NewContext());
      running.push_back(sink.NewTask(*contexts.back()));
    }
    ChunkMaker maker(schema, random);
    for (size_t done = 0; done < input.size();) {
      const size_t t = random.Below(running.size());
      const size_t count = std::min<size_t>(input.size() - done, 1 + random.Below(kChunkRows));
      const std::unique_ptr<Chunk> chunk = maker.NewChunk();
      maker.Fill({input.data() + done, count}, *chunk);
      done += count;
      if (running[t]->Consume(*contexts[t], *chunk) == Step::kFailed) return contexts[t]->error();
    }
    for (size_t t = 0; t < running.size(); ++t) {
      if (running[t]->Finish(*contexts[t]) == Step::kFailed) return contexts[t]->error();
    }
    running.clear();
    const uint32_t parts = sink.CombineParts();
    for (uint32_t part = 0; part < parts; ++part) {
      if (absl::Status status = sink.Combine(*contexts[part % contexts.size()], part); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  /// All rows of a source, read by this many tasks in turn.
  absl::StatusOr<std::vector<Tuple>> ReadAll(Source& source, size_t columns, int tasks) {
    std::vector<Tuple> rows;
    std::vector<std::pair<std::unique_ptr<TaskContext>, std::unique_ptr<SourceTask>>> reading;
    for (int t = 0; t < tasks; ++t) {
      std::unique_ptr<TaskContext> context = NewContext();
      std::unique_ptr<SourceTask> task = source.NewTask(*context);
      reading.emplace_back(std::move(context), std::move(task));
    }
    Chunk chunk(columns, 0);
    while (!reading.empty()) {
      const size_t t = driver_.random().Below(reading.size());
      const Step step = reading[t].second->Next(*reading[t].first, chunk);
      if (step == Step::kFailed) return reading[t].first->error();
      if (step == Step::kDone) {
        reading.erase(reading.begin() + static_cast<ptrdiff_t>(t));
        continue;
      }
      for (Tuple& row : TuplesOf(chunk, columns)) rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  storage::TwoServers& servers() { return servers_; }
  fabric::Fabric& fabric() { return *client_; }
  /// The size of each server's memory.
  uint64_t& bytes_left() { return bytes_left_; }

 private:
  storage::Channel* NewChannel() {
    channels_.push_back(*storage::Channel::Open(*client_, servers_, {.buffer_bytes = 1 << 20}));
    return channels_.back().get();
  }
  absl::StatusOr<storage::ScratchSlab> Allocate(MemoryServerId server, uint64_t bytes) {
    const MutexLock lock(mutex_);
    uint64_t& used = used_[server];
    if (bytes > storage::TwoServers::kBytes - used || bytes > bytes_left_)
      return absl::ResourceExhaustedError("this server's share is full");
    const storage::ScratchSlab slab{{server, 4096 + used}, bytes, servers_.grant()};
    used += bytes;
    bytes_left_ -= bytes;
    return slab;
  }

  StepDriver& driver_;
  storage::TwoServers servers_;
  std::unique_ptr<fabric::Fabric> client_;
  std::vector<std::unique_ptr<storage::Channel>> channels_;
  Mutex mutex_;  // guards what follows
  std::map<MemoryServerId, uint64_t> used_;
  uint64_t bytes_left_ = UINT64_MAX;
};

}  // namespace nam::execution
