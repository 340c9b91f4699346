#include "backup/sealed_copies.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/mutex.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/server_ids.h"
#include "memserver/sealed_file_writer.h"
#include "storage/channel.h"

namespace nam::backup {
namespace {

constexpr size_t kPinnedAtOnce = 256;
constexpr size_t kThreadsMax = 4;
constexpr int64_t kProgressUs = 200'000;

}  // namespace

absl::Status SealedCopies::Pin(const proto::Member& server, const std::vector<AllocationId>& allocations) {
  const MemoryServerId member = catalog::MemberServerId(server);
  for (size_t first = 0; first < allocations.size(); first += kPinnedAtOnce) {
    const size_t end = std::min(allocations.size(), first + kPinnedAtOnce);
    const std::vector<AllocationId> some(allocations.begin() + static_cast<ptrdiff_t>(first),
                                         allocations.begin() + static_cast<ptrdiff_t>(end));
    NAM_ASSIGN_OR_RETURN(const std::vector<catalog::GrantedExtent> granted,
                         attachment_.OpenExtents(member, some));
    std::map<AllocationId, size_t> places;
    for (const catalog::GrantedExtent& extent : granted) {
      const auto [place, fresh] = places.emplace(extent.grant->allocation(), pinned_.size());
      if (fresh) {
        std::optional<fabric::Grant::Use> use = fabric::Grant::Use::Of(extent.grant);
        if (!use.has_value()) {
          return absl::AbortedError(
              absl::StrFormat("allocation %d was dropped meanwhile", extent.grant->allocation().value()));
        }
        pinned_.push_back({.member = member,
                           .storage = catalog::StorageOf(server),
                           .allocation = extent.grant->allocation(),
                           .extents = {},
                           .use = *std::move(use)});
      }
      pinned_[place->second].extents.push_back({extent.offset, extent.bytes});
    }
  }
  return absl::OkStatus();
}

uint64_t SealedCopies::bytes() const {
  uint64_t bytes = 0;
  for (const Pinned& pinned : pinned_) {
    for (const memserver::Extent& extent : pinned.extents) bytes += extent.bytes;
  }
  return bytes;
}

/// Threads take one file after the other; the first error stops them.
class SealedCopies::Copying {
 public:
  Copying(catalog::Attachment& attachment, std::vector<Pinned>& pinned, FreshDirectory& directory,
          uint64_t store, const std::string& cluster)
      : attachment_(attachment),
        pinned_(pinned),
        directory_(directory),
        store_(store),
        cluster_(cluster),
        files_(pinned.size()) {}

  absl::StatusOr<std::vector<SavedFile>> Run(uint64_t bytes, const OnProgress& progress) {
    NAM_RETURN_IF_ERROR(MakeFolders());
    fabric::Fabric& fabric = attachment_.fabric();
    const std::unique_ptr<fabric::Event> over = fabric.CreateEvent();
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    running_ = std::min(kThreadsMax, pinned_.size());
    for (size_t t = 0; t < std::min(kThreadsMax, pinned_.size()); ++t) {
      threads.push_back(
          fabric.StartThread(absl::StrFormat("nam-copy-%d", t), [&, cancel = Interruption::flag()] {
            const Interruption interruption(cancel);
            const absl::Status status = CopyFiles();
            if (!status.ok()) Stop(status);
            if (--running_ == 0) over->Set();
          }));
    }
    while (!threads.empty() && !over->Wait(fabric.clock().After(kProgressUs))) {
      if (progress) progress("copying", bytes_, bytes);
    }
    threads.clear();  // joins
    {
      const MutexLock lock(mutex_);
      NAM_RETURN_IF_ERROR(failed_);
    }
    for (const auto& [storage, folder] : folders_) {
      if (fsync(folder.get()) != 0) return WriteError(directory_.PathOf(FolderOf(storage)), errno);
    }
    return std::move(files_);
  }

 private:
  absl::Status MakeFolders() {
    for (const Pinned& pinned : pinned_) {
      if (folders_.contains(pinned.storage)) continue;
      NAM_ASSIGN_OR_RETURN(folders_[pinned.storage], directory_.MakeFolder(FolderOf(pinned.storage)));
    }
    return absl::OkStatus();
  }

  void Stop(const absl::Status& why) {
    const MutexLock lock(mutex_);
    if (failed_.ok()) failed_ = why;
    stopped_ = true;
  }

  absl::Status CopyFiles() {
    NAM_ASSIGN_OR_RETURN(const auto channel, storage::Channel::Open(attachment_.fabric(), attachment_, {}));
    std::vector<std::byte> piece(memserver::kPieceBytes);
    for (size_t i = next_++; i < pinned_.size() && !stopped_; i = next_++)
      NAM_RETURN_IF_ERROR(CopyFile(pinned_[i], *channel, piece, files_[i]));
    return absl::OkStatus();
  }

  absl::Status CopyFile(Pinned& pinned, storage::Channel& channel, std::vector<std::byte>& buffer,
                        SavedFile& file) {
    std::ranges::sort(pinned.extents, {}, &memserver::Extent::offset);
    memserver::SealedHeader header{
        .identity = {.store = store_, .cluster = cluster_, .storage = pinned.storage},
        .allocation = pinned.allocation,
        .extents = pinned.extents,
        .checksums = {}};
    NAM_ASSIGN_OR_RETURN(const auto writer,
                         memserver::SealedFileWriter::Create(
                             folders_.at(pinned.storage).get(), directory_.PathOf(FolderOf(pinned.storage)),
                             memserver::SealedFileName(pinned.allocation), std::move(header)));
    for (const memserver::SealedPiece& piece : writer->pieces()) {
      // Where memory is in its place nothing waits, and so nothing else looks.
      if (stopped_ || Interruption::requested()) return absl::CancelledError("cancelled");
      const std::span<std::byte> bytes(buffer.data(), piece.bytes);
      NAM_RETURN_IF_ERROR(channel.Read(storage::RemotePtr<void>(pinned.member, piece.offset), bytes));
      NAM_RETURN_IF_ERROR(writer->Add(bytes));
      bytes_ += piece.bytes;
    }
    NAM_RETURN_IF_ERROR(writer->Finish());
    writer->Keep();
    file = {.path = SealedPathOf(pinned.storage, pinned.allocation),
            .bytes = writer->bytes(),
            .checksum = writer->checksum()};
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  std::vector<Pinned>& pinned_;
  FreshDirectory& directory_;
  const uint64_t store_;
  const std::string cluster_;
  std::map<uint32_t, UniqueFd> folders_;  // by storage id
  std::vector<SavedFile> files_;          // as pinned_
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> running_ = 0;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::vector<SavedFile>> SealedCopies::CopyInto(FreshDirectory& directory, uint64_t store,
                                                              const std::string& cluster,
                                                              const OnProgress& progress) {
  const uint64_t expected = bytes();
  if (progress) progress("copying", 0, expected);
  return Copying(attachment_, pinned_, directory, store, cluster).Run(expected, progress);
}

}  // namespace nam::backup
