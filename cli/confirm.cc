#include "cli/confirm.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "localcluster/connect.h"
#include "terminal/exit_codes.h"

namespace nam::cli {

int Confirm(const std::string& question, bool yes) {
  if (yes) return kExitOk;
  if (isatty(STDIN_FILENO) == 0)
    return Refuse(absl::InvalidArgumentError("standard input is no terminal to ask; say --yes"));
  std::printf("%s [y/N] ", question.c_str());
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return kExitOk;
  std::printf("Nothing was changed.\n");
  return kExitFailed;
}

}  // namespace nam::cli
