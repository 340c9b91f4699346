#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"

/// The measurements of `nam bench calibrate`, from which joins and groups are estimated.
namespace nam::catalog {

/// Times in picoseconds and sizes in bytes, per thread. The defaults stand for a cluster that has not been
/// calibrated: rows as in plan/work_cost.h, bytes as with a 13.6 GB/s card and sockets of one host.
struct FabricConstants {
  // Per byte:
  double memory_byte_ps = 100;    // read or written in sequence: the paper's c_mem
  double read_byte_ps = 75;       // by READs of 64 KiB, several in flight
  double write_2k_byte_ps = 150;  // by WRITEs of 2 KiB
  double write_64k_byte_ps = 75;  // by WRITEs of 64 KiB
  double send_byte_ps = 200;      // by SEND and RECEIVE
  double socket_byte_ps = 500;    // by sockets
  // Per access to a random place, with several in flight, by the smallest cache that holds the working set:
  double l2_access_ps = 1'500;
  double l3_access_ps = 5'000;
  double memory_access_ps = 18'000;  // no cache holds it
  double l2_bytes = 1 << 20;
  double l3_bytes = 16 << 20;
  // Per row or group, in addition to its bytes and accesses:
  double partition_row_ps = 8'000;     // hash, and copy to its part
  double build_row_ps = 5'000;         // insert into a hash table
  double probe_row_ps = 8'000;         // look up in it
  double direct_build_row_ps = 2'000;  // insert into an array by key
  double direct_probe_row_ps = 900;    // look up in it
  double bloom_row_ps = 2'000;         // insert into, or look up in, a Bloom filter
  double group_row_ps = 6'000;         // add to its group
  double combine_group_ps = 20'000;    // merge into another thread's or server's group
  double finish_row_ps = 10'000;       // read as a result row
  // One time:
  double call_ps = 200e6;     // a call to another process
  double stage_ps = 1'000e6;  // a stage of servers without its calls: prepare, end, merge directories
  double slab_ps = 300e6;     // a slab of scratch memory
  double part_ps = 10e6;      // a part: claim it, and open each writer's pages

  bool operator==(const FabricConstants&) const = default;
};

/// The entry of one constant: its name in the catalog and in output, and its range.
struct FabricConstant {
  const char* name;
  double FabricConstants::*field;
  double least, most;  // values outside are not plausible measurements
};
std::span<const FabricConstant> FabricConstantTable();

proto::FabricConstants ToProto(const std::string& fabric, const FabricConstants& constants);
/// Constants that are not named keep their defaults. INVALID_ARGUMENT for an unknown or repeated name, and
/// for a value that is out of range or not finite.
absl::StatusOr<FabricConstants> FromProto(const proto::FabricConstants& constants);

}  // namespace nam::catalog
