#include "bench/shuffle_worker.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "partitioner/table_metadata.h"
#include "plan/work_cost.h"

namespace nam::bench {

using computeserver::Batch;
using computeserver::ColumnSource;
using computeserver::JoinTable;
using computeserver::kBatchRows;
using computeserver::WithCodes;
namespace work_cost = plan::work_cost;

namespace {

constexpr uint32_t kWindow = 10;  // blocks in flight, as the pipelined plan's default
constexpr int64_t kBarrierCheckUs = 2'000;

/// Codes of n tuples, in the order of `order`, to `to`.
template <typename Piece>
void Gather(const Piece& piece, const uint32_t* order, uint32_t n, std::byte* to) {
  WithCodes(piece.source, [&](const auto* codes) {
    auto* out = reinterpret_cast<std::remove_cvref_t<decltype(*codes)>*>(to);
    if (piece.rows == nullptr) {
      for (uint32_t i = 0; i < n; ++i) out[i] = codes[order[i]];
    } else {
      for (uint32_t i = 0; i < n; ++i) out[i] = codes[piece.rows[order[i]]];
    }
  });
}

}  // namespace

void ShuffleWork::Add(const ShuffleWork& other) {
  for (size_t kind = 0; kind < kKinds; ++kind) ns[kind] += other.ns[kind];
  routed_rows += other.routed_rows;
  routed_codes += other.routed_codes;
  probed_rows += other.probed_rows;
  sunk_rows += other.sunk_rows;
}

/// What the thread does from now on, until the end of the scope; then again what it did before.
class ShuffleWorker::Timed {
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

ShuffleWorker::ShuffleWorker(ShuffleServerRun& run, Exchange& exchange, storage::Channel* channel,
                             Clock& clock)
    : run_(run),
      plan_(*run.plan),
      shape_(*run.plan->shape),
      exchange_(exchange),
      channel_(channel),
      clock_(clock),
      reciprocal_(UINT64_MAX / run.servers + 1),
      columns_(shape_.columns),
      batch_(shape_.tables.size()),
      levels_(shape_.joins.size()),
      identity_(kBatchRows),
      materialized_(shape_.joins.size()),
      since_ns_(clock.NowNs()) {
  NAM_CHECK(run.servers <= UINT8_MAX && exchange.peers() == run.servers);
  std::iota(identity_.begin(), identity_.end(), 0u);
  for (auto& kind : ended_) kind.resize(shape_.joins.size());
  const size_t last = shape_.joins.size() - 1;
  // A key that nobody asks for any more ends at its join; the driving table's rows carry the count.
  batch_.Include(shape_.plan.driving);
  carried_.push_back(shape_.plan.driving);
  for (const ShuffleLeg::Column& column : plan_.probe[last].columns) {
    if (!batch_.rows[static_cast<size_t>(column.ref.table)].empty()) continue;
    batch_.Include(column.ref.table);
    carried_.push_back(column.ref.table);
  }
  for (size_t i = 0; i < shape_.joins[last].payload.size(); ++i) {
    const int table = shape_.plan.joins[last].table;
    batch_.Include(table);
    columns_.at({table, static_cast<int>(shape_.joins[last].payload[i])}).source = {
        run.join_tables[last]->payload(i), shape_.joins[last].table.payload_widths[i]};
  }
  sink_ = computeserver::MakeSink(shape_.plan, columns_, shape_.settings.result_bytes_max());
}

absl::Status ShuffleWorker::Run() {
  const Timed timed(*this, ShuffleWork::kScan);
  for (size_t j = 0; j < shape_.joins.size(); ++j) {
    NAM_RETURN_IF_ERROR(Scan(ShuffleHeader::kBuild, j));
    NAM_RETURN_IF_ERROR(FinishLeg(ShuffleHeader::kBuild, j));
  }
  for (size_t j = 0; j < shape_.joins.size(); ++j) NAM_RETURN_IF_ERROR(AwaitLeg(ShuffleHeader::kBuild, j));
  NAM_RETURN_IF_ERROR(AwaitBuilt());
  return RunProbes();
}

absl::Status ShuffleWorker::AwaitBuilt() {
  const Timed timed(*this, ShuffleWork::kExchange);
  if (run_.building.fetch_sub(1) == 1) run_.built->Set();
  while (!run_.built->Wait(clock_.After(kBarrierCheckUs))) {
    if (*run_.cancel) return absl::CancelledError("cancelled");
  }
  return absl::OkStatus();
}

absl::Status ShuffleWorker::RunProbes() {
  for (size_t j = 0; j < shape_.joins.size(); ++j) {
    if (j == 0) {
      NAM_RETURN_IF_ERROR(Scan(ShuffleHeader::kProbe, 0));
    } else if (run_.mode.materialize) {
      NAM_RETURN_IF_ERROR(ScanMaterialized(j));
    }
    NAM_RETURN_IF_ERROR(FinishLeg(ShuffleHeader::kProbe, j));
    NAM_RETURN_IF_ERROR(AwaitLeg(ShuffleHeader::kProbe, j));
  }
  return absl::OkStatus();
}

// -- Own rows.

absl::Status ShuffleWorker::Scan(uint16_t kind, size_t j) {
  const int table = kind == ShuffleHeader::kBuild ? shape_.plan.joins[j].table : shape_.plan.driving;
  return run_.mode.from_memory_servers ? ScanMemoryServers(kind, j, table) : ScanRows(kind, j, table);
}

absl::Status ShuffleWorker::ScanRows(uint16_t kind, size_t j, int table) {
  const auto t = static_cast<size_t>(table);
  const ShuffleTable& rows = *run_.rows[t];
  std::vector<ColumnSource> columns(shape_.plan.tables[t].columns.size());
  while (true) {
    const uint64_t chunk_number =
        uint64_t{run_.claimed[t].fetch_add(1, std::memory_order_relaxed)} * run_.servers + run_.number;
    if (chunk_number >= rows.chunks().size()) return absl::OkStatus();
    const ShuffleTable::Chunk& chunk = rows.chunks()[chunk_number];
    Charge(1, work_cost::kBlockPs);
    for (size_t c = 0; c < columns.size(); ++c)
      columns[c] = rows.Source(chunk, shape_.plan.tables[t].columns[c]);
    NAM_RETURN_IF_ERROR(RouteAll(kind, j, chunk.rows, columns));
  }
}

absl::Status ShuffleWorker::ScanMemoryServers(uint16_t kind, size_t j, int table) {
  const auto t = static_cast<size_t>(table);
  const proto::Table& meta = *shape_.tables[t];
  const std::vector<uint32_t>& read = shape_.plan.tables[t].columns;
  storage::BlockStream stream(*channel_, partitioner::StreamTableOf(meta, read),
                              {.window = kWindow, .in_place = true, .cancel = run_.cancel},
                              [&]() -> std::optional<storage::ChainStart> {
                                const uint32_t next = run_.claimed[t].fetch_add(1, std::memory_order_relaxed);
                                if (next >= run_.partitions[t].size()) return std::nullopt;
                                return partitioner::ChainStartOf(meta, run_.partitions[t][next]);
                              });
  std::vector<ColumnSource> columns(read.size());
  storage::BlockView block;
  while (true) {
    bool more = false;
    {
      const Timed timed(*this, ShuffleWork::kScan);
      NAM_ASSIGN_OR_RETURN(more, stream.Next(block));
    }
    if (!more) return absl::OkStatus();
    uint64_t row_bytes = 0;
    for (size_t c = 0; c < read.size(); ++c) {
      columns[c] = {block.page(read[c]), block.width(read[c])};
      row_bytes += columns[c].width;
    }
    Charge(1, work_cost::kBlockPs);
    Charge(block.rows() * row_bytes, work_cost::kChecksumBytePs);
    NAM_RETURN_IF_ERROR(RouteAll(kind, j, block.rows(), columns));
  }
}

/// What the join before has left in memory.
absl::Status ShuffleWorker::ScanMaterialized(size_t j) {
  const ShuffleLeg& leg = plan_.probe[j];
  std::vector<Piece> pieces(leg.columns.size());
  for (; !materialized_[j].empty(); materialized_[j].pop_front()) {
    const Materialized& output = materialized_[j].front();
    Charge(1, work_cost::kBlockPs);
    for (uint32_t first = 0; first < output.rows; first += kBatchRows) {
      for (size_t c = 0; c < pieces.size(); ++c) {
        const uint8_t width = leg.columns[c].width;
        pieces[c].source = {output.data.get() + leg.offsets[c] + size_t{first} * width, width};
      }
      NAM_RETURN_IF_ERROR(Route(ShuffleHeader::kProbe, j, std::min(kBatchRows, output.rows - first), pieces));
      NAM_RETURN_IF_ERROR(Serve(ShuffleHeader::kProbe));
    }
  }
  return absl::OkStatus();
}

/// Rows of a table to the first leg, while what comes is worked on.
absl::Status ShuffleWorker::RouteAll(uint16_t kind, size_t j, uint32_t rows,
                                     const std::vector<ColumnSource>& columns) {
  const ShuffleLeg& leg = Leg(kind, j);
  std::vector<Piece>& pieces = kind == ShuffleHeader::kBuild ? build_level_.pieces : levels_[0].pieces;
  pieces.resize(leg.columns.size());
  for (uint32_t first = 0; first < rows; first += kBatchRows) {
    for (size_t c = 0; c < pieces.size(); ++c) {
      const ColumnSource& source = columns[leg.columns[c].from];
      pieces[c] = {{source.codes + size_t{first} * source.width, source.width}, nullptr};
    }
    NAM_RETURN_IF_ERROR(Route(kind, j, std::min(kBatchRows, rows - first), pieces));
    NAM_RETURN_IF_ERROR(Serve(kind));
  }
  return absl::OkStatus();
}

// -- To the next leg.

absl::Status ShuffleWorker::Route(uint16_t kind, size_t j, uint32_t tuples,
                                  const std::vector<Piece>& pieces) {
  const Timed timed(*this, ShuffleWork::kRoute);
  Level& level = kind == ShuffleHeader::kBuild ? build_level_ : levels_[j];
  Deal(Leg(kind, j), tuples, pieces[0], level);
  work_.routed_rows += tuples;
  work_.routed_codes += uint64_t{tuples} * pieces.size();
  Charge(tuples, work_cost::kRouteRowPs);
  Charge(uint64_t{tuples} * pieces.size(), work_cost::kRouteCodePs);
  uint32_t begin = 0;
  for (uint32_t peer = 0; peer < run_.servers; ++peer) {
    const uint32_t end = level.starts[peer];
    NAM_RETURN_IF_ERROR(Append(kind, j, peer, level.order.data() + begin, end - begin, pieces));
    begin = end;
  }
  return absl::OkStatus();
}

/// Puts the tuples in order of the servers that their keys belong to: key modulo servers, without a
/// division (the product of key and 2^64 / servers has the remainder in its fraction). Afterwards starts[p]
/// is where those of p end.
void ShuffleWorker::Deal(const ShuffleLeg& leg, uint32_t tuples, const Piece& key, Level& level) const {
  level.starts.assign(run_.servers + 1, 0);
  uint8_t* const to = level.to.data();
  uint32_t* const starts = level.starts.data();
  WithCodes(key.source, [&](const auto* codes) {
    const auto deal = [&](uint32_t i, uint64_t code) {
      const auto number = static_cast<uint32_t>(static_cast<uint64_t>(leg.key_base) + code);
      const uint64_t fraction = reciprocal_ * number;
      to[i] = static_cast<uint8_t>((static_cast<unsigned __int128>(fraction) * run_.servers) >> 64);
      ++starts[to[i] + 1];
    };
    if (key.rows == nullptr) {
      for (uint32_t i = 0; i < tuples; ++i) deal(i, codes[i]);
    } else {
      for (uint32_t i = 0; i < tuples; ++i) deal(i, codes[key.rows[i]]);
    }
  });
  std::partial_sum(starts, starts + run_.servers + 1, starts);
  for (uint32_t i = 0; i < tuples; ++i) level.order[starts[to[i]]++] = i;
}

absl::Status ShuffleWorker::Append(uint16_t kind, size_t j, uint32_t peer, const uint32_t* order,
                                   uint32_t count, const std::vector<Piece>& pieces) {
  const ShuffleLeg& leg = Leg(kind, j);
  const auto channel = static_cast<uint32_t>(j);
  while (count > 0) {
    while (!exchange_.Free(channel, peer)) NAM_RETURN_IF_ERROR(Advance(kind, channel));
    Exchange::Outgoing& out = exchange_.outgoing(channel, peer);
    const uint32_t taken = std::min(count, leg.capacity - out.rows);
    for (size_t c = 0; c < pieces.size(); ++c) {
      Gather(pieces[c], order, taken, out.data + leg.offsets[c] + size_t{out.rows} * leg.columns[c].width);
    }
    out.rows += taken;
    order += taken;
    count -= taken;
    if (out.rows == leg.capacity) NAM_RETURN_IF_ERROR(Flush(kind, j, peer, /*last=*/false));
  }
  return absl::OkStatus();
}

/// Sends what there is for `peer`, or works on it if that is this server.
absl::Status ShuffleWorker::Flush(uint16_t kind, size_t j, uint32_t peer, bool last) {
  const ShuffleLeg& leg = Leg(kind, j);
  const auto channel = static_cast<uint32_t>(j);
  while (!exchange_.Free(channel, peer)) NAM_RETURN_IF_ERROR(Advance(kind, channel));
  Exchange::Outgoing& out = exchange_.outgoing(channel, peer);
  const uint32_t rows = out.rows;
  if (rows < leg.capacity) {  // closes the gaps behind columns that are not full
    std::vector<uint32_t> offsets(leg.columns.size());
    leg.OffsetsOf(rows, offsets.data());
    for (size_t c = 1; c < leg.columns.size(); ++c)
      std::memmove(out.data + offsets[c], out.data + leg.offsets[c], size_t{rows} * leg.columns[c].width);
  }
  if (peer == run_.number) {
    out.rows = 0;
    NAM_RETURN_IF_ERROR(Work(kind, j, out.data, rows));
    if (last) ++ended_[kind][j];
    return absl::OkStatus();
  }
  while (!exchange_.MaySend(channel, peer)) NAM_RETURN_IF_ERROR(Advance(kind, channel));
  const Timed timed(*this, ShuffleWork::kExchange);
  return exchange_.Send(peer, {.kind = kind, .channel = static_cast<uint16_t>(j), .rows = rows, .last = last},
                        leg.BytesOf(rows));
}

absl::Status ShuffleWorker::FinishLeg(uint16_t kind, size_t j) {
  // Not all to the same server first.
  for (uint32_t i = 0; i < run_.servers; ++i)
    NAM_RETURN_IF_ERROR(Flush(kind, j, (run_.number + i) % run_.servers, /*last=*/true));
  return absl::OkStatus();
}

absl::Status ShuffleWorker::AwaitLeg(uint16_t kind, size_t j) {
  while (ended_[kind][j] < run_.servers) NAM_RETURN_IF_ERROR(Advance(kind, static_cast<uint32_t>(j)));
  return absl::OkStatus();
}

// -- What comes.

/// Works on all that is there, and does not wait.
absl::Status ShuffleWorker::Serve(uint16_t kind) {
  const Timed timed(*this, ShuffleWork::kExchange);
  NAM_RETURN_IF_ERROR(exchange_.Poll(/*wait=*/false, *run_.cancel));
  while (const auto message = exchange_.Take(kind, 0)) NAM_RETURN_IF_ERROR(Handle(*message));
  return absl::OkStatus();
}

/// Works on one message of the leg `least` or one behind it, or waits for something to happen.
absl::Status ShuffleWorker::Advance(uint16_t kind, uint32_t least) {
  const Timed timed(*this, ShuffleWork::kExchange);
  const auto message = exchange_.Take(kind, least);
  if (message) NAM_RETURN_IF_ERROR(Handle(*message));
  return exchange_.Poll(/*wait=*/!message, *run_.cancel);
}

absl::Status ShuffleWorker::Handle(const Exchange::Message& message) {
  const ShuffleHeader& header = message.header;
  const ShuffleLeg& leg = Leg(header.kind, header.channel);
  if (header.rows > leg.capacity) return absl::DataLossError("a shuffle's message has too many rows");
  Charge(1, work_cost::kBlockPs);
  NAM_RETURN_IF_ERROR(Work(header.kind, header.channel, message.data, header.rows));
  if (header.last != 0) ++ended_[header.kind][header.channel];
  return exchange_.Done(message);
}

absl::Status ShuffleWorker::Work(uint16_t kind, size_t j, const std::byte* data, uint32_t rows) {
  if (rows == 0) return absl::OkStatus();
  return kind == ShuffleHeader::kBuild ? Insert(j, data, rows) : Probe(j, data, rows);
}

absl::Status ShuffleWorker::Insert(size_t j, const std::byte* data, uint32_t rows) {
  const Timed timed(*this, ShuffleWork::kInsert);
  const ShuffleLeg& leg = plan_.build[j];
  JoinTable& table = *run_.join_tables[j];
  build_level_.offsets.resize(leg.columns.size());
  leg.OffsetsOf(rows, build_level_.offsets.data());
  Charge(rows, work_cost::kInsertRowPs);
  std::vector<uint32_t>& places = build_level_.partners;
  for (uint32_t first = 0; first < rows; first += kBatchRows) {
    const uint32_t count = std::min(kBatchRows, rows - first);
    const ColumnSource keys{data + build_level_.offsets[0], leg.columns[0].width};
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t key = static_cast<int64_t>(static_cast<uint64_t>(leg.key_base) + keys.at(first + i));
      if (!table.InDomain(key) || !table.InsertUnique(key))
        return absl::DataLossError("a key is outside of what the catalog says, or there twice");
      places[i] = table.RowOf(key);
    }
    for (size_t c = 1; c < leg.columns.size(); ++c) {
      WithCodes({data + build_level_.offsets[c], leg.columns[c].width}, [&](const auto* codes) {
        auto* out = reinterpret_cast<std::remove_cvref_t<decltype(*codes)>*>(table.payload(c - 1));
        for (uint32_t i = 0; i < count; ++i) out[places[i]] = codes[first + i];
      });
    }
  }
  return absl::OkStatus();
}

absl::Status ShuffleWorker::Probe(size_t j, const std::byte* data, uint32_t rows) {
  const Timed timed(*this, ShuffleWork::kProbe);
  const ShuffleLeg& leg = plan_.probe[j];
  Level& level = levels_[j];
  level.offsets.resize(leg.columns.size());
  leg.OffsetsOf(rows, level.offsets.data());
  const ColumnSource keys{data + level.offsets[0], leg.columns[0].width};
  work_.probed_rows += rows;
  Charge(rows, work_cost::kProbeRowPs);
  for (uint32_t first = 0; first < rows; first += kBatchRows) {
    const uint32_t tuples = Match(j, keys, first, std::min(kBatchRows, rows - first));
    if (tuples == 0) continue;
    NAM_RETURN_IF_ERROR(j + 1 == levels_.size() ? Consume(j, data, tuples) : Forward(j, data, tuples));
  }
  return absl::OkStatus();
}

/// The rows that find a partner, and where it is.
uint32_t ShuffleWorker::Match(size_t j, const ColumnSource& keys, uint32_t first, uint32_t count) {
  const JoinTable& table = *run_.join_tables[j];
  uint32_t* const positions = levels_[j].positions.data();
  uint32_t* const partners = levels_[j].partners.data();
  const auto base = static_cast<uint64_t>(plan_.probe[j].key_base);
  uint32_t n = 0;
  WithCodes(keys, [&](const auto* codes) {
    if (shape_.joins[j].always_in_domain) {
      for (uint32_t i = first; i < first + count; ++i) {
        const uint32_t head = table.Head(static_cast<int64_t>(base + codes[i]));
        positions[n] = i;
        partners[n] = head - 1;
        n += head != 0;
      }
      return;
    }
    for (uint32_t i = first; i < first + count; ++i) {
      const auto key = static_cast<int64_t>(base + codes[i]);
      if (!table.InDomain(key)) continue;
      const uint32_t head = table.Head(key);
      positions[n] = i;
      partners[n] = head - 1;
      n += head != 0;
    }
  });
  return n;
}

/// To the next join.
absl::Status ShuffleWorker::Forward(size_t j, const std::byte* data, uint32_t tuples) {
  const Level& level = levels_[j];
  const ShuffleLeg& next = plan_.probe[j + 1];
  std::vector<Piece>& pieces = levels_[j + 1].pieces;
  pieces.resize(next.columns.size());
  for (size_t c = 0; c < pieces.size(); ++c) {
    const ShuffleLeg::Column& column = next.columns[c];
    pieces[c] = column.from_build
                    ? Piece{{run_.join_tables[j]->payload(column.from), column.width}, level.partners.data()}
                    : Piece{{data + level.offsets[column.from], column.width}, level.positions.data()};
  }
  if (!run_.mode.materialize) return Route(ShuffleHeader::kProbe, j + 1, tuples, pieces);
  Materialize(j + 1, tuples, pieces);
  return absl::OkStatus();
}

void ShuffleWorker::Materialize(size_t j, uint32_t tuples, const std::vector<Piece>& pieces) {
  const Timed timed(*this, ShuffleWork::kRoute);
  const ShuffleLeg& leg = plan_.probe[j];
  Charge(uint64_t{tuples} * pieces.size(), work_cost::kRouteCodePs);
  work_.routed_codes += uint64_t{tuples} * pieces.size();
  const uint32_t* order = identity_.data();
  while (tuples > 0) {
    if (materialized_[j].empty() || materialized_[j].back().rows == leg.capacity) {
      materialized_[j].push_back(
          {std::make_unique_for_overwrite<std::byte[]>(exchange_.options().batch_bytes), 0});
    }
    Materialized& output = materialized_[j].back();
    const uint32_t taken = std::min(tuples, leg.capacity - output.rows);
    for (size_t c = 0; c < pieces.size(); ++c) {
      Gather(pieces[c], order, taken,
             output.data.get() + leg.offsets[c] + size_t{output.rows} * leg.columns[c].width);
    }
    output.rows += taken;
    order += taken;
    tuples -= taken;
  }
}

absl::Status ShuffleWorker::Consume(size_t j, const std::byte* data, uint32_t tuples) {
  const Timed timed(*this, ShuffleWork::kSink);
  const Level& level = levels_[j];
  const std::vector<ShuffleLeg::Column>& columns = plan_.probe[j].columns;
  for (size_t c = 0; c < columns.size(); ++c)
    columns_.at(columns[c].ref).source = {data + level.offsets[c], columns[c].width};
  for (const int table : carried_)
    std::copy_n(level.positions.data(), tuples, batch_.rows[static_cast<size_t>(table)].data());
  std::vector<uint32_t>& last = batch_.rows[static_cast<size_t>(shape_.plan.joins[j].table)];
  if (!last.empty()) std::copy_n(level.partners.data(), tuples, last.data());
  batch_.size = tuples;
  work_.sunk_rows += tuples;
  Charge(tuples, work_cost::kSinkRowPs);
  return sink_->Consume(batch_);
}

void ShuffleWorker::Charge(uint64_t count, int64_t ps) {
  uncharged_ps_ += static_cast<int64_t>(count) * ps;
  clock_.Charge(uncharged_ps_ / 1'000);
  uncharged_ps_ %= 1'000;
}

}  // namespace nam::bench
