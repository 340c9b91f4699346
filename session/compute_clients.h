#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::session {

/// A coordinator's connections to compute servers: calls to tell them what to run, queue pairs to read
/// what they leave. One thread.
class ComputeClients {
 public:
  static absl::StatusOr<std::unique_ptr<ComputeClients>> Open(catalog::Attachment& attachment);
  ~ComputeClients();

  /// One attempt on one server.
  struct Work {
    proto::Member member;
    proto::AttemptRequest request;
    // The caller's own:
    size_t server = 0;
    size_t list = 0;
    uint64_t first = 0;  // of the list, which the request starts with
    double started_ms = 0;
    // Once it has ended:
    absl::Status status;  // names the server
    bool lost = false;    // the server did not answer, or not let its result be read: it may be dead
    proto::AttemptReply reply;
    std::string partial;

   private:
    friend class ComputeClients;
    catalog::CallCancellation cancellation;
  };
  void Start(std::unique_ptr<Work> work);
  /// The next attempt that has ended, with its partial result read; null at the deadline. `cancel` ends the
  /// reading: its status is CANCELLED then.
  std::unique_ptr<Work> Await(Deadline deadline, const std::atomic<bool>& cancel);
  /// Ends all that run and waits for that. Nobody reads what they left: the servers are told with the next
  /// attempt, or at the end.
  void EndAll();

 private:
  struct Server {
    proto::Member member;
    std::shared_ptr<catalog::Peer> peer;            // calls under way hold it
    std::unique_ptr<fabric::QueuePair> queue_pair;  // made at the first result
    std::vector<uint64_t> unreleased;               // attempts whose results have been read
  };

  explicit ComputeClients(catalog::Attachment& attachment) : attachment_(attachment) {}
  Server& ServerOf(const proto::Member& member);
  void ReadResult(Work& work, const std::atomic<bool>& cancel);
  void Release(Server& server);
  absl::Status ReadPartial(Server& server, const proto::AttemptReply& reply, std::string& out,
                           const std::atomic<bool>& cancel);

  catalog::Attachment& attachment_;
  // Destroyed in reverse: queue pairs, their completion queue, the memory they write to.
  std::unique_ptr<fabric::MemoryRegion> buffer_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::map<uint32_t, std::unique_ptr<Server>> servers_;  // by member id
  std::vector<std::unique_ptr<fabric::Thread>> threads_;

  std::mutex mutex_;  // guards what calling threads and the coordinator's share:
  std::deque<std::unique_ptr<Work>> ended_;
  std::vector<Work*> running_;
  std::shared_ptr<fabric::Event> wake_;
};

}  // namespace nam::session
