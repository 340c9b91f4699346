#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "terminal/plot.h"
#include "terminal/units.h"
#include "terminal/version.h"

namespace nam {
namespace {

/// Series are distinct without colours: each has its own marker, too.
constexpr char kStyle[] = R"(<style>
:root { --paper: #fff; --ink: #1b1b1b; --faint: #d9d9d9;
  --s0: #0b62c4; --s1: #d1580a; --s2: #14863c; --s3: #8a3ab9; --s4: #b01e3c; --s5: #4d6a78; --s6: #8a6d00; --s7: #00798c; }
@media (prefers-color-scheme: dark) { :root { --paper: #161616; --ink: #e6e6e6; --faint: #3a3a3a;
  --s0: #6bb0ff; --s1: #ff9c57; --s2: #62cf86; --s3: #cf9bf0; --s4: #ff7d94; --s5: #a3bcc8; --s6: #e0c24a; --s7: #5fd0e0; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.45 sans-serif; margin: 2em auto; padding: 0 1em; width: fit-content; }
h1, p, svg { max-width: 60em; }
svg { width: 100%; height: auto; margin: 1em 0; }
svg text { fill: var(--ink); font: 12px sans-serif; }
svg .title { font-size: 15px; font-weight: bold; }
svg .grid { stroke: var(--faint); stroke-width: 1; }
svg .axis { stroke: var(--ink); stroke-width: 1; }
svg .spread { stroke-width: 1.2; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1em; font-size: 13px; }
dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--faint); padding: 2px 8px; text-align: right; }
th { border-bottom-color: var(--ink); }
</style>
)";

std::string TableHtml(const Json& rows) {
  const session::ResultSet table = TableOf(WithoutArrays(rows));
  std::string html = "<table>\n<tr>";
  for (const auto& column : table.columns) {
    absl::StrAppend(&html, "<th>", absl::StrReplaceAll(EscapedHtml(column.name), {{"_", "_<wbr>"}}), "</th>");
  }
  html += "</tr>\n";
  for (const Json& row : rows) {
    html += "<tr>";
    for (const auto& column : table.columns) {
      const auto cell = row.find(column.name);
      std::string text;
      if (cell != row.end()) text = cell->is_string() ? cell->get<std::string>() : cell->dump();
      absl::StrAppend(&html, "<td>", EscapedHtml(text), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

/// The arguments of this process, as a user would type them.
std::string CommandLineOfThisProcess() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string argument; std::getline(file, argument, '\0');) {
    if (line.empty()) {
      const std::string program = std::filesystem::path(argument).filename();
      line = program == "nam-bench" ? "nam bench" : program;
    } else {
      absl::StrAppend(&line, " ", argument);
    }
  }
  return line;
}

std::string OriginHtml(const std::string& seed) {
  const Json host = HostJson();
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &utc);
  std::vector<std::pair<std::string, std::string>> origin = {
      {"date", date}, {"program", VersionText()}, {"command", CommandLineOfThisProcess()}};
  if (!seed.empty()) origin.emplace_back("seed", seed);
  origin.emplace_back("host", absl::StrCat(host.value("name", ""), ", ", host.value("processors", 0), " x ",
                                           host.value("processor", "unknown processor"), ", ",
                                           FormatBytes(host.value("memory_bytes", uint64_t{0})), ", ",
                                           host.value("system", "")));
  std::string html = "<dl>\n";
  for (const auto& [name, value] : origin)
    absl::StrAppend(&html, "<dt>", name, "</dt><dd>", EscapedHtml(value), "</dd>\n");
  return html + "</dl>\n";
}

}  // namespace

std::string EscapedHtml(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string HtmlOf(const PlotPage& page) {
  std::string html = absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                                  "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
                                  EscapedHtml(page.title), "</title>\n", kStyle, "</head>\n<body>\n<h1>",
                                  EscapedHtml(page.title), "</h1>\n<p>", EscapedHtml(page.text), "</p>\n",
                                  OriginHtml(page.seed));
  for (const std::string& figure : page.figures) html += figure;
  return absl::StrCat(html, TableHtml(page.rows), "</body>\n</html>\n");
}

namespace {

absl::Status CannotWrite(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", why));
}

/// A new file beside the page that can replace it in one step.
struct FreshFile {
  std::string path;  // of the page, with links resolved
  std::string fresh_path;
  UniqueFd fd;
};

absl::StatusOr<FreshFile> OpenFresh(const std::string& path) {
  std::error_code error;
  FreshFile file{.path = path};
  if (path.empty()) return CannotWrite(path, "it has no name");
  if (std::filesystem::exists(path, error)) {
    file.path = std::filesystem::canonical(path, error);
    if (error || !std::filesystem::is_regular_file(file.path, error))
      return CannotWrite(path, "it is no file");
    if (access(file.path.c_str(), W_OK) != 0) return CannotWrite(path, std::strerror(errno));
  }
  file.fresh_path = absl::StrCat(file.path, ".", getpid(), ".new");
  file.fd.reset(open(file.fresh_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.fd.valid()) return CannotWrite(path, std::strerror(errno));
  return file;
}

}  // namespace

absl::Status CheckHtmlPath(const std::string& path) {
  const absl::StatusOr<FreshFile> file = OpenFresh(path);
  if (file.ok()) unlink(file->fresh_path.c_str());
  return file.status();
}

absl::Status WriteHtml(const std::string& path, const std::string& html) {
  NAM_ASSIGN_OR_RETURN(const FreshFile file, OpenFresh(path));
  size_t written = 0;
  while (written < html.size()) {
    const ssize_t n = write(file.fd.get(), html.data() + written, html.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (written == html.size() && rename(file.fresh_path.c_str(), file.path.c_str()) == 0)
    return absl::OkStatus();
  const absl::Status status = CannotWrite(path, std::strerror(errno));
  unlink(file.fresh_path.c_str());
  return status;
}

absl::Status WritePage(const std::string& path, const PlotPage& page) {
  return WriteHtml(path, HtmlOf(page));
}

}  // namespace nam
