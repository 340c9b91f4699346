#include "txn/client_slot.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<std::vector<SlotOwner>> ClientSlot::Owners(ExtentSpace& state, StateGeometry geometry,
                                                          storage::VerbBatch& batch) {
  const uint32_t slots = geometry.clients_max() + 1;
  std::byte* const bytes = batch.Scratch(uint64_t{slots} * kClientSlotBytes);
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, state.Resolve(geometry.slot(0)));
  batch.Read(target, bytes, slots * kClientSlotBytes);
  NAM_RETURN_IF_ERROR(batch.Execute());
  std::vector<SlotOwner> owners(slots);
  for (uint32_t client = 0; client < slots; ++client) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + uint64_t{client} * kClientSlotBytes + kSlotOwnerOffset, sizeof(word));
    owners[client] = SlotOwner::FromWord(word);
  }
  return owners;
}

absl::Status ClientSlot::Claim(ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch,
                               SlotOwner owner, uint64_t start, ClientSlot* slot) {
  owner.state = SlotState::kUsed;
  NAM_ASSIGN_OR_RETURN(const std::vector<SlotOwner> owners, Owners(state, geometry, batch));
  auto* const old = reinterpret_cast<uint64_t*>(batch.Scratch(8));
  auto* const recoverer = reinterpret_cast<uint64_t*>(batch.Scratch(8));
  const auto used = static_cast<uint32_t>(
      std::count_if(owners.begin(), owners.end(), [](SlotOwner o) { return o.held(); }));
  const bool nearly_all = used > geometry.clients_max() / 4 * 3;
  for (const SlotState wanted : {SlotState::kFree, SlotState::kRecovered}) {
    for (uint32_t i = 0; i < geometry.clients_max(); ++i) {
      const auto client = static_cast<uint32_t>(1 + (start + i) % geometry.clients_max());
      if (owners[client].state != wanted) continue;
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target owner_at,
                           state.Resolve(geometry.slot(client) + kSlotOwnerOffset));
      NAM_ASSIGN_OR_RETURN(const storage::Channel::Target recoverer_at,
                           state.Resolve(geometry.slot(client) + kSlotRecovererOffset));
      *slot = {client, owner, nearly_all};
      batch.CompareAndSwap(owner_at, owners[client].word(), owner.word(), old);
      batch.Read(recoverer_at, reinterpret_cast<std::byte*>(recoverer), 8);
      NAM_RETURN_IF_ERROR(batch.Execute());
      if (*old != owners[client].word()) {
        *slot = {};
        continue;
      }
      // Whoever recovered the slot's former client has left its number there.
      if (*recoverer != 0) {
        batch.CompareAndSwap(recoverer_at, *recoverer, 0, old);
        NAM_RETURN_IF_ERROR(batch.Execute());
      }
      return absl::OkStatus();
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrFormat("all %d client slots of the cluster's transactions are used; end some sessions",
                      geometry.clients_max()));
}

absl::Status ClientSlot::Release(ExtentSpace& state, StateGeometry geometry,
                                 storage::VerbBatch& batch) const {
  auto* const old = reinterpret_cast<uint64_t*>(batch.Scratch(8));
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target owner_at,
                       state.Resolve(geometry.slot(client) + kSlotOwnerOffset));
  batch.CompareAndSwap(owner_at, owner.word(), SlotOwner{}.word(), old);
  return batch.Execute();
}

}  // namespace nam::txn
