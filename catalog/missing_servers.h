#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/catalog.pb.h"

namespace nam::catalog {

/// `alive`, `suspect` or `buried`.
std::string StateOf(const proto::Member& member);

/// A memory server with blocks of a table that is suspect or buried.
struct MissingServer {
  proto::Member member;
  uint64_t blocks = 0;  // that the table has there
  uint64_t bytes = 0;

  bool buried() const { return !member.alive(); }
};

/// What a table misses, as the catalog sees it. One that the catalog does not list any more is buried.
std::vector<MissingServer> MissingServersOf(const proto::Table& table, const proto::Cluster& cluster);

}  // namespace nam::catalog
