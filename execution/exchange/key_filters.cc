#include "execution/exchange/key_filters.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/prefetch.h"
#include "base/status_macros.h"
#include "plan/work_cost.h"
#include "types/hash.h"

namespace nam::execution {
namespace {

/// Look-ups whose words are prefetched together.
constexpr uint32_t kAtOnce = 32;

absl::Status Named(const Endpoint& endpoint, uint32_t member, absl::string_view what) {
  absl::Status error =
      absl::DataLossError(absl::StrCat(endpoint.options().members[member], " sends by an exchange: ", what));
  error.SetPayload(kExchangeMemberLost, absl::Cord(absl::StrCat(member)));
  return error;
}

}  // namespace

/// One thread's sending: a piece to each other member, then the next piece; at the end the last message to
/// each member, including this one.
class KeyFilters::Sender {
 public:
  Sender(KeyFilters& filters, TaskContext& context, Endpoint& endpoint)
      : filters_(filters),
        context_(context),
        endpoint_(endpoint),
        own_(filters.own_.load(std::memory_order_acquire)->bytes()),
        room_((endpoint.options().message_bytes - sizeof(MessageHeader) - sizeof(PieceHeader)) /
              BloomFilter::kWordBytes * BloomFilter::kWordBytes) {
    Claim();
  }

  bool done() const { return piece_.empty() && to_ == filters_.options_.members; }
  /// Sends as far as buffers and credit allow. Returns whether it sent anything.
  absl::StatusOr<bool> Run() {
    bool moved = false;
    while (!done()) {
      if (to_ == filters_.options_.members) Claim();
      if (to_ == filters_.options_.self && !piece_.empty()) {
        ++to_;
        continue;
      }
      NAM_ASSIGN_OR_RETURN(const bool sent, Send());
      if (!sent) break;
      moved = true;
      ++to_;
    }
    return moved;
  }

 private:
  /// Claims the next piece; empty: none is left.
  void Claim() {
    offset_ = std::min<uint64_t>(filters_.next_.fetch_add(room_, std::memory_order_relaxed), own_.size());
    piece_ = own_.subspan(offset_, std::min<uint64_t>(room_, own_.size() - offset_));
    to_ = 0;
  }

  absl::StatusOr<bool> Send() {
    const uint32_t exchange = filters_.options_.exchange;
    if (!buffer_.has_value()) {
      buffer_ = endpoint_.GetFree(exchange, to_);
      if (!buffer_.has_value()) return false;
      bytes_ = 0;
      if (!piece_.empty()) {
        const PieceHeader header{own_.size(), offset_};
        std::memcpy(buffer_->payload.data(), &header, sizeof(header));
        std::memcpy(buffer_->payload.data() + sizeof(header), piece_.data(), piece_.size());
        bytes_ = static_cast<uint32_t>(sizeof(header) + piece_.size());
        context_.Charge(piece_.size(), plan::work_cost::kChecksumBytePs);
      }
    }
    NAM_ASSIGN_OR_RETURN(
        const bool sent,
        endpoint_.Send(*buffer_, {.payload_bytes = bytes_, .rows = 0, .last = piece_.empty()}));
    if (sent) buffer_.reset();
    return sent;
  }

  KeyFilters& filters_;
  TaskContext& context_;
  Endpoint& endpoint_;
  const std::span<const std::byte> own_;
  const uint64_t room_;  // for a part of a filter in a message
  std::span<const std::byte> piece_;
  uint64_t offset_ = 0;
  uint32_t to_ = 0;  // member
  std::optional<Endpoint::Buffer> buffer_;
  uint32_t bytes_ = 0;  // in it
};

KeyFilters::KeyFilters(const Options& options, MemoryBudget& budget)
    : options_(options), budget_(budget), received_(options.members), filters_(options.members) {}

absl::Status KeyFilters::Ship(TaskContext& context, Endpoint& endpoint) {
  NAM_CHECK(own_.load(std::memory_order_acquire) != nullptr, "a filter that is complete is sent");
  const uint32_t exchange = options_.exchange;
  Sender sender(*this, context, endpoint);
  while (true) {
    NAM_ASSIGN_OR_RETURN(bool moved, sender.Run());
    while (const auto message = endpoint.GetData(exchange, exchange + 1)) {
      NAM_RETURN_IF_ERROR(Merge(endpoint, *message));
      context.Charge(message->payload.size(), plan::work_cost::kChecksumBytePs);
      NAM_RETURN_IF_ERROR(endpoint.Release(*message));
      moved = true;
    }
    if (sender.done() && endpoint.Ended(exchange)) return absl::OkStatus();
    context.Settle();
    NAM_RETURN_IF_ERROR(endpoint.Poll(/*wait=*/!moved, context.cancel()));
  }
}

absl::Status KeyFilters::Merge(const Endpoint& endpoint, const Endpoint::Message& message) {
  if (message.payload.empty()) return absl::OkStatus();  // a sender's last message
  PieceHeader header;
  if (message.payload.size() <= sizeof(header) || message.sender == options_.self)
    return Named(endpoint, message.sender, "a message that is no piece of a filter");
  std::memcpy(&header, message.payload.data(), sizeof(header));
  const std::span<const std::byte> piece = message.payload.subspan(sizeof(header));
  if (header.filter_bytes == 0 || header.filter_bytes % BloomFilter::kWordBytes != 0)
    return Named(endpoint, message.sender, "a filter without a size");
  NAM_ASSIGN_OR_RETURN(BloomFilter* const filter, FilterOf(message.sender, header.filter_bytes));
  if (filter->bytes().size() != header.filter_bytes || !filter->Add(header.offset, piece).ok())
    return Named(endpoint, message.sender, "a piece of another filter");
  received_[message.sender].bytes.fetch_add(piece.size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<BloomFilter*> KeyFilters::FilterOf(uint32_t member, uint64_t bytes) {
  const MutexLock lock(mutex_);
  std::unique_ptr<BloomFilter>& filter = received_[member].filter;
  if (filter == nullptr) {
    NAM_ASSIGN_OR_RETURN(BloomFilter made, BloomFilter::Make(bytes, budget_));
    filter = std::make_unique<BloomFilter>(std::move(made));
  }
  return filter.get();
}

absl::Status KeyFilters::Complete(const Endpoint& endpoint) {
  const MutexLock lock(mutex_);
  for (uint32_t member = 0; member < options_.members; ++member) {
    if (member == options_.self) {
      filters_[member] = own_.load(std::memory_order_acquire);
      continue;
    }
    const Received& received = received_[member];
    if (received.filter == nullptr || received.bytes != received.filter->bytes().size())
      return Named(endpoint, member, "an incomplete filter");
    filters_[member] = received.filter.get();
  }
  return absl::OkStatus();
}

uint32_t KeyFilters::Keep(const uint64_t* hashes, uint32_t count, uint32_t* positions) const {
  const uint64_t* words[kAtOnce];
  uint32_t kept = 0;
  for (uint32_t first = 0; first < count; first += kAtOnce) {
    const uint32_t end = std::min(first + kAtOnce, count);
    for (uint32_t i = first; i < end; ++i) {
      const uint64_t* const word = filters_[ExchangePart(hashes[i], options_.members)]->WordOf(hashes[i]);
      Prefetch<false>(word, BloomFilter::kWordBytes);
      words[i - first] = word;
    }
    for (uint32_t i = first; i < end; ++i) {
      positions[kept] = i;
      kept += BloomFilter::HasBits(*words[i - first], hashes[i]);
    }
  }
  return kept;
}

}  // namespace nam::execution
