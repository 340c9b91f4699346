#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/member.h"
#include "fabric/member_connections.h"

namespace nam::fabric {

enum class Verdict : uint8_t {
  kAdmitted,
  kRefused,  // no live member has this id and this key
  kUnknown,  // the owner could not answer, or too many claims wait
};

/// Asks the owner of a passive listener about members. Runs on its own thread, so the owner may take its time
/// while other handshakes go on. Asks about all waiting claims at once. Thread-safe.
class Admission {
 public:
  /// `place`: the registered connection; serves under `key` if admitted.
  struct Decision {
    Verdict verdict = Verdict::kUnknown;
    MemberConnections::Place place;
    MemberKey key{};
  };
  using Decided = std::function<void(Decision)>;

  /// `keys` must outlive this object.
  explicit Admission(MemberKeys& keys);
  ~Admission() { Stop(); }
  /// Waits for the question in flight; claims still undecided stay undecided. Later claims get kUnknown.
  void Stop();

  /// Registers the connection and calls `decide` once: in this call if the member's key is known or too many
  /// claims wait, else later on the admission thread.
  void Ask(const MemberClaim& claim, Decided decide);
  MemberConnections& connections() { return *connections_; }

 private:
  struct Question {
    MemberClaim claim;
    MemberConnections::Place place;
    Decided decide;
  };
  /// `key`: the member's key; null if the member is not alive.
  static void Decide(Question question, const MemberKey* key);
  void Run();
  void Answer(std::vector<Question> questions);

  MemberKeys& keys_;
  const size_t waiting_max_;
  const std::shared_ptr<MemberConnections> connections_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Question> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric
