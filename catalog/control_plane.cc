#include "catalog/control_plane.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::catalog {

Handlers::Handlers(const std::string& service)
    : service_(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service)) {
  NAM_CHECK(service_ != nullptr, "no such service in proto/");
}

void Handlers::CheckTypes(const std::string& path, const google::protobuf::Descriptor* request,
                          const google::protobuf::Descriptor* reply) const {
  const std::string prefix = "/" + service_->full_name() + "/";
  NAM_CHECK(path.compare(0, prefix.size(), prefix) == 0, "a method of another service");
  const auto* method = service_->FindMethodByName(path.substr(prefix.size()));
  NAM_CHECK(method != nullptr && method->input_type() == request && method->output_type() == reply,
            "the method is not as in proto/");
}

void Handlers::CheckComplete() const {
  NAM_CHECK(by_path_.size() == static_cast<size_t>(service_->method_count()),
            "a method of the service has no handler");
}

void CallCancellation::Cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  if (const auto end = std::exchange(end_, nullptr)) end();
}

CallCancellation::Scope::Scope(CallCancellation* cancellation, std::function<void()> end)
    : cancellation_(cancellation) {
  if (cancellation_ == nullptr) return;
  const MutexLock lock(cancellation_->mutex_);
  NAM_CHECK(cancellation_->end_ == nullptr, "one call at a time");
  if (cancellation_->cancelled_) {
    end();
  } else {
    cancellation_->end_ = std::move(end);
  }
}

CallCancellation::Scope::~Scope() {
  if (cancellation_ == nullptr) return;
  const MutexLock lock(cancellation_->mutex_);
  cancellation_->end_ = nullptr;
}

namespace {

constexpr absl::string_view kUnansweredPayload = "nam/unanswered";
constexpr absl::string_view kServicePayload = "nam/message_of_service";

}  // namespace

bool Unanswered(const absl::Status& error) {
  return error.GetPayload(kUnansweredPayload).has_value();
}

std::string MessageOfService(const absl::Status& error) {
  const auto own = error.GetPayload(kServicePayload);
  return own.has_value() ? std::string(*own) : std::string(error.message());
}

absl::Status Peer::Error(const ControlChannel::Outcome& outcome, int64_t timeout_us) const {
  const std::string why(outcome.status.message());
  std::string message;
  if (absl::IsUnauthenticated(outcome.status)) {
    message = absl::StrFormat("%s %s", name_, why);  // refuses this process, or is not trusted
  } else if (outcome.from_service) {
    message = absl::StrFormat("%s: %s", name_, why);
  } else if (absl::IsUnavailable(outcome.status)) {
    message = absl::StrFormat("cannot reach %s: %s; is it running?", name_, why);
  } else if (absl::IsDeadlineExceeded(outcome.status)) {
    message =
        absl::StrFormat("%s did not answer within %.1f s", name_, static_cast<double>(timeout_us) / 1e6);
  } else {
    message = absl::StrFormat("a call to %s failed: %s", name_, why);
  }
  absl::Status result(outcome.status.code(), message);
  outcome.status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  // A service's report about its own calls to others is an answer all the same.
  result.ErasePayload(kUnansweredPayload);
  result.ErasePayload(kServicePayload);
  if (outcome.from_service) {
    result.SetPayload(kServicePayload, absl::Cord(why));
  } else {
    result.SetPayload(kUnansweredPayload, absl::Cord());
  }
  return result;
}

}  // namespace nam::catalog
