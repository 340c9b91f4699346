#include "memserver/data_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/exhausted.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/temp_folder.h"
#include "tests/memserver/server_fixture.h"

namespace {

// The functions replace the system's, for all tests of the program; but only the thread of a test here asks.
thread_local std::vector<std::string>* disk_calls = nullptr;  // those of the thread in order
thread_local int failing_fsync = 0;  // counted down by each call; the one that reaches 0 fails

bool IsDirectory(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

extern "C" int fsync(int fd) {
  if (disk_calls != nullptr)
    disk_calls->push_back(IsDirectory(fd) ? "fsync of a directory" : "fsync of a file");
  if (failing_fsync > 0 && --failing_fsync == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  if (disk_calls != nullptr) disk_calls->push_back("rename");
  return static_cast<int>(syscall(SYS_renameat2, from_directory, from, to_directory, to, 0));
}

namespace nam::memserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr uint64_t kStore = 77;
constexpr uint32_t kStorage = 6;
constexpr MemberId kOpener(3);
const auto kNotUsed = [] { return false; };

/// A memory server's pool and directory; Restart makes a new pool of the same size on the same directory.
class DataDirectoryTest : public testing::Test {
 protected:
  DataDirectoryTest() { Restart(); }

  DataDirectory::Contents Restart(uint64_t memory_bytes = 16 * kMiB) {
    directory_.reset();
    pool_ = *MemoryPool::Create(fabric_, {.memory_bytes = memory_bytes, .region_bytes = 4 * kMiB});
    auto directory = Open();
    EXPECT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    if (directory_->storage() == 0) {
      EXPECT_TRUE(directory_->SetStorage(kStorage).ok());
    }
    auto contents = directory_->ReadInto(*pool_, fabric_);
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.value_or(DataDirectory::Contents());
  }
  absl::StatusOr<std::unique_ptr<DataDirectory>> Open(uint64_t store = kStore) {
    return DataDirectory::Open(folder_.File("data"), store, "a cluster");
  }
  /// Memory of the allocation, with position-dependent bytes.
  std::vector<Extent> Fill(uint64_t allocation, uint64_t bytes) {
    auto extents = pool_->Allocate(AllocationId(allocation), bytes, kOpener);
    EXPECT_TRUE(extents.ok()) << extents.status();
    for (const Extent& extent : *extents) {
      std::byte* const data = pool_->FindToFill(extent.offset, extent.bytes);
      for (uint64_t i = 0; i < extent.bytes; i += 64) data[i] = ByteAt(allocation, extent.offset + i);
    }
    return *extents;
  }
  bool IsFilled(uint64_t allocation, const std::vector<Extent>& extents) {
    for (const Extent& extent : extents) {
      const std::byte* const data = pool_->Find(extent.offset, extent.bytes);
      if (data == nullptr) return false;
      for (uint64_t i = 0; i < extent.bytes; i += 64) {
        if (data[i] != ByteAt(allocation, extent.offset + i)) return false;
      }
    }
    return true;
  }
  static std::byte ByteAt(uint64_t allocation, uint64_t offset) {
    return std::byte{static_cast<unsigned char>(1 + (allocation * 31 + offset / 64) % 251)};
  }
  absl::Status Seal(uint64_t allocation) {
    return directory_->Seal(AllocationId(allocation), *pool_, kNotUsed).status();
  }
  std::string File(uint64_t allocation) {
    return folder_.File("data") + "/" + SealedFileName(AllocationId(allocation));
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.File("data"))) {
      const std::string name = entry.path().filename();
      if (name != "lock" && name != "identity") names.push_back(name);
    }
    return names;
  }
  static void Flip(const std::string& path, uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    ASSERT_TRUE(file.good());
  }
  static std::vector<uint64_t> Numbers(const std::vector<AllocationId>& allocations) {
    std::vector<uint64_t> numbers;
    for (const AllocationId allocation : allocations) numbers.push_back(allocation.value());
    return numbers;
  }

  const TempFolder folder_;
  fabric::FakeFabric fabric_;
  std::unique_ptr<MemoryPool> pool_;
  std::unique_ptr<DataDirectory> directory_;
};

TEST_F(DataDirectoryTest, WhatWasSealedLiesWhereItLay) {
  const std::vector<Extent> one = Fill(17, 5 * kMiB + 4'096), other = Fill(18, 12'288);
  ASSERT_TRUE(Seal(17).ok());
  ASSERT_TRUE(Seal(18).ok());
  Fill(19, kMiB);  // is not sealed
  const DataDirectory::Contents contents = Restart();
  EXPECT_THAT(Numbers(contents.whole), UnorderedElementsAre(17, 18));
  EXPECT_THAT(contents.damaged, IsEmpty());
  EXPECT_EQ(contents.bytes, 5 * kMiB + 4'096 + 12'288);
  EXPECT_THAT(Numbers(pool_->Held()), ElementsAre(17, 18));
  EXPECT_EQ(pool_->used_bytes(), contents.bytes);
  EXPECT_TRUE(IsFilled(17, one));
  EXPECT_TRUE(IsFilled(18, other));
  EXPECT_EQ(directory_->storage(), kStorage);
  // No other extent overlaps it, and free memory there is zero.
  const auto rest = pool_->Allocate(AllocationId(20), 10 * kMiB, kOpener);
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(IsFilled(17, one));
  EXPECT_TRUE(IsFilled(18, other));
  for (const Extent& extent : *rest) {
    const std::byte* const data = pool_->Find(extent.offset, extent.bytes);
    EXPECT_EQ(std::count(data, data + extent.bytes, std::byte{0}), static_cast<int64_t>(extent.bytes));
  }
}

TEST_F(DataDirectoryTest, ItIsDurableBeforeItIsDone) {
  Fill(17, 2 * kMiB);
  std::vector<std::string> calls;
  disk_calls = &calls;
  const absl::Status sealed = Seal(17);
  disk_calls = nullptr;
  ASSERT_TRUE(sealed.ok());
  EXPECT_THAT(calls, ElementsAre("fsync of a file", "rename", "fsync of a directory"));
}

TEST_F(DataDirectoryTest, WhatDidNotReachTheDiskIsNotDone) {
  Fill(17, 2 * kMiB);
  for (const int failing : {1, 2}) {
    failing_fsync = failing;
    EXPECT_FALSE(Seal(17).ok());
    EXPECT_THAT(Files(), IsEmpty());
  }
  failing_fsync = 0;
  EXPECT_TRUE(Seal(17).ok());
}

TEST_F(DataDirectoryTest, ASealedAllocationGetsNoMoreMemory) {
  Fill(17, 4'096);
  ASSERT_TRUE(Seal(17).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(pool_->Allocate(AllocationId(17), 4'096, kOpener).status()));
  ASSERT_TRUE(Seal(17).ok());  // asked again because the answer was lost
  Restart();
  EXPECT_TRUE(absl::IsFailedPrecondition(pool_->Allocate(AllocationId(17), 4'096, kOpener).status()));
}

TEST_F(DataDirectoryTest, OnlyWhatIsHeldIsSealed) {
  EXPECT_TRUE(absl::IsNotFound(Seal(17)));
  Fill(18, 4'096);
  pool_->Release(AllocationId(18));
  EXPECT_TRUE(absl::IsNotFound(Seal(18)));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(DataDirectoryTest, AnAllocationThatIsOverHasNoFile) {
  Fill(17, 4'096);
  ASSERT_TRUE(Seal(17).ok());
  directory_->Remove(AllocationId(17));
  EXPECT_THAT(Files(), IsEmpty());
  // Nor if that becomes known during the write.
  Fill(18, 3 * kMiB);
  int pieces = 0;
  const auto sealed = directory_->Seal(AllocationId(18), *pool_, [&] {
    if (++pieces == 2) directory_->Remove(AllocationId(18));
    return false;
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(sealed.status())) << sealed.status();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(DataDirectoryTest, AClientThatGivesUpLeavesNothing) {
  Fill(17, 3 * kMiB);
  int pieces = 0;
  EXPECT_TRUE(
      absl::IsCancelled(directory_->Seal(AllocationId(17), *pool_, [&] { return ++pieces == 3; }).status()));
  EXPECT_THAT(Files(), IsEmpty());
  ASSERT_TRUE(Seal(17).ok());
}

TEST_F(DataDirectoryTest, ADamagedFileIsNamedAndStays) {
  const std::vector<Extent> whole = Fill(17, 2 * kMiB);
  Fill(18, 2 * kMiB);
  Fill(19, 4'096);
  for (const uint64_t allocation : {17, 18, 19}) ASSERT_TRUE(Seal(allocation).ok());
  Flip(File(18), 4'096 + kMiB + 5);
  Flip(File(19), 40);
  for (int start = 0; start < 2; ++start) {
    const DataDirectory::Contents contents = Restart();
    EXPECT_THAT(Numbers(contents.whole), ElementsAre(17));
    ASSERT_EQ(contents.damaged.size(), 2u);
    for (const DataDirectory::DamagedFile& file : contents.damaged) {
      EXPECT_THAT(file.why, HasSubstr(File(file.allocation.value())));
      EXPECT_THAT(file.why, HasSubstr("damaged"));
    }
    EXPECT_TRUE(IsFilled(17, whole));
    EXPECT_THAT(Numbers(directory_->Damaged()), ElementsAre(18, 19));
    EXPECT_THAT(Numbers(pool_->Held()), ElementsAre(17));
    EXPECT_EQ(Files().size(), 3u);
  }
  // Until the catalog says that it is over.
  directory_->Remove(AllocationId(18));
  EXPECT_EQ(Files().size(), 2u);
}

/// The process may open only a few more files while it lives.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(open("/", O_RDONLY | O_CLOEXEC));  // the lowest that is free
    const struct rlimit limit {
      .rlim_cur = static_cast<rlim_t>(next.get()) + more, .rlim_max = before_.rlim_max
    };
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  struct rlimit before_;
};

TEST_F(DataDirectoryTest, FewFilesAreOpenAtATime) {
  constexpr uint64_t kFiles = 40;
  for (uint64_t allocation = 1; allocation <= kFiles; ++allocation) {
    Fill(allocation, 4'096);
    ASSERT_TRUE(Seal(allocation).ok());
  }
  const OpenFilesLimit limit(24);
  const DataDirectory::Contents contents = Restart();
  EXPECT_EQ(contents.whole.size(), kFiles);
  EXPECT_THAT(contents.damaged, IsEmpty());
}

// What no descriptor or permission is there for may be whole.
TEST_F(DataDirectoryTest, AFileThatCannotBeOpenedNowIsNotDamaged) {
  const std::vector<Extent> extents = Fill(17, 4'096);
  ASSERT_TRUE(Seal(17).ok());
  directory_ = nullptr;
  directory_ = *Open();
  pool_ = *MemoryPool::Create(fabric_, {.memory_bytes = 16 * kMiB, .region_bytes = 4 * kMiB});
  {
    const OpenFilesLimit limit(1);  // for the list
    const absl::Status refused = directory_->ReadInto(*pool_, fabric_).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(File(17)));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("ulimit -n"));
  }
  EXPECT_THAT(directory_->Damaged(), IsEmpty());
  EXPECT_THAT(Numbers(Restart().whole), ElementsAre(17));
  EXPECT_TRUE(IsFilled(17, extents));
}

TEST_F(DataDirectoryTest, AFileThatWasCutShortIsDamaged) {
  Fill(17, 2 * kMiB);
  ASSERT_TRUE(Seal(17).ok());
  for (const uint64_t bytes : {uint64_t{4'096} + kMiB, uint64_t{4'096}, uint64_t{100}, uint64_t{0}}) {
    std::filesystem::resize_file(File(17), bytes);
    const DataDirectory::Contents contents = Restart();
    EXPECT_THAT(contents.whole, IsEmpty());
    ASSERT_EQ(contents.damaged.size(), 1u);
    EXPECT_EQ(contents.damaged[0].allocation, AllocationId(17));
  }
}

TEST_F(DataDirectoryTest, OfTwoFilesWithTheSameMemoryTheNewerCounts) {
  Fill(17, 2 * kMiB);
  ASSERT_TRUE(Seal(17).ok());
  std::filesystem::copy(File(17), folder_.File("kept"));
  directory_->Remove(AllocationId(17));
  pool_->Release(AllocationId(17));
  pool_->Close(AllocationId(17), 0, kOpener);
  const std::vector<Extent> newer = Fill(18, 2 * kMiB);
  ASSERT_TRUE(Seal(18).ok());
  std::filesystem::copy(folder_.File("kept"), File(17));  // as if its end had not reached the disk
  const DataDirectory::Contents contents = Restart();
  EXPECT_THAT(Numbers(contents.whole), ElementsAre(18));
  ASSERT_EQ(contents.damaged.size(), 1u);
  EXPECT_TRUE(IsFilled(18, newer));
}

TEST_F(DataDirectoryTest, AFileThatTheDiskDoesNotRemoveIsTriedAgain) {
  Fill(17, 2 * kMiB);
  ASSERT_TRUE(Seal(17).ok());
  // A folder is not unlinked.
  ASSERT_TRUE(std::filesystem::remove(File(17)) && std::filesystem::create_directory(File(17)));
  EXPECT_FALSE(directory_->Remove(AllocationId(17)));
  EXPECT_FALSE(directory_->Remove(AllocationId(17)));
  ASSERT_TRUE(std::filesystem::remove(File(17)));
  std::ofstream(File(17)) << "the file, once the disk is mended";
  EXPECT_TRUE(directory_->Remove(AllocationId(17)));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(directory_->Remove(AllocationId(17)));
}

TEST_F(DataDirectoryTest, AFileOfAnotherStorageIsLeftAlone) {
  Fill(17, 4'096);
  ASSERT_TRUE(Seal(17).ok());
  const std::string other_path = folder_.File("other");
  {
    auto other = *DataDirectory::Open(other_path, kStore, "a cluster");
    ASSERT_TRUE(other->SetStorage(kStorage + 2).ok());
    std::filesystem::copy(File(17), other_path + "/" + SealedFileName(AllocationId(17)));
    const auto pool = *MemoryPool::Create(fabric_, {.memory_bytes = 16 * kMiB, .region_bytes = 4 * kMiB});
    const auto contents = other->ReadInto(*pool, fabric_);
    ASSERT_TRUE(contents.ok());
    EXPECT_THAT(contents->whole, IsEmpty());
    EXPECT_THAT(contents->damaged, IsEmpty());
    other->Remove(AllocationId(17));  // of this storage id
  }
  EXPECT_TRUE(std::filesystem::exists(other_path + "/" + SealedFileName(AllocationId(17))));
}

TEST_F(DataDirectoryTest, AFileUnderAnotherNumberIsThatOfItsHeader) {
  const std::vector<Extent> extents = Fill(17, 4'096), others = Fill(18, 4'096);
  ASSERT_TRUE(Seal(17).ok());
  ASSERT_TRUE(Seal(18).ok());
  for (const uint64_t number : {uint64_t{5}, uint64_t{1'000'000}}) {
    std::filesystem::rename(File(17), File(number));
    const DataDirectory::Contents contents = Restart();
    EXPECT_THAT(Numbers(contents.whole), ElementsAre(18));
    ASSERT_EQ(contents.damaged.size(), 2u);
    for (const DataDirectory::DamagedFile& file : contents.damaged) {
      EXPECT_THAT(file.allocation.value(), testing::AnyOf(17, number));
      EXPECT_EQ(file.misnamed, file.allocation.value() == number);
      EXPECT_THAT(file.why, HasSubstr(File(number)));
      EXPECT_THAT(file.why, HasSubstr("rename it to `allocation-17.sealed`"));
    }
    // The end of no allocation removes the only file of another.
    EXPECT_THAT(Numbers(directory_->Damaged()), ElementsAre(17));
    EXPECT_TRUE(directory_->Remove(AllocationId(number)));
    EXPECT_TRUE(directory_->Remove(AllocationId(17)));
    EXPECT_TRUE(std::filesystem::exists(File(number)));
    std::filesystem::rename(File(number), File(17));
    EXPECT_THAT(Numbers(Restart().whole), UnorderedElementsAre(17, 18));
    EXPECT_TRUE(IsFilled(17, extents));
  }
  // A copy of a file in place of another: only the other one's table has lost something.
  std::filesystem::copy(File(17), File(18), std::filesystem::copy_options::overwrite_existing);
  const DataDirectory::Contents contents = Restart();
  EXPECT_THAT(Numbers(contents.whole), ElementsAre(17));
  ASSERT_EQ(contents.damaged.size(), 1u);
  EXPECT_EQ(contents.damaged[0].allocation, AllocationId(18));
  EXPECT_THAT(contents.damaged[0].why, HasSubstr("the file of allocation 17 under another name"));
}

TEST_F(DataDirectoryTest, ADirectoryOfAnotherClusterIsRefusedByName) {
  directory_.reset();
  const auto refused = Open(kStore + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("belongs to the cluster `a cluster`"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(folder_.File("data")));
}

TEST_F(DataDirectoryTest, ASecondServerIsRefusedByName) {
  const auto refused = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("in use by another memory server"));
  directory_.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(DataDirectoryTest, ADirectoryThatOthersMayReadIsRefused) {
  directory_.reset();
  ASSERT_EQ(chmod(folder_.File("data").c_str(), 0750), 0);
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("chmod 700"));
}

TEST_F(DataDirectoryTest, AnUnreadableIdentityIsNoNewDirectory) {
  directory_.reset();
  std::ofstream(folder_.File("data") + "/identity") << "nam data directory 1\nstore 77\nstor";
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
}

TEST_F(DataDirectoryTest, TooLittleMemoryIsRefused) {
  const std::vector<Extent> extents = Fill(17, 9 * kMiB);
  ASSERT_TRUE(Seal(17).ok());
  directory_.reset();
  pool_ = *MemoryPool::Create(fabric_, {.memory_bytes = 8 * kMiB, .region_bytes = 4 * kMiB});
  directory_ = *Open();
  const auto contents = directory_->ReadInto(*pool_, fabric_);
  EXPECT_FALSE(contents.ok());
  EXPECT_THAT(std::string(contents.status().message()), HasSubstr("as much --memory as before"));
  EXPECT_THAT(Numbers(Restart().whole), ElementsAre(17));
  EXPECT_TRUE(IsFilled(17, extents));
}

TEST_F(DataDirectoryTest, UnfinishedFilesGoAtTheStart) {
  std::ofstream(folder_.File("data") + "/allocation-18.new") << "what a killed server had begun";
  EXPECT_THAT(Files(), ElementsAre("allocation-18.new"));
  Restart();
  EXPECT_THAT(Files(), IsEmpty());
}

/// The file system takes no more than this of a file while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit { .rlim_cur = bytes, .rlim_max = before_.rlim_max };
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_;
};

TEST_F(DataDirectoryTest, AFullDiskLeavesNothingAndSaysHowMuchRoomThereIs) {
  const std::vector<Extent> extents = Fill(17, 3 * kMiB);
  {
    const FileSizeLimit limit(kMiB);
    const absl::Status full = Seal(17);
    EXPECT_TRUE(absl::IsResourceExhausted(full));
    EXPECT_EQ(full.GetPayload(kExhaustedPayload), absl::Cord("disk"));
    EXPECT_THAT(std::string(full.message()), HasSubstr(folder_.File("data")));
    EXPECT_THAT(std::string(full.message()), HasSubstr("3.0 MiB are needed, "));
    EXPECT_THAT(Files(), IsEmpty());
  }
  ASSERT_TRUE(Seal(17).ok());
  EXPECT_THAT(Numbers(Restart().whole), ElementsAre(17));
  EXPECT_TRUE(IsFilled(17, extents));
}

}  // namespace
}  // namespace nam::memserver
