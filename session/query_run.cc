#include "session/query_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/methods.h"
#include "execution/partition/open_scratch.h"
#include "session/loaded_rows.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// A list is not worth another server's call and build sides if it has fewer items left for each attempt, or
/// if its attempts finish sooner.
constexpr uint64_t kWorthStealing = 8;
constexpr double kWorthStealingNs = 1e6;
/// Attempts that found nothing to claim, because others were faster. More of them indicate a bug.
constexpr int kMostFruitless = 1'000;
constexpr int64_t kLookForServersNs = 20'000'000;

void Merge(const proto::PipelineCounters& more, proto::PipelineCounters& into) {
  into.set_rows_in(into.rows_in() + more.rows_in());
  into.set_rows_out(into.rows_out() + more.rows_out());
  into.set_blocks(into.blocks() + more.blocks());
  into.set_skipped_blocks(into.skipped_blocks() + more.skipped_blocks());
  into.set_waiting_us(into.waiting_us() + more.waiting_us());
  into.set_total_us(into.total_us() + more.total_us());
  into.set_multicast_blocks(into.multicast_blocks() + more.multicast_blocks());
  into.set_repaired_blocks(into.repaired_blocks() + more.repaired_blocks());
  into.set_duplicate_datagrams(into.duplicate_datagrams() + more.duplicate_datagrams());
  into.set_scratch_pages_written(into.scratch_pages_written() + more.scratch_pages_written());
  into.set_scratch_bytes_written(into.scratch_bytes_written() + more.scratch_bytes_written());
  into.set_scratch_runs_written(into.scratch_runs_written() + more.scratch_runs_written());
  for (int i = 0; i < more.rows_after_size(); ++i) {
    if (i == into.rows_after_size()) into.add_rows_after(0);
    into.set_rows_after(i, into.rows_after(i) + more.rows_after(i));
  }
  for (const proto::ServerBytes& bytes : more.bytes()) {
    auto* all = into.mutable_bytes();
    const auto same =
        std::find_if(all->begin(), all->end(), [&](const auto& b) { return b.server() == bytes.server(); });
    if (same == all->end()) {
      *into.add_bytes() = bytes;
    } else {
      same->set_bytes(same->bytes() + bytes.bytes());
    }
  }
}

/// A server is lost after some rows of its unfinished attempt were taken in.
absl::Status RowsAreOut(const absl::Status& why) {
  return UserError(sqlstate::kConnectionFailure,
                   absl::StrCat("a compute server was lost after rows of it had been delivered: ",
                                std::string(why.message())),
                   -1, "what has been delivered is not the whole result; run the statement again");
}

bool IsFull(const absl::Status& status) {
  return status.GetPayload(execution::kScratchFull).has_value();
}

}  // namespace

QueryRun::QueryRun(const Options& options)
    : options_(options), shares_(options.servers.size()), servers_(options.servers.size()) {
  for (const ServerReport& server : options_.servers)
    pieces_.insert(pieces_.end(), server.share.pieces.begin(), server.share.pieces.end());
  left_ = pieces_.size();
  covered_.resize(left_);
}

absl::Status QueryRun::AddLists(std::vector<std::vector<uint32_t>> shares) {
  std::vector<storage::WorkCounter> counters;
  if (options_.counters != nullptr) {
    NAM_ASSIGN_OR_RETURN(counters, options_.counters->Next(shares.size()));
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    List& list = lists_.emplace_back();
    list.pieces = std::move(shares[i]);
    if (!counters.empty()) list.counter = counters[i];
  }
  return absl::OkStatus();
}

absl::Status QueryRun::Start(size_t server, size_t list_number, uint64_t first, bool with_multicast) {
  List& list = lists_[list_number];
  auto work = std::make_unique<ComputeClients::Work>();
  work->member = options_.servers[server].member;
  work->server = server;
  work->list = list_number;
  work->first = first;
  work->started_ms = NowMs();
  work->losses = losses_;
  work->request = options_.request;
  work->request.set_attempt(options_.next_attempt());
  if (options_.output.table != nullptr) {
    NAM_ASSIGN_OR_RETURN(work->allocation, options_.output.table->BeginAttempt());
    work->request.mutable_write()->set_allocation(work->allocation);
  }
  work->request.set_window_bytes(options_.output.window_bytes);
  work->request.set_whole_memory(servers_[server].crowded);
  for (uint64_t i = first; i < list.pieces.size(); ++i) {
    const partitioner::Piece& piece = pieces_[list.pieces[i]];
    proto::Piece& out = *work->request.add_pieces();
    out.set_partition(piece.partition);
    out.set_first_block(piece.first_block);
    out.set_blocks(piece.blocks);
  }
  if (with_multicast) *work->request.mutable_multicast() = options_.multicast(server);
  if (list.counter) {
    proto::WorkCounter& counter = *work->request.mutable_counter();
    counter.set_word(list.counter->word.raw());
    counter.set_allocation(list.counter->allocation.value());
    counter.set_base(list.counter->base + first);
  }
  ++list.running;
  if (list.started_ns < 0) list.started_ns = options_.clock.NowNs();
  ++running_;
  servers_[server].busy = true;
  options_.clients.Start(std::move(work));
  return absl::OkStatus();
}

absl::Status QueryRun::Run() {
  started_ns_ = looked_ns_ = options_.clock.NowNs();
  reported_ns_ = started_ns_ + kFirstProgressNs - kProgressNs;
  std::vector<std::vector<uint32_t>> shares;
  uint32_t next = 0;
  for (const ServerReport& server : options_.servers) {
    std::vector<uint32_t>& share = shares.emplace_back(server.share.pieces.size());
    std::iota(share.begin(), share.end(), next);
    next += static_cast<uint32_t>(share.size());
  }
  absl::Status status = AddLists(std::move(shares));
  for (size_t s = 0; s < servers_.size() && status.ok(); ++s)
    status = Start(s, s, 0, /*with_multicast=*/true);
  if (status.ok()) status = Loop();
  // Running attempts have nothing to add: their lists are empty, or the query has ended.
  options_.clients.EndAll();
  return status;
}

absl::Status QueryRun::Loop() {
  while (left_ > 0) {
    if (options_.cancel) return absl::CancelledError("cancelled");
    const std::unique_ptr<ComputeClients::Work> work =
        options_.clients.Await(options_.clock.After(kAwaitUs), options_.cancel, options_.output.room);
    const bool ended = work != nullptr && !work->reply.more();
    if (work != nullptr) NAM_RETURN_IF_ERROR(Collect(*work));
    if (FullForGood()) return full_;
    if (!full_.ok()) continue;
    if (ended) {
      NAM_RETURN_IF_ERROR(GiveWorkToAll());
    } else {
      NAM_RETURN_IF_ERROR(LookForNewServers());
    }
    if (running_ == 0 && left_ > 0) NAM_RETURN_IF_ERROR(HandOutAgain());
    NAM_RETURN_IF_ERROR(ReportProgress());
  }
  return absl::OkStatus();
}

absl::Status QueryRun::Add(const ComputeClients::Work& work) {
  if (work.partial.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const bool more, options_.output.add(work.partial, work.request.attempt()));
  if (!more) left_ = 0;
  return absl::OkStatus();
}

absl::Status QueryRun::CollectParts(ComputeClients::Work& work) const {
  if (!work.reply.has_directory()) return absl::OkStatus();
  if (!options_.output.parts || work.reply.directory().attempt() != work.request.attempt())
    return absl::InternalError("a compute server reports parts that were not requested");
  return options_.output.parts(std::move(*work.reply.mutable_directory()));
}

absl::Status QueryRun::Collect(ComputeClients::Work& work) {
  if (work.status.ok() && work.reply.more()) return Add(work);
  if (work.lost && work.windows > 0) return RowsAreOut(work.status);
  if (work.windows > 0 && (IsDeclined(work.status) || work.reply.crowded()))
    return absl::InternalError("a compute server gives back an attempt of which rows were delivered");
  --running_;
  --lists_[work.list].running;
  servers_[work.server].busy = false;
  if (options_.output.table != nullptr && (!work.status.ok() || work.reply.crowded()))
    options_.output.table->AbortAttempt(work.allocation);
  if (IsDeclined(work.status)) return Declined(work.server, work.status);
  if ((work.lost || IsFull(work.status) || work.reply.crowded()) && options_.request.scratch() != 0)
    options_.drop_scratch(work.request.attempt());
  if (IsFull(work.status)) return Full(work);
  if (!work.status.ok()) return work.lost ? Lost(work.server, work.status) : work.status;
  if (work.reply.crowded()) return Crowded(work.server);
  NAM_RETURN_IF_ERROR(Add(work));
  ServerReport& report = options_.servers[work.server];
  for (int i = report.reply.pipelines_size(); i < work.reply.pipelines_size(); ++i)
    report.reply.add_pipelines()->set_table(work.reply.pipelines(i).table());
  for (int i = 0; i < work.reply.pipelines_size(); ++i) {
    Merge(work.reply.pipelines(i), *report.reply.mutable_pipelines(i));
    if (!work.reply.pipelines(i).multicast_failure().empty())
      report.reply.mutable_pipelines(i)->set_multicast_failure(work.reply.pipelines(i).multicast_failure());
  }
  if (left_ > 0) {
    NAM_RETURN_IF_ERROR(Cover(work, report));
    NAM_RETURN_IF_ERROR(CollectParts(work));
    if (options_.output.table != nullptr)
      NAM_RETURN_IF_ERROR(options_.output.table->Take(work.allocation, work.reply));
  }
  if (work.reply.satisfied()) left_ = 0;  // the rest cannot change the result
  if (work.reply.leaving()) {
    servers_[work.server].gone = true;
  } else {
    lists_[work.list].dry = true;
  }
  return absl::OkStatus();
}

absl::Status QueryRun::Cover(const ComputeClients::Work& work, ServerReport& report) {
  const List& list = lists_[work.list];
  uint32_t claimed = 0;
  if (report.thread_rows.size() < static_cast<size_t>(work.reply.threads_size()))
    report.thread_rows.resize(static_cast<size_t>(work.reply.threads_size()));
  for (int t = 0; t < work.reply.threads_size(); ++t) {
    for (const uint32_t position : work.reply.threads(t).pieces()) {
      const uint64_t item = work.first + position;
      if (item >= list.pieces.size() || covered_[list.pieces[item]])
        return absl::InternalError("a compute server reports a piece that was not its to claim");
      covered_[list.pieces[item]] = true;
      --left_;
      ++claimed;
      report.thread_rows[static_cast<size_t>(t)] += options_.rows_of(pieces_[list.pieces[item]]);
    }
  }
  report.turns.push_back({work.list < shares_ ? std::optional(work.list) : std::nullopt, work.started_ms,
                          NowMs(), claimed, work.reply.claims()});
  if (claimed == 0 && !work.reply.leaving() && ++fruitless_ > kMostFruitless)
    return absl::InternalError("compute servers claim nothing of what is left");
  return absl::OkStatus();
}

absl::Status QueryRun::Lost(size_t server, const absl::Status& why) {
  servers_[server].gone = true;
  ++losses_;
  full_ = absl::OkStatus();
  if (first_loss_.ok()) first_loss_ = why;
  const auto others = [&] {
    return std::any_of(servers_.begin(), servers_.end(), [](const Server& s) { return !s.gone; });
  };
  // Servers without a share of a small query can run it as well.
  if (!others()) AddNewServers();
  return others() ? absl::OkStatus() : first_loss_;
}

absl::Status QueryRun::Declined(size_t server, const absl::Status& why) {
  servers_[server].declined = true;
  if (first_loss_.ok()) first_loss_ = why;
  const bool others =
      std::any_of(servers_.begin(), servers_.end(), [](const Server& s) { return !s.gone && !s.declined; });
  return others ? absl::OkStatus() : why;
}

absl::Status QueryRun::Crowded(size_t server) {
  if (std::exchange(servers_[server].crowded, true))
    return absl::InternalError("a compute server lacks memory for an attempt that has all of its memory");
  return absl::OkStatus();
}

absl::Status QueryRun::Full(const ComputeClients::Work& work) {
  if (work.windows > 0) return work.status;
  if (losses_ > work.losses || !full_.ok()) return absl::OkStatus();
  full_ = work.status;
  full_ns_ = options_.clock.NowNs();
  return absl::OkStatus();
}

bool QueryRun::FullForGood() const {
  return !full_.ok() && (running_ == 0 || options_.clock.NowNs() - full_ns_ > kNoticeLossNs);
}

double QueryRun::Expected(const List& list, int64_t now_ns) const {
  if (!list.counter || list.dry) return 0;
  const uint64_t left = list.pieces.size() - list.claimed;
  if (list.running > 0) {
    if (left < kWorthStealing * static_cast<uint64_t>(list.running)) return 0;
    // As long as the claimed part has taken, as far as known.
    const auto claimed = static_cast<double>(list.claimed);
    if (static_cast<double>(left) * static_cast<double>(now_ns - list.started_ns) <
        kWorthStealingNs * claimed)
      return 0;
  }
  return static_cast<double>(left) / (list.running + 1);
}

absl::Status QueryRun::LookAtLists(const std::function<bool(const List&)>& wanted) {
  std::vector<List*> lists;
  std::vector<storage::WorkCounter> counters;
  for (List& list : lists_) {
    if (!list.counter || !wanted(list)) continue;
    lists.push_back(&list);
    counters.push_back(*list.counter);
  }
  if (lists.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> claimed, options_.counters->Claimed(counters));
  for (size_t i = 0; i < lists.size(); ++i)
    lists[i]->claimed = std::min<uint64_t>(claimed[i], lists[i]->pieces.size());
  return absl::OkStatus();
}

absl::Status QueryRun::GiveWorkToAll() {
  if (options_.counters == nullptr || left_ == 0) return absl::OkStatus();
  bool looked = false;
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].busy || servers_[s].gone || servers_[s].declined) continue;
    const int64_t now_ns = options_.clock.NowNs();
    if (!std::exchange(looked, true)) {
      NAM_RETURN_IF_ERROR(LookAtLists([&](const List& list) { return Expected(list, now_ns) > 0; }));
    }
    std::vector<double> expected;
    for (const List& list : lists_) expected.push_back(Expected(list, now_ns));
    const auto best = std::max_element(expected.begin(), expected.end());
    if (best == expected.end() || *best <= 0) return absl::OkStatus();
    const auto list = static_cast<size_t>(best - expected.begin());
    const absl::Status started = Start(s, list, lists_[list].claimed, /*with_multicast=*/false);
    // Without further memory for a table those that run go on.
    if (!started.ok()) return running_ > 0 ? absl::OkStatus() : started;
  }
  return absl::OkStatus();
}

absl::Status QueryRun::HandOutAgain() {
  const bool declined =
      std::none_of(servers_.begin(), servers_.end(), [](const Server& s) { return !s.gone && !s.declined; });
  std::vector<size_t> able;
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (declined) servers_[s].declined = false;
    if (!servers_[s].gone && !servers_[s].declined) able.push_back(s);
  }
  if (able.empty() || ++rounds_ > kMostLossRounds) {
    return first_loss_.ok() ? absl::UnavailableError("all compute servers of the query have left it")
                            : first_loss_;
  }
  std::vector<std::vector<uint32_t>> shares(able.size());
  size_t next = 0;
  for (uint32_t p = 0; p < pieces_.size(); ++p) {
    if (!covered_[p]) shares[next++ * able.size() / left_].push_back(p);
  }
  const size_t first = lists_.size();
  NAM_RETURN_IF_ERROR(AddLists(std::move(shares)));
  for (size_t i = 0; i < able.size(); ++i) {
    if (!lists_[first + i].pieces.empty())
      NAM_RETURN_IF_ERROR(Start(able[i], first + i, 0, /*with_multicast=*/false));
  }
  return absl::OkStatus();
}

absl::Status QueryRun::LookForNewServers() {
  const int64_t now_ns = options_.clock.NowNs();
  if (now_ns - looked_ns_ < kLookForServersNs || options_.counters == nullptr) return absl::OkStatus();
  looked_ns_ = now_ns;
  AddNewServers();
  return GiveWorkToAll();
}

void QueryRun::AddNewServers() {
  const auto members = options_.members();
  if (!members.ok()) return;  // the query itself does not need the catalog
  for (const proto::Member& member : *members) {
    const bool known = std::any_of(options_.servers.begin(), options_.servers.end(),
                                   [&](const ServerReport& s) { return s.member.id() == member.id(); });
    if (known) continue;
    options_.servers.push_back({.member = member});
    servers_.emplace_back();
  }
}

/// Counts what has been reported, and what running attempts have claimed of their lists.
absl::Status QueryRun::ReportProgress() {
  const int64_t now_ns = options_.clock.NowNs();
  if (!options_.progress || now_ns - reported_ns_ < kProgressNs) return absl::OkStatus();
  reported_ns_ = now_ns;
  NAM_RETURN_IF_ERROR(LookAtLists([](const List& list) { return list.running > 0; }));
  std::vector<bool> done = covered_;
  for (const List& list : lists_) {
    for (uint64_t i = 0; list.running > 0 && i < list.claimed; ++i) done[list.pieces[i]] = true;
  }
  uint64_t rows = 0;
  for (size_t p = 0; p < done.size(); ++p) {
    if (done[p]) rows += options_.rows_of(pieces_[p]);
  }
  options_.progress(rows);
  return absl::OkStatus();
}

}  // namespace nam::session
