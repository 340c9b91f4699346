#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"

/// How busy the network cards of a simulated cluster were while something was measured. A card has five units
/// that serve one request after the other: its ports and its message engine, each way, and for each word the
/// atomics on it. A rate's limit is the rate at which the busiest unit of all cards would never be idle.
namespace nam::bench {

enum class CardRole : uint8_t { kRows, kState, kClients };
/// `rows`, `state`, `clients`.
const char* NameOf(CardRole role);

struct Card {
  std::string host;
  CardRole role = CardRole::kRows;
};

/// A unit of a card.
struct UnitUse {
  std::string what;     // `memory-1, bytes out`
  double fraction = 0;  // the share of the time in which it was busy
};

/// One card. Fractions of the time that its units were busy.
struct CardUse {
  Card card;
  double bytes_out = 0, bytes_in = 0;
  double messages_out = 0, messages_in = 0;
  double word = 0;              // the share that atomics on the busiest word took
  fabric::RemoteAddress where;  // that word
  std::string word_name = "one word";
  // These count what passed the card, both ways.
  int64_t bytes = 0, messages = 0;

  UnitUse Busiest() const;
};

/// The card whose busiest unit is busier than any other's; null: there is none.
const CardUse* BusiestOf(const std::vector<CardUse>& cards);

/// Measures from its construction on. One for a world at a time, as it counts atomics anew.
class CardWatch {
 public:
  /// The model is that of the world's cards.
  CardWatch(fabric::sim::World& world, fabric::sim::NicModel nic, std::vector<Card> cards);
  /// Until now, in the order of the cards.
  std::vector<CardUse> Uses() const;
  int64_t elapsed_ns() const { return world_.NowNs() - from_ns_; }

 private:
  fabric::sim::World& world_;
  const fabric::sim::NicModel nic_;
  const std::vector<Card> cards_;
  int64_t from_ns_ = 0;
  std::vector<fabric::sim::NicTraffic> from_;  // by card
};

}  // namespace nam::bench
