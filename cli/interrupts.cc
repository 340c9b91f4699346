#include "cli/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace nam::cli {
namespace {

// A signal handler can only reach statics.
std::atomic<bool> g_seen = false;
std::atomic<Cancellable*> g_target = nullptr;
std::atomic<int> g_write_end = -1;

static_assert(std::atomic<Cancellable*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

}  // namespace

Interrupts::Interrupts() {
  NAM_CHECK(g_write_end.load() < 0, "one at a time");
  int ends[2];
  NAM_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  g_seen = false;
  g_write_end = write_end_.get();
  struct sigaction action = {};
  action.sa_handler = &Interrupts::Handle;
  sigemptyset(&action.sa_mask);  // without SA_RESTART: a read of standard input ends, too
  NAM_CHECK(sigaction(SIGINT, &action, &previous_) == 0);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &previous_, nullptr);
  g_target = nullptr;
  g_write_end = -1;
}

void Interrupts::Handle(int) {
  const int saved = errno;
  g_seen = true;
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = write(g_write_end.load(), &byte, 1);
  if (Cancellable* target = g_target.load(); target != nullptr) target->CancelFromSignal();
  errno = saved;
}

bool Interrupts::Seen() const {
  return g_seen.load();
}

void Interrupts::Clear() {
  g_seen = false;
  char bytes[64];
  while (read(read_end_.get(), bytes, sizeof bytes) > 0) {
  }
}

void Interrupts::SetTarget(Cancellable* target) {
  g_target = target;
  if (target != nullptr && Seen()) target->CancelFromSignal();
}

}  // namespace nam::cli
