#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/doctor_finding.h"

namespace nam::cli {

struct DoctorOptions {
  std::string fabric;  // empty: findings for all; those for shm decide
  uint64_t memory_bytes = 1ULL << 30;
  std::vector<std::string> listen;  // empty: 127.0.0.1:0
  std::string multicast_interface;
  std::string format = "table";
};

/// Reports what this host can do, what is missing, and the command that fixes it. Changes nothing. The exit
/// code is kExitCheckFailed if the chosen fabric needs something that is missing.
int RunDoctor(const DoctorOptions& options);

/// The findings that `fabric` needs, all if it is empty.
std::vector<Finding> Relevant(std::vector<Finding> findings, const std::string& fabric);
/// Whether nothing is missing for the fabric.
bool Usable(const std::vector<Finding>& findings, fabric::Kind kind);
/// `format` is one of ParseOutputFormat. Ends with a newline.
std::string RenderFindings(const std::vector<Finding>& findings, const DoctorOptions& options);

}  // namespace nam::cli
