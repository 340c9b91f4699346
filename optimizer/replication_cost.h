#pragma once

namespace nam::optimizer {

/// Build sides that every compute server needs whole.
struct ReplicatedSides {
  double rows = 0;
  double bytes = 0;      // read from them
  double datagrams = 0;  // for these bytes
  int senders = 1;       // memory servers that hold them
  int servers = 1;       // that need them
  int threads = 1;       // of each
};

/// The time until every server has built its join tables of them: each READs them, or memory servers
/// multicast them.
struct ReplicationCosts {
  double read_ms = 0;
  double multicast_ms = 0;
};
ReplicationCosts CostsOf(const ReplicatedSides& sides);

/// Two ports of FDR InfiniBand, the simulator's default card.
inline constexpr double kCardBytesPerUs = 13'600;

}  // namespace nam::optimizer
