#pragma once

#include <string>
#include <vector>

#include "terminal/command_description.h"

namespace nam::cli {

/// Manual pages of section 1, in roff, from the same descriptions as --help. There is one for each command,
/// `nam-ssb-load.1`, and one for the program, which lists the commands.

struct ManualPage {
  std::string file;
  std::string text;
};
/// `version` stands in the footer: `nam 0.1.0`.
std::vector<ManualPage> ManualPages(const CommandDescription& program, const std::string& version);

struct ManualOptions {
  std::string out;  // empty: the program's page on standard output
};
/// Writes all pages into a directory, which is made if it is missing: an exit code.
int RunManual(const ManualOptions& options, const CommandDescription& program, const std::string& version);

}  // namespace nam::cli
