#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "bench/shuffle_plan.h"
#include "execution/exchange/endpoint.h"
#include "execution/prepared_stage.h"
#include "fabric/fabric.h"

namespace nam::bench {

/// The rows of one table as in a shared-nothing system: in the memory of the servers that process them, in
/// insertion order, so that their place is unrelated to their keys. Chunk i belongs to server i mod the
/// number of servers. Codes are those of the table in memory servers.
struct ShuffleChunk {
  uint32_t rows = 0;
  std::vector<std::vector<std::byte>> columns;  // by number; empty for unneeded columns
};
using ShuffleTable = std::vector<ShuffleChunk>;

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
///
/// Adds what it did to `work`.
absl::Status RunShuffleThread(ShuffleServerRun& run, execution::Endpoint& endpoint, Clock& clock,
                              ShuffleWork& work);

}  // namespace nam::bench
