#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execution/exchange/endpoint.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"

#define ASSERT_OK(expression)                              \
  do {                                                     \
    const absl::Status nam_status = (expression);          \
    ASSERT_TRUE(nam_status.ok()) << nam_status.ToString(); \
  } while (false)

/// Members of an exchange, like processes of a cluster, over any fabric.
namespace nam::execution {

/// The attempt of the query whose rows are exchanged.
inline constexpr uint64_t kAttempt = 77;

/// The implementations of the contract.
enum class Design : uint8_t { kSendReceive };

struct Subject {
  Design design = Design::kSendReceive;
  fabric::Kind fabric = fabric::Kind::kSim;
};
/// gtest's name of the parameter.
std::string NameOf(const testing::TestParamInfo<Subject>& info);

class Members {
 public:
  /// Makes a fabric and an endpoint for each member. `options` are those of all, except for `self` and
  /// `members`.
  Members(const Subject& subject, uint32_t count, EndpointOptions options);

  uint32_t count() const { return static_cast<uint32_t>(endpoints_.size()); }
  Endpoint& operator[](uint32_t member) { return *endpoints_[member]; }
  fabric::Fabric& fabric(uint32_t member) { return *fabrics_[member]; }
  /// The fabric of one more process.
  std::unique_ptr<fabric::Fabric> OpenFabric();
  static std::string Name(uint32_t member);
  std::vector<std::string> addresses() const;

  /// Connects all members to all.
  void Connect();
  /// Runs the body of each member on a thread of its own, and joins them.
  void OnAll(const std::function<void(uint32_t member)>& body);
  /// The member has finished; called by its own thread.
  void Leave(uint32_t member) { endpoints_[member].reset(); }
  /// The member is lost in the middle of its work.
  void Lose(uint32_t member);

  const std::atomic<bool>& cancel() const { return cancel_; }
  void Cancel() { cancel_ = true; }
  Deadline Soon() { return fabrics_[0]->clock().After(60'000'000); }

 private:
  const Subject subject_;
  std::unique_ptr<fabric::sim::World> world_;  // of `sim`
  uint32_t opened_ = 0;
  std::vector<std::unique_ptr<fabric::Fabric>> fabrics_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<bool> cancel_ = false;
};

}  // namespace nam::execution
