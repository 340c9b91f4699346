#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/shuffle_input.h"
#include "bench/shuffle_plan.h"
#include "execution/exchange/endpoint.h"
#include "execution/task.h"

namespace nam::bench {

/// State shared by a compute server's threads while a query runs.
struct ShuffleServerRun {
  const ShufflePlan* plan = nullptr;
  bool materialize = false;
  std::vector<const ShuffleTable*> rows;  // by table of the plan
  uint32_t number = 0;                    // this server's, below `servers`
  uint32_t servers = 1;
  std::unique_ptr<execution::PreparedStage> stage;   // build sides and sink of this run
  std::unique_ptr<std::atomic<uint32_t>[]> claimed;  // by table: chunks
  std::atomic<int> building{0};
  std::unique_ptr<fabric::Event> built;
  std::atomic<bool>* cancel = nullptr;
};

/// The time of a thread by kind of work. On real fabrics it yields constants of plan/work_cost.h.
struct ShuffleWork {
  enum Kind : uint8_t { kScan, kRoute, kInsert, kProbe, kSink, kExchange, kKinds };
  std::array<int64_t, kKinds> ns{};
  uint64_t routed_rows = 0, probed_rows = 0, sunk_rows = 0;
  void Add(const ShuffleWork& other);
};

/// One thread of a shuffle-based plan.
///
///     build:  own rows of each build side ─▶ by key to the servers ══▶ join table of the server's keys
///     ─────── barrier of the server's threads ───────
///     probe:  own rows of the driving table ─▶ by key 1 ══▶ probe 1 ─▶ by key 2 ══▶ probe 2 ─▶ … ─▶ sink
///
/// While a leg lacks credit, the thread processes messages of that leg and later ones, never of earlier ones:
/// so the last leg always progresses, and with it all others.
class ShuffleWorker {
 public:
  ShuffleWorker(ShuffleServerRun& run, execution::Endpoint& endpoint, Clock& clock);
  absl::Status Run();

  const ShuffleWork& work() const { return work_; }

 private:
  /// Rows buffered for a server.
  struct Outgoing {
    std::optional<execution::Endpoint::Buffer> buffer;  // none: the next row takes one
    uint32_t rows = 0;
  };
  /// Scratch of one leg, so that a leg can be processed while the previous one is held up.
  struct Level {
    // Tuples routed to this leg, and their servers.
    std::vector<uint8_t> to = std::vector<uint8_t>(execution::kChunkRows);
    std::vector<uint32_t> order = std::vector<uint32_t>(execution::kChunkRows);
    std::vector<uint32_t> starts;
    std::vector<Outgoing> outgoing;  // by server
    // The message being processed.
    std::vector<uint32_t> offsets;
    std::unique_ptr<execution::Chunk> arrived;
    std::unique_ptr<execution::SinkTask> build;
    /// Probing tuples with a partner, laid out for the next leg or the sink.
    std::unique_ptr<execution::Chunk> matched;
  };
  /// Output of a join, laid out like the next leg's messages.
  struct Materialized {
    std::unique_ptr<std::byte[]> data;
    uint32_t rows = 0;
  };
  class Timed;

  const ShuffleLeg& Leg(uint16_t kind, size_t j) const {
    return kind == ShuffleKind::kBuild ? plan_.joins[j].build : plan_.joins[j].probe;
  }
  Level& LevelOf(uint16_t kind, size_t j) {
    return kind == ShuffleKind::kBuild ? build_levels_[j] : probe_levels_[j];
  }
  uint32_t ExchangeOf(uint16_t kind, size_t j) const { return kind * legs_ + static_cast<uint32_t>(j); }
  /// The pipeline of a leg's rows.
  uint32_t PipelineOf(uint16_t kind, size_t j) const {
    return kind == ShuffleKind::kBuild ? plan_.joins[j].pipeline : stage_.claimed();
  }
  void PrepareLevel(uint16_t kind, size_t j);
  std::unique_ptr<execution::Chunk> NewChunk(uint16_t kind, size_t j) const;
  absl::Status AwaitBuilt();
  absl::Status RunProbes();

  // Own rows.
  absl::Status Scan(uint16_t kind, size_t j);
  absl::Status ScanMaterialized(size_t j);
  /// `codes`: one pointer per column of the leg. `chunk` comes from NewChunk.
  absl::Status RouteAll(uint16_t kind, size_t j, uint32_t rows, const std::vector<const std::byte*>& codes,
                        execution::Chunk& chunk);

  // To the next leg.
  absl::Status Route(uint16_t kind, size_t j, const execution::Chunk& tuples);
  void Deal(const ShuffleLeg& leg, const execution::Chunk& tuples, Level& level) const;
  /// The result has a buffer.
  absl::StatusOr<Outgoing*> OutgoingTo(uint16_t kind, size_t j, uint32_t server);
  absl::Status Append(uint16_t kind, size_t j, uint32_t peer, const uint32_t* order, uint32_t count,
                      const execution::Chunk& tuples);
  absl::Status Flush(uint16_t kind, size_t j, uint32_t peer, bool last);
  absl::Status FinishLeg(uint16_t kind, size_t j);
  absl::Status AwaitLeg(uint16_t kind, size_t j);

  // Incoming rows.
  absl::Status Serve(uint16_t kind);
  absl::Status Advance(uint16_t kind, size_t least);
  absl::Status Handle(const execution::Endpoint::Message& message);
  absl::Status Work(uint16_t kind, size_t j, const std::byte* data, uint32_t rows);
  absl::Status Insert(size_t j, const std::byte* data, uint32_t rows);
  absl::Status Probe(size_t j, const std::byte* data, uint32_t rows);
  /// Loads the rows of a message from `first` on that fit a chunk.
  void Arrive(const ShuffleLeg& leg, const std::byte* data, uint32_t first, uint32_t rows,
              Level& level) const;
  uint32_t Match(size_t j, Level& level) const;
  absl::Status Forward(size_t j, const execution::Chunk& matched);
  absl::Status Consume(const execution::Chunk& matched);
  void Materialize(size_t j, const execution::Chunk& tuples);

  void Charge(uint64_t count, int64_t ps);

  ShuffleServerRun& run_;
  const ShufflePlan& plan_;
  execution::PreparedStage& stage_;
  execution::Endpoint& endpoint_;
  const uint32_t legs_;  // per kind: exchange kind * legs + leg
  Clock& clock_;
  execution::TaskContext context_;
  const uint64_t reciprocal_;  // of the number of servers
  std::unique_ptr<execution::SinkTask> sink_;
  std::vector<Level> build_levels_, probe_levels_;  // by join
  std::vector<uint32_t> identity_;
  std::vector<std::deque<Materialized>> materialized_;
  ShuffleWork work_;
  ShuffleWork::Kind doing_ = ShuffleWork::kScan;
  int64_t since_ns_ = 0;
};

}  // namespace nam::bench
