#include "execution/scan/scan_totals.h"

namespace nam::execution {

void ScanTotals::Add(const ScanTotals& totals, const PieceClaims* claims) {
  rows_in += totals.rows_in;
  conditions.Add(totals.conditions);
  skipped_blocks += totals.skipped_blocks;
  total_ns += totals.total_ns;
  AddStream(totals.stream);
  if (claims == nullptr) return;
  begun.push_back(claims->begun());
  claims_made += claims->claims_made();
}

void ScanTotals::AddStream(const storage::StreamCounters& counters) {
  stream.blocks += counters.blocks;
  stream.skipped_blocks += counters.skipped_blocks;
  stream.rows += counters.rows;
  stream.posts += counters.posts;
  stream.waiting_ns += counters.waiting_ns;
  for (const auto& [server, bytes] : counters.bytes) stream.bytes[server] += bytes;
}

}  // namespace nam::execution
