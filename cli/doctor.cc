#include "cli/doctor.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "catalog/address.h"
#include "cli/doctor_devices.h"
#include "cli/doctor_host.h"
#include "cli/doctor_memory.h"
#include "cli/doctor_network.h"
#include "fabric/verbs/inspect.h"
#include "localcluster/connect.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/table_printer.h"

namespace nam::cli {
namespace {

using fabric::Kind;

const char* StateName(FindingState state) {
  switch (state) {
    case FindingState::kOk:
      return "ok";
    case FindingState::kWarning:
      return "warning";
    case FindingState::kMissing:
      return "missing";
  }
  return "unknown";
}

bool Needs(const Finding& finding, Kind kind) {
  return std::find(finding.fabrics.begin(), finding.fabrics.end(), kind) != finding.fabrics.end();
}

std::string FabricsText(const Finding& finding) {
  std::string text;
  for (const Kind kind : finding.fabrics) {
    absl::StrAppend(&text, text.empty() ? "" : " ", std::string(fabric::KindName(kind)));
  }
  return text;
}

size_t CountOfState(const std::vector<Finding>& findings, FindingState state) {
  return static_cast<size_t>(std::count_if(findings.begin(), findings.end(),
                                           [&](const Finding& finding) { return finding.state == state; }));
}

absl::Status TestMulticast(Kind kind, const DoctorOptions& options, const std::string& host) {
  auto fabric = fabric::Open({.kind = kind,
                              .secret = "doctor",  // of a cluster of one process
                              .host = host,
                              .multicast_interface = options.multicast_interface});
  return fabric.ok() ? TryMulticast(**fabric) : fabric.status();
}

std::vector<Finding> CheckNetwork(const DoctorOptions& options, const std::vector<std::string>& listen) {
  std::vector<Finding> findings;
  for (const std::string& address : listen) findings.push_back(CheckListen(address, TryListen(address)));
  const std::string host = catalog::SplitAddress(listen.front())->first;
  const std::string interface =
      options.multicast_interface.empty() ? "INTERFACE" : options.multicast_interface;
  findings.push_back(CheckMulticast(TestMulticast(Kind::kTcp, options, host), interface));
  findings.push_back(CheckDatagramBuffer({}));
  return findings;
}

std::vector<Finding> Examine(const DoctorOptions& options, const std::vector<std::string>& listen) {
  std::vector<Finding> findings = CheckHost({}, options.memory_bytes);
  for (auto& part : {CheckMemory({}, options.memory_bytes), CheckNetwork(options, listen),
                     CheckDevices(fabric::verbs::InspectDevices())}) {
    findings.insert(findings.end(), part.begin(), part.end());
  }
  return findings;
}

session::ResultSet FindingsReport(const std::vector<Finding>& findings, bool with_remedies) {
  session::ResultSet report;
  for (const char* column : {"finding", "state", "found", "needed", "for"}) {
    report.columns.push_back({column, Type::String()});
  }
  if (with_remedies) report.columns.push_back({"remedy", Type::String()});
  for (const Finding& finding : findings) {
    std::vector<Value>& row = report.rows.emplace_back();
    for (const std::string& text : {finding.name, std::string(StateName(finding.state)), finding.found,
                                    finding.needed, FabricsText(finding)}) {
      row.push_back(Value::String(text));
    }
    if (with_remedies) row.push_back(Value::String(finding.remedy));
  }
  return report;
}

std::string JsonFindings(const std::vector<Finding>& findings, const DoctorOptions& options) {
  JsonReport report{.command = "doctor"};
  report.config = {{"fabric", options.fabric.empty() ? "all" : options.fabric},
                   {"memory_bytes", options.memory_bytes},
                   {"listen", options.listen}};
  for (const Finding& finding : findings) {
    Json fabrics = Json::array();
    for (const Kind kind : finding.fabrics) fabrics.push_back(std::string(fabric::KindName(kind)));
    report.rows.push_back({{"finding", finding.name},
                           {"state", StateName(finding.state)},
                           {"found", finding.found},
                           {"needed", finding.needed},
                           {"remedy", finding.remedy},
                           {"fabrics", fabrics}});
  }
  Json usable = Json::object();
  for (const Kind kind : kRealFabrics) {
    const std::string name(fabric::KindName(kind));
    if (options.fabric.empty() || options.fabric == name) usable[name] = Usable(findings, kind);
  }
  report.summary = {{"ok", CountOfState(findings, FindingState::kOk)},
                    {"warnings", CountOfState(findings, FindingState::kWarning)},
                    {"missing", CountOfState(findings, FindingState::kMissing)},
                    {"usable", usable}};
  return report.ToString();
}

/// The remedies, after the table.
std::string Remedies(const std::vector<Finding>& findings, const DoctorOptions& options) {
  std::string text;
  for (const FindingState state : {FindingState::kMissing, FindingState::kWarning}) {
    if (CountOfState(findings, state) == 0) continue;
    absl::StrAppend(&text, state == FindingState::kMissing ? "Missing:\n" : "Could be better:\n");
    for (const Finding& finding : findings) {
      if (finding.state == state) absl::StrAppend(&text, "  ", finding.name, ": ", finding.remedy, "\n");
    }
  }
  for (const Kind kind : kRealFabrics) {
    const std::string name(fabric::KindName(kind));
    if (!options.fabric.empty() && options.fabric != name) continue;
    absl::StrAppend(&text, "The ", name, " fabric ",
                    Usable(findings, kind) ? "works here.\n" : "lacks something.\n");
  }
  return text;
}

}  // namespace

std::vector<Finding> Relevant(std::vector<Finding> findings, const std::string& fabric) {
  const auto kind = fabric::ParseKind(fabric);
  if (!kind.ok()) return findings;
  std::erase_if(findings, [&](const Finding& finding) { return !Needs(finding, *kind); });
  return findings;
}

bool Usable(const std::vector<Finding>& findings, Kind kind) {
  return std::none_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.state == FindingState::kMissing && Needs(finding, kind);
  });
}

std::string RenderFindings(const std::vector<Finding>& findings, const DoctorOptions& options) {
  const OutputFormat format = *ParseOutputFormat(options.format);
  if (format == OutputFormat::kJson) return JsonFindings(findings, options);
  const bool table = format == OutputFormat::kTable;
  const std::string text = Render(FindingsReport(findings, !table), {.format = format, .footer = false});
  return table ? text + Remedies(findings, options) : text;
}

int RunDoctor(const DoctorOptions& options) {
  DoctorOptions resolved = options;
  if (resolved.listen.empty()) resolved.listen = {"127.0.0.1:0"};
  absl::StatusOr<Kind> kind = Kind::kShm;
  if (!options.fabric.empty()) kind = fabric::ParseRealKind(options.fabric);
  absl::Status usage = kind.status();
  usage.Update(ParseOutputFormat(options.format).status());
  for (const std::string& address : resolved.listen) usage.Update(catalog::SplitAddress(address).status());
  if (!usage.ok()) {
    ReportFailure(usage);
    return kExitUsage;
  }
  const std::vector<Finding> findings = Relevant(Examine(resolved, resolved.listen), options.fabric);
  const std::string text = RenderFindings(findings, resolved);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Usable(findings, *kind) ? kExitOk : kExitCheckFailed;
}

}  // namespace nam::cli
