#include "fabric/admission.h"

#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "fabric/strangers.h"
#include "fabric/threads.h"

namespace nam::fabric {

Admission::Admission(MemberKeys& keys)
    : keys_(keys),
      waiting_max_(StrangersMax()),
      connections_(std::make_shared<MemberConnections>()),
      thread_(StartRealThread("nam-admission", [this] { Run(); })) {}

void Admission::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.reset();
}

void Admission::Ask(const MemberClaim& claim, Decided decide) {
  Question question{claim, connections_->Register(claim.id), std::move(decide)};
  if (const std::optional<MemberKey> key = connections_->KnownKey(claim.id)) {
    Decide(std::move(question), &*key);
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (!stopping_ && waiting_.size() < waiting_max_) {
      waiting_.push_back(std::move(question));
      changed_.NotifyAll();
      return;
    }
  }
  question.decide({.place = std::move(question.place)});
}

void Admission::Decide(Question question, const MemberKey* key) {
  Decision decision{.verdict = Verdict::kRefused, .place = std::move(question.place)};
  if (key != nullptr && Proves(question.claim, *key)) {
    decision.verdict = Verdict::kAdmitted;
    decision.key = *key;
  }
  question.decide(std::move(decision));
}

void Admission::Run() {
  while (true) {
    std::vector<Question> questions;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      questions = std::exchange(waiting_, {});
    }
    Answer(std::move(questions));
  }
}

void Admission::Answer(std::vector<Question> questions) {
  std::map<MemberId, std::optional<MemberKey>> keys;
  std::vector<MemberId> unknown;
  for (const Question& question : questions) {
    if (keys.try_emplace(question.claim.id).second) unknown.push_back(question.claim.id);
  }
  const auto answers = keys_.KeysOf(unknown);
  NAM_CHECK(!answers.ok() || answers->size() == unknown.size(), "an answer for each member");
  for (size_t i = 0; answers.ok() && i < unknown.size(); ++i) keys[unknown[i]] = (*answers)[i];
  for (Question& question : questions) {
    if (!answers.ok()) {
      question.decide({.place = std::move(question.place)});
      continue;
    }
    const std::optional<MemberKey>& key = keys[question.claim.id];
    Decide(std::move(question), key.has_value() ? &*key : nullptr);
  }
}

}  // namespace nam::fabric
