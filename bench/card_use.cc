#include "bench/card_use.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace nam::bench {

using fabric::sim::NicTraffic;
using fabric::sim::WordTraffic;

UnitUse CardUse::Busiest() const {
  const std::array<std::pair<std::string, double>, 5> units = {{{"bytes out", bytes_out},
                                                                {"bytes in", bytes_in},
                                                                {"messages out", messages_out},
                                                                {"messages in", messages_in},
                                                                {"atomics on " + word_name, word}}};
  const auto& [what, fraction] = *std::max_element(
      units.begin(), units.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return {absl::StrCat(card.host, ", ", what), fraction};
}

const CardUse* BusiestOf(const std::vector<CardUse>& cards) {
  const CardUse* busiest = nullptr;
  for (const CardUse& card : cards) {
    if (busiest == nullptr || card.Busiest().fraction > busiest->Busiest().fraction) busiest = &card;
  }
  return busiest;
}

CardWatch::CardWatch(fabric::sim::World& world, fabric::sim::NicModel nic, std::vector<Card> cards)
    : world_(world), nic_(std::move(nic)), cards_(std::move(cards)), from_ns_(world.NowNs()) {
  for (const Card& card : cards_) from_.push_back(world_.TrafficOf(card.host));
  world_.CountWords();
}

std::vector<CardUse> CardWatch::Uses() const {
  const auto ns = static_cast<double>(elapsed_ns());
  const double bytes_max = ns / 1e3 * static_cast<double>(nic_.port_bytes_per_us) * nic_.ports;
  const double messages_max = ns / 1e3 * static_cast<double>(nic_.messages_per_us);
  std::vector<CardUse> uses;
  for (size_t i = 0; i < cards_.size(); ++i) {
    const NicTraffic &before = from_[i], after = world_.TrafficOf(cards_[i].host);
    const auto passed = [&](int64_t NicTraffic::*count) { return after.*count - before.*count; };
    const auto fraction = [&](int64_t NicTraffic::*count, double max) {
      return static_cast<double>(passed(count)) / max;
    };
    const WordTraffic word = world_.BusiestWordOf(cards_[i].host);
    uses.push_back({.card = cards_[i],
                    .bytes_out = fraction(&NicTraffic::bytes_out, bytes_max),
                    .bytes_in = fraction(&NicTraffic::bytes_in, bytes_max),
                    .messages_out = fraction(&NicTraffic::messages_out, messages_max),
                    .messages_in = fraction(&NicTraffic::messages_in, messages_max),
                    .word = static_cast<double>(word.busy_ns) / ns,
                    .where = word.address,
                    .bytes = passed(&NicTraffic::bytes_out) + passed(&NicTraffic::bytes_in),
                    .messages = passed(&NicTraffic::messages_out) + passed(&NicTraffic::messages_in),
                    .received_bytes = passed(&NicTraffic::bytes_in)});
  }
  return uses;
}

}  // namespace nam::bench
