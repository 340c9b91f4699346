#include "fabric/net/handshake.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/net/authentication.h"
#include "fabric/net/socket.h"

namespace nam::fabric::net {
namespace {

constexpr int kTriesMax = 6;
constexpr int64_t kPauseUs = 500;  // doubled each time

template <typename Frame>
std::span<const std::byte, sizeof(Frame)> BytesOf(const Frame& frame) {
  return std::span<const std::byte, sizeof(Frame)>(reinterpret_cast<const std::byte*>(&frame), sizeof(Frame));
}

template <typename Frame>
bool SendFrame(int fd, const Frame& frame) {
  iovec part{const_cast<Frame*>(&frame), sizeof(frame)};
  // A fresh socket takes a few bytes at once; otherwise the peer is not worth waiting for.
  return SendSome(fd, {&part, 1}).bytes == sizeof(frame);
}

absl::Status InHandshake(const absl::Status& status, const std::string& address) {
  if (status.ok()) return status;
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "%s accepted the connection but does not answer: is it a NAM fabric, and alive?", address));
  }
  return absl::AbortedError("closed during the handshake");
}

absl::Status NotAFabric(const std::string& address) {
  return absl::UnavailableError(absl::StrFormat(
      "what listens at %s is not a NAM fabric: check the port (is it the gRPC one?)", address));
}

absl::Status OtherEncryption(const std::string& address, bool encrypt) {
  return absl::FailedPreconditionError(absl::StrFormat(
      encrypt
          ? "%s does not encrypt the data plane, and this process does: give both --encrypt, or neither (a "
            "cluster's members take it from their catalog)"
          : "%s encrypts the data plane, and this process does not: give both --encrypt, or neither (a "
            "cluster's members take it from their catalog)",
      address));
}

absl::Status Refusal(HandshakeStatus status, const std::string& address, bool encrypt) {
  switch (status) {
    case HandshakeStatus::kOk:
      return absl::OkStatus();
    case HandshakeStatus::kWrongVersion:
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s speaks another version of the tcp fabric than %d: run the same release everywhere", address,
          kProtocolVersion));
    case HandshakeStatus::kWrongSecret:
      return absl::UnauthenticatedError(
          absl::StrFormat("%s refused the cluster secret: both sides must be given the same one", address));
    case HandshakeStatus::kBusy:
      return absl::UnavailableError(
          absl::StrFormat("%s has too many connections that wait to be accepted: try again", address));
    case HandshakeStatus::kUnknownToken:
      return absl::UnavailableError(absl::StrFormat("%s gave up waiting for the second connection", address));
    case HandshakeStatus::kOtherEncryption:
      return OtherEncryption(address, encrypt);
    case HandshakeStatus::kNoSuchMember:
      return absl::PermissionDeniedError(absl::StrFormat(
          "%s knows no living member with this id and key: the membership has ended", address));
    case HandshakeStatus::kMemberUnknown:
      return absl::UnavailableError(absl::StrFormat(
          "%s cannot find out now whether this member lives: does it reach the catalog?", address));
  }
  return NotAFabric(address);
}

// ABORTED: the peer closed the connection before the handshake was over.
absl::StatusOr<AuthenticatedSocket> TryToConnect(const std::string& address, const Introduction& introduction,
                                                 const Credentials& credentials, Deadline deadline) {
  const auto& [secret, encrypt] = credentials;
  NAM_ASSIGN_OR_RETURN(UniqueFd fd, ConnectTo(address, deadline));
  const MemberCredentials& member = introduction.member;
  ClientHello hello{.role = introduction.role,
                    .encrypt = encrypt,
                    .token = introduction.token,
                    .member = member.id.value()};
  FillRandom(hello.nonce);
  NAM_RETURN_IF_ERROR(InHandshake(SendAll(fd.get(), BytesOf(hello), deadline), address));

  std::array<std::byte, sizeof(ServerChallenge)> challenge_bytes;
  NAM_RETURN_IF_ERROR(InHandshake(ReceiveAll(fd.get(), challenge_bytes, deadline), address));
  const auto challenge = DecodeServerChallenge(challenge_bytes);
  if (!challenge) return NotAFabric(address);
  if (challenge->version != kProtocolVersion)
    return Refusal(HandshakeStatus::kWrongVersion, address, encrypt);
  NAM_RETURN_IF_ERROR(Refusal(challenge->status, address, encrypt));
  ClientProof proof{.mac = ProveClient(secret, hello, *challenge)};
  if (member.id != MemberId()) {
    proof.member = AnswerChallenge(member.key, ChallengeMember(secret, hello, *challenge));
  }
  NAM_RETURN_IF_ERROR(InHandshake(SendAll(fd.get(), BytesOf(proof), deadline), address));

  std::array<std::byte, sizeof(ServerProof)> answer_bytes;
  NAM_RETURN_IF_ERROR(InHandshake(ReceiveAll(fd.get(), answer_bytes, deadline), address));
  const auto answer = DecodeServerProof(answer_bytes);
  if (!answer) return NotAFabric(address);
  NAM_RETURN_IF_ERROR(Refusal(answer->verdict.status, address, encrypt));
  if (!SameMac(answer->mac, ProveServer(secret, hello, *challenge, answer->verdict))) {
    return absl::UnauthenticatedError(
        absl::StrFormat("%s does not know the cluster secret: it is not a member of this cluster", address));
  }
  const StreamKeys keys = encrypt ? DeriveStreamKeys(secret, hello, *challenge) : StreamKeys{};
  return AuthenticatedSocket{std::move(fd), keys, answer->verdict.mode, answer->verdict.token};
}

}  // namespace

absl::StatusOr<AuthenticatedSocket> ConnectAuthenticated(const std::string& address,
                                                         const Introduction& introduction,
                                                         const Credentials& credentials, Deadline deadline) {
  // Other connections may have pushed this one out (fabric/strangers.h).
  for (int i = 0; i < kTriesMax; ++i) {
    if (i > 0) RealClock().SleepUntil({std::min(deadline.ns, RealClock().After(kPauseUs << i).ns)});
    auto socket = TryToConnect(address, introduction, credentials, deadline);
    if (!absl::IsAborted(socket.status())) return socket;
  }
  return absl::UnavailableError(absl::StrFormat(
      "%s closed the connection during the handshake: it is shutting down, overloaded, or no NAM fabric",
      address));
}

ServerHandshake::Outcome ServerHandshake::Advance(const Credentials& credentials) {
  const size_t wanted = hello_received_ ? sizeof(ClientProof) : sizeof(ClientHello);
  iovec part{input_.data() + input_bytes_, wanted - input_bytes_};
  const IoResult received = ReceiveSome(fd_.get(), {&part, 1});
  if (received.lost) return Outcome::kClose;
  input_bytes_ += received.bytes;
  if (input_bytes_ < wanted) return Outcome::kAgain;
  input_bytes_ = 0;
  if (!hello_received_) return AnswerHello(credentials.encrypt);

  std::memcpy(&proof_, input_.data(), sizeof(proof_));
  if (SameMac(proof_.mac, ProveClient(credentials.secret, hello_, challenge_)))
    return Outcome::kAuthenticated;
  // A peer that could not prove the secret gets no proof.
  SendFrame(fd_.get(), ServerProof{.verdict = {.status = HandshakeStatus::kWrongSecret}});
  return Outcome::kClose;
}

ServerHandshake::Outcome ServerHandshake::AnswerHello(bool encrypt) {
  const auto hello = DecodeClientHello(std::span(input_).first<sizeof(ClientHello)>());
  if (!hello) return Outcome::kClose;
  hello_ = *hello;
  hello_received_ = true;
  if ((hello_.encrypt == 1) != encrypt) challenge_.status = HandshakeStatus::kOtherEncryption;
  if (hello_.version != kProtocolVersion) challenge_.status = HandshakeStatus::kWrongVersion;
  FillRandom(challenge_.nonce);
  if (!SendFrame(fd_.get(), challenge_)) return Outcome::kClose;
  return challenge_.status == HandshakeStatus::kOk ? Outcome::kAgain : Outcome::kClose;
}

MemberClaim ServerHandshake::member(const std::string& secret) const {
  return {MemberId(hello_.member), ChallengeMember(secret, hello_, challenge_), proof_.member};
}

bool ServerHandshake::Conclude(const std::string& secret, const ServerVerdict& verdict) {
  return SendFrame(fd_.get(), ServerProof{verdict, ProveServer(secret, hello_, challenge_, verdict)});
}

AuthenticatedSocket ServerHandshake::Take(const Credentials& credentials, const ServerVerdict& verdict) {
  const StreamKeys keys =
      credentials.encrypt ? DeriveStreamKeys(credentials.secret, hello_, challenge_) : StreamKeys{};
  return {std::move(fd_), keys, verdict.mode, verdict.token};
}

}  // namespace nam::fabric::net
