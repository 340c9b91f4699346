#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/catalog.pb.h"

namespace nam::catalog {

/// `alive`, `suspect` or `buried`.
std::string StateOf(const proto::Member& member);

/// A memory server with blocks of a table that is suspect, buried, or restarted without them.
struct MissingServer {
  proto::Member member;
  uint64_t blocks = 0;  // of the table
  uint64_t bytes = 0;
  uint32_t server = 0;  // the server id of their remote pointers
  std::string lost;     // why a live server lacks the blocks; empty otherwise

  /// The blocks are lost, unless a data directory or a file brings them back.
  bool buried() const { return !member.alive() || !lost.empty(); }
  /// The directory whose memory server would bring the blocks back; empty if none.
  std::string directory() const {
    return !member.alive() && server == member.storage() && server != member.id() ? member.data_directory()
                                                                                  : "";
  }
};

/// The servers that a table misses, as the catalog sees it. A server that the catalog no longer lists counts
/// as buried.
std::vector<MissingServer> MissingServersOf(const proto::Table& table, const proto::Cluster& cluster);

}  // namespace nam::catalog
