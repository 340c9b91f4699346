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

/// Shorter runs report no progress; the interval of reports.
inline constexpr int64_t kFirstProgressNs = 300'000'000;
inline constexpr int64_t kProgressNs = 100'000'000;

/// Ensures that each piece that a stage claims, of its driving table or parts, is processed exactly once, by
/// compute servers that may come, go, or die meanwhile. One thread, one stage.
///
///     lists     one per server at first: its share, with a word each that claims are counted in
///     attempt   one server claims from one list until it is empty, and reports its pieces
///     idle      a server whose list is empty gets the list with most left, as does a new server
///     lost      no report has what a dead server had claimed: new lists, for the remaining servers
///     declined  likewise, if too many wait at a server; it is asked again if there is no other
///     crowded   likewise, if it lacks memory now; it is asked again to wait for all that it may need
///     full      likewise, if scratch memory has no room, once lost attempts' memory is back
///
/// A partial result counts once it has been READ, with the pieces that its attempt reported. A server that
/// only seems dead is ignored from then on, so no row counts twice. Without words (`counters` null) a list
/// belongs to one attempt: nothing is stolen, but lost work is repeated likewise.
///
/// Rows that servers write into a table themselves (StageOutput::table) lie in an allocation of each
/// attempt's own. The session takes the groups of accepted attempts with the pieces that they reported; the
/// others end with the load.
///
/// Rows that come in windows (StageOutput) are taken in before their attempt has ended, and cannot be undone:
/// if its server is then lost, so is the query. Until the first window lost work is repeated.
class QueryRun {
 public:
  struct Options {
    proto::AttemptRequest request;       // plan and settings
    std::vector<ServerReport>& servers;  // those with a share; later ones are added
    ComputeClients& clients;
    WorkCounters* counters = nullptr;
    std::function<uint64_t()> next_attempt;
    std::function<proto::MulticastStreams(size_t server)> multicast;  // for a first attempt
    /// Living compute servers, polled while the query runs.
    std::function<absl::StatusOr<std::vector<proto::Member>>()> members;
    StageOutput output;
    /// Called with attempts that do not count, and may have left pages in scratch memory. These are freed
    /// before this returns.
    std::function<void(uint64_t attempt)> drop_scratch;
    /// The rows of a piece: blocks of the driving table, or a part.
    std::function<uint64_t(const partitioner::Piece& piece)> rows_of;
    /// Called now and then with the number of rows done, or under way; may be empty.
    std::function<void(uint64_t rows_done)> progress;
    Clock& clock;
    const std::atomic<bool>& cancel;
  };
  explicit QueryRun(const Options& options);
  /// CANCELLED; or the first error that no other server could repair.
  absl::Status Run();

 private:
  struct List {
    std::vector<uint32_t> pieces;  // their numbers
    std::optional<storage::WorkCounter> counter;
    int running = 0;          // attempts that claim from it
    int64_t started_ns = -1;  // the first one's start
    uint64_t claimed = 0;     // at the last look; perhaps more by now
    bool dry = false;         // an attempt has reached its end
  };
  struct Server {
    bool busy = false;
    bool gone = false;  // lost, or leaving
    bool declined = false;
    bool crowded = false;
  };

  absl::Status AddLists(std::vector<std::vector<uint32_t>> shares);
  /// Starts an attempt of `server` on `list`, from its item `first` on.
  absl::Status Start(size_t server, size_t list, uint64_t first, bool with_multicast);
  absl::Status Loop();
  absl::Status Collect(ComputeClients::Work& work);
  absl::Status Add(const ComputeClients::Work& work);
  absl::Status CollectParts(ComputeClients::Work& work) const;
  /// Notes the pieces that its attempt has reported.
  absl::Status Cover(const ComputeClients::Work& work, ServerReport& report);
  absl::Status Lost(size_t server, const absl::Status& why);
  absl::Status Declined(size_t server, const absl::Status& why);
  absl::Status Crowded(size_t server);
  /// Scratch memory is full. That is an error unless lost attempts' share of it has come back since this one
  /// began, or comes back once servers of running attempts are known to be lost, too.
  absl::Status Full(const ComputeClients::Work& work);
  /// Whether no running attempt can free what `full_` waits for, or not for too long.
  bool FullForGood() const;
  /// Gives idle servers a share of the longest lists; nothing if too little is left.
  absl::Status GiveWorkToAll();
  /// READs how much of the wanted lists has been claimed: one READ for all.
  absl::Status LookAtLists(const std::function<bool(const List&)>& wanted);
  /// The unclaimed items that one more attempt may expect to get; 0: not worthwhile.
  double Expected(const List& list, int64_t now_ns) const;
  /// Called once nothing runs: makes lists of unreported pieces for the remaining servers.
  absl::Status HandOutAgain();
  absl::Status LookForNewServers();
  /// Adds living servers from the catalog that are new to the query.
  void AddNewServers();
  absl::Status ReportProgress();
  double NowMs() const { return static_cast<double>(options_.clock.NowNs() - started_ns_) / 1e6; }

  Options options_;
  const size_t shares_;                     // the first lists are the shares of the initial servers
  std::vector<partitioner::Piece> pieces_;  // of all shares
  std::vector<List> lists_;
  std::vector<Server> servers_;  // as options_.servers
  std::vector<bool> covered_;    // by piece
  size_t left_ = 0;              // pieces not covered
  int running_ = 0;
  int rounds_ = 0;
  int fruitless_ = 0;
  int64_t started_ns_ = 0;
  int64_t looked_ns_ = 0;
  int64_t reported_ns_ = 0;
  absl::Status first_loss_;  // of a server, or that it declined
  int losses_ = 0;           // after which scratch memory has come back
  absl::Status full_;        // the query's error unless a server turns out to be lost
  int64_t full_ns_ = 0;
};

}  // namespace nam::session
