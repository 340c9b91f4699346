#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "proto/compute.pb.h"
#include "sql/bound_query.h"
#include "types/time_zone.h"

namespace nam::session {

/// Something that is done where it pays, never, or wherever possible.
enum class Choice : uint8_t { kAuto, kOff, kOn };

/// What SET nam.<name> changes, per session.
struct SessionSettings {
  int64_t prefetch_window = 10;  // blocks in flight per thread
  bool in_place = true;          // take blocks where they lie, if the fabric can
  bool verify_checksums = true;
  bool whole_tuples = false;               // all columns of the driving table are moved, whichever are needed
  int64_t result_mib_max = 1024;           // memory for one server's partial result
  int64_t build_mib_max = 4096;            // memory for one server's join tables
  int64_t compute_servers = 0;             // at most so many work on a query; 0: all
  Choice multicast = Choice::kAuto;        // of build sides that several compute servers need
  Choice work_queue = Choice::kAuto;       // work is claimed, so that it can be stolen
  Choice groups_by_parts = Choice::kAuto;  // groups go to a further stage of servers; for measurements
  Choice sorts_by_runs = Choice::kAuto;    // rows that are sorted go to scratch memory
  Choice joins_by_parts = Choice::kAuto;   // so do the sides of joins
  std::string time_zone = kUtc;            // SET TIME ZONE: a name that TimeZone::Find knows

  absl::Status Set(const sql::SetStatement& statement);
  std::map<std::string, std::string> All() const;
  proto::StreamSettings ForStreams() const;
  uint64_t build_bytes_max() const { return static_cast<uint64_t>(build_mib_max) << 20; }
  uint64_t result_bytes_max() const { return static_cast<uint64_t>(result_mib_max) << 20; }
};

}  // namespace nam::session
