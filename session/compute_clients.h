#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "catalog/attachment.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::session {

/// Repeated loss of servers is an error of its own.
inline constexpr int kMostLossRounds = 16;
/// Within this time a dead server is noticed, by all attempts of a streamed stage too.
inline constexpr int64_t kNoticeLossNs = 10'000'000'000;
/// How long a run awaits attempts before it looks at other things.
inline constexpr int64_t kAwaitUs = 5'000;

/// Whether an attempt has this error because its server has not begun it. Another server may.
bool IsDeclined(const absl::Status& status);

/// A coordinator's connections to compute servers: calls that start their work, queue pairs to READ their
/// results:
///
///     Start ─▶ call ─ window ─▶ Await, which READs it ─▶ the same attempt's next call, by itself ─▶ …
///                └─ end ──────▶ Await, which READs the rest
///
/// So a server fills a window while its coordinator processes the one before. One thread.
class ComputeClients {
 public:
  explicit ComputeClients(catalog::Attachment& attachment) : attachment_(attachment) {}
  ~ComputeClients();

  /// One attempt on one server, or a window of its result.
  struct Work {
    proto::Member member;
    proto::AttemptRequest request;
    // Set by the caller:
    size_t server = 0;
    size_t list = 0;
    uint64_t first = 0;  // in the list; the request starts with it
    double started_ms = 0;
    int losses = 0;           // before it
    uint64_t allocation = 0;  // the one that it writes a table's groups into
    /// The attempt's windows that Await has returned before this: their rows are already taken in.
    uint32_t windows = 0;
    // Set at its end, or with a window (reply.more()), which only has `partial`:
    absl::Status status;  // names the server
    bool lost = false;    // the server did not answer, or its result could not be READ: it may be dead
    proto::AttemptReply reply;
    std::string partial;

   private:
    friend class ComputeClients;
    std::shared_ptr<fabric::Event> read;  // for a window: the attempt's next call may begin
  };
  void Start(std::unique_ptr<Work> work);
  /// Whether so many bytes of a result may be held.
  using Room = std::function<absl::Status(uint64_t bytes)>;
  /// Returns the next attempt that has ended, or window, with its rows READ; null at the deadline. `cancel`
  /// ends the reading soon: its status is CANCELLED then. Without room nothing is READ, and the status is
  /// `room`'s.
  std::unique_ptr<Work> Await(Deadline deadline, const std::atomic<bool>& cancel, const Room& room);
  /// Opens a server's ends of a streamed stage, before its attempt. Waits. `lost`: the server did not answer.
  absl::StatusOr<proto::OpenExchangesReply> OpenExchanges(const proto::Member& member,
                                                          const proto::OpenExchangesRequest& request,
                                                          bool& lost);
  /// Drops ends that no attempt needs.
  void ReleaseExchanges(const proto::Member& member, uint64_t attempt);
  /// Ends all running attempts, waits for their ends, and drops their results. Servers are told at once about
  /// results in windows, whose attempts would otherwise stand still, and about other results with the next
  /// attempt or at the end.
  void EndAll();

 private:
  /// The consecutive calls of one attempt, on a thread of their own.
  struct Calls {
    std::shared_ptr<catalog::Peer> peer;
    Work work;  // the first call's, without results
    catalog::CallCancellation cancellation;
    std::shared_ptr<fabric::Event> read;  // guarded by mutex_, like `over`
    bool over = false;
    std::atomic<bool> ended = false;  // its thread is about to end
  };
  struct Thread {
    std::shared_ptr<Calls> calls;
    std::unique_ptr<fabric::Thread> thread;
  };
  struct Server {
    proto::Member member;
    std::shared_ptr<catalog::Peer> peer;            // calls under way hold it
    std::unique_ptr<fabric::QueuePair> queue_pair;  // made at the first result
    std::vector<uint64_t> unreleased;               // attempts whose small results have been READ
  };

  Server& ServerOf(const proto::Member& member);
  void Run(const std::shared_ptr<Calls>& calls);
  /// Hands over a call's result. False: there is no next call.
  bool Hand(Calls& calls, std::unique_ptr<Work> work);
  void ReadResult(Work& work, const std::atomic<bool>& cancel, const Room& room);
  void Release(Server& server);
  static void Release(catalog::Peer& peer, MemberId client, uint64_t attempt);
  /// Uses a thread, so that a silent server delays no work.
  void ReleaseLater(const std::shared_ptr<catalog::Peer>& peer, uint64_t attempt);
  absl::Status PrepareReads();
  absl::Status ReadPartial(Server& server, const proto::AttemptReply& reply, std::string& out,
                           const std::atomic<bool>& cancel);
  /// After an error the READ is still in flight.
  absl::StatusOr<fabric::Completion> AwaitRead(const Server& server, const std::atomic<bool>& cancel);

  catalog::Attachment& attachment_;
  // Destroyed in reverse: queue pairs, their completion queue, the memory that they write.
  std::unique_ptr<fabric::MemoryRegion> buffer_;          // made at the first result
  std::unique_ptr<fabric::CompletionQueue> completions_;  // likewise
  std::map<uint32_t, std::unique_ptr<Server>> servers_;   // by member id
  std::vector<Thread> threads_;                           // the next start joins those that have ended
  struct Releasing {
    std::shared_ptr<fabric::Event> ended;
    std::unique_ptr<fabric::Thread> thread;
  };
  std::vector<Releasing> releasing_;  // likewise

  Mutex mutex_;  // of what the calling threads and the coordinator's share:
  std::deque<std::unique_ptr<Work>> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Calls>> running_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<fabric::Event> wake_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::session
