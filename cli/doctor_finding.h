#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace nam::cli {

enum class FindingState : uint8_t {
  kOk,
  kWarning,  // works, but slower or with less than possible
  kMissing,  // a fabric cannot work without it
};

/// One requirement of a fabric on the host.
struct Finding {
  std::string name;
  std::string found;
  std::string needed;
  FindingState state = FindingState::kOk;
  std::string remedy;                 // the command that fixes it
  std::vector<fabric::Kind> fabrics;  // that need it
};

inline const std::vector<fabric::Kind> kRealFabrics = {fabric::Kind::kShm, fabric::Kind::kTcp,
                                                       fabric::Kind::kVerbs};

/// The files that checks read; tests have trees of their own.
struct HostTree {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

}  // namespace nam::cli
