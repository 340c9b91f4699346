#include "computeserver/fragment_worker.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/status_macros.h"
#include "partitioner/table_metadata.h"
#include "plan/work_cost.h"

namespace nam::computeserver {

namespace work_cost = plan::work_cost;

namespace {

/// How long the barrier waits before it looks whether the query has failed elsewhere.
constexpr int64_t kBarrierCheckUs = 2'000;
/// Of the pieces that are left a thread claims one in so many, but not too many at once: what it has
/// claimed nobody can steal. Twice as many whenever a claim lasted less than kClaimUs, up to half of what is
/// left: a claim is a round trip, and pieces of which nearly all is skipped are over sooner.
constexpr uint64_t kClaimsLeft = 32;
constexpr uint64_t kClaimsLeftMin = 2;
constexpr uint64_t kMostClaimed = 8;
constexpr int64_t kClaimUs = 1'000;
/// The first claims fill the stream's window.
constexpr uint32_t kClaimsAtFirst = 2;

}  // namespace

FragmentWorker::FragmentWorker(Fragment& fragment)
    : fragment_(fragment),
      shape_(*fragment.shape_),
      columns_(shape_.columns),
      selectors_(shape_.tables.size()),
      build_batch_(shape_.tables.size()),
      selected_(kBatchRows),
      positions_(kBatchRows),
      partners_(kBatchRows),
      keys_(kBatchRows),
      valid_(kBatchRows),
      clock_(fragment.channels_.fabric().clock()) {
  const optimizer::Plan& plan = shape_.plan;
  for (const optimizer::Plan::Table& table : plan.tables) {
    auto& filters = filters_.emplace_back();
    for (const plan::Expr& filter : table.filters)
      filters.push_back(std::make_unique<Filter>(filter, columns_));
    std::stable_partition(filters.begin(), filters.end(), [](const auto& f) { return f->on_codes(); });
  }
  for (const optimizer::Plan::Join& join : plan.joins) {
    Join& out = joins_.emplace_back();
    if (join.probe_key.op != plan::Op::kColumn) out.probe_key = Compile(join.probe_key, columns_);
    if (join.probe_key.type.kind != TypeKind::kString) out.build_key = Compile(join.build_key, columns_);
    for (const plan::Expr& residual : join.residuals)
      out.residuals.push_back(std::make_unique<Filter>(residual, columns_));
    build_batch_.Include(join.table);
    const auto build = static_cast<size_t>(join.table);
    selectors_[build] = std::make_unique<RowSelector>(columns_, filters_[build], std::vector<KeyLookup>(),
                                                      shape_.sort_column(join.table));
  }
  for (const std::vector<int>& live : shape_.live) {
    Batch& level = levels_.emplace_back(shape_.tables.size());
    for (int table : live) level.Include(table);
  }
  sink_ = MakeSink(plan, columns_, shape_.settings.result_bytes_max());
}

absl::Status FragmentWorker::Run() {
  absl::Status status;
  auto lease = fragment_.channels_.Take();
  if (!lease.ok()) status = lease.status();
  if (status.ok() && fragment_.multicast_parts_ > 0) {
    const uint32_t part = fragment_.multicast_claimed_.fetch_add(1);
    if (part < fragment_.multicast_parts_) status = BuildFromMulticast(**lease, part);
  }
  for (size_t join = 0; join < joins_.size() && status.ok(); ++join) status = Build(**lease, join);
  if (!status.ok()) fragment_.Fail(status);  // before the barrier, so that nobody waits there in vain
  if (fragment_.building_.fetch_sub(1) == 1) fragment_.built_->Set();
  NAM_RETURN_IF_ERROR(status);
  NAM_RETURN_IF_ERROR(AwaitBuilt());
  if (fragment_.counter_) {
    NAM_ASSIGN_OR_RETURN(ChannelPool::Lease claims, fragment_.claim_channels_.Take());
    claims_channel_.emplace(std::move(claims));
    claims_.emplace(**claims_channel_, *fragment_.counter_, fragment_.cancel_);
  }
  const size_t driving = joins_.size();
  return Stream(**lease, driving, shape_.plan.driving,
                [this](const storage::BlockView& block, Fragment::PipelineTotals& totals) {
                  return ProbeBlock(block, totals);
                });
}

absl::Status FragmentWorker::Await(fabric::Event& event) {
  while (!event.Wait(clock_.After(kBarrierCheckUs))) {
    if (fragment_.cancel_) return absl::CancelledError("cancelled");
  }
  return absl::OkStatus();
}

absl::Status FragmentWorker::AwaitBuilt() {
  NAM_RETURN_IF_ERROR(Await(*fragment_.built_));
  for (size_t j = 0; j < joins_.size(); ++j) {
    const int table = shape_.plan.joins[j].table;
    for (size_t i = 0; i < shape_.joins[j].payload.size(); ++i) {
      ColumnSpace::Column& column = columns_.at({table, static_cast<int>(shape_.joins[j].payload[i])});
      column.source = {fragment_.join_tables_[j]->payload(i), column.meaning.width};
    }
  }
  std::vector<KeyLookup> lookups;
  for (size_t j = 0; j < joins_.size(); ++j) {
    if (shape_.joins[j].by_driving_key) lookups.push_back(LookupOf(j));
  }
  const auto driving = static_cast<size_t>(shape_.plan.driving);
  selectors_[driving] = std::make_unique<RowSelector>(columns_, filters_[driving], lookups,
                                                      shape_.sort_column(shape_.plan.driving));
  return absl::OkStatus();
}

std::optional<storage::ChainStart> FragmentWorker::NextChain(size_t pipeline) {
  if (pipeline < joins_.size()) {
    const std::optional<uint32_t> next = fragment_.Claim(pipeline);
    if (!next) return std::nullopt;
    return ChainOf(shape_.plan.joins[pipeline].table, fragment_.builds_[pipeline][*next]);
  }
  if (fragment_.leaving_ || fragment_.cancel_) return std::nullopt;
  const std::optional<uint32_t> next = fragment_.counter_ ? ClaimPiece() : fragment_.Claim(pipeline);
  if (!next) return std::nullopt;
  claimed_.push_back(*next);
  return ChainOf(shape_.plan.driving, shape_.pieces[*next]);
}

storage::ChainStart FragmentWorker::ChainOf(int table, const partitioner::Piece& piece) const {
  storage::ChainStart chain =
      partitioner::ChainStartOf(*shape_.tables[static_cast<size_t>(table)], piece.partition);
  chain.first = piece.first_block;
  chain.end = piece.first_block + piece.blocks;
  return chain;
}

uint64_t FragmentWorker::PiecesToClaim() {
  const int64_t now_ns = clock_.NowNs();
  const bool soon = claims_made_++ >= kClaimsAtFirst && now_ns - claimed_ns_ < kClaimUs * 1'000;
  claimed_ns_ = now_ns;
  claims_left_ = soon ? std::max(claims_left_ / 2, kClaimsLeftMin) : kClaimsLeft;
  const uint64_t all = shape_.pieces.size(), left = all - std::min(all, claim_end_);
  return std::clamp<uint64_t>(left / claims_left_, 1, kMostClaimed * (kClaimsLeft / claims_left_));
}

/// An error ends the fragment.
std::optional<uint32_t> FragmentWorker::ClaimPiece() {
  const uint64_t all = shape_.pieces.size();
  if (claim_next_ == claim_end_) {
    const uint64_t items = PiecesToClaim();
    const absl::StatusOr<uint64_t> first = claims_->Claim(items);
    if (!first.ok()) {
      fragment_.Fail(first.status());
      return std::nullopt;
    }
    claim_next_ = std::min(*first, all);
    claim_end_ = std::min(claim_next_ + items, all);
  }
  if (claim_next_ == claim_end_) return std::nullopt;
  return static_cast<uint32_t>(claim_next_++);
}

KeyLookup FragmentWorker::LookupOf(size_t join) const {
  const optimizer::Plan::Join& plan = shape_.plan.joins[join];
  KeyLookup lookup{.table = fragment_.join_tables_[join].get(), .column = plan.probe_key.column};
  const proto::Table& driving = *shape_.tables[static_cast<size_t>(shape_.plan.driving)];
  const auto key = optimizer::MatchingKey(shape_.plan, plan, shape_.tables);
  if (!key || driving.partitioning(*key).function() != proto::MODULO) return lookup;
  lookup.parts = driving.partitioning(*key).parts();
  for (int k = *key + 1; k < driving.partitioning_size(); ++k)
    lookup.divisor *= driving.partitioning(k).parts();
  return lookup;
}

absl::Status FragmentWorker::Stream(
    storage::Channel& channel, size_t pipeline, int table,
    const std::function<absl::Status(const storage::BlockView&, Fragment::PipelineTotals&)>& body) {
  const proto::Table& meta = *shape_.tables[static_cast<size_t>(table)];
  const storage::StreamTable stream_table =
      partitioner::StreamTableOf(meta, shape_.plan.tables[static_cast<size_t>(table)].columns);
  // The window that was asked for, as far as the channel's buffer and queues carry it.
  const uint64_t by_buffer = channel.buffer().bytes() / std::max<uint64_t>(meta.block_bytes(), 1);
  const uint64_t by_queue = channel.options().queue_depth / (stream_table.columns.size() + 1);
  const uint64_t window = std::min({uint64_t{shape_.settings.window()}, by_buffer, by_queue, uint64_t{64}});
  storage::StreamOptions options{.window = static_cast<uint32_t>(std::max<uint64_t>(window, 1)),
                                 .in_place = shape_.settings.in_place(),
                                 .verify = shape_.settings.verify(),
                                 .known = shape_.known[static_cast<size_t>(table)].get(),
                                 .sort_column = shape_.sort_column(table),
                                 .sort_min = selector(table).SortCodes().low,
                                 .sort_max = selector(table).SortCodes().high,
                                 .slow_start = pipeline < joins_.size(),
                                 .cancel = &fragment_.cancel_};
  const int64_t started_ns = clock_.NowNs();
  Fragment::PipelineTotals totals;
  absl::Status status;
  {
    storage::BlockStream stream(channel, stream_table, options, [&] { return NextChain(pipeline); });
    storage::BlockView block;
    while (status.ok()) {
      const absl::StatusOr<bool> more = stream.Next(block);
      if (!more.ok()) {
        status = more.status();
        break;
      }
      if (!*more) break;
      if (!TakeBlock(table, block, totals)) continue;
      status = body(block, totals);
      if (pipeline == joins_.size() && sink_->Satisfied()) break;
    }
    totals.stream = stream.counters();
    totals.stream.blocks += totals.stream.skipped_blocks;
    totals.skipped_blocks += totals.stream.skipped_blocks;
  }
  totals.total_ns = clock_.NowNs() - started_ns;
  if (pipeline == joins_.size()) totals.rows_out = pushed_rows_;
  fragment_.Add(pipeline, totals);
  return status;
}

bool FragmentWorker::TakeBlock(int table, const storage::BlockView& block, Fragment::PipelineTotals& totals) {
  totals.rows_in += block.rows();
  Charge(1, work_cost::kBlockPs);
  if (shape_.settings.verify()) {
    uint64_t row_bytes = 0;
    for (uint32_t column : shape_.plan.tables[static_cast<size_t>(table)].columns)
      row_bytes += block.width(column);
    Charge(block.rows() * row_bytes, work_cost::kChecksumBytePs);
  }
  SetSources(table, block);
  if (selector(table).Start(block)) return true;
  ++totals.skipped_blocks;
  return false;
}

void FragmentWorker::SetSources(int table, const storage::BlockView& block) {
  for (uint32_t column : shape_.plan.tables[static_cast<size_t>(table)].columns) {
    columns_.at({table, static_cast<int>(column)}).source = {block.page(column), block.width(column)};
  }
}

uint32_t FragmentWorker::SelectedRows(int table, uint32_t* rows) {
  const uint32_t n = selector(table).Next(rows);
  const RowSelector::Work work = selector(table).TakeWork();
  Charge(work.first_rows, work_cost::kFirstFilterRowPs);
  Charge(work.later_rows, work_cost::kFilterRowPs);
  return n;
}

absl::Status FragmentWorker::Filtered(int table, Batch& batch) {
  for (const auto& filter : filters_[static_cast<size_t>(table)]) {
    if (filter->on_codes() || batch.size == 0) continue;
    Charge(batch.size, work_cost::kFilterRowPs);
    NAM_RETURN_IF_ERROR(filter->Apply(batch));
  }
  return absl::OkStatus();
}

absl::Status FragmentWorker::Build(storage::Channel& channel, size_t join) {
  return Stream(channel, join, shape_.plan.joins[join].table,
                [this, join](const storage::BlockView& block, Fragment::PipelineTotals& totals) {
                  return BuildBlock(join, block, totals);
                });
}

/// Everything that comes by multicast from a part of the senders, whatever join it is for. Nothing is built
/// before all parts have joined: if one of them cannot, all is READ.
absl::Status FragmentWorker::BuildFromMulticast(storage::Channel& channel, uint32_t part) {
  const MulticastBuild& build = fragment_.multicast_;
  auto stream = storage::MulticastStream::Open(channel, build.senders, build.tables,
                                               {.member = build.member,
                                                .part = part,
                                                .parts = fragment_.multicast_parts_,
                                                .verify = shape_.settings.verify(),
                                                .cancel = &fragment_.cancel_});
  if (!stream.ok()) {
    if (channel.broken()) return stream.status();
    fragment_.ReadInsteadOfMulticast(stream.status());
  }
  if (fragment_.opening_.fetch_sub(1) == 1) fragment_.opened_->Set();
  NAM_RETURN_IF_ERROR(Await(*fragment_.opened_));
  if (fragment_.read_instead_) return absl::OkStatus();
  std::vector<Fragment::PipelineTotals> totals(build.tables.size());
  const absl::Status status = ReceiveBuilds(**stream, totals);
  for (size_t t = 0; t < totals.size(); ++t) {
    const storage::MulticastCounters& counters = (*stream)->counters(t);
    totals[t].stream = counters.stream;
    totals[t].multicast_blocks = counters.multicast_blocks;
    totals[t].repaired_blocks = counters.repaired_blocks;
    totals[t].duplicate_datagrams = counters.duplicates;
    fragment_.Add(build.joins[t], totals[t]);
  }
  return status;
}

absl::Status FragmentWorker::ReceiveBuilds(storage::MulticastStream& stream,
                                           std::vector<Fragment::PipelineTotals>& totals) {
  Clock& clock = fragment_.channels_.fabric().clock();
  int64_t from_ns = clock.NowNs();
  storage::BlockView block;
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, stream.Next(block));
    if (!more) return absl::OkStatus();
    Fragment::PipelineTotals& of_table = totals[stream.table()];
    const size_t join = fragment_.multicast_.joins[stream.table()];
    if (TakeBlock(shape_.plan.joins[join].table, block, of_table))
      NAM_RETURN_IF_ERROR(BuildBlock(join, block, of_table));
    const int64_t now_ns = clock.NowNs();
    of_table.total_ns += now_ns - from_ns;
    from_ns = now_ns;
  }
}

absl::Status FragmentWorker::BuildBlock(size_t join, const storage::BlockView& block,
                                        Fragment::PipelineTotals& totals) {
  const QueryShape::Join& shape = shape_.joins[join];
  const int table = shape_.plan.joins[join].table;
  const auto slot = static_cast<size_t>(
      std::lower_bound(shape.partitions.begin(), shape.partitions.end(), block.partition()) -
      shape.partitions.begin());
  const uint64_t block_rows =
      shape_.tables[static_cast<size_t>(table)]->partitions(static_cast<int>(block.partition())).block_rows();
  const uint64_t first_row = shape.first_row[slot] + block.index() * block_rows;
  if (first_row + block.rows() > shape.table.rows)
    return absl::DataLossError("a partition holds more rows than the catalog says");
  JoinTable& join_table = *fragment_.join_tables_[join];
  for (size_t i = 0; i < shape.payload.size() && !join_table.unique(); ++i) {
    const uint8_t width = shape.table.payload_widths[i];
    std::memcpy(join_table.payload(i) + first_row * width, block.page(shape.payload[i]),
                size_t{block.rows()} * width);
  }
  while (selector(table).more()) {
    build_batch_.size = SelectedRows(table, build_batch_.rows[static_cast<size_t>(table)].data());
    NAM_RETURN_IF_ERROR(Filtered(table, build_batch_));
    if (build_batch_.size == 0) continue;
    totals.rows_out += build_batch_.size;
    Charge(build_batch_.size, work_cost::kInsertRowPs);
    NAM_RETURN_IF_ERROR(join_table.unique() ? InsertUnique(join, block) : Insert(join, first_row));
  }
  return absl::OkStatus();
}

/// The 64-bit numbers of a key expression; NULLs are not valid, numbers beyond 64 bits join nothing.
absl::Status FragmentWorker::KeysOf(VectorExpression& expression, const Batch& batch) {
  NAM_ASSIGN_OR_RETURN(const Vector* vector, expression.Evaluate(batch));
  for (uint32_t i = 0; i < batch.size; ++i) {
    const __int128 number = vector->null(i) ? 0 : vector->number(i);
    valid_[i] = !vector->null(i) && number >= std::numeric_limits<int64_t>::min() &&
                number <= std::numeric_limits<int64_t>::max();
    keys_[i] = static_cast<int64_t>(number);
  }
  return absl::OkStatus();
}

absl::Status FragmentWorker::Insert(size_t join, uint64_t first_row) {
  const optimizer::Plan::Join& plan = shape_.plan.joins[join];
  JoinTable& join_table = *fragment_.join_tables_[join];
  const uint32_t* rows = build_batch_.of(plan.table);
  if (joins_[join].build_key && plan.build_key.op != plan::Op::kColumn) {
    NAM_RETURN_IF_ERROR(KeysOf(*joins_[join].build_key, build_batch_));
  } else {
    const ColumnSpace::Column& column = columns_.at(plan.build_key.column);
    for (uint32_t i = 0; i < build_batch_.size; ++i) {
      const uint64_t code = column.source.at(rows[i]);
      valid_[i] = !column.meaning.IsNull(code);
      keys_[i] = column.meaning.Number(code);
    }
  }
  const std::vector<int64_t>& translation = shape_.joins[join].build_translation;
  for (uint32_t i = 0; i < build_batch_.size; ++i) {
    if (!valid_[i]) continue;
    if (!translation.empty()) keys_[i] = translation[static_cast<size_t>(keys_[i])];
    if (!join_table.InDomain(keys_[i]))
      return absl::DataLossError("a key is outside of what the catalog says");
    join_table.Insert(keys_[i], static_cast<uint32_t>(first_row + rows[i]));
  }
  return absl::OkStatus();
}

/// Keys that are known to be unique number their rows themselves; the payload goes where the key leads.
absl::Status FragmentWorker::InsertUnique(size_t join, const storage::BlockView& block) {
  const QueryShape::Join& shape = shape_.joins[join];
  JoinTable& join_table = *fragment_.join_tables_[join];
  const ColumnSpace::Column& key = columns_.at(shape_.plan.joins[join].build_key.column);
  const uint32_t* rows = build_batch_.of(shape_.plan.joins[join].table);
  int64_t least = INT64_MAX, greatest = INT64_MIN;
  uint32_t n = 0;
  for (uint32_t i = 0; i < build_batch_.size; ++i) {
    const uint64_t code = key.source.at(rows[i]);
    if (key.meaning.IsNull(code)) continue;
    const int64_t number = key.meaning.Number(code);
    if (!join_table.InDomain(number) || !join_table.InsertUnique(number))
      return absl::DataLossError("a key is outside of what the catalog says, or there twice");
    least = std::min(least, number);
    greatest = std::max(greatest, number);
    positions_[n] = rows[i];
    partners_[n++] = join_table.RowOf(number);
  }
  if (n == 0) return absl::OkStatus();
  join_table.Inserted(least, greatest, n);
  for (size_t i = 0; i < shape.payload.size(); ++i) {
    WithCodes({block.page(shape.payload[i]), shape.table.payload_widths[i]}, [&](const auto* codes) {
      using Code = std::remove_cvref_t<decltype(*codes)>;
      auto* out = reinterpret_cast<Code*>(join_table.payload(i));
      for (uint32_t k = 0; k < n; ++k) out[partners_[k]] = codes[positions_[k]];
    });
  }
  return absl::OkStatus();
}

/// What passes of one window is gathered with that of the next ones, as long as they are of one block.
absl::Status FragmentWorker::ProbeBlock(const storage::BlockView&, Fragment::PipelineTotals&) {
  const int table = shape_.plan.driving;
  Batch& batch = levels_[0];
  uint32_t* rows = batch.rows[static_cast<size_t>(table)].data();
  uint32_t gathered = 0;
  while (selector(table).more()) {
    const uint32_t n = SelectedRows(table, selected_.data());
    if (gathered + n > kBatchRows) {
      batch.size = std::exchange(gathered, 0);
      NAM_RETURN_IF_ERROR(PushDriving(batch));
    }
    std::copy_n(selected_.data(), n, rows + gathered);
    gathered += n;
  }
  batch.size = gathered;
  return PushDriving(batch);
}

absl::Status FragmentWorker::PushDriving(Batch& batch) {
  NAM_RETURN_IF_ERROR(Filtered(shape_.plan.driving, batch));
  if (batch.size == 0) return absl::OkStatus();
  const uint32_t* rows = batch.of(shape_.plan.driving);
  for (size_t j = 0; j < joins_.size(); ++j) {
    std::vector<uint32_t>& partners = batch.rows[static_cast<size_t>(shape_.plan.joins[j].table)];
    if (!shape_.joins[j].by_driving_key || partners.empty()) continue;
    const ColumnSpace::Column& key = columns_.at(shape_.plan.joins[j].probe_key.column);
    const JoinTable& join_table = *fragment_.join_tables_[j];
    Charge(batch.size, work_cost::kPartnerRowPs);
    WithCodes(key.source, [&](const auto* codes) {
      for (uint32_t i = 0; i < batch.size; ++i)
        partners[i] = join_table.RowOf(key.meaning.Number(codes[rows[i]]));
    });
  }
  return Push(0, batch);
}

absl::Status FragmentWorker::Push(size_t level, Batch& batch) {
  if (batch.size == 0) return absl::OkStatus();
  while (level < joins_.size() && shape_.joins[level].by_driving_key) ++level;
  if (level < joins_.size()) return Probe(level, batch);
  pushed_rows_ += batch.size;
  Charge(batch.size, work_cost::kSinkRowPs);
  return sink_->Consume(batch);
}

absl::Status FragmentWorker::Probe(size_t join, const Batch& batch) {
  const optimizer::Plan::Join& plan = shape_.plan.joins[join];
  const QueryShape::Join& shape = shape_.joins[join];
  const JoinTable& table = *fragment_.join_tables_[join];
  const bool column = plan.probe_key.op == plan::Op::kColumn;
  if (column && shape.translation.empty() && plan.probe_key.type.kind != TypeKind::kString &&
      table.direct() && !table.chained()) {
    Charge(batch.size, work_cost::kProbeRowPs);
    return ProbeColumn(join, batch);
  }
  Charge(batch.size, work_cost::kProbeKeyPs);
  if (!column) {
    NAM_RETURN_IF_ERROR(KeysOf(*joins_[join].probe_key, batch));
  } else {
    const ColumnSpace::Column& source = columns_.at(plan.probe_key.column);
    const uint32_t* rows = batch.of(plan.probe_key.column.table);
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint64_t code = source.source.at(rows[i]);
      valid_[i] = !source.meaning.IsNull(code);
      if (!valid_[i]) continue;
      keys_[i] = source.meaning.Number(code);
      if (plan.probe_key.type.kind != TypeKind::kString) continue;
      keys_[i] = shape.translation[static_cast<size_t>(keys_[i])];
      valid_[i] = keys_[i] >= 0;
    }
  }
  return ProbeKeys(join, batch, keys_.data(), valid_.data());
}

/// The common case: a column's codes into a direct table without duplicates; at most one partner each.
absl::Status FragmentWorker::ProbeColumn(size_t join, const Batch& batch) {
  const ColumnSpace::Column& source = columns_.at(shape_.plan.joins[join].probe_key.column);
  const JoinTable& table = *fragment_.join_tables_[join];
  const uint32_t* rows = batch.of(shape_.plan.joins[join].probe_key.column.table);
  const bool checked = !shape_.joins[join].always_in_domain || source.meaning.nullable;
  uint32_t n = 0;
  uint32_t* positions = positions_.data();
  uint32_t* partners = partners_.data();
  WithCodes(source.source, [&](const auto* codes) {
    const auto base = static_cast<uint64_t>(source.meaning.base);
    if (!checked) {
      for (uint32_t i = 0; i < batch.size; ++i) {
        const uint32_t head = table.Head(static_cast<int64_t>(base + codes[rows[i]]));
        positions[n] = i;
        partners[n] = head - 1;
        n += head != 0;
      }
      return;
    }
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint64_t code = codes[rows[i]];
      const auto key = static_cast<int64_t>(base + code);
      if (source.meaning.IsNull(code) || !table.InDomain(key)) continue;
      const uint32_t head = table.Head(key);
      positions[n] = i;
      partners[n] = head - 1;
      n += head != 0;
    }
  });
  return Emit(join, batch, n);
}

/// Any keys into any table: all partners of each, as many batches as they need. The keys are copied,
/// since levels above overwrite the scratch.
absl::Status FragmentWorker::ProbeKeys(size_t join, const Batch& batch, const int64_t* keys,
                                       const uint8_t* valid) {
  const JoinTable& table = *fragment_.join_tables_[join];
  const std::vector<int64_t> own_keys(keys, keys + batch.size);
  const std::vector<uint8_t> own_valid(valid, valid + batch.size);
  uint32_t n = 0;
  for (uint32_t i = 0; i < batch.size; ++i) {
    if (!own_valid[i] || !table.InDomain(own_keys[i])) continue;
    for (uint32_t head = table.Head(own_keys[i]); head != 0; head = table.Next(head - 1)) {
      if (!table.KeyIs(head - 1, own_keys[i])) continue;
      positions_[n] = i;
      partners_[n++] = head - 1;
      if (n < kBatchRows) continue;
      NAM_RETURN_IF_ERROR(Emit(join, batch, n));
      if (fragment_.cancel_) return absl::CancelledError("cancelled");
      n = 0;
    }
  }
  return Emit(join, batch, n);
}

absl::Status FragmentWorker::Emit(size_t join, const Batch& batch, uint32_t count) {
  if (count == 0) return absl::OkStatus();
  Batch& out = levels_[join + 1];
  out.Select(batch, positions_.data(), count);
  std::vector<uint32_t>& rows = out.rows[static_cast<size_t>(shape_.plan.joins[join].table)];
  if (!rows.empty()) std::copy_n(partners_.data(), count, rows.data());
  for (auto& residual : joins_[join].residuals) {
    NAM_RETURN_IF_ERROR(residual->Apply(out));
    if (out.size == 0) return absl::OkStatus();
  }
  return Push(join + 1, out);
}

void FragmentWorker::Charge(uint64_t rows, int64_t row_ps) {
  uncharged_ps_ += static_cast<int64_t>(rows) * row_ps;
  clock_.Charge(uncharged_ps_ / 1'000);
  uncharged_ps_ %= 1'000;
}

}  // namespace nam::computeserver
