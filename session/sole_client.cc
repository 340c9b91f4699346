#include "session/sole_client.h"

#include <algorithm>

#include "base/interruption.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "fabric/member.h"

namespace nam::session {

namespace {

absl::StatusOr<bool> HasRecordTables(catalog::Attachment& attachment) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, attachment.catalog().ListTables());
  return std::ranges::any_of(
      tables, [](const proto::Table& table) { return table.has_record() && !IsSystemName(table.name()); });
}

}  // namespace

absl::StatusOr<SoleClient> SoleClient::Begin(catalog::Attachment& attachment) {
  SoleClient sole(attachment);
  NAM_RETURN_IF_ERROR(sole.EndOthers().status());
  return sole;
}

SoleClient::~SoleClient() {
  if (attachment_ == nullptr) return;
  const Interruption none(nullptr);                                      // others wait for it
  attachment_->catalog().EndQuiet(attachment_->member()).IgnoreError();  // otherwise it ends with the lease
}

absl::Status SoleClient::Confirm() {
  NAM_ASSIGN_OR_RETURN(const bool others, EndOthers());
  return others ? absl::AbortedError("other clients have joined meanwhile, since the catalog was restarted")
                : absl::OkStatus();
}

absl::StatusOr<bool> SoleClient::EndOthers() {
  const fabric::MemberProof self = attachment_->Self();
  NAM_ASSIGN_OR_RETURN(const std::vector<MemberId> others,
                       attachment_->catalog().EndClients(self.id, self.proof));
  // Without them nothing is saved, and a memory server that does not answer is no reason to go on. Nor can
  // the others make one: they are no members.
  NAM_ASSIGN_OR_RETURN(const bool has_rows, HasRecordTables(*attachment_));
  if (!has_rows) return !others.empty();
  for (const MemberId other : others) NAM_RETURN_IF_ERROR(attachment_->Fence(other));
  // Memberships may have ended a moment ago: by a lease, or by a call whose answer was lost. Each server
  // fences all that it hears of.
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment_->Members(proto::ROLE_MEMORY));
  for (const proto::Member& server : servers) {
    const MemoryServerId id(static_cast<uint16_t>(server.id()));
    NAM_RETURN_IF_ERROR(attachment_->MemoryUsage(id, /*renew_first=*/true).status());
  }
  return !others.empty();
}

}  // namespace nam::session
