#include "tests/random_joins/drawn_cluster.h"

#include <cstdint>

namespace nam::testing {

ClusterShape DrawnShape(Draw& draw, fabric::Kind fabric) {
  ClusterShape shape;
  shape.fabric = fabric;
  shape.memory_servers = static_cast<int>(draw.Between(2, 3));
  shape.compute_servers = static_cast<int>(draw.Between(2, 3));
  shape.threads = static_cast<int>(draw.Between(1, 3));
  shape.compute_memory_bytes = draw.Of(std::vector<uint64_t>{16, 64, 1024}) << 20;
  shape.first_attempt_bytes = draw.Of(std::vector<uint64_t>{1, 4, 16}) << 20;
  shape.always_by_parts = draw.Percent(50);
  return shape;
}

const std::vector<DrawnSetting>& DrawnSettings() {
  static const std::vector<DrawnSetting> settings = {
      {"nam.join", {"auto", "pipelined", "rrj", "rdma_ghj", "ghj", "ghj_bloom"}},
      {"nam.exchange", {"auto", "auto", "sockets"}},
      {"nam.aggregate", {"auto", "rdma", "dist"}},
      {"nam.sorts_by_runs", {"auto", "on"}},
      {"nam.build_mib_max", {"1", "1", "256"}},
      {"nam.result_mib_max", {"4", "64", "256"}},
      {"nam.work_queue", {"auto", "off", "on"}},
      {"nam.in_place", {"on", "off"}},
      {"nam.prefetch_window", {"1", "3", "10"}},
      {"nam.multicast", {"auto", "off", "on"}},
      {"nam.compute_servers", {"0", "0", "0", "1"}},
      {"nam.whole_tuples", {"off", "off", "on"}},
      {"nam.verify_checksums", {"off", "on"}},
  };
  return settings;
}

}  // namespace nam::testing
