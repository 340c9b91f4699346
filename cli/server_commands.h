#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catalog/certificates.h"
#include "cli/foreground.h"

namespace nam::cli {

struct CatalogOptions {
  std::string listen = "127.0.0.1:0";
  uint16_t lease_port = 0;
  std::string store;
  std::string cluster_name = "nam";
  std::string fabric = "shm";
  std::string secret_file;
  catalog::TlsFiles tls;
  uint32_t lease_ms = 3'000;
  double bury_after_s = 60;  // how long a memory server whose lease has ended may come back
  std::string timestamps = "leased";
  bool encrypt = false;
  ServerLogOptions log;
  bool accept_older_store = false;
};

struct MemoryServerCommandOptions {
  std::string catalog;
  std::string secret_file;
  catalog::TlsFiles tls;
  uint64_t memory_bytes = 1ULL << 30;
  std::optional<uint64_t> scratch_bytes;
  std::string data_directory;  // empty, or `none`: its contents end with it
  std::string control_listen = "127.0.0.1:0";
  std::string fabric_listen;
  std::string advertised_host;
  bool populate = false;
  int nic_threads = 1;
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  ServerLogOptions log;
};

struct ComputeServerCommandOptions {
  std::string catalog;
  std::string secret_file;
  catalog::TlsFiles tls;
  int threads = 0;                       // 0: all processors
  std::optional<uint64_t> memory_bytes;  // nullopt: DefaultComputeMemory
  std::string control_listen = "127.0.0.1:0";
  std::string fabric_listen;
  std::string advertised_host;
  std::string rdma;
  std::string multicast_interface;
  int multicast_ttl = 1;
  ServerLogOptions log;
};

/// One server in the foreground. When it is up it prints `READY <role> key=value …` on standard output and
/// then serves until SIGTERM or SIGINT; a second signal ends it at once.
int RunCatalog(const CatalogOptions& options);
int RunMemoryServer(const MemoryServerCommandOptions& options);
int RunComputeServer(const ComputeServerCommandOptions& options);

}  // namespace nam::cli
