#include "bench/calibrate_command.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/calibration.h"
#include "bench/rate_report.h"
#include "bench/row_calibration.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "terminal/table_printer.h"

namespace nam::bench {
namespace {

constexpr int kRoundsMax = 1'000;

struct Calibrated {
  std::string fabric;
  catalog::FabricConstants before, after;
};

absl::StatusOr<Calibrated> Calibrate(catalog::Attachment& attachment, const CalibrateOptions& options,
                                     const StopSignals& stop) {
  Calibrated calibrated;
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
  calibrated.fabric = cluster.fabric();
  // Another version of the program may have stored constants that are unknown here: then everything is
  // measured from the defaults.
  calibrated.before = catalog::FromProto(cluster.constants()).value_or(catalog::FabricConstants());
  ProgressLine progress;
  const CalibrationOptions how{.rounds = options.rounds, .proceed = [&](const std::string& doing) {
                                 progress.Show(absl::StrCat("measuring ", doing));
                                 return !stop.Pending();
                               }};
  NAM_ASSIGN_OR_RETURN(calibrated.after, MeasureFabricConstants(attachment, calibrated.before, how));
  if (!options.no_rows) {
    NAM_ASSIGN_OR_RETURN(calibrated.after,
                         FitRowConstants(attachment, calibrated.after, {.calibration = how}));
  }
  if (!options.dry_run) {
    NAM_RETURN_IF_ERROR(
        attachment.catalog().Calibrate(catalog::ToProto(calibrated.fabric, calibrated.after)));
  }
  return calibrated;
}

Json RowsOf(const Calibrated& calibrated) {
  Json rows = Json::array();
  for (const catalog::FabricConstant& constant : catalog::FabricConstantTable()) {
    rows.push_back({{"constant", constant.name},
                    {"before", Rounded(calibrated.before.*constant.field)},
                    {"value", Rounded(calibrated.after.*constant.field)}});
  }
  return rows;
}

}  // namespace

int RunCalibrate(const CalibrateOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  if (options.rounds < 1 || options.rounds > kRoundsMax)
    return Refuse(absl::InvalidArgumentError(absl::StrCat("--rounds is 1 to ", kRoundsMax)));
  const StopSignals stop;  // before any thread
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const auto calibrated = Calibrate(**attachment, options, stop);
  if (!calibrated.ok()) return ReportFailure(calibrated.status());
  if (*format == OutputFormat::kJson) {
    std::cout << JsonReport{.command = "bench calibrate",
                            .config = {{"fabric", calibrated->fabric}, {"rounds", options.rounds}},
                            .rows = RowsOf(*calibrated),
                            .summary = {{"stored", !options.dry_run}}}
                     .ToString();
    return kExitOk;
  }
  std::cout << Render(TableOf(RowsOf(*calibrated)), {.format = *format, .footer = false});
  if (*format == OutputFormat::kTable) {
    std::cout << "Picoseconds for each byte, access, row or call; sizes in bytes. "
              << (options.dry_run ? "Not stored."
                                  : "The catalog has them; statements that are planned from now "
                                    "on are planned with them.")
              << "\n";
  }
  return kExitOk;
}

}  // namespace nam::bench
