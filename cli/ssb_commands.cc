#include "cli/ssb_commands.h"

#include <cstdio>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cli/interrupts.h"
#include "cli/session_cancel.h"
#include "cli/ssb_page.h"
#include "ssb/tbl_writer.h"
#include "terminal/exit_codes.h"
#include "terminal/plot.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"
#include "workload/ssb_queries.h"

namespace nam::cli {
namespace {

constexpr int kRepeatMax = 10'000;

/// Ctrl-C during work that looks at a flag between its pieces.
class CancelFlag final : public Cancellable {
 public:
  explicit CancelFlag(Interrupts& interrupts) : interrupts_(interrupts) { interrupts_.SetTarget(this); }
  ~CancelFlag() override { interrupts_.SetTarget(nullptr); }
  void CancelFromSignal() override { cancelled_ = true; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  Interrupts& interrupts_;
  std::atomic<bool> cancelled_ = false;
};

absl::StatusOr<std::vector<ssb::Table>> SelectTables(const std::vector<std::string>& names) {
  std::vector<ssb::Table> tables(ssb::kAllTables.begin(), ssb::kAllTables.end());
  if (names.empty()) return tables;
  tables.clear();
  for (const std::string& name : names) {
    const auto table = ssb::FindTable(name);
    if (!table.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no table ", name, "; they are customer, supplier, part, date, lineorder"));
    }
    tables.push_back(*table);
  }
  return tables;
}

/// An error if the cluster plainly holds other data than the check would use.
absl::Status CheckSource(catalog::Client& catalog, const SsbSource& source) {
  if (!source.from.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const auto table, catalog.GetTable("lineorder"));
  const uint64_t rows =
      ssb::Generator({.scale_factor = source.scale_factor, .seed = source.seed}).Rows(ssb::Table::kLineorder);
  if (rows == table->rows()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the cluster's lineorder has %s rows, but scale factor %g has %s: give --scale-factor, "
                      "--seed or --from as for "
                      "`nam ssb load`",
                      FormatCount(table->rows()), source.scale_factor, FormatCount(rows)));
}

Json ConfigJson(const SsbRunOptions& options, catalog::Attachment& attachment, session::Session& session) {
  Json config{{"repeat", options.repeat}, {"check", options.check}};
  if (const auto cluster = attachment.catalog().GetCluster(); cluster.ok()) {
    int memory_servers = 0, compute_servers = 0;
    for (const proto::Member& member : cluster->members()) {
      memory_servers += member.alive() && member.role() == proto::ROLE_MEMORY ? 1 : 0;
      compute_servers += member.alive() && member.role() == proto::ROLE_COMPUTE ? 1 : 0;
    }
    config["fabric"] = cluster->fabric();
    config["memory_servers"] = memory_servers;
    config["compute_servers"] = compute_servers;
  }
  if (const auto table = attachment.catalog().GetTable("lineorder"); table.ok()) {
    config["lineorder_rows"] = (*table)->rows();
    config["block_bytes"] = (*table)->block_bytes();
  }
  config["settings"] = session.Settings();
  return config;
}

void PrintReport(const SsbRunOptions& options, OutputFormat format, const std::vector<QueryOutcome>& outcomes,
                 catalog::Attachment& attachment, session::Session& session) {
  if (format == OutputFormat::kJson) {
    JsonReport report{.command = "ssb run",
                      .config = ConfigJson(options, attachment, session),
                      .rows = QueriesJson(outcomes),
                      .summary = {{"queries", outcomes.size()}, {"geomean_ms", GeometricMeanMs(outcomes)}}};
    if (options.check) report.summary["correct"] = CorrectQueries(outcomes);
    std::cout << report.ToString();
    return;
  }
  std::cout << Render(QueriesReport(outcomes), {.format = format, .footer = false});
  if (format != OutputFormat::kTable) return;
  std::cout << "geometric mean: " << FormatMilliseconds(GeometricMeanMs(outcomes)) << " ms\n";
  if (options.check)
    std::cout << CorrectQueries(outcomes) << " of " << outcomes.size() << " queries correct\n";
}

absl::Status Check(const SsbRunOptions& options, catalog::Attachment& attachment, Interrupts& interrupts,
                   ProgressLine& progress, std::vector<QueryOutcome>& outcomes) {
  CancelFlag flag(interrupts);
  std::vector<std::string> texts;
  for (const QueryOutcome& outcome : outcomes) texts.emplace_back(ssb::FindQuery(outcome.id)->sql);
  NAM_ASSIGN_OR_RETURN(const auto oracle,
                       LoadSsbOracle(attachment.fabric(), options.source, texts, progress, flag.cancelled()));
  return CheckQueries(*oracle, progress, outcomes);
}

}  // namespace

int RunSsbGenerate(const SsbGenerateOptions& options) {
  if (options.out.empty())
    return Refuse(absl::InvalidArgumentError("nam ssb generate needs --out=DIR, the directory to write to"));
  const auto tables = SelectTables(options.tables);
  if (!tables.ok()) return Refuse(tables.status());
  if (const absl::Status status = Validate(options.source); !status.ok()) return Refuse(status);
  // Threads come from a fabric; nothing is sent over this one.
  const auto fabric = fabric::Open({.kind = fabric::Kind::kShm, .secret = "unused"});
  if (!fabric.ok()) return ReportFailure(fabric.status());
  Interrupts interrupts;
  CancelFlag flag(interrupts);
  ProgressLine progress;
  const ssb::Generator generator({.scale_factor = options.source.scale_factor, .seed = options.source.seed});
  const auto written = ssb::WriteTbl(**fabric, generator, *tables, options.out,
                                     {.work = {.threads = options.source.threads,
                                               .progress = progress.For("generating"),
                                               .cancelled = &flag.cancelled()},
                                      .replace = options.replace});
  progress.Clear();
  if (!written.ok()) return ReportFailure(written.status());
  for (const ssb::WrittenTable& table : *written) {
    std::printf("%s: %s rows, %s\n", table.path.c_str(), FormatCount(table.rows).c_str(),
                FormatBytes(table.bytes).c_str());
  }
  return kExitOk;
}

int RunSsbLoad(const SsbLoadOptions& options) {
  if (const absl::Status status = Validate(options.source); !status.ok()) return Refuse(status);
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  Interrupts interrupts;
  CancelFlag flag(interrupts);
  ProgressLine progress;
  partitioner::LoadOptions load{.replace = options.replace, .threads = options.source.threads};
  if (options.block_bytes != 0) load.block_bytes = static_cast<uint32_t>(options.block_bytes);
  const auto loaded = LoadSsb(**attachment, options.source, load, progress, flag.cancelled());
  progress.Clear();
  if (absl::IsAlreadyExists(loaded.status())) {
    return ReportFailure(absl::AlreadyExistsError(
        absl::StrCat(std::string(loaded.status().message()), "; --replace loads it again")));
  }
  if (!loaded.ok()) return ReportFailure(loaded.status());
  for (const LoadedTable& table : *loaded) {
    uint64_t bytes = 0;
    for (const proto::ServerUsage& usage : table.table.usage()) bytes += usage.bytes();
    std::printf("%-10s %14s rows %12s %9.1f s\n", table.name.c_str(), FormatCount(table.rows).c_str(),
                FormatBytes(bytes).c_str(), table.seconds);
  }
  return kExitOk;
}

int RunSsbRun(const SsbRunOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  const auto queries = SelectQueries(options.queries);
  if (!queries.ok()) return Refuse(queries.status());
  if (options.repeat < 1 || options.repeat > kRepeatMax) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat("--repeat is 1 to ", kRepeatMax)));
  }
  if (const absl::Status status = Validate(options.source); options.check && !status.ok())
    return Refuse(status);
  if (!options.html.empty()) {
    if (const absl::Status status = CheckHtmlPath(options.html); !status.ok()) return Refuse(status);
  }
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const auto session = session::Session::Open(**attachment);
  if (!session.ok()) return ReportNoConnection(session.status());
  if (const absl::Status status = CheckSource((*attachment)->catalog(), options.source);
      options.check && !status.ok()) {
    return absl::IsInvalidArgument(status) ? Refuse(status) : ReportFailure(status);
  }
  Interrupts interrupts;
  ProgressLine progress;
  absl::StatusOr<std::vector<QueryOutcome>> outcomes;
  {
    const SessionCancel cancel(**session, interrupts);
    outcomes = RunQueries(**session, *queries, options.repeat, progress, [&] { return interrupts.Seen(); });
  }
  if (!outcomes.ok()) return ReportFailure(outcomes.status());
  if (options.check) {
    const absl::Status status = Check(options, **attachment, interrupts, progress, *outcomes);
    if (!status.ok()) return ReportFailure(status);
  }
  PrintReport(options, *format, *outcomes, **attachment, **session);
  if (!options.html.empty()) {
    const std::string page = SsbPage(*outcomes, ConfigJson(options, **attachment, **session));
    if (const absl::Status status = WriteHtml(options.html, page); !status.ok()) {
      std::cout.flush();
      return ReportFailure(status);
    }
  }
  return options.check && CorrectQueries(*outcomes) != outcomes->size() ? kExitCheckFailed : kExitOk;
}

}  // namespace nam::cli
