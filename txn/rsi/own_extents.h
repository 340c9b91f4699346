#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "storage/channel.h"
#include "txn/extent_space.h"
#include "txn/tables.h"

namespace nam::txn {

/// Extents with keys of one member. A process that joins again gets its keys as another member, and a fence
/// of the former one leaves those valid; so a session, whose slot names the former member, must not write
/// with them. Such a session breaks, and its successor asks for keys anew.
class OwnExtents final : public ExtentSource {
 public:
  /// `tables` and `channel`, the session's, outlive it.
  OwnExtents(std::shared_ptr<ExtentSource> under, Tables& tables, MemberId member, storage::Channel& channel)
      : under_(std::move(under)), tables_(tables), member_(member), channel_(channel) {}
  absl::StatusOr<std::vector<SpaceExtent>> Extents() override { return OnlyOwn(under_->Extents()); }
  absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) override {
    return OnlyOwn(under_->Grow(known));
  }

  /// Of a table and its indexes.
  static TableDescription Of(TableDescription table, Tables& tables, MemberId member,
                             storage::Channel& channel) {
    const auto own = [&](std::shared_ptr<ExtentSource>& extents) {
      extents = std::make_shared<OwnExtents>(std::move(extents), tables, member, channel);
    };
    own(table.records);
    own(table.index);
    for (IndexDescription& index : table.indexes) own(index.extents);
    return table;
  }

 private:
  // The look comes after the call: a process is known by its new number before it signs with that.
  absl::StatusOr<std::vector<SpaceExtent>> OnlyOwn(absl::StatusOr<std::vector<SpaceExtent>> extents) {
    if (tables_.member() == member_) return extents;
    channel_.Break();
    return absl::UnavailableError("the process has joined the cluster again since the session was opened");
  }

  const std::shared_ptr<ExtentSource> under_;
  Tables& tables_;
  const MemberId member_;
  storage::Channel& channel_;
};

}  // namespace nam::txn
