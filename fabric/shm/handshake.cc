#include "fabric/shm/handshake.h"

#include <utility>

#include "base/status_macros.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/socket.h"

namespace nam::fabric::shm {
namespace {

absl::Status Unexpected() {
  return absl::InvalidArgumentError("the peer does not follow the protocol");
}

/// The answer to the connecting side: the expected message, or the reason of a refusal.
absl::StatusOr<Packet> AwaitAnswer(int socket, MessageType expected, Deadline deadline) {
  NAM_ASSIGN_OR_RETURN(Packet packet, AwaitMessage(socket, deadline));
  if (packet.message.type == MessageType::kRefused) return RefusalStatus(packet.message);
  if (packet.message.type != expected) return Unexpected();
  return packet;
}

}  // namespace

absl::StatusOr<Established> ConnectHandshake(const Identity& identity, int socket, pid_t peer_pid,
                                             const MemberCredentials& member, Deadline deadline) {
  const Nonce nonce = RandomNonce();
  // If this is not sent, the server has closed, and a refusal may wait that says why.
  SendMessage(socket, {.type = MessageType::kHello, .proof = nonce, .member = member.id.value()})
      .IgnoreError();
  NAM_ASSIGN_OR_RETURN(const Packet challenge, AwaitAnswer(socket, MessageType::kChallenge, deadline));
  const Nonce& server_nonce = challenge.message.proof;
  Message proof{.type = MessageType::kProof,
                .proof = ComputeMac(identity.secret, kClientRole, nonce, server_nonce)};
  if (member.id != MemberId()) {
    proof.answer = AnswerChallenge(member.key, ComputeMac(identity.secret, kMemberRole, nonce, server_nonce));
  }
  NAM_RETURN_IF_ERROR(SendMessage(socket, proof));
  NAM_ASSIGN_OR_RETURN(const Packet welcome, AwaitAnswer(socket, MessageType::kWelcome, deadline));
  if (!SameMac(welcome.message.proof, ComputeMac(identity.secret, kServerRole, nonce, server_nonce))) {
    return absl::UnauthenticatedError("the server does not know this cluster's secret");
  }
  Established established;
  established.rights = static_cast<Access>(welcome.message.access & static_cast<uint8_t>(Access::kAll));
  NAM_ASSIGN_OR_RETURN(established.peer,
                       identity.peers->Get(welcome.message.process, welcome.descriptors[0].get(),
                                           welcome.descriptors[1].get()));
  NAM_ASSIGN_OR_RETURN(Mapping mapping,
                       MapFromPeer(welcome.descriptors[2].get(), sizeof(Channel), PeerAccess::kReadWrite));
  const auto channel = std::make_shared<const Mapping>(std::move(mapping));
  established.channel = ChannelEnd(channel, 0);
  identity.initiators->Add(channel, 1, peer_pid);
  NAM_ASSIGN_OR_RETURN(const UniqueFd table, identity.regions->TableForPeer());
  const int descriptors[] = {table.get(), identity.doorbells->descriptor.get()};
  NAM_RETURN_IF_ERROR(
      SendMessage(socket, {.type = MessageType::kAttach, .process = identity.process}, descriptors));
  return established;
}

absl::Status AcceptHandshake::Step(int socket, Packet& packet) {
  switch (phase_) {
    case Phase::kHello:
      return Challenge(socket, packet.message);
    case Phase::kProof:
      return CheckProof(socket, packet.message);
    case Phase::kAttach:
      return Attach(packet);
    case Phase::kJudge:
    case Phase::kDone:
      break;
  }
  return Unexpected();
}

absl::Status AcceptHandshake::Challenge(int socket, const Message& hello) {
  if (hello.type != MessageType::kHello) return Unexpected();
  NAM_ASSIGN_OR_RETURN(peer_pid_, CheckPeerUser(socket));
  client_nonce_ = hello.proof;
  member_ = MemberId(hello.member);
  server_nonce_ = RandomNonce();
  phase_ = Phase::kProof;
  return SendMessage(socket, {.type = MessageType::kChallenge, .proof = server_nonce_});
}

absl::Status AcceptHandshake::CheckProof(int socket, const Message& proof) {
  if (proof.type != MessageType::kProof) return Unexpected();
  if (!SameMac(proof.proof, ComputeMac(identity_->secret, kClientRole, client_nonce_, server_nonce_))) {
    return absl::UnauthenticatedError("the server has another cluster secret; check the secret of both");
  }
  answer_ = proof.answer;
  phase_ = Phase::kJudge;
  if (judged_) return absl::OkStatus();
  return Welcome(socket, Access::kAll, [](const auto&, pid_t) { return true; });
}

MemberClaim AcceptHandshake::claim() const {
  return {member_, ComputeMac(identity_->secret, kMemberRole, client_nonce_, server_nonce_), answer_};
}

absl::Status AcceptHandshake::Welcome(int socket, Access rights, const Serve& serve) {
  NAM_ASSIGN_OR_RETURN(SharedMemory channel,
                       CreateShared("nam-channel", sizeof(Channel), PeerAccess::kReadWrite,
                                    /*huge_pages=*/false));
  NAM_ASSIGN_OR_RETURN(const UniqueFd table, identity_->regions->TableForPeer());
  const auto mapping = std::make_shared<const Mapping>(std::move(channel.mapping));
  established_.channel = ChannelEnd(mapping, 1);
  // A passive side sends nothing, and its peer must see that at once.
  if (passive_) established_ = {};
  if (!serve(mapping, peer_pid_)) return absl::PermissionDeniedError("the membership has ended");
  identity_->initiators->Add(mapping, 0, peer_pid_);
  const int descriptors[] = {table.get(), identity_->doorbells->descriptor.get(), channel.descriptor.get()};
  NAM_RETURN_IF_ERROR(
      SendMessage(socket,
                  {.type = MessageType::kWelcome,
                   .proof = ComputeMac(identity_->secret, kServerRole, client_nonce_, server_nonce_),
                   .process = identity_->process,
                   .access = static_cast<uint32_t>(rights)},
                  descriptors));
  phase_ = Phase::kAttach;
  return absl::OkStatus();
}

absl::Status AcceptHandshake::Attach(const Packet& packet) {
  if (packet.message.type != MessageType::kAttach) return Unexpected();
  phase_ = Phase::kDone;
  if (passive_) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(established_.peer,
                       identity_->peers->Get(packet.message.process, packet.descriptors[0].get(),
                                             packet.descriptors[1].get()));
  return absl::OkStatus();
}

}  // namespace nam::fabric::shm
