#include "cli/benchmark_commands.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cli/benchmark_page.h"
#include "cli/interrupts.h"
#include "cli/session_cancel.h"
#include "dataset/tbl_writer.h"
#include "terminal/exit_codes.h"
#include "terminal/plot.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"
#include "workload/benchmark_queries.h"

namespace nam::cli {
namespace {

constexpr int kRepeatMax = 10'000;

absl::StatusOr<std::vector<size_t>> SelectTables(const std::vector<dataset::Table>& all,
                                                 const std::vector<std::string>& names) {
  std::vector<size_t> tables;
  for (size_t table = 0; names.empty() && table < all.size(); ++table) tables.push_back(table);
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const dataset::Table& table) { return table.schema.name == name; });
    if (found == all.end()) {
      const auto add_name = [](std::string* out, const dataset::Table& table) {
        out->append(table.schema.name);
      };
      return absl::InvalidArgumentError(
          absl::StrCat("there is no table ", name, "; they are ", absl::StrJoin(all, ", ", add_name)));
    }
    tables.push_back(static_cast<size_t>(found - all.begin()));
  }
  return tables;
}

/// An error if the cluster plainly holds other data than the check would use.
absl::Status CheckSource(catalog::Client& catalog, const Benchmark& benchmark, const DataSource& source) {
  if (!source.from.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const auto table, catalog.GetTable(benchmark.largest_table));
  const auto generator = benchmark.make_generator({.scale_factor = source.scale_factor, .seed = source.seed});
  const auto& tables = benchmark.tables();
  const auto largest = std::find_if(tables.begin(), tables.end(), [&](const dataset::Table& candidate) {
    return candidate.schema.name == benchmark.largest_table;
  });
  const uint64_t rows = generator->Rows(static_cast<size_t>(largest - tables.begin()));
  if (rows == table->rows()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the cluster's %s has %s rows, but scale factor %g has %s: give --scale-factor, "
                      "--seed or --from as for `nam %s load`",
                      benchmark.largest_table, FormatCount(table->rows()), source.scale_factor,
                      FormatCount(rows), benchmark.name));
}

Json BenchmarkConfigJson(const Benchmark& benchmark, const BenchmarkRunOptions& options,
                         catalog::Attachment& attachment, session::Session& session) {
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
  if (const auto table = attachment.catalog().GetTable(benchmark.largest_table); table.ok()) {
    config[absl::StrCat(benchmark.largest_table, "_rows")] = (*table)->rows();
    config["block_bytes"] = (*table)->block_bytes();
  }
  config["settings"] = session.Settings();
  return config;
}

void PrintReport(const Benchmark& benchmark, const BenchmarkRunOptions& options, OutputFormat format,
                 const std::vector<QueryOutcome>& outcomes, catalog::Attachment& attachment,
                 session::Session& session) {
  if (format == OutputFormat::kJson) {
    JsonReport report{.command = absl::StrCat(benchmark.name, " run"),
                      .config = BenchmarkConfigJson(benchmark, options, attachment, session),
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

absl::Status Check(const Benchmark& benchmark, const BenchmarkRunOptions& options,
                   catalog::Attachment& attachment, Interrupts& interrupts, ProgressLine& progress,
                   std::vector<QueryOutcome>& outcomes) {
  CancelFlag flag(interrupts);
  std::vector<BenchmarkQuery> queries;
  for (const QueryOutcome& outcome : outcomes) queries.push_back({outcome.id, outcome.sql});
  NAM_ASSIGN_OR_RETURN(const auto oracle, LoadOracle(attachment.fabric(), benchmark, options.source, queries,
                                                     progress, flag.cancelled()));
  return CheckQueries(*oracle, benchmark, progress, outcomes);
}

absl::StatusOr<std::unique_ptr<dataset::Generator>> GeneratorOf(const Benchmark& benchmark,
                                                                const BenchmarkGenerateOptions& options) {
  const dataset::GeneratorOptions generated{.scale_factor = options.source.scale_factor,
                                            .seed = options.source.seed};
  if (options.refresh == 0 || benchmark.make_refresh == nullptr) return benchmark.make_generator(generated);
  return benchmark.make_refresh(generated, options.refresh);
}

QueryParameters ParametersOf(const BenchmarkRunOptions& options) {
  QueryParameters parameters{.scale_factor = options.source.scale_factor};
  if (options.parameters_seed != 0) parameters.seed = options.parameters_seed;
  return parameters;
}

}  // namespace

int RunBenchmarkGenerate(const Benchmark& benchmark, const BenchmarkGenerateOptions& options) {
  if (options.out.empty())
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("nam ", benchmark.name, " generate needs --out=DIR, the directory to write to")));
  if (const absl::Status status = Validate(options.source); !status.ok()) return Refuse(status);
  const auto generator = GeneratorOf(benchmark, options);
  if (!generator.ok()) return Refuse(generator.status());
  const auto tables = SelectTables((*generator)->tables(), options.tables);
  if (!tables.ok()) return Refuse(tables.status());
  // Threads come from a fabric; nothing is sent over this one.
  const auto fabric = fabric::Open({.kind = fabric::Kind::kShm, .secret = "unused"});
  if (!fabric.ok()) return ReportFailure(fabric.status());
  Interrupts interrupts;
  CancelFlag flag(interrupts);
  ProgressLine progress;
  const auto written = dataset::WriteTbl(**fabric, **generator, *tables, options.out,
                                         {.work = {.threads = options.source.threads_used(),
                                                   .progress = progress.For("generating"),
                                                   .cancelled = &flag.cancelled()},
                                          .replace = options.replace});
  progress.Clear();
  if (!written.ok()) return ReportFailure(written.status());
  for (const dataset::WrittenTable& table : *written) {
    std::printf("%s: %s rows, %s\n", table.path.c_str(), FormatCount(table.rows).c_str(),
                FormatBytes(table.bytes).c_str());
  }
  return kExitOk;
}

int RunBenchmarkLoad(const Benchmark& benchmark, const BenchmarkLoadOptions& options) {
  if (const absl::Status status = Validate(options.source); !status.ok()) return Refuse(status);
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  Interrupts interrupts;
  CancelFlag flag(interrupts);
  ProgressLine progress;
  partitioner::LoadOptions load{.replace = options.replace, .threads = options.source.threads_used()};
  if (options.block_bytes != 0) load.block_bytes = static_cast<uint32_t>(options.block_bytes);
  const auto loaded =
      LoadBenchmark(**attachment, benchmark, options.source, load, progress, flag.cancelled());
  progress.Clear();
  if (absl::IsAlreadyExists(loaded.status())) {
    return ReportFailure(absl::AlreadyExistsError(
        absl::StrCat(catalog::MessageOfService(loaded.status()), "; --replace loads it again")));
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

int RunBenchmarkRun(const Benchmark& benchmark, const BenchmarkRunOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  const auto queries = SelectQueries(benchmark, options.queries, ParametersOf(options));
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
  if (const absl::Status status = CheckSource((*attachment)->catalog(), benchmark, options.source);
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
    const absl::Status status = Check(benchmark, options, **attachment, interrupts, progress, *outcomes);
    if (!status.ok()) return ReportFailure(status);
  }
  PrintReport(benchmark, options, *format, *outcomes, **attachment, **session);
  if (!options.html.empty()) {
    const std::string page =
        BenchmarkPage(benchmark, *outcomes, BenchmarkConfigJson(benchmark, options, **attachment, **session));
    if (const absl::Status status = WriteHtml(options.html, page); !status.ok()) {
      std::cout.flush();
      return ReportFailure(status);
    }
  }
  return options.check && CorrectQueries(*outcomes) != outcomes->size() ? kExitCheckFailed : kExitOk;
}

}  // namespace nam::cli
