#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"

/// What `nam bench calibrate` measures, and estimates of joins and groups are made from.
namespace nam::catalog {

/// Times in picoseconds, sizes in bytes, of one thread. The values here are those of a cluster that has not
/// been calibrated: of rows as in plan/work_cost.h, of bytes as of a card of 13.6 GB/s and sockets of one
/// host.
struct FabricConstants {
  // For each byte:
  double memory_byte_ps = 100;    // read or written in sequence: the paper's c_mem
  double read_byte_ps = 75;       // by READs of 64 KiB, several in flight
  double write_2k_byte_ps = 150;  // by WRITEs of 2 KiB
  double write_64k_byte_ps = 75;  // by WRITEs of 64 KiB
  double send_byte_ps = 200;      // by SEND and RECEIVE
  double socket_byte_ps = 500;    // by sockets
  // For each access to a random place, several in flight, in a working set that fits this cache:
  double l2_access_ps = 1'500;
  double l3_access_ps = 5'000;
  double memory_access_ps = 18'000;  // that fits none
  double l2_bytes = 1 << 20;
  double l3_bytes = 16 << 20;
  // For each row or group, beside its bytes and accesses:
  double partition_row_ps = 8'000;     // hashed, and copied to its part
  double build_row_ps = 5'000;         // put into a hash table
  double probe_row_ps = 8'000;         // looked up there
  double direct_build_row_ps = 2'000;  // put into an array by key
  double direct_probe_row_ps = 900;    // looked up there
  double bloom_row_ps = 2'000;         // put into, or looked up in, a Bloom filter
  double group_row_ps = 6'000;         // into its group
  double combine_group_ps = 20'000;    // into that of another thread or server
  double finish_row_ps = 10'000;       // read as a row of a result
  // Once:
  double call_ps = 200e6;  // one call to another process
  double stage_ps =
      1'000e6;             // a stage of servers beside its calls: prepared, ended, its directories taken in
  double slab_ps = 300e6;  // one slab of scratch memory
  double part_ps = 10e6;   // a part: claimed, its pages opened by each writer

  bool operator==(const FabricConstants&) const = default;
};

/// One of them as it is called in the catalog and shown.
struct FabricConstant {
  const char* name;
  double FabricConstants::*field;
  double least, most;  // what is outside is no measurement
};
std::span<const FabricConstant> FabricConstantTable();

proto::FabricConstants ToProto(const std::string& fabric, const FabricConstants& constants);
/// Those that are not named have their defaults. INVALID_ARGUMENT for a name that there is none of or that
/// comes twice, and for a value that is out of its range or not finite.
absl::StatusOr<FabricConstants> FromProto(const proto::FabricConstants& constants);

}  // namespace nam::catalog
