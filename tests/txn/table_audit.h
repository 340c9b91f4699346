#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "storage/record_block.h"
#include "tests/txn/record_cluster.h"
#include "txn/rsi/record_table.h"
#include "txn/rsi/recovery.h"
#include "txn/timestamps/client_slot.h"
#include "txn/timestamps/commit_point.h"
#include "txn/timestamps/timestamps.h"

namespace nam::txn {

/// Checks every block and chunk of a table while no client works on it.
struct TableAudit {
  uint64_t live = 0;     // rows, including those that are deleted and not reclaimed yet
  uint64_t deleted = 0;  // of those
  uint64_t free = 0;
  std::vector<std::string> faults;  // locked, leaked, lost

  std::string ToString() const {
    std::string text = absl::StrFormat("%d live, %d of them deleted, %d free", live, deleted, free);
    for (const std::string& fault : faults) text += "\n" + fault;
    return text;
  }
};

/// A client that begins no transaction: it recovers clients that are gone, and inspects slots, logs and
/// indexes.
class Auditor {
 public:
  Auditor(Tables& tables, TimestampKind kind)
      : geometry_(kind),
        tables_(tables),
        channel_(*storage::Channel::Open(tables.fabric(), tables.directory(), {})),
        batch_(*channel_),
        state_(*ExtentSpace::Open(*channel_, tables.State()->extents, kStateBytes)),
        logs_(tables.State()->logs, *channel_),
        slot_(ClaimSlot()),
        client_(slot_.client),
        commit_point_(state_, geometry_, slot_),
        timestamps_(Timestamps::Make(kind, state_, geometry_, client_, commit_point_, tables.fabric().clock(),
                                     nullptr)),
        recovery_(tables, state_, logs_, geometry_, batch_, *timestamps_, slot_,
                  [this](const TableDescription& description) { return TableOf(description); }) {}

  uint64_t Watermark() {
    const uint64_t* const watermark = batch_.ReadWord(*state_.Resolve(kWatermarkOffset));
    EXPECT_TRUE(batch_.Execute().ok());
    return *watermark;
  }
  int RecoverAll() { return *recovery_.RecoverAll(); }
  /// For one that may die meanwhile.
  absl::Status TryRecoverAll() { return recovery_.RecoverAll().status(); }
  bool Recover(uint32_t client) { return *recovery_.TryRecover(client); }
  /// 0: the member has no slot.
  uint32_t ClientOf(MemberId member) {
    uint32_t found = 0;
    VisitOwners([&](uint32_t client, SlotOwner owner) {
      if (owner.held() && owner.member == member.value()) found = client;
    });
    return found;
  }
  /// What the slot of the member's client says of its transaction.
  SlotWord WordOf(MemberId member) {
    const uint64_t* const word =
        batch_.ReadWord(*state_.Resolve(geometry_.slot(ClientOf(member)) + kSlotWordOffset));
    EXPECT_TRUE(batch_.Execute().ok());
    const SlotWord read(*word);
    batch_.Reset();
    return read;
  }
  /// The next client has to take a slot that was recovered.
  void TakeFreeSlots() { ChangeOwners(SlotOwner{}, Taken()); }
  void FreeTakenSlots() { ChangeOwners(Taken(), SlotOwner{}); }
  std::set<uint32_t> LivingClients() {
    std::set<uint32_t> living;
    VisitOwners([&](uint32_t client, SlotOwner owner) {
      if (client != client_ && owner.held()) living.insert(client);
    });
    return living;
  }
  /// Slots that say of a transaction that it may still write, except for those of living clients.
  size_t UnderWayOfOthers() {
    const std::set<uint32_t> living = LivingClients();
    const std::vector<UnderWay> under_way = *FindUnderWay(state_, geometry_, batch_);
    return static_cast<size_t>(std::count_if(under_way.begin(), under_way.end(), [&](const UnderWay& other) {
      return !living.contains(other.client);
    }));
  }

  /// Segments of logs that are used, but neither begin a slot's log nor belong to a living client's.
  size_t StrayLogSegments() {
    const std::set<uint32_t> living = LivingClients();
    ExtentSpace& extents = **logs_.Open();
    EXPECT_TRUE(extents.FindNew().ok());
    size_t strays = 0;
    for (uint64_t extent = 0; extent < extents.extents(); ++extent) {
      const uint64_t begin = extent * kLogExtentBytes;
      if (extents.Lost(begin)) continue;
      auto* const words = reinterpret_cast<uint64_t*>(batch_.Scratch(kLogSegments * 8));
      batch_.Read(*extents.Resolve(begin), reinterpret_cast<std::byte*>(words), kLogSegments * 8);
      EXPECT_TRUE(batch_.Execute().ok());
      for (uint64_t segment = 1; segment < kLogSegments; ++segment) {
        const LogSegmentWord word(words[segment]);
        if (!word.used() || living.contains(word.client())) continue;
        auto* const first = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
        batch_.Read(*state_.Resolve(geometry_.slot(word.client()) + kSlotLogOffset),
                    reinterpret_cast<std::byte*>(first), 8);
        EXPECT_TRUE(batch_.Execute().ok());
        strays += *first != begin + segment * kLogSegmentBytes;
      }
    }
    batch_.Reset();
    return strays;
  }

  /// How many entries of the table's first ordered index have this key.
  size_t EntriesOf(const std::string& name, std::span<const std::byte> key) {
    std::vector<uint64_t> values;
    RecordTable& table = **TableOf(*tables_.Find(name));
    EXPECT_TRUE(table.indexes()[0]->entries().Lookup(key, values).ok());
    batch_.Reset();
    return values.size();
  }

  /// `keys` may be in the index.
  TableAudit Audit(const std::string& name, const std::vector<std::vector<std::byte>>& keys) {
    TableAudit audit;
    RecordTable& table = **TableOf(*tables_.Find(name));
    if (!table.space().FindNew().ok()) audit.faults.push_back("extents");
    const std::set<uint32_t> living = LivingClients();
    const RecordLayout& layout = table.layout();
    for (uint64_t at = 0; at < table.space().extents() * layout.chunks; ++at) {
      const uint64_t chunk = layout.ChunkNumber(at / layout.chunks, at % layout.chunks);
      const std::span<const uint64_t> words = *table.allocator().ReadWords(batch_, at / layout.chunks);
      if (at % layout.chunks >= words.size()) continue;  // of a short extent
      const ChunkWord word(words[at % layout.chunks]);
      batch_.Reset();
      const uint64_t free_before = audit.free;
      for (uint64_t i = 0; i < kChunkRecords; ++i) AuditBlock(table, chunk * kChunkRecords + i, audit);
      const uint64_t free = audit.free - free_before;
      const auto fault = [&](const char* what) {
        audit.faults.push_back(
            absl::StrFormat("chunk %d (word %x, %d blocks free): %s", chunk, word.word(), free, what));
      };
      if (word.owner() != 0 && !living.contains(word.owner())) fault("its owner is gone");
      if (!word.had() && free != kChunkRecords) fault("it has no owner, but rows");
      if (word.had() && word.owner() == 0 && free >= kFreedMin && word.freed() < kFreedMin) {
        fault("no client will look for its free blocks");
      }
    }
    AuditKeys(table, keys, audit);
    return audit;
  }

 private:
  SlotOwner Taken() const { return {.member = tables_.member().value(), .state = SlotState::kUsed}; }
  void ChangeOwners(SlotOwner from, SlotOwner to) {
    constexpr uint32_t kAtOnce = 1'024;
    for (uint32_t client = 1; client <= geometry_.clients_max(); ++client) {
      auto* const old = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
      batch_.CompareAndSwap(*state_.Resolve(geometry_.slot(client) + kSlotOwnerOffset), from.word(),
                            to.word(), old);
      if (client % kAtOnce != 0 && client != geometry_.clients_max()) continue;
      EXPECT_TRUE(batch_.Execute().ok());
      batch_.Reset();
    }
    auto* const used = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
    *used = geometry_.clients_max();
    batch_.Write(reinterpret_cast<const std::byte*>(used), 8, *state_.Resolve(kSlotsUsedOffset));
    EXPECT_TRUE(batch_.Execute().ok());
    batch_.Reset();
  }
  void VisitOwners(const std::function<void(uint32_t client, SlotOwner owner)>& visit) {
    EXPECT_TRUE(VisitSlots(state_, geometry_, batch_, [&](uint32_t client, const SlotWords& slot) {
                  visit(client, SlotOwner::FromWord(slot.owner));
                }).ok());
  }
  ClientSlot ClaimSlot() {
    ClientSlot slot;
    EXPECT_TRUE(
        ClientSlot::Claim(state_, geometry_, batch_, {.member = tables_.member().value()}, 0, &slot).ok());
    batch_.Reset();
    return slot;
  }
  absl::StatusOr<RecordTable*> TableOf(const TableDescription& description) {
    for (const auto& table : open_) {
      if (table->description().allocation == description.allocation) return table.get();
    }
    auto table = RecordTable::Open(description, *channel_, batch_, slot_,
                                   [this](uint32_t owner) { return recovery_.ConfirmGone(owner); });
    if (!table.ok()) return table.status();
    open_.push_back(*std::move(table));
    return open_.back().get();
  }

  static uint64_t NewestOf(storage::VersionWords words) {
    uint64_t newest = 0;
    for (uint32_t slot = 0; slot < words.size(); ++slot) newest = std::max(newest, words[slot].timestamp());
    return newest;
  }

  // The word is free, or a row that the index leads to.
  void AuditBlock(RecordTable& table, uint64_t record, TableAudit& audit) {
    const storage::RecordGeometry& geometry = table.geometry();
    std::byte* const bytes = batch_.Scratch(geometry.block_bytes());
    batch_.Read(*table.Block(record), bytes, geometry.block_bytes());
    if (!batch_.Execute().ok()) audit.faults.push_back("a READ");
    const storage::RecordHeader header(*reinterpret_cast<const uint64_t*>(bytes));
    const storage::VersionWords words(bytes, geometry);
    const auto fault = [&](const char* what) {
      audit.faults.push_back(absl::StrFormat("record %d (header %x): %s", record, header.word(), what));
    };
    if (header.free()) {
      ++audit.free;
      if (NewestOf(words) != 0) fault("it is free, and has a version");
    } else if (header.locked()) {
      fault("it is locked");
    } else if (NewestOf(words) > header.timestamp()) {
      fault("a version above its header's is left");
    } else {
      ++audit.live;
      uint32_t slot = 0;
      while (slot < words.size() && words[slot].timestamp() != header.timestamp()) ++slot;
      if (slot == words.size()) {
        fault("its newest version is not there");
      } else {
        if (words[slot].deleted()) ++audit.deleted;
        HashIndex::Probe probe{
            .hash = table.HashOf({bytes + geometry.row_offset(slot), table.description().key_bytes})};
        if (!table.index().Lookup({&probe, 1}).ok()) fault("a lookup");
        const auto found = probe.candidates.view();
        if (std::find(found.begin(), found.end(), record) == found.end()) fault("leaked: no key leads to it");
      }
    }
    batch_.Reset();
  }

  // Entries for keys that no row has.
  void AuditKeys(RecordTable& table, const std::vector<std::vector<std::byte>>& keys, TableAudit& audit) {
    for (const std::vector<std::byte>& key : keys) {
      HashIndex::Probe probe{.hash = table.HashOf(key)};
      if (!table.index().Lookup({&probe, 1}).ok()) audit.faults.push_back("a lookup");
      for (const uint64_t record : probe.candidates.view()) {
        uint64_t* const header = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
        batch_.Read(*table.Block(record), reinterpret_cast<std::byte*>(header), 8);
        if (!batch_.Execute().ok()) audit.faults.push_back("a READ");
        if (*header == 0)
          audit.faults.push_back(absl::StrFormat("a key leads to record %d, which is free", record));
      }
      batch_.Reset();
    }
  }

  const StateGeometry geometry_;
  Tables& tables_;
  std::unique_ptr<storage::Channel> channel_;
  storage::VerbBatch batch_;
  ExtentSpace state_;
  LogSpace logs_;
  const ClientSlot slot_;
  const uint32_t client_;
  CommitPoint commit_point_;
  std::unique_ptr<Timestamps> timestamps_;
  Recovery recovery_;
  std::vector<std::unique_ptr<RecordTable>> open_;
};

}  // namespace nam::txn
