#include "session/query_scratch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "catalog/control_plane.h"
#include "execution/partition/open_scratch.h"
#include "execution/partition/part_directory.h"
#include "execution/rows/row_layout.h"
#include "execution/task.h"
#include "storage/channel.h"
#include "storage/row_pages.h"
#include "storage/scratch.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using execution::PageHeader;

constexpr int64_t kTellAgainUs = 500'000;
/// How often a thread that waits for another one's scratch memory checks whether the query is cancelled.
constexpr int64_t kOpenedCheckUs = 2'000;

}  // namespace

absl::StatusOr<uint64_t> RowsOfPages(std::span<const std::byte> pages) {
  uint64_t rows = 0;
  while (!pages.empty()) {
    PageHeader header;
    if (pages.size() < sizeof(header)) return absl::DataLossError("a result ends within a page");
    std::memcpy(&header, pages.data(), sizeof(header));
    if (header.magic != PageHeader::kMagic || header.bytes < execution::RowLayout::kLeastPageBytes ||
        header.bytes > std::min<uint64_t>(pages.size(), execution::RowLayout::kLongPageBytesMax))
      return absl::DataLossError("a result has something else than pages");
    rows += header.rows;
    pages = pages.subspan(header.bytes);
  }
  return rows;
}

QueryScratch::~QueryScratch() {
  EndQuery(/*tell=*/true);
  ends_->Set();
  thread_.reset();
  if (allocation_ != AllocationId()) (void)attachment_.catalog().AbortLoad(allocation_);
}

uint64_t QueryScratch::Open() {
  if (allocation_ != AllocationId() || attachment_.member() == MemberId()) return allocation_.value();
  const absl::StatusOr<AllocationId> allocation = attachment_.catalog().BeginLoad(
      attachment_.member(), absl::StrCat("nam.scratch.", attachment_.member().value()),
      /*replace=*/false);
  if (allocation.ok()) allocation_ = *allocation;
  why_none_ = allocation.status();
  return allocation_.value();
}

absl::Status QueryScratch::Drop(uint64_t attempt) {
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment_.Members(proto::ROLE_MEMORY));
  for (const proto::Member& server : servers) {
    const MemoryServerId id(static_cast<uint16_t>(server.id()));
    attachment_.ReleaseScratch(id, allocation_, attempt).IgnoreError();
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::Directory> QueryScratch::Write(const execution::KeptGroups& groups,
                                                     std::span<const std::byte> pages, uint64_t attempt,
                                                     uint32_t pipeline, uint64_t bytes_max) {
  used_ = true;
  const std::unique_ptr<storage::ScratchSpace> space =
      execution::OpenScratch(attachment_, allocation_, attempt);
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Channel> channel,
                       storage::Channel::Open(attachment_.fabric(), attachment_, {}));
  execution::MemoryBudget budget(bytes_max);
  execution::TaskContext context(attachment_.fabric().clock(), budget, cancel_, {.scratch = channel.get()});
  const absl::StatusOr<execution::PartDirectory> directory = groups.Write(context, pages, attempt, *space);
  context.Settle();
  NAM_RETURN_IF_ERROR(directory.status());
  return directory->ToProto(attempt, pipeline);
}

namespace {

/// So many bytes of rows travel in a message.
constexpr size_t kFewRowsBytes = 64 << 10;

/// What writing rows needs; made with the first of them.
struct RowWriting {
  RowWriting(std::unique_ptr<storage::ScratchSpace> in, std::unique_ptr<storage::Channel> over,
             uint32_t row_bytes, const std::atomic<bool>& cancel)
      : space(std::move(in)),
        channel(std::move(over)),
        scratch(*space, *channel, storage::kRowPageBytes, cancel),
        rows(scratch, row_bytes) {}
  const std::unique_ptr<storage::ScratchSpace> space;
  const std::unique_ptr<storage::Channel> channel;
  storage::ScratchWriter scratch;
  storage::RowPageWriter rows;
};

}  // namespace

absl::Status QueryScratch::LeaveRows(uint32_t row_bytes,
                                     const std::function<absl::Status(const AddRow& add)>& give,
                                     proto::RecordRows& out) {
  std::optional<RowWriting> writing;
  const absl::Status given = give([&](std::string_view row) -> absl::Status {
    if (!writing.has_value() && out.few().size() + row_bytes <= kFewRowsBytes) {
      out.mutable_few()->append(row);
      return absl::OkStatus();
    }
    if (!writing.has_value()) {
      if (Open() == 0) {
        return !why_none_.ok() ? WithSqlState(why_none_)
                               : absl::UnavailableError("the session has no membership for scratch memory");
      }
      NAM_ASSIGN_OR_RETURN(std::unique_ptr<storage::Channel> channel,
                           storage::Channel::Open(attachment_.fabric(), attachment_, {}));
      used_ = true;
      writing.emplace(execution::OpenScratch(attachment_, allocation_, attachment_.fabric().Random()),
                      std::move(channel), row_bytes, cancel_);
    }
    return execution::ScratchError(writing->rows.Add(row));
  });
  NAM_RETURN_IF_ERROR(given);
  if (!writing.has_value()) return absl::OkStatus();
  const absl::StatusOr<storage::RowPages> pages = writing->rows.Finish();
  NAM_RETURN_IF_ERROR(execution::ScratchError(pages.status()));
  NAM_RETURN_IF_ERROR(writing->scratch.Flush());
  for (const storage::ScratchPage& page : pages->pages) {
    out.mutable_more()->add_pages(page.at.raw());
    out.mutable_more()->add_bytes(page.bytes);
  }
  out.mutable_more()->set_rows(pages->rows);
  return absl::OkStatus();
}

/// Opened by the first thread that writes a run; each has a channel of its own.
class QueryScratch::SortPlaces {
 public:
  explicit SortPlaces(QueryScratch& scratch)
      : attempt(scratch.attachment_.fabric().Random()),
        scratch_(scratch),
        opened_(scratch.attachment_.fabric().CreateEvent()) {}

  absl::StatusOr<execution::RunPlace> Of(execution::TaskContext& context) {
    if (!begun_.exchange(true)) {
      if (scratch_.Open() != 0) {
        space_ = execution::OpenScratch(scratch_.attachment_, scratch_.allocation_, attempt);
        scratch_.used_ = true;
      }
      opened_->Set();
    }
    while (!opened_->Wait(context.clock().After(kOpenedCheckUs))) {
      if (context.cancelled()) return execution::QueryCancelled();
    }
    if (space_ == nullptr) return execution::RunPlace{};
    std::unique_ptr<storage::Channel>* channel = nullptr;
    {
      const MutexLock lock(mutex_);
      channel = &channels_[&context];
    }
    if (*channel == nullptr) {
      NAM_ASSIGN_OR_RETURN(*channel, OpenChannel({}));
    }
    return execution::RunPlace{space_.get(), channel->get()};
  }
  absl::StatusOr<std::unique_ptr<storage::Channel>> OpenChannel(
      const storage::ChannelOptions& options) const {
    return storage::Channel::Open(scratch_.attachment_.fabric(), scratch_.attachment_, options);
  }

  const uint64_t attempt;

 private:
  QueryScratch& scratch_;
  std::atomic<bool> begun_ = false;
  const std::unique_ptr<fabric::Event> opened_;
  std::unique_ptr<storage::ScratchSpace> space_;  // set before opened_; null: there is none
  Mutex mutex_;
  std::map<const execution::TaskContext*, std::unique_ptr<storage::Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
};

execution::SortScratch QueryScratch::ForSorts() {
  const auto places = std::make_shared<SortPlaces>(*this);
  return {.place = [places](execution::TaskContext& context) { return places->Of(context); },
          .channel = [places](uint64_t bytes) { return places->OpenChannel({.buffer_bytes = bytes}); },
          .attempt = places->attempt};
}

void QueryScratch::EndQuery(bool tell) {
  why_none_ = absl::OkStatus();
  if (!std::exchange(used_, false) || allocation_ == AllocationId()) return;
  const AllocationId allocation = std::exchange(allocation_, AllocationId());
  if (!Abort(allocation) || !tell) return;
  const auto servers = attachment_.Members(proto::ROLE_MEMORY);
  if (!servers.ok()) return;
  for (const proto::Member& server : *servers)
    (void)attachment_.Release(MemoryServerId(static_cast<uint16_t>(server.id())), allocation);
}

bool QueryScratch::Abort(AllocationId allocation) {
  if (!catalog::Unanswered(attachment_.catalog().AbortLoad(allocation))) return true;
  {
    const MutexLock lock(mutex_);
    unheard_.push_back(allocation);
    if (std::exchange(telling_, true)) return false;
  }
  thread_.reset();  // has ended
  auto started = attachment_.fabric().TryStartThread("nam-scratch", [this] { TellAgain(); });
  if (started.ok()) {
    thread_ = *std::move(started);
  } else {
    const MutexLock lock(mutex_);
    telling_ = false;  // the next one that cannot be told tries again
  }
  return false;
}

void QueryScratch::TellAgain() {
  while (!ends_->Wait(attachment_.fabric().clock().After(kTellAgainUs))) {
    std::vector<AllocationId> told;
    {
      const MutexLock lock(mutex_);
      told = unheard_;
    }
    std::erase_if(told, [&](AllocationId allocation) {
      return catalog::Unanswered(attachment_.catalog().AbortLoad(allocation));
    });
    const MutexLock lock(mutex_);
    std::erase_if(unheard_, [&](AllocationId allocation) {
      return std::find(told.begin(), told.end(), allocation) != told.end();
    });
    if (!unheard_.empty()) continue;
    telling_ = false;
    return;
  }
}

void QueryScratch::Forget() {
  {
    const MutexLock lock(mutex_);
    unheard_.clear();
  }
  allocation_ = AllocationId();
  used_ = false;
}

}  // namespace nam::session
