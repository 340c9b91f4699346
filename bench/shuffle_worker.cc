#include "bench/shuffle_worker.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/join/direct_build.h"
#include "execution/task.h"
#include "plan/work_cost.h"

namespace nam::bench {

using execution::Chunk;
using execution::Column;
using execution::kChunkRows;
using execution::Step;
using execution::WithCodes;
namespace work_cost = plan::work_cost;

namespace {

constexpr int64_t kBarrierCheckUs = 2'000;

// Row sets of the tuples with a partner.
constexpr size_t kPositions = 0, kPartners = 1, kMatchedRowSets = 2;

/// Copies the codes of the tuples at n positions to `to`.
void Gather(const Column& column, const uint32_t* positions, uint32_t n, std::byte* to) {
  WithCodes(column.base, column.width, [&](const auto* codes) {
    auto* out = reinterpret_cast<std::remove_cvref_t<decltype(*codes)>*>(to);
    if (column.rows == nullptr) {
      for (uint32_t i = 0; i < n; ++i) out[i] = codes[positions[i]];
    } else {
      for (uint32_t i = 0; i < n; ++i) out[i] = codes[column.rows[positions[i]]];
    }
  });
}

class ShuffleWorker {
 public:
  ShuffleWorker(ShuffleServerRun& run, execution::Endpoint& endpoint, Clock& clock, ShuffleWork& work)
      : run_(run),
        plan_(*run.plan),
        stage_(*run.stage),
        endpoint_(endpoint),
        legs_(static_cast<uint32_t>(endpoint.options().exchanges.size() / 2)),
        clock_(clock),
        context_(clock, stage_.result_budget(), *run.cancel),
        reciprocal_(UINT64_MAX / run.servers + 1),
        sink_(stage_.pipeline(stage_.claimed()).sink->NewTask(context_)),
        build_levels_(plan_.joins.size()),
        probe_levels_(plan_.joins.size()),
        identity_(kChunkRows),
        materialized_(plan_.joins.size()),
        work_(work),
        since_ns_(clock.NowNs()) {
    NAM_CHECK(run.servers <= UINT8_MAX && endpoint.options().members.size() == run.servers &&
              plan_.joins.size() <= legs_);
    std::iota(identity_.begin(), identity_.end(), 0u);
    for (size_t j = 0; j < plan_.joins.size(); ++j) {
      PrepareLevel(ShuffleKind::kBuild, j);
      PrepareLevel(ShuffleKind::kProbe, j);
    }
  }

  absl::Status Run() {
    const Timed timed(*this, ShuffleWork::kScan);
    for (size_t j = 0; j < plan_.joins.size(); ++j) {
      NAM_RETURN_IF_ERROR(Scan(ShuffleKind::kBuild, j));
      NAM_RETURN_IF_ERROR(FinishLeg(ShuffleKind::kBuild, j));
    }
    for (size_t j = 0; j < plan_.joins.size(); ++j) NAM_RETURN_IF_ERROR(AwaitLeg(ShuffleKind::kBuild, j));
    NAM_RETURN_IF_ERROR(AwaitBuilt());
    NAM_RETURN_IF_ERROR(RunProbes());
    const Timed sinking(*this, ShuffleWork::kSink);
    Step step = Step::kHaveMore;
    while (step == Step::kHaveMore) step = sink_->Finish(context_);
    context_.Settle();
    return step == Step::kFailed ? context_.error() : absl::OkStatus();
  }

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

  /// Attributes the thread's time to a kind of work within a scope; restores the previous kind afterwards.
  class Timed {
   public:
    Timed(ShuffleWorker& worker, ShuffleWork::Kind doing) : worker_(worker), before_(worker.doing_) {
      Switch(doing);
    }
    ~Timed() { Switch(before_); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    void Switch(ShuffleWork::Kind to) {
      const int64_t now_ns = worker_.clock_.NowNs();
      worker_.work_.ns[worker_.doing_] += now_ns - worker_.since_ns_;
      worker_.since_ns_ = now_ns;
      worker_.doing_ = to;
    }
    ShuffleWorker& worker_;
    const ShuffleWork::Kind before_;
  };

  void PrepareLevel(uint16_t kind, size_t j) {
    Level& level = LevelOf(kind, j);
    level.offsets.resize(Leg(kind, j).columns.size());
    level.outgoing.resize(run_.servers);
    level.arrived = NewChunk(kind, j);
    const ShufflePlan::Join& join = plan_.joins[j];
    if (kind == ShuffleKind::kBuild) {
      level.build = stage_.pipeline(join.pipeline).build->NewTask(context_);
      return;
    }
    level.matched = std::make_unique<Chunk>(join.keep.size() + join.fetch.size(), kMatchedRowSets);
  }

  /// A chunk with the leg's columns, without data yet.
  std::unique_ptr<Chunk> NewChunk(uint16_t kind, size_t j) const {
    const ShuffleLeg& leg = Leg(kind, j);
    auto chunk = std::make_unique<Chunk>(leg.columns.size(), 0);
    for (size_t c = 0; c < leg.columns.size(); ++c) {
      Column& column = chunk->columns()[c];
      column.kind = Column::Kind::kCodes;
      column.meaning = ShufflePlan::MeaningOf(stage_, PipelineOf(kind, j), leg.columns[c].origin);
      column.width = column.meaning->width;
      column.physical = PhysicalOf(column.meaning->type);
    }
    return chunk;
  }

  absl::Status AwaitBuilt() {
    const Timed timed(*this, ShuffleWork::kExchange);
    if (run_.building.fetch_sub(1) == 1) run_.built->Set();
    while (!run_.built->Wait(clock_.After(kBarrierCheckUs))) {
      if (*run_.cancel) return absl::CancelledError("cancelled");
    }
    return absl::OkStatus();
  }

  absl::Status RunProbes() {
    for (size_t j = 0; j < plan_.joins.size(); ++j) {
      if (j == 0) {
        NAM_RETURN_IF_ERROR(Scan(ShuffleKind::kProbe, 0));
      } else if (run_.materialize) {
        NAM_RETURN_IF_ERROR(ScanMaterialized(j));
      }
      NAM_RETURN_IF_ERROR(FinishLeg(ShuffleKind::kProbe, j));
      NAM_RETURN_IF_ERROR(AwaitLeg(ShuffleKind::kProbe, j));
    }
    return absl::OkStatus();
  }

  // -- Own rows.

  absl::Status Scan(uint16_t kind, size_t j) {
    const auto& scan = std::get<plan::BlockScan>(stage_.plan().pipelines[PipelineOf(kind, j)].source);
    const ShuffleLeg& leg = Leg(kind, j);
    const ShuffleTable& rows = *run_.rows[scan.table];
    const std::unique_ptr<Chunk> tuples = NewChunk(kind, j);
    std::vector<const std::byte*> codes(leg.columns.size());
    while (true) {
      const uint64_t claimed = run_.claimed[scan.table].fetch_add(1, std::memory_order_relaxed);
      const uint64_t chunk_number = claimed * run_.servers + run_.number;
      if (chunk_number >= rows.size()) return absl::OkStatus();
      const ShuffleChunk& chunk = rows[chunk_number];
      Charge(1, work_cost::kBlockPs);
      for (size_t c = 0; c < codes.size(); ++c)
        codes[c] = chunk.columns[scan.columns[leg.columns[c].origin.column]].data();
      NAM_RETURN_IF_ERROR(RouteAll(kind, j, chunk.rows, codes, *tuples));
    }
  }

  /// Reads the previous join's output from memory.
  absl::Status ScanMaterialized(size_t j) {
    const ShuffleLeg& leg = plan_.joins[j].probe;
    const std::unique_ptr<Chunk> tuples = NewChunk(ShuffleKind::kProbe, j);
    std::vector<const std::byte*> codes(leg.columns.size());
    for (; !materialized_[j].empty(); materialized_[j].pop_front()) {
      const Materialized& output = materialized_[j].front();
      Charge(1, work_cost::kBlockPs);
      for (size_t c = 0; c < codes.size(); ++c) codes[c] = output.data.get() + leg.offsets[c];
      NAM_RETURN_IF_ERROR(RouteAll(ShuffleKind::kProbe, j, output.rows, codes, *tuples));
    }
    return absl::OkStatus();
  }

  /// Routes own rows to a leg, while processing incoming ones. `codes`: one pointer per column of the leg.
  /// `chunk` comes from NewChunk.
  absl::Status RouteAll(uint16_t kind, size_t j, uint32_t rows, const std::vector<const std::byte*>& codes,
                        Chunk& chunk) {
    for (uint32_t first = 0; first < rows; first += kChunkRows) {
      for (size_t c = 0; c < codes.size(); ++c) {
        Column& column = chunk.columns()[c];
        column.base = codes[c] + size_t{first} * column.width;
      }
      chunk.SelectAll(std::min(kChunkRows, rows - first));
      NAM_RETURN_IF_ERROR(Route(kind, j, chunk));
      NAM_RETURN_IF_ERROR(Serve(kind));
    }
    return absl::OkStatus();
  }

  // -- To the next leg.

  absl::Status Route(uint16_t kind, size_t j, const Chunk& tuples) {
    const Timed timed(*this, ShuffleWork::kRoute);
    Level& level = LevelOf(kind, j);
    const uint64_t codes = uint64_t{tuples.size()} * tuples.columns().size();
    Deal(Leg(kind, j), tuples, level);
    work_.routed_rows += tuples.size();
    Charge(tuples.size(), work_cost::kRouteRowPs);
    Charge(codes, work_cost::kRouteCodePs);
    uint32_t begin = 0;
    for (uint32_t peer = 0; peer < run_.servers; ++peer) {
      const uint32_t end = level.starts[peer];
      NAM_RETURN_IF_ERROR(Append(kind, j, peer, level.order.data() + begin, end - begin, tuples));
      begin = end;
    }
    return absl::OkStatus();
  }

  /// Orders the tuples by the servers of their keys: key modulo servers, without a division (the product of
  /// key and 2^64 / servers has the remainder in its fraction). Afterwards starts[p] is the end of server p's
  /// tuples.
  void Deal(const ShuffleLeg& leg, const Chunk& tuples, Level& level) const {
    NAM_CHECK(tuples.selection().positions == nullptr, "joins without conditions drop no pairs");
    const Column& key = tuples.column(leg.key);
    const uint32_t count = tuples.size();
    level.starts.assign(run_.servers + 1, 0);
    uint8_t* const to = level.to.data();
    uint32_t* const starts = level.starts.data();
    WithCodes(key.base, key.width, [&](const auto* codes) {
      const auto deal = [&](uint32_t i, uint64_t code) {
        const auto number = static_cast<uint32_t>(static_cast<uint64_t>(leg.key_base) + code);
        const uint64_t fraction = reciprocal_ * number;
        to[i] = static_cast<uint8_t>((static_cast<unsigned __int128>(fraction) * run_.servers) >> 64);
        ++starts[to[i] + 1];
      };
      if (key.rows == nullptr) {
        for (uint32_t i = 0; i < count; ++i) deal(i, codes[i]);
      } else {
        for (uint32_t i = 0; i < count; ++i) deal(i, codes[key.rows[i]]);
      }
    });
    std::partial_sum(starts, starts + run_.servers + 1, starts);
    for (uint32_t i = 0; i < count; ++i) level.order[starts[to[i]]++] = i;
  }

  /// The result has a buffer.
  absl::StatusOr<Outgoing*> OutgoingTo(uint16_t kind, size_t j, uint32_t server) {
    Outgoing& out = LevelOf(kind, j).outgoing[server];
    while (!out.buffer.has_value()) {
      out.buffer = endpoint_.GetFree(ExchangeOf(kind, j), server);
      if (!out.buffer.has_value()) NAM_RETURN_IF_ERROR(Advance(kind, j));
    }
    return &out;
  }

  absl::Status Append(uint16_t kind, size_t j, uint32_t peer, const uint32_t* order, uint32_t count,
                      const Chunk& tuples) {
    const ShuffleLeg& leg = Leg(kind, j);
    while (count > 0) {
      NAM_ASSIGN_OR_RETURN(Outgoing* const out, OutgoingTo(kind, j, peer));
      const uint32_t taken = std::min(count, leg.capacity - out->rows);
      for (size_t c = 0; c < leg.columns.size(); ++c) {
        Gather(tuples.column(static_cast<uint32_t>(c)), order, taken,
               out->buffer->payload.data() + leg.offsets[c] + size_t{out->rows} * leg.columns[c].width);
      }
      out->rows += taken;
      order += taken;
      count -= taken;
      if (out->rows == leg.capacity) NAM_RETURN_IF_ERROR(Flush(kind, j, peer, /*last=*/false));
    }
    return absl::OkStatus();
  }

  /// Sends the buffered rows for `peer`, which may be this server itself.
  absl::Status Flush(uint16_t kind, size_t j, uint32_t peer, bool last) {
    const ShuffleLeg& leg = Leg(kind, j);
    NAM_ASSIGN_OR_RETURN(Outgoing* const out, OutgoingTo(kind, j, peer));
    const uint32_t rows = out->rows;
    if (rows < leg.capacity) {  // closes the gaps after columns that are not full
      std::byte* const data = out->buffer->payload.data();
      std::vector<uint32_t> offsets(leg.columns.size());
      leg.OffsetsOf(rows, offsets.data());
      for (size_t c = 1; c < leg.columns.size(); ++c)
        std::memmove(data + offsets[c], data + leg.offsets[c], size_t{rows} * leg.columns[c].width);
    }
    const Timed timed(*this, ShuffleWork::kExchange);
    while (true) {
      NAM_ASSIGN_OR_RETURN(const bool sent, endpoint_.Send(*out->buffer, {leg.BytesOf(rows), rows, last}));
      if (sent) break;
      NAM_RETURN_IF_ERROR(Advance(kind, j));
    }
    *out = {};
    return absl::OkStatus();
  }

  absl::Status FinishLeg(uint16_t kind, size_t j) {
    // Each server starts with another one, to spread the load.
    for (uint32_t i = 0; i < run_.servers; ++i)
      NAM_RETURN_IF_ERROR(Flush(kind, j, (run_.number + i) % run_.servers, /*last=*/true));
    return absl::OkStatus();
  }

  absl::Status AwaitLeg(uint16_t kind, size_t j) {
    while (!endpoint_.Ended(ExchangeOf(kind, j))) NAM_RETURN_IF_ERROR(Advance(kind, j));
    return absl::OkStatus();
  }

  // -- Incoming rows.

  /// Processes all pending messages without waiting.
  absl::Status Serve(uint16_t kind) {
    const Timed timed(*this, ShuffleWork::kExchange);
    NAM_RETURN_IF_ERROR(endpoint_.Poll(/*wait=*/false, *run_.cancel));
    while (const auto message = endpoint_.GetData(ExchangeOf(kind, 0), ExchangeOf(kind, legs_)))
      NAM_RETURN_IF_ERROR(Handle(*message));
    return absl::OkStatus();
  }

  /// Processes one message of leg `least` or a later one, or waits for an event.
  absl::Status Advance(uint16_t kind, size_t least) {
    const Timed timed(*this, ShuffleWork::kExchange);
    const auto message = endpoint_.GetData(ExchangeOf(kind, least), ExchangeOf(kind, legs_));
    if (message) NAM_RETURN_IF_ERROR(Handle(*message));
    return endpoint_.Poll(/*wait=*/!message, *run_.cancel);
  }

  absl::Status Handle(const execution::Endpoint::Message& message) {
    const auto kind = static_cast<uint16_t>(message.exchange / legs_);
    const size_t j = message.exchange % legs_;
    if (j >= plan_.joins.size()) return absl::DataLossError("a shuffle's message is of no join");
    const ShuffleLeg& leg = Leg(kind, j);
    if (message.rows > leg.capacity || message.payload.size() != leg.BytesOf(message.rows))
      return absl::DataLossError("a shuffle's message has other rows than its bytes");
    if (message.sender != run_.number) Charge(1, work_cost::kBlockPs);
    NAM_RETURN_IF_ERROR(Work(kind, j, message.payload.data(), message.rows));
    return endpoint_.Release(message);
  }

  absl::Status Work(uint16_t kind, size_t j, const std::byte* data, uint32_t rows) {
    if (rows == 0) return absl::OkStatus();
    return kind == ShuffleKind::kBuild ? Insert(j, data, rows) : Probe(j, data, rows);
  }

  /// Loads the rows of a message from `first` on that fit a chunk.
  void Arrive(const ShuffleLeg& leg, const std::byte* data, uint32_t first, uint32_t rows,
              Level& level) const {
    leg.OffsetsOf(rows, level.offsets.data());
    for (size_t c = 0; c < leg.columns.size(); ++c) {
      Column& column = level.arrived->columns()[c];
      column.base = data + level.offsets[c] + size_t{first} * column.width;
    }
    level.arrived->SelectAll(std::min(kChunkRows, rows - first));
  }

  absl::Status Insert(size_t j, const std::byte* data, uint32_t rows) {
    const Timed timed(*this, ShuffleWork::kInsert);
    Level& level = build_levels_[j];
    for (uint32_t first = 0; first < rows; first += kChunkRows) {
      Arrive(plan_.joins[j].build, data, first, rows, level);
      if (level.build->Consume(context_, *level.arrived) == Step::kFailed) return context_.error();
      context_.Settle();
    }
    return absl::OkStatus();
  }

  absl::Status Probe(size_t j, const std::byte* data, uint32_t rows) {
    const Timed timed(*this, ShuffleWork::kProbe);
    Level& level = probe_levels_[j];
    work_.probed_rows += rows;
    Charge(rows, work_cost::kProbeRowPs);
    for (uint32_t first = 0; first < rows; first += kChunkRows) {
      Arrive(plan_.joins[j].probe, data, first, rows, level);
      if (Match(j, level) == 0) continue;
      const bool last = j + 1 == plan_.joins.size();
      NAM_RETURN_IF_ERROR(last ? Consume(*level.matched) : Forward(j, *level.matched));
    }
    return absl::OkStatus();
  }

  /// Finds the tuples with a partner and their build side values; returns their number.
  uint32_t Match(size_t j, Level& level) const {
    const ShufflePlan::Join& join = plan_.joins[j];
    const execution::DirectBuild& build = *stage_.pipeline(join.pipeline).build->direct_build();
    const execution::DirectTable& table = build.table();
    const Column& key = level.arrived->column(join.probe.key);
    const execution::CodeMeaning& meaning = *key.meaning;
    uint32_t* const positions = level.matched->row_set(kPositions);
    uint32_t* const partners = level.matched->row_set(kPartners);
    const uint32_t count = level.arrived->size();
    uint32_t n = 0;
    WithCodes(key.base, key.width, [&](const auto* codes) {
      const auto look_up = [&](uint32_t i) {
        const uint32_t head = table.Head(meaning.Number(codes[i]));
        positions[n] = i;
        partners[n] = head - 1;
        n += head != 0;
      };
      if (!meaning.null_code && table.InDomain(meaning.min) && table.InDomain(meaning.max)) {
        for (uint32_t i = 0; i < count; ++i) look_up(i);
      } else {
        for (uint32_t i = 0; i < count; ++i) {
          if (!meaning.IsNull(codes[i]) && table.InDomain(meaning.Number(codes[i]))) look_up(i);
        }
      }
    });
    std::vector<Column>& columns = level.matched->columns();
    size_t to = 0;
    for (const uint32_t kept : join.keep) {
      columns[to] = level.arrived->column(kept);
      columns[to++].rows = positions;
    }
    for (const uint32_t fetched : join.fetch) columns[to++] = build.PayloadOf(fetched, partners);
    level.matched->SelectAll(n);
    return n;
  }

  /// Passes matches to the next join.
  absl::Status Forward(size_t j, const Chunk& matched) {
    if (!run_.materialize) return Route(ShuffleKind::kProbe, j + 1, matched);
    Materialize(j + 1, matched);
    return absl::OkStatus();
  }

  void Materialize(size_t j, const Chunk& tuples) {
    const Timed timed(*this, ShuffleWork::kRoute);
    const ShuffleLeg& leg = plan_.joins[j].probe;
    uint32_t count = tuples.size();
    Charge(uint64_t{count} * leg.columns.size(), work_cost::kRouteCodePs);
    const uint32_t* order = identity_.data();
    while (count > 0) {
      if (materialized_[j].empty() || materialized_[j].back().rows == leg.capacity) {
        materialized_[j].push_back(
            {std::make_unique_for_overwrite<std::byte[]>(endpoint_.options().message_bytes), 0});
      }
      Materialized& output = materialized_[j].back();
      const uint32_t taken = std::min(count, leg.capacity - output.rows);
      for (size_t c = 0; c < leg.columns.size(); ++c) {
        Gather(tuples.column(static_cast<uint32_t>(c)), order, taken,
               output.data.get() + leg.offsets[c] + size_t{output.rows} * leg.columns[c].width);
      }
      output.rows += taken;
      order += taken;
      count -= taken;
    }
  }

  absl::Status Consume(const Chunk& matched) {
    const Timed timed(*this, ShuffleWork::kSink);
    work_.sunk_rows += matched.size();
    const Step step = sink_->Consume(context_, matched);
    context_.Settle();
    return step == Step::kFailed ? context_.error() : absl::OkStatus();
  }

  void Charge(uint64_t count, int64_t ps) {
    context_.Charge(count, ps);
    context_.Settle();
  }

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
  ShuffleWork& work_;
  ShuffleWork::Kind doing_ = ShuffleWork::kScan;
  int64_t since_ns_ = 0;
};

}  // namespace

void ShuffleWork::Add(const ShuffleWork& other) {
  for (size_t kind = 0; kind < kKinds; ++kind) ns[kind] += other.ns[kind];
  routed_rows += other.routed_rows;
  probed_rows += other.probed_rows;
  sunk_rows += other.sunk_rows;
}

absl::Status RunShuffleThread(ShuffleServerRun& run, execution::Endpoint& endpoint, Clock& clock,
                              ShuffleWork& work) {
  return ShuffleWorker(run, endpoint, clock, work).Run();
}

}  // namespace nam::bench
