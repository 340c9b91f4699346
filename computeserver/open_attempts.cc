#include "computeserver/open_attempts.h"

#include <algorithm>
#include <iterator>

#include "types/sql_error.h"

namespace nam::computeserver {
namespace {

absl::Status StoodStill() {
  return UserError(
      sqlstate::kOutOfMemory,
      "the result was not read for so long that other queries have been given the memory that it "
      "held",
      -1, "read on sooner, or ask for fewer rows at a time");
}

}  // namespace

absl::StatusOr<proto::AttemptReply> OpenAttempts::Begin(uint64_t id, MemberId client,
                                                        std::shared_ptr<OpenAttempt> attempt,
                                                        const catalog::IncomingCall& call) {
  const Key key{client, id};
  {
    const MutexLock lock(mutex_);
    if (!attempts_.try_emplace(key, Entry{.attempt = attempt}).second)
      return absl::AlreadyExistsError("there is an attempt of this number");
  }
  return Advance(key, std::move(attempt), call, [] { return absl::OkStatus(); });
}

absl::StatusOr<proto::AttemptReply> OpenAttempts::Resume(uint64_t id, MemberId client, uint32_t windows,
                                                         const catalog::IncomingCall& call,
                                                         const std::function<absl::Status()>& await_turn) {
  const Key key{client, id};
  std::shared_ptr<OpenAttempt> attempt;
  {
    const MutexLock lock(mutex_);
    const auto found = attempts_.find(key);
    if (std::find(ended_standing_.begin(), ended_standing_.end(), key) != ended_standing_.end())
      return StoodStill();
    if (found == attempts_.end() || found->second.called)
      return absl::NotFoundError("no suspended attempt has this number");
    Entry& entry = found->second;
    if (entry.windows != windows)
      return absl::InvalidArgumentError("the client has not read what the attempt has handed over");
    entry.called = true;
    attempt = entry.attempt;
  }
  return Advance(key, std::move(attempt), call, await_turn);
}

absl::StatusOr<proto::AttemptReply> OpenAttempts::Advance(const Key& key,
                                                          std::shared_ptr<OpenAttempt> attempt,
                                                          const catalog::IncomingCall& call,
                                                          const std::function<absl::Status()>& await_turn) {
  const absl::Status turn = await_turn();
  absl::StatusOr<proto::AttemptReply> reply = turn.ok() ? attempt->Advance(call) : turn;
  std::shared_ptr<OpenAttempt> over;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = attempts_.find(key);
  Entry& entry = found->second;
  // The caller is gone and could neither read the result nor release it. gRPC checks its sockets for the
  // answer, so this asks once.
  if (call.Cancelled()) {
    entry.attempt->Cancel();
    entry.unwanted = true;
  }
  if (reply.ok() && reply->more() && !entry.unwanted) {
    entry.called = false;
    ++entry.windows;
    handed_over_ns_ = entry.stands_since_ns = fabric_.clock().NowNs();
    return reply;
  }
  const bool unwanted = entry.unwanted;
  over = std::move(entry.attempt);
  attempts_.erase(found);
  if (unwanted && reply.ok()) return absl::CancelledError("cancelled");
  return reply;
}

void OpenAttempts::Release(uint64_t id, MemberId client) {
  std::shared_ptr<OpenAttempt> over;
  const MutexLock lock(mutex_);
  const auto found = attempts_.find({client, id});
  if (found == attempts_.end()) return;
  found->second.attempt->Cancel();
  found->second.unwanted = true;
  if (found->second.called) return;
  over = std::move(found->second.attempt);
  attempts_.erase(found);
}

std::set<MemberId> OpenAttempts::Clients() {
  const MutexLock lock(mutex_);
  std::set<MemberId> clients;
  for (const auto& [key, entry] : attempts_) clients.insert(key.first);
  return clients;
}

void OpenAttempts::EndOf(MemberId client) {
  std::vector<std::shared_ptr<OpenAttempt>> over;
  {
    const MutexLock lock(mutex_);
    for (auto& [key, entry] : attempts_) {
      if (key.first != client) continue;
      entry.attempt->Cancel();
      entry.unwanted = true;
      if (!entry.called) over.push_back(std::move(entry.attempt));
    }
    std::erase_if(attempts_, [](const auto& entry) { return entry.second.attempt == nullptr; });
  }
  if (over.empty()) return;
  std::shared_ptr<fabric::Event> done = fabric_.CreateEvent();
  auto thread = fabric_.StartThread("nam-end", [done, over = std::move(over)]() mutable {
    over.clear();
    done->Set();
  });
  std::vector<Ending> ended;  // joined without the lock
  const MutexLock lock(mutex_);
  const auto first = std::stable_partition(ending_.begin(), ending_.end(),
                                           [](const Ending& ending) { return !ending.done->IsSet(); });
  std::move(first, ending_.end(), std::back_inserter(ended));
  ending_.erase(first, ending_.end());
  ending_.push_back({std::move(done), std::move(thread)});
}

void OpenAttempts::EndStanding(int64_t us) {
  std::shared_ptr<OpenAttempt> over;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const int64_t now_ns = fabric_.clock().NowNs(), before_ns = std::exchange(asked_to_end_ns_, now_ns);
  const int64_t waiting_since_ns = now_ns - before_ns < kWaitingNs ? before_ns : now_ns;
  auto longest = attempts_.end();
  int64_t longest_ns = 0;
  for (auto entry = attempts_.begin(); entry != attempts_.end(); ++entry) {
    Entry& stands = entry->second;
    if (stands.called) continue;
    stands.kept_waiting_ns += now_ns - std::max(waiting_since_ns, stands.stands_since_ns);
    const int64_t ns = std::max(now_ns - stands.stands_since_ns, stands.kept_waiting_ns / kKeptWaiting);
    if (longest != attempts_.end() && ns <= longest_ns) continue;
    longest = entry;
    longest_ns = ns;
  }
  if (longest == attempts_.end() || longest_ns < 1000 * us) return;
  ended_standing_.push_back(longest->first);
  if (ended_standing_.size() > kEndedMax) ended_standing_.pop_front();
  over = std::move(longest->second.attempt);
  over->LeaveWindow();
  over->Cancel();
  attempts_.erase(longest);
}

void OpenAttempts::EndAll() {
  std::map<Key, Entry> over;
  std::vector<Ending> ending;
  {
    const MutexLock lock(mutex_);
    over.swap(attempts_);
    ending.swap(ending_);
  }
  for (auto& [key, entry] : over) entry.attempt->Cancel();
}

}  // namespace nam::computeserver
