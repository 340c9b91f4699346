#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/card_use.h"
#include "bench/command.h"
#include "bench/shuffle_cluster.h"
#include "bench/turns.h"
#include "catalog/attachment.h"
#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"
#include "session/session.h"

namespace nam::bench {

// Plans.
inline constexpr char kPipelined[] = "pipelined";
inline constexpr char kShuffle[] = "shuffle";
inline constexpr char kMaterialized[] = "shuffle, materialized";

/// Star joins over SSB's tables by the cluster's own pipelined plans and by shuffle-based ones, on the same
/// rows, in turn; the answers must be equal.
class ShuffleBench {
 public:
  struct Options {
    std::vector<uint32_t> tables;  // joined tables: 2, 3, 4
    uint32_t threads = 1;          // per compute server
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
    std::vector<fabric::Fabric*> fabrics;  // the shuffle's servers; the cluster has as many
    // In `sim`:
    fabric::sim::World* world = nullptr;
    fabric::sim::NicModel nic;
    std::vector<Card> cards;  // memory and compute servers have one each
  };

  /// The figures say what a plan's last run moved and did.
  struct Moved {
    uint64_t sent_bytes = 0;  // by SEND
    ShuffleWork work;
    // In `sim`:
    double network_bytes = 0;  // into the cards
    UnitUse busiest;
  };
  struct Case {
    uint32_t tables = 0;
    CaseFigures figures;  // the plans are its contenders
    std::map<std::string, Moved> moved;
  };

  ShuffleBench(const Cluster& cluster, Options options) : cluster_(cluster), options_(std::move(options)) {}

  absl::Status Load(Run& run);
  absl::Status Measure(Run& run);

  /// In the order of the options' tables.
  const std::vector<Case>& cases() const { return cases_; }
  const Options& options() const { return options_; }
  bool simulated() const { return cluster_.world != nullptr; }
  uint64_t lineorder_rows() const { return lineorder_rows_; }
  static std::string QueryOf(uint32_t tables);

 private:
  absl::Status Bind();
  absl::Status KeepRows();
  absl::StatusOr<Turn> TakeTurn(ShuffleCluster& shuffle, size_t query, const std::string& plan, Moved& moved);
  execution::DictionaryLoader Loader();

  const Cluster cluster_;
  const Options options_;
  std::unique_ptr<storage::Channel> channel_;  // for dictionaries
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<const storage::Dictionary>> dictionaries_;
  std::vector<ShuffleQuery> queries_;  // as options_.tables
  ShuffleTables rows_;
  uint64_t lineorder_rows_ = 0;
  std::vector<Case> cases_;
};

}  // namespace nam::bench
