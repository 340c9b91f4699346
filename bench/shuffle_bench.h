#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/card_use.h"
#include "bench/command.h"
#include "bench/shuffle_plan.h"
#include "bench/shuffle_worker.h"
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

struct ShuffleOptions {
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
/// The benchmark's environment; everything in it outlives the measurement.
struct ShuffleEnvironment {
  catalog::Attachment* attachment = nullptr;
  session::Session* session = nullptr;
  std::vector<fabric::Fabric*> fabrics;  // the shuffle's servers; the cluster has as many
  // In `sim`:
  fabric::sim::World* world = nullptr;
  fabric::sim::NicModel nic;
  std::vector<Card> cards;  // memory and compute servers have one each
};

/// The figures say what a plan's last run moved and did.
struct ShuffleMoved {
  uint64_t sent_bytes = 0;  // by SEND
  ShuffleWork work;
  // In `sim`:
  double network_bytes = 0;  // into the cards
  UnitUse busiest;
};
struct ShuffleCase {
  uint32_t tables = 0;
  CaseFigures figures;  // the plans are its contenders
  std::map<std::string, ShuffleMoved> moved;
};

struct ShuffleFigures {
  std::vector<ShuffleCase> cases;  // in the order of the options' tables
  uint64_t lineorder_rows = 0;
};

/// Star joins over SSB's tables by the cluster's own pipelined plans and by shuffle-based ones, on the same
/// rows, in turn; the answers must be equal. Loads the tables first.
absl::StatusOr<ShuffleFigures> MeasureShuffle(const ShuffleEnvironment& environment,
                                              const ShuffleOptions& options, Run& run);

}  // namespace nam::bench
