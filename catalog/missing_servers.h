#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/catalog.pb.h"

namespace nam::catalog {

/// `alive`, `suspect` or `buried`.
std::string StateOf(const proto::Member& member);

/// A memory server with blocks of a table that is suspect or buried, or has started without them.
struct MissingServer {
  proto::Member member;
  uint64_t blocks = 0;  // that the table has there
  uint64_t bytes = 0;
  uint32_t server = 0;  // the server id of their remote pointers
  std::string lost;     // why a living server has them not; empty if it is not that

  /// The blocks are not there, and come back only with a data directory or a file.
  bool buried() const { return !member.alive() || !lost.empty(); }
  /// A memory server on this directory brings the blocks back. Empty: nothing does.
  std::string directory() const {
    return !member.alive() && server == member.storage() && server != member.id() ? member.data_directory()
                                                                                  : "";
  }
};

/// What a table misses, as the catalog sees it. One that the catalog does not list any more is buried.
std::vector<MissingServer> MissingServersOf(const proto::Table& table, const proto::Cluster& cluster);

}  // namespace nam::catalog
