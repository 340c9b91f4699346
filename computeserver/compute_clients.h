#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/compute.pb.h"

namespace nam::computeserver {

/// A coordinator's connections to compute servers: calls to tell them what to run, queue pairs to read
/// what they leave. One thread.
class ComputeClients {
 public:
  static absl::StatusOr<std::unique_ptr<ComputeClients>> Open(catalog::Attachment& attachment);
  ~ComputeClients();

  struct Work {
    proto::Member member;
    proto::FragmentRequest request;
    proto::FragmentReply reply;
    std::string partial;
  };
  /// Runs every server's fragment at the same time, then reads the partial results. The first failure
  /// cancels the others and names its server; so does `cancel` (CANCELLED).
  absl::Status Run(std::vector<Work>& work, const std::atomic<bool>& cancel);

 private:
  struct Server {
    proto::Member member;
    std::unique_ptr<catalog::Peer> peer;
    std::unique_ptr<fabric::QueuePair> queue_pair;  // made at the first result
    std::optional<uint64_t> unreleased;             // query whose result was read last
  };

  explicit ComputeClients(catalog::Attachment& attachment) : attachment_(attachment) {}
  Server& ServerOf(const proto::Member& member);
  absl::Status ReadPartial(Server& server, const proto::FragmentReply& reply, std::string& out);

  catalog::Attachment& attachment_;
  // Destroyed in reverse: queue pairs, their completion queue, the memory they write to.
  std::unique_ptr<fabric::MemoryRegion> buffer_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::map<uint32_t, std::unique_ptr<Server>> servers_;  // by member id
};

}  // namespace nam::computeserver
