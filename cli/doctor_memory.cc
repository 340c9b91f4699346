#include "cli/doctor_memory.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/host_memory.h"
#include "base/unique_fd.h"
#include "cli/host_files.h"
#include "localcluster/memory_room.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

using fabric::Kind;

constexpr uint64_t kUnlimited = uint64_t{1} << 62;

std::string BytesText(uint64_t bytes) {
  return bytes >= kUnlimited ? "unlimited" : FormatBytes(bytes);
}

std::optional<uint64_t> MeminfoBytes(const HostTree& tree, const std::string& key) {
  const auto field = ReadField(tree.proc + "/meminfo", key);
  const auto kib = field ? ParseNumber(*field) : std::nullopt;
  return kib ? std::optional(*kib << 10) : std::nullopt;
}

uint64_t HugePagesNeeded(uint64_t memory_bytes, uint64_t page_bytes) {
  return (memory_bytes + page_bytes - 1) / page_bytes;
}

absl::Status TryMemfd() {
  const UniqueFd file(memfd_create("nam-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return absl::UnavailableError(absl::StrCat("memfd_create: ", std::strerror(errno)));
  if (ftruncate(file.get(), 4096) != 0) {
    return absl::UnavailableError(absl::StrCat("ftruncate: ", std::strerror(errno)));
  }
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return absl::UnavailableError(absl::StrCat("mmap: ", std::strerror(errno)));
  munmap(page, 4096);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::UnavailableError(absl::StrCat("sealing: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> DevShmBytes() {
  struct statvfs file_system {};
  if (statvfs("/dev/shm", &file_system) != 0) return std::nullopt;
  return uint64_t{file_system.f_blocks} * file_system.f_frsize;
}

}  // namespace

Finding CheckAvailableMemory(const HostTree& tree, uint64_t memory_bytes) {
  Finding finding{.name = "available memory", .needed = FormatBytes(memory_bytes), .fabrics = kRealFabrics};
  const auto available = MeminfoBytes(tree, "MemAvailable");
  finding.found = available ? FormatBytes(*available) : "unknown";
  if (available && *available >= memory_bytes) return finding;
  finding.state = available ? FindingState::kMissing : FindingState::kWarning;
  finding.remedy = "free memory, or a smaller --memory";
  return finding;
}

Finding CheckControlGroup(const HostTree& tree, uint64_t memory_bytes) {
  Finding finding{
      .name = "control group memory", .needed = FormatBytes(memory_bytes), .fabrics = kRealFabrics};
  std::vector<MemoryLimit> groups = ReadMemoryLimits(tree.proc, tree.sys);
  std::erase_if(groups, [](const MemoryLimit& limit) { return limit.name == kHostMemory; });
  const MemoryLimit least = LeastAvailable(groups);
  finding.found = groups.empty() ? "no limit" : FormatBytes(least.available_bytes) + " left";
  if (least.available_bytes >= memory_bytes) return finding;
  finding.state = FindingState::kMissing;
  finding.remedy = absl::StrCat("raise the limit of the ", least.name, ", or a smaller --memory");
  return finding;
}

Finding CheckLockedMemory(const HostTree& tree, uint64_t memory_bytes) {
  Finding finding{.name = "locked memory", .needed = FormatBytes(memory_bytes), .fabrics = {Kind::kVerbs}};
  const auto limit = ReadLimit(tree.proc + "/self/limits", "Max locked memory");
  const bool may_lock = HasCapability(tree.proc, CAP_IPC_LOCK);
  finding.found = may_lock ? "unlimited (CAP_IPC_LOCK)" : limit ? BytesText(*limit) : "unknown";
  if (may_lock || (limit && *limit >= memory_bytes)) return finding;
  finding.state = FindingState::kMissing;
  finding.remedy = "ulimit -l unlimited (memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the unit)";
  return finding;
}

Finding CheckHugePages(const HostTree& tree, uint64_t memory_bytes) {
  const uint64_t page_bytes = std::max(uint64_t{4096}, MeminfoBytes(tree, "Hugepagesize").value_or(2 << 20));
  const uint64_t needed = HugePagesNeeded(memory_bytes, page_bytes);
  const auto pages = [&](const char* key) {
    return ParseNumber(ReadField(tree.proc + "/meminfo", key).value_or("")).value_or(0);
  };
  const uint64_t reserved = pages("HugePages_Total"), free = std::min(reserved, pages("HugePages_Free"));
  Finding finding{.name = "huge pages",
                  .found = absl::StrCat(free, " free of ", reserved),
                  .needed = absl::StrCat(needed, " of ", FormatBytes(page_bytes)),
                  .fabrics = {Kind::kShm}};
  if (free >= needed) return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = absl::StrCat("sysctl -w vm.nr_hugepages=", reserved - free + needed);
  return finding;
}

Finding CheckTransparentHugePages(const HostTree& tree) {
  Finding finding{
      .name = "transparent huge pages", .needed = "madvise or always", .fabrics = {Kind::kTcp, Kind::kVerbs}};
  finding.found = ReadChoice(tree.sys + "/kernel/mm/transparent_hugepage/enabled").value_or("not there");
  if (finding.found == "madvise" || finding.found == "always") return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  return finding;
}

Finding CheckSharedHugePages(const HostTree& tree) {
  Finding finding{.name = "huge pages of shared memory",
                  .needed = "always or within_size, where none are reserved",
                  .fabrics = {Kind::kShm}};
  finding.found =
      ReadChoice(tree.sys + "/kernel/mm/transparent_hugepage/shmem_enabled").value_or("not there");
  if (finding.found == "always" || finding.found == "within_size" || finding.found == "force") return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = "echo within_size > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
  return finding;
}

Finding CheckFileSize(const HostTree& tree) {
  Finding finding{
      .name = "file size limit", .needed = FormatBytes(kServerRegionBytes), .fabrics = {Kind::kShm}};
  const auto limit = ReadLimit(tree.proc + "/self/limits", "Max file size");
  finding.found = limit ? BytesText(*limit) : "unknown";
  if (limit && *limit >= kServerRegionBytes) return finding;
  finding.state = limit ? FindingState::kMissing : FindingState::kWarning;
  finding.remedy = "ulimit -f unlimited";
  return finding;
}

Finding CheckMemfd(const absl::Status& made) {
  Finding finding{.name = "memfd", .needed = "made, mapped and sealed", .fabrics = {Kind::kShm}};
  finding.found = made.ok() ? "made, mapped and sealed" : std::string(made.message());
  if (made.ok()) return finding;
  finding.state = FindingState::kMissing;
  finding.remedy = "allow memfd_create and fcntl in the container's seccomp profile, or raise `ulimit -n`";
  return finding;
}

Finding CheckSharedMemorySize(std::optional<uint64_t> bytes) {
  // Regions are memfds, which its size does not limit.
  return {.name = "/dev/shm",
          .found = bytes ? FormatBytes(*bytes) : "not there",
          .needed = "any size: regions are memfds",
          .fabrics = {Kind::kShm}};
}

std::vector<Finding> CheckMemory(const HostTree& tree, uint64_t memory_bytes) {
  return {CheckAvailableMemory(tree, memory_bytes),
          CheckControlGroup(tree, memory_bytes),
          CheckMemfd(TryMemfd()),
          CheckSharedMemorySize(DevShmBytes()),
          CheckFileSize(tree),
          CheckHugePages(tree, memory_bytes),
          CheckSharedHugePages(tree),
          CheckTransparentHugePages(tree),
          CheckLockedMemory(tree, memory_bytes)};
}

}  // namespace nam::cli
