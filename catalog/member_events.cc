#include "catalog/member_events.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nam::catalog {
namespace {

constexpr size_t kTablesNamedMax = 20;

const char* RoleOf(const proto::Member& member) {
  switch (member.role()) {
    case proto::ROLE_MEMORY:
      return "memory server";
    case proto::ROLE_COMPUTE:
      return "compute server";
    default:
      return "client";
  }
}

}  // namespace

std::string NameOf(const proto::Member& member) {
  const std::string address =
      member.control_address().empty() ? std::string() : absl::StrCat(member.control_address(), ", ");
  return absl::StrFormat("%s %d (%shost %s, pid %d)", RoleOf(member), member.id(), address, member.host(),
                         member.pid());
}

std::string TextOf(const std::vector<LostBlocks>& lost) {
  std::string text;
  for (size_t i = 0; i < std::min(lost.size(), kTablesNamedMax); ++i) {
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        absl::StrFormat("%s (%d block%s, %.1f MiB)", lost[i].table, lost[i].blocks,
                        lost[i].blocks == 1 ? "" : "s", static_cast<double>(lost[i].bytes) / (1 << 20)));
  }
  if (lost.size() > kTablesNamedMax) absl::StrAppend(&text, " and ", lost.size() - kTablesNamedMax, " more");
  return text;
}

}  // namespace nam::catalog
