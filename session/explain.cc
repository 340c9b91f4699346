#include "session/explain.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/cost_model.h"
#include "plan/aggregate.h"

namespace nam::session {
namespace {

using optimizer::Plan;
using plan::Expr;

std::string Grouped(uint64_t n) {
  std::string digits = absl::StrCat(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string Bytes(uint64_t bytes) {
  if (bytes < 10 << 10) return absl::StrFormat("%d B", bytes);
  if (bytes < 10 << 20) return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / 1024);
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

class Printer {
 public:
  Printer(const sql::BoundQuery& query, const Plan& plan, const optimizer::TableRefs& tables)
      : query_(query), plan_(plan), tables_(tables) {}

  std::string Text(const Expr& expr) const {
    return plan::ToString(expr, [&](const Expr& e) -> std::string {
      const auto& table = *tables_[static_cast<size_t>(e.column.table)];
      return absl::StrCat(query_.tables[static_cast<size_t>(e.column.table)].alias, ".",
                          table.columns(e.column.column).name());
    });
  }

  std::string Name(int table) const {
    const std::string& name = tables_[static_cast<size_t>(table)]->name();
    const std::string& alias = query_.tables[static_cast<size_t>(table)].alias;
    return alias == name ? name : absl::StrCat(name, " ", alias);
  }

  std::string All(const std::vector<Expr>& exprs, const char* between) const {
    return absl::StrJoin(exprs, between,
                         [&](std::string* out, const Expr& e) { absl::StrAppend(out, Text(e)); });
  }

  std::string Sink() const {
    if (!plan_.aggregated) {
      std::string line = absl::StrCat("Rows: ", All(plan_.output, ", "));
      if (plan_.row_limit >= 0) absl::StrAppend(&line, " (first ", plan_.row_limit, ")");
      return line;
    }
    static constexpr const char* kNames[] = {"count(*)", "count", "sum",           "min",
                                             "max",      "avg",   "count distinct"};
    std::vector<std::string> parts;
    for (const plan::Aggregate& aggregate : plan_.aggregates) {
      const char* name = kNames[static_cast<int>(aggregate.function)];
      const bool rows = aggregate.function == plan::AggregateFunction::kCountRows;
      parts.push_back(rows ? std::string(name) : absl::StrCat(name, "(", Text(aggregate.argument), ")"));
    }
    std::string line = absl::StrCat("Aggregate: ", absl::StrJoin(parts, ", "));
    if (!plan_.group_by.empty()) absl::StrAppend(&line, " by ", All(plan_.group_by, ", "));
    return line + "; partial results merged by the coordinator";
  }

  std::string Source(int table) const {
    const proto::Table& meta = *tables_[static_cast<size_t>(table)];
    const Plan::Table& wanted = plan_.tables[static_cast<size_t>(table)];
    uint64_t blocks = 0;
    for (const proto::Chain& chain : meta.partitions()) blocks += chain.blocks();
    std::vector<std::string> columns;
    for (uint32_t c : wanted.columns) columns.push_back(meta.columns(static_cast<int>(c)).name());
    std::string line = absl::StrFormat("stream %s (%s rows, %d partitions, %s blocks) columns %s",
                                       Name(table), Grouped(meta.rows()), meta.partitions_size(),
                                       Grouped(blocks), absl::StrJoin(columns, ", "));
    if (!wanted.filters.empty()) {
      absl::StrAppend(&line, " where ", All(wanted.filters, " and "),
                      absl::StrFormat(" (estimated %.3g of the rows)", wanted.selectivity));
    }
    return line;
  }

 private:
  const sql::BoundQuery& query_;
  const Plan& plan_;
  const optimizer::TableRefs& tables_;
};

/// How a build side came to one compute server; nothing for what was READ everywhere.
std::string Multicast(const proto::PipelineCounters& c) {
  if (!c.multicast_failure().empty())
    return absl::StrFormat(", READ (multicast not available: %s)", c.multicast_failure());
  if (c.multicast_blocks() + c.repaired_blocks() == 0) return "";
  return absl::StrFormat(", %s by multicast, %s repaired by READ, %s duplicate datagrams",
                         Grouped(c.multicast_blocks()), Grouped(c.repaired_blocks()),
                         Grouped(c.duplicate_datagrams()));
}

void AddCounters(const std::vector<ServerReport>& servers, size_t pipeline, std::vector<std::string>& lines) {
  for (const ServerReport& server : servers) {
    if (static_cast<int>(pipeline) >= server.reply.pipelines_size()) continue;
    const proto::PipelineCounters& c = server.reply.pipelines(static_cast<int>(pipeline));
    std::vector<std::string> bytes;
    for (const proto::ServerBytes& b : c.bytes()) {
      bytes.push_back(absl::StrFormat("%s from memory server %d", Bytes(b.bytes()), b.server()));
    }
    std::sort(bytes.begin(), bytes.end());
    lines.push_back(absl::StrFormat(
        "      compute server %d: rows %s -> %s, blocks %s (%s skipped%s), %.1f ms of which %.1f ms waiting, "
        "%s",
        server.member.id(), Grouped(c.rows_in()), Grouped(c.rows_out()), Grouped(c.blocks()),
        Grouped(c.skipped_blocks()), Multicast(c), static_cast<double>(c.total_us()) / 1000,
        static_cast<double>(c.waiting_us()) / 1000, bytes.empty() ? "no bytes" : absl::StrJoin(bytes, ", ")));
  }
}

/// Why it is this way and not the other.
std::string CostLine(const Plan& plan, const optimizer::TableRefs& tables,
                     const std::vector<ServerReport>& servers) {
  std::vector<optimizer::Assignment::Share> shares;
  uint32_t threads = UINT32_MAX;
  for (const ServerReport& server : servers) {
    shares.push_back(server.share);
    threads = std::min(threads, server.member.threads());
  }
  const optimizer::PlanCosts costs = optimizer::CostsOf(plan, tables, shares, static_cast<int>(threads));
  std::string line =
      absl::StrFormat("  Cost: pipelined (estimated %.3g ms: %.3g computing, %.3g on the network",
                      costs.pipelined.ms(), costs.pipelined.compute_ms, costs.pipelined.network_ms);
  if (plan.joins.empty()) return line + ")";
  absl::StrAppend(&line, absl::StrFormat("; shuffle-based would cost %.3g ms, ", costs.shuffle.ms()));
  if (costs.pipelined_is_cheaper()) {
    absl::StrAppend(&line, Bytes(static_cast<uint64_t>(costs.shuffled_bytes)),
                    " sent from compute server to compute server)");
  } else {
    absl::StrAppend(&line, "without reading ", Bytes(static_cast<uint64_t>(costs.replicated_bytes)),
                    " of build sides once more; it is not there)");
  }
  return line;
}

/// Whether a partition of the driving table is cut into pieces.
bool Cut(const proto::Table& driving, const std::vector<ServerReport>& servers) {
  for (const ServerReport& server : servers) {
    for (const partitioner::Piece& piece : server.share.pieces) {
      if (piece.blocks < driving.partitions(static_cast<int>(piece.partition)).blocks()) return true;
    }
  }
  return false;
}

std::string Percent(uint64_t part, uint64_t whole) {
  return absl::StrFormat("%.1f %%",
                         whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
}

/// What the plan gives to each compute server.
void AddAssignment(const proto::Table& driving, const std::vector<ServerReport>& servers,
                   std::vector<std::string>& lines) {
  uint64_t rows = 0;
  for (const ServerReport& server : servers) rows += server.share.rows;
  for (const ServerReport& server : servers) {
    std::map<uint32_t, uint32_t> blocks;  // by partition
    for (const partitioner::Piece& piece : server.share.pieces) blocks[piece.partition] += piece.blocks;
    const auto cut = std::count_if(blocks.begin(), blocks.end(), [&](const auto& here) {
      return here.second < driving.partitions(static_cast<int>(here.first)).blocks();
    });
    lines.push_back(absl::StrFormat(
        "    compute server %d (%s, %d thread%s): %d partitions%s, %s rows (%s), %s and %s of build sides",
        server.member.id(), server.member.control_address(), server.member.threads(),
        server.member.threads() == 1 ? "" : "s", blocks.size(),
        cut == 0 ? "" : absl::StrFormat(" (of %d only some blocks)", cut), Grouped(server.share.rows),
        Percent(server.share.rows, rows), Bytes(server.share.driving_bytes),
        Bytes(server.share.build_bytes)));
  }
}

/// What each compute server and each of its threads did of it.
void AddShares(const std::vector<ServerReport>& servers, std::vector<std::string>& lines) {
  uint64_t all = 0;
  for (const ServerReport& server : servers)
    all = std::accumulate(server.thread_rows.begin(), server.thread_rows.end(), all);
  for (const ServerReport& server : servers) {
    const uint64_t rows = std::accumulate(server.thread_rows.begin(), server.thread_rows.end(), uint64_t{0});
    std::string line = absl::StrFormat("    compute server %d: %s rows (%s)", server.member.id(),
                                       Grouped(rows), Percent(rows, all));
    for (size_t t = 0; t < server.thread_rows.size(); ++t)
      absl::StrAppend(&line, t == 0 ? ", by thread " : " + ", Grouped(server.thread_rows[t]));
    lines.push_back(std::move(line));
  }
}

/// Who worked on whose share, and when.
void AddTimeline(const std::vector<ServerReport>& servers, bool cut, std::vector<std::string>& lines) {
  lines.push_back("  Timeline");
  for (size_t s = 0; s < servers.size(); ++s) {
    for (const ServerReport::Turn& turn : servers[s].turns) {
      const std::string whose = !turn.share_of        ? "what a lost server had"
                                : *turn.share_of == s ? "its own share"
                                                      : absl::StrFormat("the share of compute server %d",
                                                                        servers[*turn.share_of].member.id());
      lines.push_back(absl::StrFormat("    compute server %d: %.1f to %.1f ms, %d %s of %s",
                                      servers[s].member.id(), turn.started_ms, turn.ended_ms, turn.pieces,
                                      cut ? "pieces" : "partitions", whose));
      if (turn.claims > 0) absl::StrAppend(&lines.back(), ", ", turn.claims, " claims");
    }
  }
}

}  // namespace

std::vector<std::string> Explain(const sql::BoundQuery& query, const Plan& plan,
                                 const optimizer::TableRefs& tables, const proto::StreamSettings& settings,
                                 const std::vector<ServerReport>& servers,
                                 const std::vector<std::string>& why_read, bool analyze) {
  const Printer print(query, plan, tables);
  std::vector<std::string> lines;
  lines.push_back(absl::StrFormat("Distributed pipelined plan on %d compute server%s, window %d, %s",
                                  servers.size(), servers.size() == 1 ? "" : "s", settings.window(),
                                  settings.in_place() ? "in place where the fabric can" : "by READ"));
  if (!servers.empty()) lines.push_back(CostLine(plan, tables, servers));
  lines.push_back("  " + print.Sink());
  const size_t driving = plan.joins.size();
  lines.push_back(absl::StrFormat("  Pipeline %d: %s", driving + 1, print.Source(plan.driving)));
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    const Plan::Join& join = plan.joins[j];
    const bool local = optimizer::MatchingKey(plan, join, tables).has_value();
    std::string line =
        absl::StrFormat("    probe %s on %s = %s, %s (estimated %s rows after)", print.Name(join.table),
                        print.Text(join.probe_key), print.Text(join.build_key),
                        local ? "partition by partition" : "replicated",
                        Grouped(static_cast<uint64_t>(std::max(0.0, join.rows_after))));
    if (!join.residuals.empty()) absl::StrAppend(&line, " and ", print.All(join.residuals, " and "));
    lines.push_back(std::move(line));
  }
  if (analyze) AddCounters(servers, driving, lines);
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    lines.push_back(absl::StrFormat("  Pipeline %d: build %s: %s", j + 1, print.Name(plan.joins[j].table),
                                    print.Source(plan.joins[j].table)));
    if (!analyze) continue;
    lines.push_back(why_read[j].empty() ? "      multicast"
                                        : absl::StrFormat("      READ (%s)", why_read[j]));
    AddCounters(servers, j, lines);
  }
  lines.push_back("  Assignment of " + print.Name(plan.driving));
  const proto::Table& table = *tables[static_cast<size_t>(plan.driving)];
  AddAssignment(table, servers, lines);
  if (!analyze) return lines;
  lines.push_back("  Done of " + print.Name(plan.driving));
  AddShares(servers, lines);
  AddTimeline(servers, Cut(table, servers), lines);
  return lines;
}

}  // namespace nam::session
