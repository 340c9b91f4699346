#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/command.h"
#include "bench/shuffle_cluster.h"
#include "catalog/attachment.h"
#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"
#include "session/session.h"

namespace nam::bench {

/// Star joins over SSB's tables by the cluster's own pipelined plans and by shuffle-based ones, on the same
/// rows, in turn; the answers must be equal.
class ShuffleBench {
 public:
  struct Options {
    std::vector<uint32_t> tables;   // joined tables: 2, 3, 4
    std::vector<uint32_t> servers;  // compute servers per side, by measurement
    uint32_t threads = 1;           // per server
    double scale_factor = 1;
    uint64_t seed = 1;
    uint32_t fan_out = 8;  // parts per join key
    int repeat = 1;
    std::string multicast = "auto";  // nam.multicast, for the pipelined plan's build sides
    bool whole_tuples = false;       // moves all columns of lineorder, not only the needed ones
    ShuffleMessages messages;
  };
  /// The benchmark's environment; everything must outlive it.
  struct Cluster {
    catalog::Attachment* attachment = nullptr;
    session::Session* session = nullptr;
    std::vector<fabric::Fabric*> fabrics;  // the shuffle's servers, as many as are ever used
    // In `sim`:
    fabric::sim::World* world = nullptr;
    fabric::sim::NicModel nic;
    std::vector<std::string> hosts;  // of memory and compute servers
  };

  enum class Plan : uint8_t { kPipelined, kShuffle, kShuffleMaterialized, kShuffleFromMemory };
  static constexpr Plan kPlans[] = {Plan::kPipelined, Plan::kShuffle, Plan::kShuffleMaterialized,
                                    Plan::kShuffleFromMemory};
  static const char* NameOf(Plan plan);

  struct Figures {
    uint32_t tables = 0;
    uint32_t servers = 0;
    Plan plan = Plan::kPipelined;
    std::vector<double> ms;
    bool equal = true;  // equals the query's first answer
    // From the last run:
    uint64_t sent_bytes = 0;  // by SEND
    ShuffleWork work;
    double network_bytes = 0;      // sim: into compute servers' cards
    std::string busiest_card;      // sim
    double busiest_fraction = -1;  // sim: of its capacity
    double median_ms() const;
  };

  ShuffleBench(const Cluster& cluster, Options options) : cluster_(cluster), options_(std::move(options)) {}

  absl::Status Load(Run& run);
  absl::Status Measure(Run& run);

  const std::vector<Figures>& figures() const { return figures_; }
  /// NULL if it was not measured.
  const Figures* Find(uint32_t tables, uint32_t servers, Plan plan) const;
  uint64_t lineorder_rows() const { return lineorder_rows_; }
  static std::string QueryOf(uint32_t tables);

 private:
  absl::Status Bind();
  absl::Status KeepRows();
  absl::Status MeasureOn(uint32_t servers, Run& run);
  absl::Status RunOnce(ShuffleCluster& shuffle, size_t query, Figures& figures, bool warm_up);
  absl::StatusOr<std::shared_ptr<const storage::Dictionary>> DictionaryOf(const proto::Table& table,
                                                                          uint32_t column);
  std::vector<fabric::sim::NicTraffic> Traffic() const;
  void LookAtCards(const std::vector<fabric::sim::NicTraffic>& before, double ms, Figures& figures) const;

  const Cluster cluster_;
  const Options options_;
  std::unique_ptr<storage::Channel> channel_;  // for dictionaries
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<const storage::Dictionary>> dictionaries_;
  std::vector<ShuffleQuery> queries_;  // as options_.tables
  std::vector<std::vector<std::vector<Value>>> answers_;
  ShuffleTables rows_;
  uint64_t lineorder_rows_ = 0;
  std::vector<Figures> figures_;
};

}  // namespace nam::bench
