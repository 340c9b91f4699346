#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "execution/scan/row_selector.h"
#include "plan/physical.h"
#include "proto/table.pb.h"

namespace nam::execution {

/// A column that a scan emits: one that it reads, or a payload column of an absorbed probe's partner.
struct ScanOutput {
  static constexpr int32_t kScanned = -1;
  int32_t probe = kScanned;  // the number of the absorbed probe
  uint32_t column = 0;       // slot of the scan's columns; for a probe: place in the build's payload

  bool operator==(const ScanOutput&) const = default;
};

/// A pipeline over a block scan after its source has absorbed the probes that are look-ups of its own keys:
///
///     scan ──▶ probe P0 ──▶ probe P1 ──▶ probe P2 ──▶ sink        P0 and P2 are direct
///     scan with P0, P2 ──▶ probe P1 ──▶ sink
///
/// The scan emits `outputs`, which schemas[0] of `pipeline` describes: columns that it reads, in ascending
/// order, then the payload of its probes. Later slots are renumbered, and unused columns left out. Payload of
/// a BuildSink keeps its order, which need not ascend any more.
struct AbsorbedPipeline {
  struct Probe {
    uint32_t build = 0;  // pipeline
    uint32_t key = 0;    // slot of the scan's columns
    bool operator==(const Probe&) const = default;
  };
  plan::Pipeline pipeline;
  std::vector<Probe> probes;
  std::vector<uint32_t> probe_steps;  // their steps in the original; ascending
  std::vector<ScanOutput> outputs;
};

/// A pure function from pipeline to pipeline. `direct` tells for each pipeline of the plan whether its build
/// is a unique DirectTable on this server. Absorbs a probe of such a build if it is an inner or a semi join
/// without residual conditions, and its key is a plain column of the scan, neither text nor among the `plain`
/// slots, which have no codes to look up. It may pass earlier steps that stay, unless these would change the
/// result when they get fewer rows (LIMIT), add rows (right and full joins), or compute columns. The pipeline
/// passed `plan::Check`; a pipeline over another source comes back unchanged.
AbsorbedPipeline Absorb(const plan::Pipeline& pipeline, std::span<const uint8_t> direct,
                        std::span<const uint8_t> plain = {});

/// Describes the look-up in `table` of the keys in column `key` of `scanned`. `table` has the partitions that
/// partitions of `scanned` need by its partition key `co_partitioned_key`; -1: it has all of them.
KeyLookup LookupOf(const DirectTable& table, uint32_t slot, uint32_t key, int32_t co_partitioned_key,
                   const proto::Table& scanned);

}  // namespace nam::execution
