#include "bench/two_phase/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/two_phase/wire.h"

namespace nam::bench::two_phase {
namespace {

// The head of a row in a frame: table, key and state.
constexpr size_t kRowHeadBytes = 16;

class ClientSession final : public txn::Session, private FrameSink {
 public:
  ClientSession(std::unique_ptr<Transport> transport, const ClusterLayout& cluster,
                const SessionOptions& options, Clock& clock)
      : transport_(std::move(transport)), tables_(cluster.tables), options_(options), clock_(clock) {}
  absl::Status Connect(const ClusterLayout& cluster);

  absl::StatusOr<txn::TableHandle> OpenTable(const std::string& name) override;
  absl::Status Begin() override;
  absl::Status Read(std::span<txn::Lookup> lookups) override;
  absl::Status Write(std::span<const txn::RowWrite> writes) override;
  absl::StatusOr<uint64_t> Commit() override;
  void Abort() override { active_ = false; }
  uint64_t snapshot() const override { return snapshot_; }

 private:
  /// Table and key.
  using RowName = std::string;
  struct Pending {
    uint32_t table;
    WriteKind kind;
    size_t at;               // the row's place in written_
    bool fresh = false;      // the snapshot does not hold the key
    bool withdrawn = false;  // deleted again
  };

  void OnFrame(ConnectionId connection, std::span<const std::byte> frame) override;
  void OnLost(ConnectionId connection) override;
  bool ReadRows(size_t participant, uint32_t count, FrameReader body);

  absl::Status CheckActive() const;
  absl::Status CheckTable(txn::TableHandle handle, size_t bytes, bool whole_row) const;
  RowName NameOf(uint32_t table, std::span<const std::byte> row) const;
  Pending* PendingOf(const RowName& name);
  absl::Status WriteOwn(const txn::RowWrite& write, Pending& own);
  absl::Status WriteNew(const txn::RowWrite& write, const RowName& name);
  void AddPending(const RowName& name, uint32_t table, WriteKind kind, std::span<const std::byte> row);
  absl::Status End(absl::Status status);
  absl::Status Conflict(txn::AbortReason reason, uint32_t table);
  /// Waits for `awaited_` answers.
  absl::Status Await();
  absl::Status AskSnapshot();
  absl::Status SendReads();
  absl::Status SendCommit(uint64_t* parts);
  absl::Status TakeLookup(txn::Lookup& lookup, uint8_t state);
  absl::Status CommitError() const;

  const std::unique_ptr<Transport> transport_;
  const std::vector<TableLayout> tables_;
  const SessionOptions options_;
  Clock& clock_;
  ConnectionId coordinator_;
  std::vector<ConnectionId> participants_;
  absl::Status broken_;

  bool active_ = false;
  uint64_t snapshot_ = 0;
  uint64_t last_commit_ = 0;
  std::optional<uint64_t> last_answer_;       // the snapshot that came with it
  absl::flat_hash_map<RowName, bool> known_;  // rows that were found; whether they are out of date
  absl::flat_hash_map<RowName, size_t> names_;
  std::vector<Pending> writes_;
  std::vector<std::byte> written_;

  // The current request.
  uint64_t request_ = 0;
  uint32_t awaited_ = 0;
  MessageHead answer_;  // the coordinator's
  std::span<txn::Lookup> lookups_;
  std::vector<uint8_t> states_;                  // by place in lookups_
  std::vector<std::vector<uint32_t>> asked_of_;  // by participant: places in lookups_
};

absl::Status ClientSession::Connect(const ClusterLayout& cluster) {
  if (cluster.coordinators.empty() || cluster.participants.empty()) {
    return absl::InvalidArgumentError("a cluster of two-phase commit has coordinators and participants");
  }
  const Deadline deadline = clock_.After(options_.timeout_us);
  const std::string& coordinator = cluster.coordinators[options_.coordinator % cluster.coordinators.size()];
  NAM_ASSIGN_OR_RETURN(coordinator_, transport_->Connect(coordinator, deadline));
  for (const std::string& address : cluster.participants) {
    NAM_ASSIGN_OR_RETURN(const ConnectionId connection, transport_->Connect(address, deadline));
    participants_.push_back(connection);
  }
  asked_of_.resize(participants_.size());
  return absl::OkStatus();
}

// -- Answers.

void ClientSession::OnLost(ConnectionId connection) {
  if (!broken_.ok()) return;
  broken_ = absl::UnavailableError(connection == coordinator_
                                       ? std::string("two-phase commit: the coordinator is gone")
                                       : std::string("two-phase commit: a participant is gone"));
}

void ClientSession::OnFrame(ConnectionId connection, std::span<const std::byte> frame) {
  FrameReader reader(frame);
  MessageHead head;
  bool valid = reader.Read(&head);
  if (valid && head.id != request_) return;  // a request that was given up
  if (valid && connection == coordinator_) {
    const bool outcome = head.type == MessageType::kOutcome && head.flag < kOutcomes;
    valid = reader.empty() && (outcome || head.type == MessageType::kSnapshot);
    answer_ = head;
  } else if (valid) {
    const auto from = std::find(participants_.begin(), participants_.end(), connection);
    valid = head.type == MessageType::kRows && from != participants_.end() &&
            ReadRows(static_cast<size_t>(from - participants_.begin()), head.count, reader);
  }
  if (!valid || awaited_ == 0) {
    broken_ = absl::UnavailableError("two-phase commit: a server has sent a malformed answer");
  } else {
    --awaited_;
  }
}

bool ClientSession::ReadRows(size_t participant, uint32_t count, FrameReader body) {
  if (count != asked_of_[participant].size()) return false;
  for (const uint32_t i : asked_of_[participant]) {
    if (!body.Read(&states_[i])) return false;
    if ((states_[i] & kFound) == 0) continue;
    std::span<const std::byte> row;
    if (!body.ReadBytes(lookups_[i].row.size(), &row)) return false;
    std::memcpy(lookups_[i].row.data(), row.data(), row.size());
  }
  asked_of_[participant].clear();  // so that a second answer is ignored
  return body.empty();
}

absl::Status ClientSession::Await() {
  const Deadline deadline = clock_.After(options_.timeout_us);
  while (awaited_ > 0 && broken_.ok()) {
    transport_->Receive(*this, deadline);
    if (awaited_ > 0 && clock_.Passed(deadline) && broken_.ok()) {
      broken_ = absl::UnavailableError("two-phase commit: a server does not answer");
    }
  }
  return broken_;
}

absl::Status ClientSession::End(absl::Status status) {
  active_ = false;
  return status;
}

absl::Status ClientSession::Conflict(txn::AbortReason reason, uint32_t table) {
  return End(txn::AbortStatus(reason, tables_[table].name));
}

// -- Begin and Read.

absl::StatusOr<txn::TableHandle> ClientSession::OpenTable(const std::string& name) {
  for (uint32_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].name == name) return txn::TableHandle{i};
  }
  return absl::NotFoundError(absl::StrCat("no table ", name));
}

absl::Status ClientSession::Begin() {
  if (!broken_.ok()) return broken_;
  if (active_) return absl::FailedPreconditionError("a transaction is under way");
  if (options_.snapshots == SessionOptions::Snapshots::kFresh || !last_answer_.has_value()) {
    NAM_RETURN_IF_ERROR(AskSnapshot());
  }
  // Used once: a transaction that ends without an answer leaves none for the next.
  snapshot_ = *last_answer_;
  last_answer_.reset();
  known_.clear();
  names_.clear();
  writes_.clear();
  written_.clear();
  active_ = true;
  return absl::OkStatus();
}

absl::Status ClientSession::AskSnapshot() {
  FrameWriter(transport_->Output(coordinator_),
              {.type = MessageType::kAsk, .id = ++request_, .timestamp = last_commit_});
  awaited_ = 1;
  NAM_RETURN_IF_ERROR(Await());
  if (answer_.type != MessageType::kSnapshot || answer_.flag != 0) {
    return broken_ = absl::UnavailableError("two-phase commit: a participant is gone");
  }
  last_answer_ = answer_.snapshot;
  return absl::OkStatus();
}

absl::Status ClientSession::CheckActive() const {
  if (!broken_.ok()) return broken_;
  if (!active_) return absl::FailedPreconditionError("no transaction has begun");
  return absl::OkStatus();
}

absl::Status ClientSession::CheckTable(txn::TableHandle handle, size_t bytes, bool whole_row) const {
  if (handle.value >= tables_.size()) return absl::InvalidArgumentError("a table that is not open");
  const TableLayout& table = tables_[handle.value];
  const uint32_t wanted = whole_row ? table.row_bytes : table.key_bytes;
  if (bytes == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s of table %s has %d bytes, not %d", whole_row ? "a row" : "a key", table.name, wanted, bytes));
}

ClientSession::RowName ClientSession::NameOf(uint32_t table, std::span<const std::byte> row) const {
  RowName name(reinterpret_cast<const char*>(row.data()), tables_[table].key_bytes);
  name.append(reinterpret_cast<const char*>(&table), sizeof(uint16_t));
  return name;
}

ClientSession::Pending* ClientSession::PendingOf(const RowName& name) {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &writes_[found->second];
}

absl::Status ClientSession::Read(std::span<txn::Lookup> lookups) {
  NAM_RETURN_IF_ERROR(CheckActive());
  for (const txn::Lookup& lookup : lookups) {
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.key.size(), false));
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.row.size(), true));
  }
  lookups_ = lookups;
  states_.assign(lookups.size(), 0);
  for (std::vector<uint32_t>& asked : asked_of_) asked.clear();
  const auto participants = static_cast<uint32_t>(participants_.size());
  for (uint32_t i = 0; i < lookups.size(); ++i) {
    txn::Lookup& lookup = lookups[i];
    const Pending* const write = PendingOf(NameOf(lookup.table.value, lookup.key));
    if (write == nullptr) {
      asked_of_[PartitionOf(lookup.key, participants)].push_back(i);
      continue;
    }
    lookup.found = write->kind != WriteKind::kDelete;
    if (lookup.found) std::memcpy(lookup.row.data(), written_.data() + write->at, lookup.row.size());
  }
  std::vector<bool> own(lookups.size(), true);
  for (const std::vector<uint32_t>& asked : asked_of_) {
    for (const uint32_t i : asked) own[i] = false;
  }
  absl::Status status = SendReads();
  if (status.ok()) status = Await();
  if (!status.ok()) return End(status);
  for (size_t i = 0; i < lookups.size(); ++i) {
    if (!own[i]) NAM_RETURN_IF_ERROR(TakeLookup(lookups[i], states_[i]));
  }
  return absl::OkStatus();
}

absl::Status ClientSession::SendReads() {
  ++request_;
  awaited_ = 0;
  for (const std::vector<uint32_t>& asked : asked_of_) {
    size_t bytes = sizeof(MessageHead);
    for (const uint32_t i : asked) bytes += kRowHeadBytes + lookups_[i].key.size() + lookups_[i].row.size();
    if (bytes > kFrameBytesMax) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "more than %d MiB of rows in one Read: read them in several", kFrameBytesMax >> 20));
    }
  }
  for (size_t participant = 0; participant < participants_.size(); ++participant) {
    const std::vector<uint32_t>& asked = asked_of_[participant];
    if (asked.empty()) continue;
    FrameWriter writer(transport_->Output(participants_[participant]),
                       {.type = MessageType::kRead,
                        .count = static_cast<uint32_t>(asked.size()),
                        .id = request_,
                        .snapshot = snapshot_});
    for (const uint32_t i : asked) {
      writer.Put(static_cast<uint16_t>(lookups_[i].table.value));
      writer.PutBytes(lookups_[i].key);
    }
    ++awaited_;
  }
  return absl::OkStatus();
}

absl::Status ClientSession::TakeLookup(txn::Lookup& lookup, uint8_t state) {
  if ((state & kRowTooOld) != 0) return Conflict(txn::AbortReason::kSnapshotTooOld, lookup.table.value);
  lookup.found = (state & kFound) != 0;
  if (lookup.found) known_[NameOf(lookup.table.value, lookup.key)] = (state & kNewer) != 0;
  return absl::OkStatus();
}

// -- Writes.

void ClientSession::AddPending(const RowName& name, uint32_t table, WriteKind kind,
                               std::span<const std::byte> row) {
  names_.emplace(name, writes_.size());
  writes_.push_back(
      {.table = table, .kind = kind, .at = written_.size(), .fresh = kind == WriteKind::kInsert});
  written_.insert(written_.end(), row.begin(), row.end());
  // Makes room for a row that replaces a deletion.
  written_.resize(writes_.back().at + tables_[table].row_bytes);
}

absl::Status ClientSession::Write(std::span<const txn::RowWrite> writes) {
  NAM_RETURN_IF_ERROR(CheckActive());
  for (const txn::RowWrite& write : writes) {
    if (write.kind == txn::RowWrite::Kind::kLock)
      return absl::UnimplementedError("this protocol locks no rows");
    NAM_RETURN_IF_ERROR(
        CheckTable(write.table, write.row.size(), write.kind != txn::RowWrite::Kind::kDelete));
  }
  for (const txn::RowWrite& write : writes) {
    const RowName name = NameOf(write.table.value, write.row);
    Pending* const own = PendingOf(name);
    NAM_RETURN_IF_ERROR(own != nullptr ? WriteOwn(write, *own) : WriteNew(write, name));
  }
  return absl::OkStatus();
}

// Changes a row that the transaction has already written.
absl::Status ClientSession::WriteOwn(const txn::RowWrite& write, Pending& own) {
  const bool deleted = own.kind == WriteKind::kDelete;
  if (write.kind == txn::RowWrite::Kind::kInsert && !deleted)
    return Conflict(txn::AbortReason::kUniqueKey, write.table.value);
  if (write.kind != txn::RowWrite::Kind::kInsert && deleted)
    return End(absl::NotFoundError("the row was deleted"));
  if (write.kind == txn::RowWrite::Kind::kDelete) {
    own.withdrawn = own.fresh;
    own.kind = WriteKind::kDelete;
    return absl::OkStatus();
  }
  std::memcpy(written_.data() + own.at, write.row.data(), write.row.size());
  own.withdrawn = false;
  if (deleted) own.kind = own.fresh ? WriteKind::kInsert : WriteKind::kUpdate;
  return absl::OkStatus();
}

absl::Status ClientSession::WriteNew(const txn::RowWrite& write, const RowName& name) {
  const auto known = known_.find(name);
  if (write.kind == txn::RowWrite::Kind::kInsert) {
    if (known != known_.end()) return Conflict(txn::AbortReason::kUniqueKey, write.table.value);
    AddPending(name, write.table.value, WriteKind::kInsert, write.row);
    return absl::OkStatus();
  }
  if (known == known_.end()) return End(absl::NotFoundError("this transaction has not read the row"));
  // Another client was faster: a try would fail.
  if (known->second) return Conflict(txn::AbortReason::kWriteWrite, write.table.value);
  AddPending(name, write.table.value,
             write.kind == txn::RowWrite::Kind::kDelete ? WriteKind::kDelete : WriteKind::kUpdate, write.row);
  return absl::OkStatus();
}

// -- Commit.

absl::StatusOr<uint64_t> ClientSession::Commit() {
  NAM_RETURN_IF_ERROR(CheckActive());
  uint64_t parts = 0;
  absl::Status status = SendCommit(&parts);
  if (status.ok() && parts == 0) {
    active_ = false;
    return 0;
  }
  if (status.ok()) status = Await();
  if (!status.ok()) return End(status);
  if (answer_.type != MessageType::kOutcome) {
    broken_ = absl::UnavailableError("two-phase commit: a server has sent a malformed answer");
    return End(broken_);
  }
  last_answer_ = answer_.snapshot;
  if (status = CommitError(); !status.ok()) return End(status);
  active_ = false;
  return last_commit_ = answer_.timestamp;
}

absl::Status ClientSession::SendCommit(uint64_t* parts) {
  std::vector<std::vector<const Pending*>> by_participant(participants_.size());
  std::vector<uint32_t> bytes(participants_.size());
  uint64_t whole_bytes = sizeof(MessageHead);
  const auto participants = static_cast<uint32_t>(participants_.size());
  for (const Pending& write : writes_) {
    if (write.withdrawn) continue;
    const TableLayout& table = tables_[write.table];
    const uint32_t owner = PartitionOf({written_.data() + write.at, table.key_bytes}, participants);
    const uint32_t payload = write.kind == WriteKind::kDelete ? table.key_bytes : table.row_bytes;
    by_participant[owner].push_back(&write);
    bytes[owner] += payload + sizeof(uint16_t) + sizeof(WriteKind);
    whole_bytes += payload + kRowHeadBytes;
    if (whole_bytes > kFrameBytesMax) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "more than %d MiB of rows written in one transaction: make it smaller", kFrameBytesMax >> 20));
    }
  }
  *parts = static_cast<uint64_t>(
      std::count_if(bytes.begin(), bytes.end(), [](uint32_t count) { return count > 0; }));
  if (*parts == 0) return absl::OkStatus();
  const bool when_visible = options_.snapshots == SessionOptions::Snapshots::kLastAnswer;
  FrameWriter writer(transport_->Output(coordinator_), {.type = MessageType::kCommit,
                                                        .flag = when_visible,
                                                        .count = static_cast<uint32_t>(*parts),
                                                        .id = ++request_,
                                                        .snapshot = snapshot_});
  for (size_t participant = 0; participant < participants_.size(); ++participant) {
    if (bytes[participant] == 0) continue;
    writer.Put(static_cast<uint16_t>(participant));
    writer.Put(bytes[participant]);
    for (const Pending* write : by_participant[participant]) {
      const TableLayout& table = tables_[write->table];
      writer.Put(static_cast<uint16_t>(write->table));
      writer.Put(write->kind);
      writer.PutBytes({written_.data() + write->at,
                       write->kind == WriteKind::kDelete ? table.key_bytes : table.row_bytes});
    }
  }
  awaited_ = 1;
  return absl::OkStatus();
}

absl::Status ClientSession::CommitError() const {
  switch (static_cast<Outcome>(answer_.flag)) {
    case Outcome::kYes:
      return absl::OkStatus();
    case Outcome::kWriteWrite:
      return txn::AbortStatus(txn::AbortReason::kWriteWrite, "found by two-phase commit");
    case Outcome::kTooOld:
      return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld, "found by two-phase commit");
    case Outcome::kUniqueKey:
      return txn::AbortStatus(txn::AbortReason::kUniqueKey, "found by two-phase commit");
    case Outcome::kUnavailable:
      return absl::UnavailableError("two-phase commit: a participant is gone");
  }
  return absl::InternalError("two-phase commit: a server has sent an unknown outcome");
}

}  // namespace

absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(fabric::Fabric& fabric,
                                                          const TransportOptions& transport,
                                                          const ClusterLayout& cluster,
                                                          const SessionOptions& options) {
  TransportOptions mine = transport;
  mine.host.clear();  // it does not listen
  mine.connections_max = static_cast<uint32_t>(cluster.participants.size() + 1);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<Transport> opened, OpenTransport(fabric, mine));
  auto session = std::make_unique<ClientSession>(std::move(opened), cluster, options, fabric.clock());
  NAM_RETURN_IF_ERROR(session->Connect(cluster));
  return std::unique_ptr<txn::Session>(std::move(session));
}

}  // namespace nam::bench::two_phase
