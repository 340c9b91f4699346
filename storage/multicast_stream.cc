#include "storage/multicast_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/multicast_slots.h"
#include "storage/multicast_window.h"

namespace nam::storage {
namespace {

/// The layout of the channel's buffer: a page of words for the boards, receives, and slots for blocks.
///
///     0           2048           4096                 slots_offset
///     ├ credit[s] ┼ progress[s] ─┼ receive 0 │ 1 │ … ─┼ slot 0 │ 1 │ … ┤
constexpr uint64_t kProgressOffset = 2048;
constexpr uint64_t kReceivesOffset = 4096;
constexpr uint64_t kReceiveBytes =
    (fabric::kDatagramHeadroomBytes + fabric::kMaxDatagramBytes + 63) / 64 * 64;
constexpr uint32_t kSendersMax = 64;
constexpr uint32_t kSlotsMax = 4096;
static_assert(kSendersMax * 8 <= kProgressOffset);

/// The purpose of an operation: kind, and the number of a slot or sender.
enum class Work : uint32_t { kRead, kCredit, kProgress };
uint64_t IdOf(Work work, size_t number) {
  return static_cast<uint64_t>(work) << 32 | number;
}

constexpr uint32_t kNoSlot = UINT32_MAX;

/// The receiver's state of one sender.
struct Source {
  Source(MulticastAddress address, size_t sender, MulticastWindow window)
      : address(std::move(address)),
        sender(sender),
        window(std::move(window)),
        slot_of(this->window.blocks(), kNoSlot) {}

  const MulticastAddress address;
  const size_t sender;  // index among all senders
  MulticastWindow window;
  std::vector<uint32_t> slot_of;  // by block, while it is assembled
  uint64_t credit_told = 0;
  bool telling = false;  // a WRITE of credit is in flight
  bool asking = false;   // a READ of progress is in flight
  bool left = false;     // the group is no longer listened to
  uint64_t asked = 0;    // progress at the last READ
  int64_t heard_ns = 0;  // last datagram, or check of the board
  int64_t moved_ns = 0;  // last news
};

using Slot = MulticastSlots::Slot;

class MulticastReceiver final : public MulticastStream {
 public:
  MulticastReceiver(Channel& channel, const std::vector<MulticastTable>& tables,
                    const MulticastStreamOptions& options)
      : channel_(channel), clock_(channel.fabric().clock()), options_(options), counters_(tables.size()) {
    for (const MulticastTable& table : tables) tables_.push_back(table.table);
  }
  ~MulticastReceiver() override;

  absl::Status Prepare(const std::vector<MulticastAddress>& senders,
                       const std::vector<MulticastTable>& tables);
  absl::StatusOr<bool> Next(BlockView& block) override;
  size_t table() const override { return delivered_table_; }
  const MulticastCounters& counters(size_t table) const override { return counters_[table]; }

 private:
  absl::Status AddSources(const std::vector<MulticastAddress>& senders, uint32_t share);
  absl::Status DivideBuffer(size_t senders);
  absl::Status JoinGroups();
  absl::Status CheckCancelled() const;
  absl::Status Progress(bool wait);
  absl::StatusOr<size_t> PollCompletions(bool wait);
  Deadline NextLook() const;
  absl::Status HandleCompletion(const fabric::Completion& completion);
  absl::Status HandleDatagram(const fabric::Completion& completion);
  Source* SourceOf(uint64_t stream);
  void PlaceFragment(Source& source, const Fragment& fragment);
  std::optional<uint32_t> SlotFor(Source& source, const FragmentHeader& header);
  void NoteProgress(Source& source, uint64_t word);
  void GiveUpLost(Source& source, uint32_t reorder);
  void Leave(Source& source);
  absl::Status LookAtSilentBoards();
  absl::Status TellCredit();
  absl::Status Write(size_t source, uint64_t credit);
  absl::Status PostRepairs();
  absl::Status PostRepair(uint32_t slot_number);
  absl::StatusOr<bool> Deliver(uint32_t slot_number, BlockView& block);
  void FinishOperations();

  const MulticastBlocks::Place& PlaceOf(const Slot& slot) const {
    return blocks_.of_sender(sources_[slot.source].sender)[slot.block];
  }
  const MulticastBlocks::Chain& ChainOf(const Slot& slot) const {
    return blocks_.chains()[PlaceOf(slot).chain];
  }
  size_t NumberOf(const Source& source) const { return static_cast<size_t>(&source - sources_.data()); }
  fabric::LocalBuffer Word(uint64_t offset, size_t source) {
    return channel_.buffer().Slice(offset + 8 * source, 8);
  }
  fabric::ReceiveRequest ReceiveInto(uint64_t number) {
    return {number, channel_.buffer().Slice(kReceivesOffset + number * kReceiveBytes, kReceiveBytes)};
  }

  Channel& channel_;
  Clock& clock_;
  const MulticastStreamOptions options_;
  std::vector<StreamTable> tables_;
  MulticastBlocks blocks_;
  std::vector<Source> sources_;
  std::unique_ptr<fabric::DatagramQueuePair> queue_pair_;
  uint64_t queue_pair_id_ = 0;

  uint32_t receives_ = 0;
  uint64_t slot_bytes_ = 0;
  MulticastSlots slots_;
  std::deque<uint32_t> ready_;                      // slots, in the order of their completion
  std::deque<std::pair<uint32_t, uint32_t>> lost_;  // source and block, still without a slot
  std::vector<uint32_t> to_repair_;                 // slots
  std::vector<fabric::ReceiveRequest> again_;       // receives to repost
  uint32_t operations_ = 0;                         // READs and WRITEs in flight
  uint64_t blocks_left_ = 0;
  std::optional<uint32_t> delivered_;  // the slot that the caller uses
  size_t delivered_table_ = 0;
  int64_t waited_ns_ = 0;  // since the last block
  std::vector<MulticastCounters> counters_;
};

absl::Status MulticastReceiver::Prepare(const std::vector<MulticastAddress>& senders,
                                        const std::vector<MulticastTable>& tables) {
  std::vector<MemoryServerId> servers;
  for (const MulticastAddress& sender : senders) servers.push_back(sender.server);
  NAM_ASSIGN_OR_RETURN(blocks_, MulticastBlocks::Number(tables, servers));
  for (const MulticastBlocks::Chain& chain : blocks_.chains()) {
    if (chain.runs.size() > channel_.options().queue_depth / 2)
      return absl::ResourceExhaustedError("the table has too many columns apart to repair a block by READ");
    slot_bytes_ = std::max<uint64_t>(slot_bytes_, (chain.layout.bytes() + 63) / 64 * 64);
  }
  if (options_.part >= options_.parts || options_.parts > senders.size())
    return absl::InvalidArgumentError("no such part of a multicast stream's senders");
  const auto share = static_cast<uint32_t>((senders.size() - options_.part - 1) / options_.parts + 1);
  NAM_RETURN_IF_ERROR(DivideBuffer(share));
  NAM_RETURN_IF_ERROR(AddSources(senders, share));
  return JoinGroups();
}

absl::Status MulticastReceiver::DivideBuffer(size_t senders) {
  const uint64_t bytes = channel_.buffer().bytes();
  if (senders == 0 || senders > kSendersMax)
    return absl::InvalidArgumentError(absl::StrFormat("a multicast stream from %d senders", senders));
  // Half for receives, but at least one slot per sender.
  const uint64_t slots_min = kReceivesOffset + senders * slot_bytes_;
  const uint64_t for_receives = std::min(bytes / 2, bytes - std::min(bytes, slots_min));
  receives_ = static_cast<uint32_t>(std::min<uint64_t>(
      {options_.receives_max, channel_.options().datagram_depth, for_receives / kReceiveBytes}));
  if (slot_bytes_ == 0 || receives_ < senders) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("blocks of %d bytes from %d memory servers at once do not fit a buffer of %d bytes",
                        slot_bytes_, senders, bytes));
  }
  const uint64_t slots_offset = kReceivesOffset + receives_ * kReceiveBytes;
  const uint64_t slots = (bytes - slots_offset) / slot_bytes_;
  slots_ = MulticastSlots(channel_.buffer().data(), slots_offset, slot_bytes_,
                          static_cast<uint32_t>(std::min<uint64_t>(slots, kSlotsMax)));
  return absl::OkStatus();
}

absl::Status MulticastReceiver::AddSources(const std::vector<MulticastAddress>& senders, uint32_t share) {
  for (size_t s = options_.part; s < senders.size(); s += options_.parts) {
    if (senders[s].fragment_bytes == 0 ||
        senders[s].fragment_bytes > fabric::kMaxDatagramBytes - sizeof(FragmentHeader))
      return absl::InvalidArgumentError("not the address of a multicast stream");
    std::vector<uint32_t> bytes;
    for (const MulticastBlocks::Place& place : blocks_.of_sender(s))
      bytes.push_back(blocks_.chains()[place.chain].run_bytes);
    blocks_left_ += bytes.size();
    sources_.emplace_back(
        senders[s], s,
        MulticastWindow(bytes, senders[s].fragment_bytes, receives_ / share, slots_.count() / share));
  }
  return absl::OkStatus();
}

absl::Status MulticastReceiver::JoinGroups() {
  // Connections first: a member that has joined is expected to take part at once.
  for (const Source& source : sources_)
    NAM_RETURN_IF_ERROR(channel_.QueuePairOf(source.address.server).status());
  NAM_ASSIGN_OR_RETURN(
      queue_pair_, channel_.fabric().CreateDatagramQueuePair(channel_.completions(),
                                                             {.send_depth = 1, .receive_depth = receives_}));
  queue_pair_id_ = queue_pair_->id();
  for (uint32_t i = 0; i < receives_; ++i) again_.push_back(ReceiveInto(i));
  NAM_RETURN_IF_ERROR(queue_pair_->PostReceive(again_));
  again_.clear();
  for (const Source& source : sources_) NAM_RETURN_IF_ERROR(queue_pair_->Join(source.address.group));
  for (Source& source : sources_) source.heard_ns = source.moved_ns = clock_.NowNs();
  return TellCredit();
}

/// All operations must be over before the channel's next user comes. Datagrams received until the queue pair
/// is gone are dropped.
MulticastReceiver::~MulticastReceiver() {
  if (!channel_.broken()) FinishOperations();
  queue_pair_.reset();
  std::array<fabric::Completion, 64> done;
  while (!channel_.broken() && channel_.completions().Poll(done) > 0) {
  }
}

void MulticastReceiver::FinishOperations() {
  const Deadline give_up = clock_.After(channel_.options().operation_timeout_us);
  std::array<fabric::Completion, 64> done;
  bool told = false;
  while (true) {
    if (!told && std::none_of(sources_.begin(), sources_.end(), [](const Source& s) { return s.telling; })) {
      told = true;
      for (size_t s = 0; s < sources_.size(); ++s) {
        // The sender expects nothing of a stream that never joined, or that has already left.
        if (sources_[s].credit_told == 0 || sources_[s].credit_told == kMulticastLeft) continue;
        if (!Write(s, kMulticastLeft).ok()) return;  // the channel is broken then
      }
    }
    if (told && operations_ == 0) return;
    const size_t n = channel_.completions().Wait(done, give_up);
    for (size_t i = 0; i < n; ++i) {
      if (done[i].queue_pair == queue_pair_id_) continue;
      --operations_;
      if (!done[i].ok()) return channel_.Break();
      if (done[i].id >> 32 == static_cast<uint64_t>(Work::kCredit))
        sources_[static_cast<uint32_t>(done[i].id)].telling = false;
    }
    if (n == 0 && clock_.Passed(give_up)) return channel_.Break();
  }
}

absl::Status MulticastReceiver::CheckCancelled() const {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed))
    return absl::CancelledError("cancelled");
  return absl::OkStatus();
}

absl::StatusOr<bool> MulticastReceiver::Next(BlockView& block) {
  NAM_RETURN_IF_ERROR(CheckCancelled());
  if (delivered_) {
    sources_[slots_[*delivered_].source].window.Taken();
    slots_.GiveBack(*delivered_);
    delivered_.reset();
    --blocks_left_;
  }
  bool wait = false;
  while (blocks_left_ > 0) {
    NAM_RETURN_IF_ERROR(Progress(wait));
    if (!ready_.empty()) {
      const uint32_t slot = ready_.front();
      ready_.pop_front();
      NAM_ASSIGN_OR_RETURN(const bool delivered, Deliver(slot, block));
      if (delivered) return true;
    }
    wait = ready_.empty();
  }
  return false;
}

/// One round: takes completions, detects lost blocks, continues READs and credit.
absl::Status MulticastReceiver::Progress(bool wait) {
  NAM_ASSIGN_OR_RETURN(const size_t n, PollCompletions(wait));
  if (!again_.empty()) {
    NAM_RETURN_IF_ERROR(queue_pair_->PostReceive(again_));
    again_.clear();
  }
  if (n == 0) NAM_RETURN_IF_ERROR(LookAtSilentBoards());
  NAM_RETURN_IF_ERROR(PostRepairs());
  return TellCredit();
}

/// The time at which the next sender will have been silent for too long; Never if none is awaited.
Deadline MulticastReceiver::NextLook() const {
  Deadline look;
  for (const Source& source : sources_) {
    if (source.left || source.asking || source.window.judged()) continue;
    look.ns = std::min(look.ns, source.heard_ns + options_.silence_timeout_us * 1000);
  }
  return look;
}

absl::StatusOr<size_t> MulticastReceiver::PollCompletions(bool wait) {
  std::array<fabric::Completion, 64> done;
  size_t n = channel_.completions().Poll(done);
  if (n == 0 && wait) {
    const int64_t from_ns = clock_.NowNs();
    const Deadline look = NextLook();
    const Deadline give_up{from_ns + channel_.options().operation_timeout_us * 1000};
    while (n == 0 && !clock_.Passed(look)) {
      NAM_RETURN_IF_ERROR(CheckCancelled());
      if (operations_ > 0 && clock_.Passed(give_up)) return channel_.TimedOut("blocks");
      const int64_t until_ns = std::min({look.ns, give_up.ns, clock_.After(kCancelCheckUs).ns});
      n = channel_.completions().Wait(done, Deadline{until_ns});
    }
    waited_ns_ += clock_.NowNs() - from_ns;
  }
  for (size_t i = 0; i < n; ++i) NAM_RETURN_IF_ERROR(HandleCompletion(done[i]));
  return n;
}

absl::Status MulticastReceiver::HandleCompletion(const fabric::Completion& completion) {
  if (completion.queue_pair == queue_pair_id_) return HandleDatagram(completion);
  --operations_;
  if (!completion.ok()) return channel_.Error(completion);
  const auto number = static_cast<uint32_t>(completion.id);
  switch (static_cast<Work>(completion.id >> 32)) {
    case Work::kRead: {
      Slot& slot = slots_[number];
      NAM_CHECK(slot.state == Slot::State::kRepairing && slot.missing > 0);
      if (--slot.missing > 0) return absl::OkStatus();
      slot.state = Slot::State::kReady;
      ready_.push_back(number);
      return absl::OkStatus();
    }
    case Work::kCredit:
      sources_[number].telling = false;
      return absl::OkStatus();
    case Work::kProgress: {
      uint64_t word;
      std::memcpy(&word, Word(kProgressOffset, number).data, sizeof(word));
      NoteProgress(sources_[number], word);
      return absl::OkStatus();
    }
  }
  return absl::InternalError("a completion of nothing that was posted");
}

absl::Status MulticastReceiver::HandleDatagram(const fabric::Completion& completion) {
  if (completion.opcode != fabric::Opcode::kReceive) return absl::OkStatus();
  if (!completion.ok()) {
    // No more datagrams: everything else comes by READ.
    for (Source& source : sources_) Leave(source);
    return absl::OkStatus();
  }
  const fabric::ReceiveRequest receive = ReceiveInto(completion.id);
  const std::optional<Fragment> fragment =
      DecodeFragment({receive.into.data + fabric::kDatagramHeadroomBytes, completion.bytes});
  if (fragment) {
    Source* source = SourceOf(fragment->header.stream);
    if (source != nullptr && source->window.Matches(fragment->header)) PlaceFragment(*source, *fragment);
  }
  again_.push_back(receive);
  return absl::OkStatus();
}

Source* MulticastReceiver::SourceOf(uint64_t stream) {
  for (Source& source : sources_) {
    if (source.address.stream == stream) return &source;
  }
  return nullptr;
}

/// The slot that assembles the fragment's block. None if the block is here or is being READ, or if the sender
/// exceeds its credit.
std::optional<uint32_t> MulticastReceiver::SlotFor(Source& source, const FragmentHeader& header) {
  if (source.window.Has(header.block)) return std::nullopt;
  if (source.slot_of[header.block] != kNoSlot) return source.slot_of[header.block];
  const std::optional<uint32_t> number =
      slots_.Assemble(static_cast<uint32_t>(NumberOf(source)), header.block, header.fragments);
  if (number) source.slot_of[header.block] = *number;
  return number;
}

void MulticastReceiver::PlaceFragment(Source& source, const Fragment& fragment) {
  const FragmentHeader& header = fragment.header;
  source.heard_ns = source.moved_ns = clock_.NowNs();
  source.window.Passed(uint64_t{header.datagram} + 1);
  const std::optional<uint32_t> number = SlotFor(source, header);
  if (!number || !slots_.Place(*number, ChainOf(slots_[*number]).runs, fragment)) {
    const uint32_t chain = blocks_.of_sender(source.sender)[header.block].chain;
    ++counters_[blocks_.chains()[chain].table].duplicates;
  } else {
    clock_.Charge(MulticastCpuNs(1, header.bytes));
    if (slots_[*number].state == Slot::State::kReady) {
      source.window.SetHas(header.block);
      source.slot_of[header.block] = kNoSlot;
      ready_.push_back(*number);
    }
  }
  GiveUpLost(source, options_.reorder_datagrams);
}

void MulticastReceiver::GiveUpLost(Source& source, uint32_t reorder) {
  const auto number = static_cast<uint32_t>(NumberOf(source));
  while (const std::optional<uint32_t> block = source.window.NextLost(reorder)) {
    source.window.SetHas(*block);  // later fragments are ignored
    const uint32_t slot = std::exchange(source.slot_of[*block], kNoSlot);
    if (slot == kNoSlot) {
      lost_.emplace_back(number, *block);
    } else {
      slots_[slot].state = Slot::State::kRepairing;
      to_repair_.push_back(slot);
    }
  }
}

/// Stops listening to the group: all missing blocks are lost.
void MulticastReceiver::Leave(Source& source) {
  source.left = true;
  source.window.Passed(source.window.datagrams());
  GiveUpLost(source, 0);
}

/// On silence a sender reports its progress. Datagrams that it had sent by the previous check, and that are
/// still missing, are lost; if it has ended since, so are all others.
void MulticastReceiver::NoteProgress(Source& source, uint64_t word) {
  source.asking = false;
  const uint64_t sent = word & ~kMulticastEnded;
  const bool ended = (word & kMulticastEnded) != 0;
  const int64_t now_ns = clock_.NowNs();
  const bool same = sent == source.asked;
  if (!same) source.moved_ns = now_ns;
  source.window.Passed(std::min(source.asked, sent));
  GiveUpLost(source, 0);
  source.asked = sent;
  source.heard_ns = now_ns;
  if ((ended && same) || now_ns - source.moved_ns > options_.stall_timeout_us * 1000) Leave(source);
}

absl::Status MulticastReceiver::LookAtSilentBoards() {
  const int64_t silent_since_ns = clock_.NowNs() - options_.silence_timeout_us * 1000;
  for (size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    if (source.left || source.asking || source.window.judged() || source.heard_ns > silent_since_ns) continue;
    NAM_ASSIGN_OR_RETURN(fabric::QueuePair * queue_pair, channel_.QueuePairOf(source.address.server));
    const auto read = fabric::WorkRequest::Read(IdOf(Work::kProgress, s), Word(kProgressOffset, s),
                                                {source.address.board, offsetof(MulticastBoard, progress)});
    if (const absl::Status status = queue_pair->Post({&read, 1}); !status.ok())
      return channel_.Error(source.address.server, status);
    source.asking = true;
    ++operations_;
  }
  return absl::OkStatus();
}

absl::Status MulticastReceiver::TellCredit() {
  for (size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    if (source.telling || source.credit_told == kMulticastLeft) continue;
    const uint64_t credit = source.left ? kMulticastLeft : source.window.Credit();
    // Small credit steps are worth telling only if the sender may have used up its credit.
    const bool needed = source.window.next() >= source.credit_told;
    if (credit <= source.credit_told) continue;
    if (!needed && credit - source.credit_told < source.window.credit_step()) continue;
    NAM_RETURN_IF_ERROR(Write(s, credit));
  }
  return absl::OkStatus();
}

absl::Status MulticastReceiver::Write(size_t number, uint64_t credit) {
  Source& source = sources_[number];
  NAM_ASSIGN_OR_RETURN(fabric::QueuePair * queue_pair, channel_.QueuePairOf(source.address.server));
  const fabric::LocalBuffer word = Word(0, number);
  std::memcpy(word.data, &credit, sizeof(credit));
  const auto write = fabric::WorkRequest::Write(
      IdOf(Work::kCredit, number), word,
      {source.address.board, offsetof(MulticastBoard, credit) + 8 * uint64_t{options_.member}});
  if (const absl::Status status = queue_pair->Post({&write, 1}); !status.ok())
    return channel_.Error(source.address.server, status);
  source.credit_told = credit;
  source.telling = true;
  ++operations_;
  return absl::OkStatus();
}

/// Posts as many repairs as the queues take; the others wait.
absl::Status MulticastReceiver::PostRepairs() {
  while (!to_repair_.empty() || !lost_.empty()) {
    if (to_repair_.empty()) {
      const std::optional<uint32_t> number = slots_.Repair(lost_.front().first, lost_.front().second);
      if (!number) return absl::OkStatus();
      lost_.pop_front();
      to_repair_.push_back(*number);
    }
    const size_t reads = ChainOf(slots_[to_repair_.back()]).runs.size();
    if (operations_ + reads > channel_.options().queue_depth - 2 * kSendersMax) return absl::OkStatus();
    const uint32_t slot = to_repair_.back();
    to_repair_.pop_back();
    NAM_RETURN_IF_ERROR(PostRepair(slot));
  }
  return absl::OkStatus();
}

absl::Status MulticastReceiver::PostRepair(uint32_t slot_number) {
  Slot& slot = slots_[slot_number];
  slot.repaired = true;
  const MulticastBlocks::Chain& chain = ChainOf(slot);
  const RemotePtr<void> home = PlaceOf(slot).home;
  NAM_ASSIGN_OR_RETURN(const Channel::Target target, channel_.Resolve(home, chain.layout.bytes()));
  slot.missing = static_cast<uint32_t>(chain.runs.size());
  const uint64_t at = slots_.offset(slot_number);
  std::vector<fabric::WorkRequest> batch;
  for (const ByteRange& run : chain.runs) {
    batch.push_back(fabric::WorkRequest::Read(IdOf(Work::kRead, slot_number),
                                              channel_.buffer().Slice(at + run.offset, run.bytes),
                                              {target.address.rkey, target.address.offset + run.offset}));
  }
  if (const absl::Status status = target.queue_pair->Post(batch); !status.ok())
    return channel_.Error(home.server(), status);
  operations_ += slot.missing;
  return absl::OkStatus();
}

/// False if datagrams damaged the block, which is then READ instead.
absl::StatusOr<bool> MulticastReceiver::Deliver(uint32_t slot_number, BlockView& block) {
  Slot& slot = slots_[slot_number];
  const MulticastBlocks::Chain& chain = ChainOf(slot);
  const StreamTable& table = tables_[chain.table];
  block = BlockView(chain.layout, slots_.bytes(slot_number));
  absl::Status status =
      block.CheckPrefix(table.allocation, chain.partition, PlaceOf(slot).index, options_.verify);
  for (size_t c = 0; options_.verify && status.ok() && c < table.columns.size(); ++c)
    status = block.CheckPage(table.columns[c]);
  if (!status.ok()) {
    if (slot.repaired) return status;
    slot.state = Slot::State::kRepairing;
    to_repair_.push_back(slot_number);
    return false;
  }
  delivered_ = slot_number;
  delivered_table_ = chain.table;
  MulticastCounters& counters = counters_[chain.table];
  ++(slot.repaired ? counters.repaired_blocks : counters.multicast_blocks);
  ++counters.stream.blocks;
  counters.stream.rows += block.rows();
  counters.stream.waiting_ns += std::exchange(waited_ns_, 0);
  counters.stream.bytes[PlaceOf(slot).home.server()] += chain.run_bytes;
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MulticastStream>> MulticastStream::Open(
    Channel& channel, const std::vector<MulticastAddress>& senders, const std::vector<MulticastTable>& tables,
    const MulticastStreamOptions& options) {
  if (options.member >= kMulticastMembersMax)
    return absl::InvalidArgumentError("a multicast member beyond the board");
  auto receiver = std::make_unique<MulticastReceiver>(channel, tables, options);
  NAM_RETURN_IF_ERROR(receiver->Prepare(senders, tables));
  return receiver;
}

}  // namespace nam::storage
