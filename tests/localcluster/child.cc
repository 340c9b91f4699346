// A child for process_test: acts by its first argument.
//   ready             prints READY, waits for SIGTERM, exits 0
//   chatty            prints another line first
//   silent            never prints READY, and prints the reason on stderr
//   die               complains on stderr and exits 3
//   stubborn          READY, ignores SIGTERM
//   environment NAME  READY with the value of NAME
//   as UID            becomes another user, then READY
//   folder            READY with the folder it works in
//   crash             READY, then ends with exit code 9
//   parent            starts `ready` as its own child, prints READY child=<pid>, waits forever

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "localcluster/process.h"
#include "localcluster/stop_signals.h"

namespace {

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int UntilStopped(const nam::StopSignals& stop) {
  pollfd wait{stop.fd(), POLLIN, 0};
  while (poll(&wait, 1, -1) < 0) {
  }
  return 0;
}

int Parent() {
  auto child = nam::Process::Start({.name = "grandchild", .arguments = {"ready"}});
  if (!child.ok()) return 1;
  nam::Process* const one[] = {child->get()};
  if (!nam::AwaitReady(one, 60'000).ok()) return 1;
  Say("READY parent child=" + std::to_string((*child)->pid()));
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "die") {
    for (int i = 1; i <= 20; ++i) std::fprintf(stderr, "complaint %d\n", i);
    return 3;
  }
  if (what == "parent") return Parent();
  const nam::StopSignals stop;
  if (what == "silent") {
    std::fprintf(stderr, "waits for nothing\n");
    return UntilStopped(stop);
  }
  if (what == "chatty") Say("hello from a library");
  if (what == "environment") {
    const char* value = std::getenv(argv[2]);
    Say(std::string("READY environment value=") + (value != nullptr ? value : "unset"));
  } else if (what == "folder") {
    char folder[4096];
    Say(std::string("READY folder folder=") + (getcwd(folder, sizeof folder) != nullptr ? folder : "none"));
  } else {
    if (what == "as" && setuid(static_cast<uid_t>(std::atoi(argv[2]))) != 0) return 1;
    Say("READY server id=7 address=127.0.0.1:4711 leases=127.0.0.1:4712");
  }
  if (what == "crash") return 9;
  if (what == "stubborn") {
    while (true) pause();  // SIGTERM is blocked by `stop` and never taken
  }
  return UntilStopped(stop);
}
