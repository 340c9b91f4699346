#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "partitioner/pieces.h"
#include "proto/catalog.pb.h"
#include "proto/compute.pb.h"
#include "session/compute_clients.h"
#include "session/explain.h"
#include "session/stage_output.h"
#include "session/work_counters.h"

namespace nam::session {

/// What is over sooner needs no progress; how often it is told then.
inline constexpr int64_t kFirstProgressNs = 300'000'000;
inline constexpr int64_t kProgressNs = 100'000'000;

/// Sees to it that every piece of what a stage claims, its driving table or parts, is processed once, by
/// compute servers that may come, go, or die meanwhile. One thread, one stage.
///
///     lists     one per server at first: its share, with a word each that claims are counted in
///     attempt   one server claims from one list until it is empty, and says which pieces it had
///     idle      a server whose list is empty gets the list with most left, as does one that has just come
///     lost      what a dead server had claimed is in nobody's report: new lists, for those that are left
///     declined  likewise, of a server where too many wait; it is asked again if there is no other
///     crowded   likewise, of one that has no memory for it now; it is asked again to wait for all it may
///     need
///     full      likewise, of one that scratch memory has no room for, once lost attempts' memory is back
///
/// A partial result counts when it has been read, with the pieces that its attempt reported; a server
/// that only seems dead is never heard again, so no row counts twice. Without words (`counters` null) a
/// list is one attempt's alone: nothing is stolen, but what is lost is done again just so.
///
/// Rows that servers write into a table themselves (StageOutput::table) lie in an allocation of each
/// attempt's own. Those of accepted attempts are taken with the pieces that they reported; the others end
/// with the load.
///
/// Rows that come in windows (StageOutput) are taken in before their attempt has ended, and cannot be
/// taken back: if its server is then lost, so is the query. Until the first window what is lost is done
/// again.
class QueryRun {
 public:
  struct Options {
    proto::AttemptRequest request;       // plan and settings
    std::vector<ServerReport>& servers;  // those with a share; others that come are added
    ComputeClients& clients;
    WorkCounters* counters = nullptr;
    std::function<uint64_t()> next_attempt;
    std::function<proto::MulticastStreams(size_t server)> multicast;  // of a first attempt
    /// Living compute servers, asked now and then while the query runs.
    std::function<absl::StatusOr<std::vector<proto::Member>>()> members;
    StageOutput output;
    /// Told of attempts that do not count, and may have left something in scratch memory; it comes back
    /// before this returns.
    std::function<void(uint64_t attempt)> drop_scratch;
    /// Of what the stage claims: blocks of the driving table, or a part.
    std::function<uint64_t(const partitioner::Piece& piece)> rows_of;
    /// Told now and then how many of its rows are done, or under way; empty: not told.
    std::function<void(uint64_t rows_done)> progress;
    Clock& clock;
    const std::atomic<bool>& cancel;
  };
  explicit QueryRun(const Options& options);
  /// CANCELLED; or the first error that another server could not make good.
  absl::Status Run();

 private:
  struct List {
    std::vector<uint32_t> pieces;  // their numbers
    std::optional<storage::WorkCounter> counter;
    int running = 0;          // attempts that claim from it
    int64_t started_ns = -1;  // the first of them
    uint64_t claimed = 0;     // at the last look, or more by now
    bool dry = false;         // an attempt has met its end
  };
  struct Server {
    bool busy = false;
    bool gone = false;  // lost, or leaving
    bool declined = false;
    bool crowded = false;
  };

  absl::Status AddLists(std::vector<std::vector<uint32_t>> shares);
  /// An attempt of `server` on `list`, from its item `first` on.
  absl::Status Start(size_t server, size_t list, uint64_t first, bool with_multicast);
  absl::Status Loop();
  absl::Status Take(ComputeClients::Work& work);
  absl::Status Add(const ComputeClients::Work& work);
  absl::Status TakeParts(ComputeClients::Work& work) const;
  /// What its attempt says that it has done.
  absl::Status Cover(const ComputeClients::Work& work, ServerReport& report);
  absl::Status Lost(size_t server, const absl::Status& why);
  absl::Status Declined(size_t server, const absl::Status& why);
  absl::Status Crowded(size_t server);
  /// Scratch memory is full. That is an error unless what lost attempts had of it has come back since this
  /// one began, or comes back when it is known that the servers of those that run are lost, too.
  absl::Status Full(const ComputeClients::Work& work);
  /// Nothing that runs can be what `full_` waits for, or not for so long.
  bool FullForGood() const;
  /// Gives idle servers what there is most of; nothing if too little is left to be worth it.
  absl::Status GiveWorkToAll();
  /// How much has been claimed of the wanted lists: one READ for all.
  absl::Status LookAtLists(const std::function<bool(const List&)>& wanted);
  /// Of the items that nobody has claimed, those that one more attempt may expect to get; 0: not worth it.
  double Expected(const List& list, int64_t now_ns) const;
  /// Once nothing runs: what nobody has reported becomes lists of those who are left.
  absl::Status HandOutAgain();
  absl::Status LookForNewServers();
  /// Living ones that the query does not know, as the catalog knows them.
  void AddNewServers();
  absl::Status ReportProgress();
  double NowMs() const { return static_cast<double>(options_.clock.NowNs() - started_ns_) / 1e6; }

  Options options_;
  const size_t shares_;  // the first lists are the shares of the servers that were there at the start
  std::vector<partitioner::Piece> pieces_;  // of all shares
  std::vector<List> lists_;
  std::vector<Server> servers_;  // as options_.servers
  std::vector<bool> covered_;    // by piece
  size_t left_ = 0;              // pieces that are not covered
  int running_ = 0;
  int rounds_ = 0;
  int fruitless_ = 0;
  int64_t started_ns_ = 0;
  int64_t looked_ns_ = 0;
  int64_t reported_ns_ = 0;
  absl::Status first_loss_;  // of a server, or that it declined
  int losses_ = 0;           // behind which scratch memory has come back
  absl::Status full_;        // what the query fails with unless a server turns out to be lost
  int64_t full_ns_ = 0;
};

}  // namespace nam::session
