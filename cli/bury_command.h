#pragma once

#include <cstdint>

#include "localcluster/connect.h"

namespace nam::cli {

struct BuryOptions {
  ClusterOptions cluster;
  uint32_t server = 0;
  bool yes = false;
};

/// Ends the membership of a suspect memory server at an operator's request: first lists the tables that lose
/// blocks by it, and asks, unless told not to.
int RunBury(const BuryOptions& options);

}  // namespace nam::cli
