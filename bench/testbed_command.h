#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/command.h"
#include "bench/testbed.h"

namespace nam::bench {

/// The common parts of `nam bench fabric`, `prefetch` and `multicast`.
class TestbedCommand : public Command {
 public:
  bool has_charts() const override { return true; }
  bool simulated() const override { return fabric_ == "sim"; }
  absl::Status Check() override;
  absl::StatusOr<Report> Measure(Run& run) final;

  int repeat() const { return repeat_; }
  int64_t round_ns() const { return int64_t{round_ms_} * 1'000'000; }

 protected:
  TestbedCommand(std::string name, std::string help, int repeat)
      : Command(std::move(name), std::move(help)), repeat_(repeat) {}
  /// `own`, and the common options.
  std::vector<Option> WithTestbed(std::vector<Option> own);
  virtual absl::StatusOr<Report> MeasureOn(Testbed& testbed, Run& run) = 0;

  TestbedOptions testbed_;

 private:
  std::string fabric_ = "shm";
  int repeat_;
  int round_ms_ = 0;  // 0: the fabric's default
};

}  // namespace nam::bench
