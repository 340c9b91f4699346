#pragma once

#include <vector>

#include "fabric/fabric.h"
#include "tests/cluster/tested_cluster.h"
#include "tests/random_joins/draw.h"

namespace nam::testing {

ClusterShape DrawnShape(Draw& draw, fabric::Kind fabric);

/// A setting of the session, and values to draw from; a value that is listed twice is twice as likely.
struct DrawnSetting {
  const char* name;
  std::vector<const char*> values;
};
/// The settings that choose algorithms, bound their memory and distribute their work: a case draws them all.
const std::vector<DrawnSetting>& DrawnSettings();

}  // namespace nam::testing
