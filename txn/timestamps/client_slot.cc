#include "txn/timestamps/client_slot.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr uint32_t kPieceSlots = 512;  // READ together
/// Spreads clients that look for a slot at the same time.
constexpr uint32_t kSpread = 64;

struct Vacancy {
  uint32_t client = 0;
  SlotOwner owner;
};

/// The slots that may be claimed, the better ones first.
struct Vacancies {
  std::vector<Vacancy> slots;
  uint32_t used = 0;
};

absl::StatusOr<Vacancies> FindVacancies(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                                        uint64_t start) {
  Vacancies found;
  std::vector<Vacancy> recovered;
  uint32_t last = 0;
  NAM_RETURN_IF_ERROR(VisitSlots(state, geometry, batch, [&](uint32_t client, const SlotWords& slot) {
    const SlotOwner owner = SlotOwner::FromWord(slot.owner);
    last = client;
    if (owner.held()) ++found.used;
    if (owner.state == SlotState::kFree) found.slots.push_back({client, owner});
    if (owner.state == SlotState::kRecovered) recovered.push_back({client, owner});
  }));
  // Never-used slots, of which few need be READ while there are few clients.
  for (uint32_t i = 0; i < kSpread && last < geometry.clients_max(); ++i)
    found.slots.push_back({++last, SlotOwner{}});
  const size_t spread = std::min<size_t>(kSpread, found.slots.size());
  if (spread > 0)
    std::rotate(found.slots.begin(), found.slots.begin() + static_cast<ptrdiff_t>(start % spread),
                found.slots.begin() + static_cast<ptrdiff_t>(spread));
  if (!recovered.empty())
    std::rotate(recovered.begin(), recovered.begin() + static_cast<ptrdiff_t>(start % recovered.size()),
                recovered.end());
  found.slots.insert(found.slots.end(), recovered.begin(), recovered.end());
  return found;
}

/// From then on VisitSlots reads the slot.
absl::Status RaiseSlotsUsed(ExtentSpace& state, storage::VerbBatch& batch, uint32_t client) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, state.Resolve(kSlotsUsedOffset));
  uint64_t* const word = batch.Word();
  batch.Read(at, reinterpret_cast<std::byte*>(word), 8);
  NAM_RETURN_IF_ERROR(batch.Execute());
  for (uint64_t known = *word; known < client; known = *word) {
    batch.CompareAndSwap(at, known, client, word);
    NAM_RETURN_IF_ERROR(batch.Execute());
    if (*word == known) return absl::OkStatus();
  }
  return absl::OkStatus();
}

/// Claims the first vacancy that no other client claims; no client: others have claimed them all.
absl::Status ClaimOneOf(const Vacancies& vacancies, ExtentSpace& state, StateGeometry geometry,
                        storage::VerbBatch& batch, SlotOwner owner, ClientSlot* slot) {
  const bool nearly_all = vacancies.used > geometry.clients_max() / 4 * 3;
  const size_t kept = batch.scratch_used();
  uint64_t* const old = batch.Word();
  auto* const words = reinterpret_cast<SlotWords*>(batch.Scratch(sizeof(SlotWords)));
  for (const Vacancy& vacancy : vacancies.slots) {
    const auto at = [&](uint64_t offset) { return state.Resolve(geometry.slot(vacancy.client) + offset); };
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target owner_at, at(kSlotOwnerOffset));
    *slot = {.client = vacancy.client, .owner = owner, .word = {}, .nearly_all_used = nearly_all};
    batch.CompareAndSwap(owner_at, vacancy.owner.word(), owner.word(), old);
    batch.Read(owner_at, reinterpret_cast<std::byte*>(words), sizeof(SlotWords));
    NAM_RETURN_IF_ERROR(batch.Execute());
    if (*old != vacancy.owner.word()) {
      *slot = {};
      continue;
    }
    slot->word = SlotWord(words->word);
    // The recovering client of the slot's former user has left its number there.
    if (words->recoverer != 0) {
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target recoverer_at, at(kSlotRecovererOffset));
      batch.CompareAndSwap(recoverer_at, words->recoverer, 0, old);
      NAM_RETURN_IF_ERROR(batch.Execute());
    }
    NAM_RETURN_IF_ERROR(RaiseSlotsUsed(state, batch, vacancy.client));
    batch.Reset(kept);
    return absl::OkStatus();
  }
  batch.Reset(kept);
  return absl::OkStatus();
}

}  // namespace

absl::Status VisitSlots(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                        const std::function<void(uint32_t client, const SlotWords& slot)>& visit) {
  const size_t kept = batch.scratch_used();
  auto* const slots = reinterpret_cast<SlotWords*>(batch.Scratch(kPieceSlots * sizeof(SlotWords)));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target used_at, state.Resolve(kSlotsUsedOffset));
  // READs the count first: slots used later are later than this call.
  const uint64_t* const used = batch.ReadWord(used_at);
  uint64_t last = geometry.clients_max();
  for (uint32_t first = 0; first <= last; first += kPieceSlots) {
    const uint32_t count = std::min(kPieceSlots, geometry.clients_max() + 1 - first);
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, state.Resolve(geometry.slot(first)));
    batch.Read(at, reinterpret_cast<std::byte*>(slots), static_cast<uint32_t>(count * sizeof(SlotWords)));
    NAM_RETURN_IF_ERROR(batch.Execute());
    last = std::min<uint64_t>(*used, geometry.clients_max());
    for (uint32_t i = 0; i < count && first + i <= last; ++i) {
      if (first + i != 0) visit(first + i, slots[i]);
    }
  }
  batch.Reset(kept);
  return absl::OkStatus();
}

// Sessions that open together see the same few vacancies. Losing all of them does not mean that none is left.
absl::Status ClientSlot::Claim(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                               SlotOwner owner, uint64_t start, ClientSlot* slot) {
  owner.state = SlotState::kUsed;
  while (true) {
    NAM_ASSIGN_OR_RETURN(const Vacancies vacancies, FindVacancies(state, geometry, batch, start));
    if (vacancies.slots.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("all %d client slots of the cluster's transactions are used; end some sessions",
                          geometry.clients_max()));
    }
    NAM_RETURN_IF_ERROR(ClaimOneOf(vacancies, state, geometry, batch, owner, slot));
    if (slot->client != 0) return absl::OkStatus();
  }
}

absl::Status ClientSlot::Release(ExtentSpace& state, StateGeometry geometry,
                                 storage::VerbBatch& batch) const {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target owner_at,
                       state.Resolve(geometry.slot(client) + kSlotOwnerOffset));
  batch.CompareAndSwap(owner_at, owner.word(), SlotOwner{}.word(), batch.Word());
  return batch.Execute();
}

}  // namespace nam::txn
