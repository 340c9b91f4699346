#include "bench/two_phase/participant.h"

namespace nam::bench::two_phase {
namespace {

void Unlock(const auto& transaction) {
  for (const auto& locked : transaction) locked.store->Forget(locked.row);
}

void Install(const auto& transaction, uint64_t timestamp) {
  for (const auto& locked : transaction) locked.store->Install(locked.row, timestamp);
}

}  // namespace

Participant::Participant(Transport& transport, const std::vector<TableLayout>& tables, size_t deletions_kept)
    : transport_(transport) {
  for (const TableLayout& table : tables) {
    stores_.push_back(std::make_unique<RowStore>(table, deletions_kept));
  }
}

void Participant::OnFrame(ConnectionId connection, std::span<const std::byte> frame) {
  FrameReader reader(frame);
  MessageHead head;
  bool valid = reader.Read(&head);
  if (valid && head.type == MessageType::kRead) {
    valid = Read(connection, head, reader);
  } else if (valid && head.type == MessageType::kPrepare) {
    valid = Prepare(connection, head, reader);
  } else {
    valid = valid && head.type == MessageType::kDecide && reader.empty() && Decide(connection, head);
  }
  if (valid) return;
  transport_.Close(connection);
  OnLost(connection);
}

void Participant::OnLost(ConnectionId connection) {
  const auto found = prepared_.find(connection);
  if (found == prepared_.end()) return;
  for (const auto& [id, transaction] : found->second) Unlock(transaction);
  prepared_.erase(found);
}

bool Participant::Read(ConnectionId connection, const MessageHead& head, FrameReader body) {
  std::vector<std::byte>& output = transport_.Output(connection);
  const size_t begin = output.size();
  FrameWriter writer(output, {.type = MessageType::kRows, .count = head.count, .id = head.id});
  for (uint32_t i = 0; i < head.count; ++i) {
    uint16_t table = 0;
    std::span<const std::byte> key;
    if (!body.Read(&table) || table >= stores_.size()) return false;
    const RowStore& store = *stores_[table];
    if (!body.ReadBytes(store.layout().key_bytes, &key)) return false;
    const RowStore::Version version = store.Find(key, head.snapshot);
    if (output.size() - begin + version.row.size() > kFrameBytesMax) return false;
    writer.Put(version.state);
    writer.PutBytes(version.row);
  }
  return body.empty();
}

bool Participant::LockAll(FrameReader body, uint64_t snapshot, Transaction* transaction, Outcome* outcome) {
  *outcome = Outcome::kYes;
  while (!body.empty() && *outcome == Outcome::kYes) {
    uint16_t table = 0;
    uint8_t kind = 0;
    std::span<const std::byte> row;
    if (!body.Read(&table) || !body.Read(&kind) || table >= stores_.size() || kind >= kWriteKinds) {
      return false;
    }
    RowStore& store = *stores_[table];
    const auto write = static_cast<WriteKind>(kind);
    const bool whole = write != WriteKind::kDelete;
    if (!body.ReadBytes(whole ? store.layout().row_bytes : store.layout().key_bytes, &row)) return false;
    LockedRow locked{&store, 0};
    *outcome = store.Lock(write, row, snapshot, &locked.row);
    if (*outcome == Outcome::kYes) transaction->push_back(locked);
  }
  return true;
}

bool Participant::Prepare(ConnectionId connection, const MessageHead& head, FrameReader body) {
  auto& prepared = prepared_[connection];
  if (prepared.contains(head.id)) return false;
  Transaction transaction;
  Outcome outcome{};
  const bool valid = LockAll(body, head.snapshot, &transaction, &outcome);
  if (!valid || outcome != Outcome::kYes) {
    Unlock(transaction);
    if (!valid) return false;
  } else if (head.timestamp != 0) {
    Install(transaction, head.timestamp);
  } else {
    prepared.emplace(head.id, std::move(transaction));
  }
  FrameWriter(transport_.Output(connection),
              {.type = MessageType::kVote, .flag = static_cast<uint8_t>(outcome), .id = head.id});
  return true;
}

bool Participant::Decide(ConnectionId connection, const MessageHead& head) {
  auto& prepared = prepared_[connection];
  const auto found = prepared.find(head.id);
  if (found == prepared.end()) return false;
  if (head.timestamp == 0) {
    Unlock(found->second);
  } else {
    Install(found->second, head.timestamp);
    FrameWriter(transport_.Output(connection), {.type = MessageType::kDone, .id = head.id});
  }
  prepared.erase(found);
  return true;
}

}  // namespace nam::bench::two_phase
