#include "fabric/fabric.h"

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/process_limits.h"

namespace nam::fabric {

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kShm:
      return "shm";
    case Kind::kTcp:
      return "tcp";
    case Kind::kVerbs:
      return "verbs";
    case Kind::kSim:
      return "sim";
  }
  return "unknown";
}

absl::StatusOr<Kind> ParseKind(std::string_view name) {
  if (name == "shm") return Kind::kShm;
  if (name == "tcp") return Kind::kTcp;
  if (name == "verbs") return Kind::kVerbs;
  if (name == "sim") return Kind::kSim;
  return absl::InvalidArgumentError(absl::StrFormat("no fabric \"%s\": shm, tcp, verbs or sim", name));
}

absl::StatusOr<Kind> ParseRealKind(std::string_view name) {
  const absl::StatusOr<Kind> kind = ParseKind(name);
  if (!kind.ok())
    return absl::InvalidArgumentError(absl::StrFormat("no fabric \"%s\": shm, tcp or verbs", name));
  if (*kind != Kind::kSim) return kind;
  return absl::InvalidArgumentError(
      "the fabric sim has no processes: choose shm, tcp or verbs, or simulate whole clusters with `nam sim`");
}

bool CanEncrypt(Kind kind) {
  return kind == Kind::kTcp;
}

std::string AnyAddress(Kind kind, const std::string& host) {
  if (kind == Kind::kShm) return "@";
  return kind == Kind::kSim ? ":0" : host + ":0";
}

std::string_view OpcodeName(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
      return "READ";
    case Opcode::kWrite:
      return "WRITE";
    case Opcode::kWriteWithImmediate:
      return "WRITE_WITH_IMMEDIATE";
    case Opcode::kCompareAndSwap:
      return "COMPARE_AND_SWAP";
    case Opcode::kFetchAdd:
      return "FETCH_ADD";
    case Opcode::kSend:
      return "SEND";
    case Opcode::kReceive:
      return "RECEIVE";
  }
  return "unknown";
}

std::string_view CompletionStatusName(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kOk:
      return "ok";
    case CompletionStatus::kLocalError:
      return "local error";
    case CompletionStatus::kRemoteAccessError:
      return "remote access error";
    case CompletionStatus::kRemoteInvalidRequest:
      return "remote invalid request";
    case CompletionStatus::kPeerLost:
      return "peer lost";
    case CompletionStatus::kFlushed:
      return "flushed";
    case CompletionStatus::kNoMemory:
      return "no memory";
  }
  return "unknown";
}

LocalBuffer MemoryRegion::Slice(size_t offset, size_t bytes) const {
  NAM_CHECK(offset <= bytes_ && bytes <= bytes_ - offset && bytes <= UINT32_MAX, "slice outside its region");
  return {data_ + offset, static_cast<uint32_t>(bytes), lkey_};
}

absl::Status CompletionError(const Completion& completion, const QueuePair& queue_pair) {
  const auto cause = [&] {
    switch (completion.status) {
      case CompletionStatus::kOk:
        return "nothing is wrong";
      case CompletionStatus::kLocalError:
        return "the local buffer is not in a registered region";
      case CompletionStatus::kRemoteAccessError:
        return "key, bounds or rights do not match a region of the peer; it may have been deregistered";
      case CompletionStatus::kRemoteInvalidRequest:
        return "unaligned atomic, or longer than the receive buffer";
      case CompletionStatus::kPeerLost:
        return "the peer died or cannot be reached";
      case CompletionStatus::kFlushed:
        return "an earlier operation failed";
      case CompletionStatus::kNoMemory:
        return "the peer's memory cannot be mapped";
    }
    return "unknown";
  };
  const std::string message =
      absl::StrFormat("%s with %s failed: %s (%s; queue pair %d in state %s)", OpcodeName(completion.opcode),
                      queue_pair.peer(), CompletionStatusName(completion.status), cause(), queue_pair.id(),
                      queue_pair.state() == QueuePairState::kReady ? "ready" : "error");
  switch (completion.status) {
    case CompletionStatus::kOk:
      return absl::OkStatus();
    case CompletionStatus::kPeerLost:
    case CompletionStatus::kFlushed:
      return absl::UnavailableError(message);
    case CompletionStatus::kRemoteAccessError:
      return absl::PermissionDeniedError(message);
    case CompletionStatus::kNoMemory:
      return NoAddressesLeft("a region of another process");
    default:
      return absl::InternalError(message);
  }
}

}  // namespace nam::fabric
