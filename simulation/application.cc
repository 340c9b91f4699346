#include "simulation/application.h"

namespace nam::simulation {

txn::HistoryRecorder& Application::NewRecorder() {
  const uint32_t number = sessions();
  histories_.push_back(txn::SessionHistory::InMemory());
  recorders_.push_back(std::make_unique<txn::HistoryRecorder>(number, *histories_.back()));
  return *recorders_.back();
}

std::vector<const txn::SessionHistory*> Application::histories() const {
  std::vector<const txn::SessionHistory*> histories;
  for (const auto& history : histories_) histories.push_back(history.get());
  return histories;
}

}  // namespace nam::simulation
