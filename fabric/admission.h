#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/member.h"
#include "fabric/member_connections.h"

namespace nam::fabric {

enum class Verdict : uint8_t {
  kAdmitted,
  kRefused,  // no member with this id and this key lives
  kUnknown,  // the owner could not say, or too many wait
};

/// Asks the owner of a passive listener about members, on a thread of its own, so that the owner may take its
/// time and other handshakes go on. All that wait are asked about at once. Thread-safe.
class Admission {
 public:
  /// `place`: registered, and with `key` ready to serve if it is admitted.
  struct Decision {
    Verdict verdict = Verdict::kUnknown;
    MemberConnections::Place place;
    MemberKey key{};
  };
  using Decided = std::function<void(Decision)>;

  /// `keys` outlives this.
  explicit Admission(MemberKeys& keys);
  ~Admission() { Stop(); }
  /// Waits for the question under way; what is not decided then never is. Later questions are kUnknown.
  void Stop();

  /// Registers the connection, and calls `decide` once: here if the member's key is known or too many wait,
  /// else later on the thread of this.
  void Ask(const MemberClaim& claim, Decided decide);
  MemberConnections& connections() { return *connections_; }

 private:
  struct Question {
    MemberClaim claim;
    MemberConnections::Place place;
    Decided decide;
  };
  /// `key`: the member's; null: it does not live.
  static void Decide(Question question, const MemberKey* key);
  void Run();
  void Answer(std::vector<Question> questions);

  MemberKeys& keys_;
  const size_t waiting_max_;
  const std::shared_ptr<MemberConnections> connections_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Question> waiting_;   // under mutex_
  bool stopping_ = false;           // under mutex_
  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric
