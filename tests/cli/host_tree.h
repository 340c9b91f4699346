#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/doctor_finding.h"

namespace nam::cli {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

/// A test's own /proc and /sys, removed at its end. At first they describe a host where nothing is missing.
class FakeHost {
 public:
  FakeHost() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nam-doctor-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    Write("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
    Write("proc/sys/net/core/rmem_max", "16777216\n");
    Write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2 sse4_2 avx2 constant_tsc nonstop_tsc\n");
    Write("proc/self/status", "Name:\tnam\nCpus_allowed_list:\t0-3,8\nCapEff:\t0000000000000000\n");
    Limits("1024", "unlimited", "unlimited");
    Meminfo(8 << 20, 1024, 1024);
    Write("proc/self/cgroup", "0::/user.slice/nam.scope\n");
    Write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    Write("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n");
    Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    Write("sys/kernel/mm/transparent_hugepage/shmem_enabled",
          "always [within_size] advise never deny force\n");
  }
  ~FakeHost() { std::filesystem::remove_all(root_); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  HostTree tree() const { return {.proc = root_ + "/proc", .sys = root_ + "/sys"}; }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(root_ + "/" + path); }
  /// Soft limits: open files, locked memory, file size.
  void Limits(const std::string& files, const std::string& locked, const std::string& file_size) {
    Write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units\n"
          "Max file size             " +
              file_size +
              "            unlimited bytes\n"
              "Max open files            " +
              files +
              "                1048576  files\n"
              "Max locked memory         " +
              locked + "             8388608  bytes\n");
  }
  void Meminfo(uint64_t available_kib, uint64_t huge_total, uint64_t huge_free) {
    Write("proc/meminfo", "MemTotal:       99999999 kB\nMemAvailable:   " + std::to_string(available_kib) +
                              " kB\nHugePages_Total:    " + std::to_string(huge_total) +
                              "\nHugePages_Free:     " + std::to_string(huge_free) +
                              "\nHugepagesize:       2048 kB\n");
  }

 private:
  std::string root_;
};

}  // namespace nam::cli
