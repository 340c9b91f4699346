#include "session/explain.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "plan/flow.h"
#include "plan/print.h"
#include "session/explained_choice.h"

namespace nam::session {
namespace {

std::string Grouped(uint64_t n) {
  std::string digits = absl::StrCat(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 10 << 10) return absl::StrFormat("%d B", bytes);
  if (bytes < 10 << 20) return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / 1024);
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

constexpr size_t kColumns = 100;
/// The columns of one line; longer ones are cut.
constexpr size_t kLongestLine = 8 * kColumns;

/// The end of a line longer than kColumns: at a blank after `indent`, or within a long word.
size_t LineEnd(const std::string& line, size_t indent) {
  const size_t blank = line.rfind(' ', kColumns);
  if (blank != std::string::npos && blank > indent) return blank;
  size_t end = kColumns;
  while ((static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;  // within a character
  return end;
}

/// Splits the line into pieces of kColumns columns, each but the first one indented further.
void AddWrapped(std::string line, std::vector<std::string>& lines) {
  if (line.size() > kLongestLine) {
    size_t end = kLongestLine;
    while ((static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
    line.resize(end);
    line += " …";
  }
  const std::string indent(std::min<size_t>(line.find_first_not_of(' '), 40) + 6, ' ');
  while (line.size() > kColumns) {
    const size_t end = LineEnd(line, indent.size());
    lines.push_back(line.substr(0, end));
    line = indent + line.substr(line[end] == ' ' ? end + 1 : end);
  }
  lines.push_back(std::move(line));
}

/// The streamed size of a table.
std::string SizeOf(const proto::Table& table) {
  uint64_t blocks = 0;
  for (const proto::Chain& chain : table.partitions()) blocks += chain.blocks();
  return absl::StrFormat("%s rows, %d partitions, %s blocks", Grouped(table.rows()), table.partitions_size(),
                         Grouped(blocks));
}

/// How a build side reached one compute server; empty if it was READ everywhere.
std::string Multicast(const proto::PipelineCounters& c) {
  if (!c.multicast_failure().empty())
    return absl::StrFormat(", READ (multicast not available: %s)", c.multicast_failure());
  if (c.multicast_blocks() + c.repaired_blocks() == 0) return "";
  return absl::StrFormat(", %s by multicast, %s repaired by READ, %s duplicate datagrams",
                         Grouped(c.multicast_blocks()), Grouped(c.repaired_blocks()),
                         Grouped(c.duplicate_datagrams()));
}

/// The runs that a server sorted and wrote to scratch memory.
std::string Runs(const proto::PipelineCounters& c) {
  if (c.scratch_runs_written() == 0) return "";
  return absl::StrFormat(", %s sorted runs of %s pages (%s) to scratch memory",
                         Grouped(c.scratch_runs_written()), Grouped(c.scratch_pages_written()),
                         BytesText(c.scratch_bytes_written()));
}

/// Each server's work in a pipeline.
void AddCounters(const std::vector<ServerReport>& servers, size_t place, std::vector<std::string>& lines) {
  for (const ServerReport& server : servers) {
    if (static_cast<int>(place) >= server.reply.pipelines_size()) continue;
    const proto::PipelineCounters& c = server.reply.pipelines(static_cast<int>(place));
    std::vector<std::string> bytes;
    for (const proto::ServerBytes& b : c.bytes()) {
      bytes.push_back(absl::StrFormat("%s from memory server %d", BytesText(b.bytes()), b.server()));
    }
    std::sort(bytes.begin(), bytes.end());
    if (c.exchange_bytes_received() > 0)
      bytes.push_back(BytesText(c.exchange_bytes_received()) + " from other compute servers");
    if (c.exchange_bytes_sent() > 0)
      bytes.push_back(BytesText(c.exchange_bytes_sent()) + " to other compute servers");
    AddWrapped(
        absl::StrFormat("      compute server %d: rows %s -> %s, %.1f ms of which %.1f ms waiting, "
                        "blocks %s (%s skipped%s), %s%s",
                        server.member.id(), Grouped(c.rows_in()), Grouped(c.rows_out()),
                        static_cast<double>(c.total_us()) / 1000, static_cast<double>(c.waiting_us()) / 1000,
                        Grouped(c.blocks()), Grouped(c.skipped_blocks()), Multicast(c),
                        bytes.empty() ? "no bytes" : absl::StrJoin(bytes, ", "), Runs(c)),
        lines);
  }
}

/// Whether a partition of the driving table is cut into pieces. A record table has none: it comes in pieces.
bool Cut(const proto::Table& driving, const std::vector<ServerReport>& servers) {
  if (driving.has_record()) return true;
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

/// `3 partitions (of 1 only some blocks)`, or the pieces of a record table, which has no partitions.
std::string PartOf(const proto::Table& driving, const optimizer::Assignment::Share& share) {
  if (driving.has_record())
    return absl::StrFormat("%d piece%s", share.pieces.size(), share.pieces.size() == 1 ? "" : "s");
  std::map<uint32_t, uint32_t> blocks;  // by partition
  for (const partitioner::Piece& piece : share.pieces) blocks[piece.partition] += piece.blocks;
  const auto cut = std::count_if(blocks.begin(), blocks.end(), [&](const auto& here) {
    return here.second < driving.partitions(static_cast<int>(here.first)).blocks();
  });
  return absl::StrFormat("%d partition%s%s", blocks.size(), blocks.size() == 1 ? "" : "s",
                         cut == 0 ? "" : absl::StrFormat(" (of %d only some blocks)", cut));
}

/// The plan's share for each compute server.
void AddAssignment(const proto::Table& driving, const std::vector<ServerReport>& servers,
                   std::vector<std::string>& lines) {
  uint64_t rows = 0;
  for (const ServerReport& server : servers) rows += server.share.rows;
  for (const ServerReport& server : servers) {
    AddWrapped(absl::StrFormat("    compute server %d (%s, %d thread%s): %s rows (%s), %s, %s and %s of "
                               "build sides",
                               server.member.id(), server.member.control_address(), server.member.threads(),
                               server.member.threads() == 1 ? "" : "s", Grouped(server.share.rows),
                               Percent(server.share.rows, rows), PartOf(driving, server.share),
                               BytesText(server.share.driving_bytes), BytesText(server.share.build_bytes)),
               lines);
  }
}

/// The actual share of each compute server and each of its threads.
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
    AddWrapped(std::move(line), lines);
  }
}

/// Which server worked on whose share, and when.
void AddTimeline(const std::vector<ServerReport>& servers, const char* pieces,
                 std::vector<std::string>& lines) {
  lines.push_back("  Timeline");
  for (size_t s = 0; s < servers.size(); ++s) {
    for (const ServerReport::Turn& turn : servers[s].turns) {
      const std::string whose = !turn.share_of        ? "what a lost server had"
                                : *turn.share_of == s ? "its own share"
                                                      : absl::StrFormat("the share of compute server %d",
                                                                        servers[*turn.share_of].member.id());
      AddWrapped(absl::StrCat(absl::StrFormat("    compute server %d: %.1f to %.1f ms, %d %s of %s",
                                              servers[s].member.id(), turn.started_ms, turn.ended_ms,
                                              turn.pieces, pieces, whose),
                              turn.claims > 0 ? absl::StrCat(", ", turn.claims, " claims") : ""),
                 lines);
    }
  }
}

class Lines {
 public:
  explicit Lines(const ExplainedQuery& query)
      : query_(query), texts_(plan::PrintPipelines(query.plan, [&](uint32_t table, uint32_t column) {
          return query.ColumnName(table, column);
        })) {}

  std::vector<std::string> Run() {
    for (uint32_t s = 0; s < query_.plan.stages.size(); ++s) {
      if (s < query_.stages.size() && query_.stages[s].parts > 0) {
        PartsStage(s);
      } else if (s < query_.stages.size() && query_.stages[s].streamed) {
        StreamedStage(s);
      } else if (s < query_.stages.size()) {
        ServersStage(s);
      } else {
        Add("Session");
        Choices(s);
        Pipelines(s);
      }
    }
    for (const std::string& why : query_.replanned) Add(why);
    if (query_.analyze) {
      Add(absl::StrFormat("Result: %d row%s in %.1f ms", query_.result_rows,
                          query_.result_rows == 1 ? "" : "s", query_.result_ms));
    }
    Add("Costs are estimates of one server's time for each operator; rows behind ~ are estimates.");
    return std::move(lines_);
  }

 private:
  void Add(std::string line) { AddWrapped(std::move(line), lines_); }

  void ServersStage(uint32_t number) {
    const ExplainedStage& stage = query_.stages[number];
    const size_t servers = stage.servers.size();
    const std::string name = query_.stages.size() == 1 ? "" : absl::StrCat("Stage ", number, ": ");
    Add(absl::StrFormat("%sDistributed pipelined plan on %d compute server%s, window %d, %s", name, servers,
                        servers == 1 ? "" : "s", query_.settings.window(),
                        query_.settings.in_place() ? "in place where the fabric can" : "by READ"));
    Choices(number);
    Pipelines(number);
    const proto::Table& driving = *stage.tables.claimed->table;
    Add("  Assignment of " + driving.name());
    AddAssignment(driving, stage.servers, lines_);
    if (!query_.analyze) return;
    Add("  Done of " + driving.name());
    AddShares(stage.servers, lines_);
    AddTimeline(stage.servers, Cut(driving, stage.servers) ? "pieces" : "partitions", lines_);
  }

  /// The parts that servers claim do not exist before they run.
  void PartsStage(uint32_t number) {
    const ExplainedStage& stage = query_.stages[number];
    Add(absl::StrFormat("Stage %d: %d parts, claimed by compute servers", number, stage.parts));
    Choices(number);
    Pipelines(number);
    if (!query_.analyze) return;
    const optimizer::CutParts cut = CutPartsOf(stage.servers);
    if (cut.parts > 0)
      Add(absl::StrFormat("  Skew: %d of the parts came in %d pieces", cut.parts, cut.pieces));
    Add("  Done of the parts");
    AddShares(stage.servers, lines_);
    AddTimeline(stage.servers, cut.parts > 0 ? "pieces" : "parts", lines_);
  }

  /// How the joins at a stage, and its groups, are distributed, and why.
  void Choices(uint32_t stage) {
    for (const optimizer::JoinChoice& join : query_.joins) {
      if (query_.StageOfJoin(join) == stage)
        Add(absl::StrCat("  Join with P", join.build, ": ", Describe(join, query_.ActualMs(join))));
    }
    for (const optimizer::GroupChoice& groups : query_.groups) {
      if (query_.plan.pipelines[groups.pipeline].stage == stage)
        Add(absl::StrCat("  Groups of P", groups.pipeline, ": ", Describe(groups, query_.ActualMs(groups))));
    }
  }

  /// Each server's number tells what it reads of a sent table.
  void StreamedStage(uint32_t number) {
    const size_t servers = query_.stages[number].servers.size();
    Add(absl::StrFormat("Stage %d: streamed between %d compute server%s", number, servers,
                        servers == 1 ? "" : "s"));
    Choices(number);
    Pipelines(number);
  }

  void Pipelines(uint32_t stage) {
    for (uint32_t p = 0; p < query_.plan.pipelines.size(); ++p) {
      if (query_.plan.pipelines[p].stage == stage) Pipeline(p);
    }
  }

  void Pipeline(uint32_t number) {
    const plan::PipelineText& text = texts_[number];
    costs_ = query_.Costs(number);
    Add(absl::StrCat("  P", number, " ", text.source, Figures(number, 0), After(number)));
    const plan::TableScan* scan = plan::ScanOf(query_.plan.pipelines[number]);
    if (scan != nullptr && !query_.tables[scan->table]->has_record())
      Add(absl::StrCat("     of ", SizeOf(*query_.tables[scan->table]), Needs(number)));
    if (const std::string path = query_.PathOf(number); !path.empty()) Add("     " + path);
    for (size_t s = 0; s < text.steps.size(); ++s)
      Add(absl::StrCat("     ", text.steps[s], Figures(number, s + 1)));
    const size_t sink = query_.SinkOf(number);
    Add(absl::StrFormat("     %s ~%.0f%s", text.sink, query_.EstimatedRows(number, sink),
                        Figures(number, sink)));
    if (number < query_.session_counters.size() &&
        query_.session_counters[number].scratch_runs_merged() > 0) {
      const proto::PipelineCounters& sort = query_.session_counters[number];
      Add(absl::StrFormat("      merged %s sorted runs, %s pages written by the session, %d passes before",
                          Grouped(sort.scratch_runs_merged()), Grouped(sort.scratch_pages_written()),
                          sort.merge_passes()));
    }
    const uint32_t stage = query_.plan.pipelines[number].stage;
    if (!query_.analyze || stage >= query_.stages.size()) return;
    if (const std::string* why = query_.WhyRead(number); why != nullptr)
      Add(why->empty() ? "      multicast" : absl::StrFormat("      READ (%s)", *why));
    AddCounters(query_.stages[stage].servers, query_.PlaceInStage(number), lines_);
  }

  /// After an operator's estimated rows: the actual ones, and its estimated cost.
  std::string Figures(uint32_t pipeline, size_t node) const {
    return Actual(pipeline, node) + (costs_[node].has_value()
                                         ? absl::StrFormat(", cost %.3g ms", *costs_[node])
                                         : std::string(", cost unknown"));
  }
  std::string Actual(uint32_t pipeline, size_t node) const {
    const std::optional<ActualRows> actual = query_.Actual(pipeline, node);
    if (!actual.has_value()) return "";
    std::string rows = Grouped(actual->rows);
    if (actual->each_server && actual->most != actual->rows)
      absl::StrAppend(&rows, " to ", Grouped(actual->most));
    if (actual->of.has_value()) absl::StrAppend(&rows, " of ", Grouped(*actual->of));
    if (actual->with_lookups) absl::StrAppend(&rows, " with its look-ups");
    return absl::StrCat(" (actual ", rows, actual->each_server ? " on each server)" : ")");
  }

  std::string After(uint32_t number) const {
    const std::vector<uint32_t>& after = query_.plan.pipelines[number].after;
    return after.empty() ? "" : absl::StrCat(", after P", absl::StrJoin(after, " P"));
  }

  /// The share of a table that each server needs.
  std::string Needs(uint32_t number) const {
    const plan::Pipeline& pipeline = query_.plan.pipelines[number];
    const plan::Stage& stage = query_.plan.stages[pipeline.stage];
    if (stage.site == plan::Stage::Site::kSession) return "";
    if (stage.claimed == number) return ", each partition by one server";
    if (std::holds_alternative<plan::ExchangeSend>(pipeline.sink)) return ", each piece by one server";
    const auto* scan = std::get_if<plan::BlockScan>(&pipeline.source);
    return scan != nullptr && scan->co_partitioned_key >= 0 ? ", partition by partition" : ", replicated";
  }

  const ExplainedQuery& query_;
  const std::vector<plan::PipelineText> texts_;
  std::vector<std::optional<double>> costs_;  // of the current pipeline
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> Explain(const ExplainedQuery& query) {
  return Lines(query).Run();
}

std::vector<std::string> ExplainChange(const ExplainedChange& change, std::vector<std::string> query) {
  std::vector<std::string> lines;
  AddWrapped(absl::StrCat(change.kind, " ", change.table, " ", change.how), lines);
  for (const std::string& condition : change.conditions) AddWrapped("  if " + condition, lines);
  for (std::string& line : query) lines.push_back(std::move(line));
  if (change.command.has_value())
    AddWrapped(absl::StrFormat("Changed: %s in %.1f ms", *change.command, change.ms), lines);
  return lines;
}

ResultSet QueryPlan(std::vector<std::string> lines) {
  ResultSet out;
  out.columns.push_back({"QUERY PLAN", Type::String()});
  for (std::string& line : lines) out.rows.push_back({Value::String(std::move(line))});
  out.command = "EXPLAIN";
  return out;
}

}  // namespace nam::session
