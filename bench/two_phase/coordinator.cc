#include "bench/two_phase/coordinator.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::bench::two_phase {

Coordinator::Coordinator(Transport& transport, TimestampService& timestamps)
    : transport_(transport), timestamps_(timestamps) {
  timestamps_.Join(transport_);
}

Coordinator::~Coordinator() {
  timestamps_.AddWaiting(-waiting_count_);
  timestamps_.Leave(transport_);
}

absl::Status Coordinator::Connect(const std::vector<std::string>& participants, Deadline deadline) {
  for (const std::string& address : participants) {
    NAM_ASSIGN_OR_RETURN(const ConnectionId connection, transport_.Connect(address, deadline));
    participants_.push_back(connection);
  }
  return absl::OkStatus();
}

void Coordinator::OnFrame(ConnectionId connection, std::span<const std::byte> frame) {
  FrameReader reader(frame);
  MessageHead head;
  bool valid = reader.Read(&head);
  if (std::find(participants_.begin(), participants_.end(), connection) != participants_.end()) {
    valid = valid && reader.empty() &&
            ((head.type == MessageType::kVote && Vote(connection, head)) ||
             (head.type == MessageType::kDone && Done(head)));
    if (!valid) Fail();
    return;
  }
  if (valid && head.type == MessageType::kCommit) {
    valid = Commit(connection, head, reader);
  } else {
    valid = valid && head.type == MessageType::kAsk && reader.empty() && Ask(connection, head);
  }
  if (!valid) transport_.Close(connection);
}

/// A client's commit goes on without it.
void Coordinator::OnLost(ConnectionId connection) {
  if (std::find(participants_.begin(), participants_.end(), connection) != participants_.end()) Fail();
}

void Coordinator::Fail() {
  if (std::exchange(failed_, true)) return;
  for (const auto& [id, transaction] : transactions_) {
    if (!transaction.decided || transaction.when_visible) AnswerCommit(transaction, Outcome::kUnavailable);
  }
  transactions_.clear();
  for (auto& [timestamp, waiting] : waiting_) Answer(waiting.client, waiting.answer);
  waiting_.clear();
  // The remaining participants drop their locks.
  for (const ConnectionId participant : participants_) transport_.Close(participant);
}

void Coordinator::Answer(ConnectionId client, MessageHead answer) {
  if (failed_) answer.flag = static_cast<uint8_t>(Outcome::kUnavailable);
  answer.snapshot = timestamps_.snapshot();
  FrameWriter(transport_.Output(client), answer);
}

void Coordinator::AnswerCommit(const Transaction& transaction, Outcome outcome) {
  Answer(transaction.client, {.type = MessageType::kOutcome,
                              .flag = static_cast<uint8_t>(outcome),
                              .id = transaction.request,
                              .timestamp = transaction.timestamp});
}

void Coordinator::AnswerWhenVisible(uint64_t timestamp, Waiting waiting) {
  if (failed_ || timestamps_.snapshot() >= timestamp) {
    Answer(waiting.client, waiting.answer);
  } else {
    waiting_.emplace(timestamp, waiting);
  }
}

void Coordinator::AfterBatch() {
  if (const auto count = static_cast<int>(waiting_.size()); count != waiting_count_) {
    timestamps_.AddWaiting(count - waiting_count_);
    waiting_count_ = count;
  }
  const uint64_t snapshot = timestamps_.snapshot();
  while (!waiting_.empty() && waiting_.begin()->first <= snapshot) {
    const Waiting waiting = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    Answer(waiting.client, waiting.answer);
  }
}

bool Coordinator::Ask(ConnectionId client, const MessageHead& head) {
  if (head.timestamp > timestamps_.last()) return false;
  AnswerWhenVisible(head.timestamp, {client, {.type = MessageType::kSnapshot, .id = head.id}});
  return true;
}

bool Coordinator::ReadParts(const MessageHead& head, FrameReader body) {
  parts_.clear();
  for (uint32_t i = 0; i < head.count; ++i) {
    Part part{};
    uint32_t bytes = 0;
    if (!body.Read(&part.participant) || !body.Read(&bytes) || !body.ReadBytes(bytes, &part.writes)) {
      return false;
    }
    // Ascending, so without duplicates.
    if (part.participant >= participants_.size()) return false;
    if (!parts_.empty() && part.participant <= parts_.back().participant) return false;
    parts_.push_back(part);
  }
  return body.empty() && !parts_.empty();
}

bool Coordinator::Commit(ConnectionId client, const MessageHead& head, FrameReader body) {
  if (!ReadParts(head, body)) return false;
  Transaction transaction{
      .client = client, .request = head.id, .when_visible = head.flag != 0, .awaited = head.count};
  if (failed_) {
    AnswerCommit(transaction, Outcome::kUnavailable);
    return true;
  }
  const uint64_t id = ++last_id_;
  if (parts_.size() == 1) transaction.timestamp = timestamps_.Next();
  for (const Part& part : parts_) {
    FrameWriter writer(transport_.Output(participants_[part.participant]),
                       {.type = MessageType::kPrepare,
                        .id = id,
                        .snapshot = head.snapshot,
                        .timestamp = transaction.timestamp});
    writer.PutBytes(part.writes);
  }
  transactions_.emplace(id, std::move(transaction));
  return true;
}

bool Coordinator::Vote(ConnectionId participant, const MessageHead& head) {
  const auto found = transactions_.find(head.id);
  if (found == transactions_.end() || found->second.decided || head.flag >= kOutcomes) return false;
  Transaction& transaction = found->second;
  const auto vote = static_cast<Outcome>(head.flag);
  if (vote == Outcome::kYes) {
    transaction.prepared.push_back(participant);
  } else {
    transaction.outcome = vote;
  }
  if (--transaction.awaited > 0) return true;
  Decide(head.id, transaction);
  if (transaction.awaited == 0) transactions_.erase(head.id);
  return true;
}

void Coordinator::Decide(uint64_t id, Transaction& transaction) {
  transaction.decided = true;
  const bool commits = transaction.outcome == Outcome::kYes;
  if (transaction.timestamp != 0) {  // one participant: it has already done what it voted for
    timestamps_.Done(transaction.timestamp, transport_);
    if (!commits) transaction.timestamp = 0;
  } else {
    if (commits) transaction.timestamp = timestamps_.Next();
    for (const ConnectionId participant : transaction.prepared) {
      FrameWriter(transport_.Output(participant),
                  {.type = MessageType::kDecide, .id = id, .timestamp = transaction.timestamp});
    }
    if (commits) transaction.awaited = static_cast<uint32_t>(transaction.prepared.size());
  }
  if (!commits || !transaction.when_visible) {
    AnswerCommit(transaction, transaction.outcome);
  } else if (transaction.awaited == 0) {
    Visible(transaction);
  }
}

bool Coordinator::Done(const MessageHead& head) {
  const auto found = transactions_.find(head.id);
  if (found == transactions_.end() || !found->second.decided) return false;
  if (--found->second.awaited > 0) return true;
  timestamps_.Done(found->second.timestamp, transport_);
  if (found->second.when_visible) Visible(found->second);
  transactions_.erase(found);
  return true;
}

void Coordinator::Visible(const Transaction& transaction) {
  AnswerWhenVisible(
      transaction.timestamp,
      {transaction.client,
       {.type = MessageType::kOutcome, .id = transaction.request, .timestamp = transaction.timestamp}});
}

}  // namespace nam::bench::two_phase
