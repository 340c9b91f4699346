#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/calibration.h"
#include "bench/commands.h"

namespace nam::bench {
namespace {

class Calibrate final : public Command {
 public:
  Calibrate() : Command("calibrate", "measure the running cluster's fabric, for the optimizer's estimates") {}

  std::vector<Option> Options() override {
    return {
        Option::Place("--catalog", &cluster_.catalog, "HOST:PORT",
                      "the cluster's catalog; without it, the local cluster"),
        Option::Place("--secret-file", &cluster_.secret_file, "FILE", "file with the cluster's secret"),
        Option::Place("--tls-certificate", &cluster_.tls.certificate, "FILE",
                      "this process's certificate, in PEM"),
        Option::Place("--tls-key", &cluster_.tls.key, "FILE", "the certificate's key"),
        Option::Place("--tls-ca", &cluster_.tls.authority, "FILE", "certificates of the cluster's authority"),
        Option::Place("--state-dir", &cluster_.state_dir, "DIR", "the local cluster's directory"),
        Option::Place("--rdma", &cluster_.rdma, "DEVICE[:PORT][,gid=N]", "verbs: the device"),
        Option::Within("--rounds", &rounds_, 1, 1'000, "rounds per measurement; the median counts"),
        {"--no-rows", &no_rows_, "skip joins and groups, which need temporary tables"},
        {"--dry-run", &dry_run_, "measure without changing the catalog"}};
  }

  absl::StatusOr<Report> Measure(Run& run) override {
    const auto attached = AttachToCluster(cluster_);
    connected_ = attached.ok();
    NAM_RETURN_IF_ERROR(attached.status());
    catalog::Attachment& attachment = **attached;
    NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
    // Another version of the program may have stored constants that are unknown here: then everything is
    // measured from the defaults.
    const auto before = catalog::FromProto(cluster.constants()).value_or(catalog::FabricConstants());
    const CalibrationOptions how{.rounds = rounds_, .proceed = [&](const std::string& doing) {
                                   return run.Proceed(absl::StrCat("measuring ", doing));
                                 }};
    NAM_ASSIGN_OR_RETURN(catalog::FabricConstants after, MeasureFabricConstants(attachment, before, how));
    if (!no_rows_) {
      NAM_ASSIGN_OR_RETURN(after, FitRowConstants(attachment, after, how));
    }
    if (!dry_run_)
      NAM_RETURN_IF_ERROR(attachment.catalog().Calibrate(catalog::ToProto(cluster.fabric(), after)));
    Report report{.config = {{"fabric", cluster.fabric()}},
                  .summary = {{"stored", !dry_run_}},
                  .remarks = absl::StrCat(
                      "Picoseconds for each byte, access, row or call; sizes in bytes. ",
                      dry_run_ ? "Not stored.\n"
                               : "The catalog has them; statements that are planned from now on are planned "
                                 "with them.\n")};
    for (const catalog::FabricConstant& constant : catalog::FabricConstantTable()) {
      report.rows.push_back({{"constant", constant.name},
                             {"before", Rounded(before.*constant.field)},
                             {"value", Rounded(after.*constant.field)}});
    }
    return report;
  }
  int ReportError(const absl::Status& status) const override {
    return connected_ ? ReportFailure(status) : ReportNoConnection(status);
  }

 private:
  ClusterOptions cluster_;
  int rounds_ = 5;
  bool no_rows_ = false;  // skip what needs tables and compute servers
  bool dry_run_ = false;  // do not store the results in the catalog
  bool connected_ = false;
};

}  // namespace

std::unique_ptr<Command> CalibrateCommand() {
  return std::make_unique<Calibrate>();
}

}  // namespace nam::bench
