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

void ScanTotals::Count(proto::PipelineCounters& out) const {
  out.set_rows_in(rows_in);
  out.set_blocks(stream.blocks);
  out.set_skipped_blocks(skipped_blocks);
  out.set_waiting_us(stream.waiting_ns / 1000);
  out.set_total_us(total_ns / 1000);
  out.set_multicast_blocks(multicast_blocks);
  out.set_repaired_blocks(repaired_blocks);
  out.set_duplicate_datagrams(duplicate_datagrams);
  for (const auto& [server, bytes] : stream.bytes) {
    proto::ServerBytes& b = *out.add_bytes();
    b.set_server(server.value());
    b.set_bytes(bytes);
  }
}

void ScanTotals::Report(proto::AttemptReply& out) const {
  for (const std::vector<uint32_t>& claimed : begun)
    out.add_threads()->mutable_pieces()->Add(claimed.begin(), claimed.end());
  out.set_claims(claims_made);
}

}  // namespace nam::execution
