#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "bench/shuffle_exchange.h"
#include "bench/shuffle_input.h"
#include "bench/shuffle_plan.h"
#include "computeserver/join_table.h"
#include "computeserver/sink.h"
#include "storage/channel.h"

namespace nam::bench {

/// How a shuffle-based plan is run.
struct ShuffleMode {
  /// Every join's output is written to memory before the next one begins; otherwise it goes on at once.
  bool materialize = false;
  /// Tables are read from memory servers; otherwise the servers hold their rows at the start.
  bool from_memory_servers = false;
};

/// What the threads of one compute server share while a query runs.
struct ShuffleServerRun {
  const ShufflePlan* plan = nullptr;
  ShuffleMode mode;
  std::vector<const ShuffleTable*> rows;  // by table of the plan
  uint32_t number = 0;                    // of the server, of `servers`
  uint32_t servers = 1;
  std::vector<std::vector<uint32_t>> partitions;  // by table: what it reads of memory servers
  std::vector<std::unique_ptr<computeserver::JoinTable>> join_tables;
  std::unique_ptr<std::atomic<uint32_t>[]> claimed;  // by table: chunks or partitions
  std::atomic<int> building{0};
  std::unique_ptr<fabric::Event> built;
  std::atomic<bool>* cancel = nullptr;
};

/// What a thread's time went into. On real fabrics this is how the constants of shuffle_cost.h are measured.
struct ShuffleWork {
  enum Kind : uint8_t { kScan, kRoute, kInsert, kProbe, kSink, kExchange, kKinds };
  std::array<int64_t, kKinds> ns{};
  uint64_t routed_rows = 0, routed_codes = 0, probed_rows = 0, sunk_rows = 0;
  void Add(const ShuffleWork& other);
};

/// One thread of a shuffle-based plan.
///
///     build:  own rows of each build side ─▶ by key to the servers ══▶ join table of the server's keys
///     ─────── barrier of the server's threads ───────
///     probe:  own rows of the driving table ─▶ by key 1 ══▶ probe 1 ─▶ by key 2 ══▶ probe 2 ─▶ … ─▶ sink
///
/// While a leg is held up for want of credit, the thread works on what has come on that leg and those behind
/// it, never on those before: so the last leg always goes on, and with it all others.
class ShuffleWorker {
 public:
  /// `channel` is null unless tables are read from memory servers.
  ShuffleWorker(ShuffleServerRun& run, Exchange& exchange, storage::Channel* channel, Clock& clock);
  absl::Status Run();

  computeserver::Sink& sink() { return *sink_; }
  const ShuffleWork& work() const { return work_; }

 private:
  /// A column of tuples: codes, through row numbers unless these are null.
  struct Piece {
    computeserver::ColumnSource source;
    const uint32_t* rows = nullptr;
  };
  /// Scratch of one leg, so that a leg can be worked on while the one before is held up.
  struct Level {
    std::vector<uint8_t> to = std::vector<uint8_t>(computeserver::kBatchRows);
    std::vector<uint32_t> order = std::vector<uint32_t>(computeserver::kBatchRows);
    std::vector<uint32_t> starts;
    std::vector<Piece> pieces;  // of what is routed to this leg
    std::vector<uint32_t> offsets;
    std::vector<uint32_t> positions = std::vector<uint32_t>(computeserver::kBatchRows);
    std::vector<uint32_t> partners = std::vector<uint32_t>(computeserver::kBatchRows);
  };
  /// Output of a join, laid out as the next leg's messages.
  struct Materialized {
    std::unique_ptr<std::byte[]> data;
    uint32_t rows = 0;
  };
  class Timed;

  const ShuffleLeg& Leg(uint16_t kind, size_t j) const {
    return kind == ShuffleHeader::kBuild ? plan_.build[j] : plan_.probe[j];
  }
  absl::Status AwaitBuilt();
  absl::Status RunProbes();

  // Own rows.
  absl::Status Scan(uint16_t kind, size_t j);
  absl::Status ScanRows(uint16_t kind, size_t j, int table);
  absl::Status ScanMemoryServers(uint16_t kind, size_t j, int table);
  absl::Status ScanMaterialized(size_t j);
  absl::Status RouteAll(uint16_t kind, size_t j, uint32_t rows,
                        const std::vector<computeserver::ColumnSource>& columns);

  // To the next leg.
  absl::Status Route(uint16_t kind, size_t j, uint32_t tuples, const std::vector<Piece>& pieces);
  void Deal(const ShuffleLeg& leg, uint32_t tuples, const Piece& key, Level& level) const;
  absl::Status Append(uint16_t kind, size_t j, uint32_t peer, const uint32_t* order, uint32_t count,
                      const std::vector<Piece>& pieces);
  absl::Status Flush(uint16_t kind, size_t j, uint32_t peer, bool last);
  absl::Status FinishLeg(uint16_t kind, size_t j);
  absl::Status AwaitLeg(uint16_t kind, size_t j);

  // What comes.
  absl::Status Serve(uint16_t kind);
  absl::Status Advance(uint16_t kind, uint32_t least);
  absl::Status Handle(const Exchange::Message& message);
  absl::Status Work(uint16_t kind, size_t j, const std::byte* data, uint32_t rows);
  absl::Status Insert(size_t j, const std::byte* data, uint32_t rows);
  absl::Status Probe(size_t j, const std::byte* data, uint32_t rows);
  uint32_t Match(size_t j, const computeserver::ColumnSource& keys, uint32_t first, uint32_t count);
  absl::Status Forward(size_t j, const std::byte* data, uint32_t tuples);
  absl::Status Consume(size_t j, const std::byte* data, uint32_t tuples);
  void Materialize(size_t j, uint32_t tuples, const std::vector<Piece>& pieces);

  void Charge(uint64_t count, int64_t ps);

  ShuffleServerRun& run_;
  const ShufflePlan& plan_;
  const computeserver::QueryShape& shape_;
  Exchange& exchange_;
  storage::Channel* const channel_;
  Clock& clock_;
  const uint64_t reciprocal_;  // of the number of servers
  computeserver::ColumnSpace columns_;
  computeserver::Batch batch_;  // of the sink
  std::vector<int> carried_;    // tables of the batch whose columns are in the last leg's messages
  std::unique_ptr<computeserver::Sink> sink_;
  Level build_level_;
  std::vector<Level> levels_;  // by join
  std::vector<uint32_t> identity_;
  std::array<std::vector<uint32_t>, 2> ended_;  // by kind and join: servers that send no more
  std::vector<std::deque<Materialized>> materialized_;
  int64_t uncharged_ps_ = 0;
  ShuffleWork work_;
  ShuffleWork::Kind doing_ = ShuffleWork::kScan;
  int64_t since_ns_ = 0;
};

}  // namespace nam::bench
