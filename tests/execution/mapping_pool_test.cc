#include "execution/mapping_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"

namespace nam::execution {
namespace {

constexpr uint64_t kPage = 4096;

MappingPool::Mapping Map(uint64_t bytes) {
  const auto mapping = MappingPool::Map(bytes, /*writable=*/true);
  EXPECT_TRUE(mapping.has_value());
  EXPECT_EQ(mapping->bytes, bytes);
  EXPECT_EQ(mapping->writable_bytes, bytes);
  return *mapping;
}

TEST(MappingPool, GivesTheLastThatFits) {
  MappingPool pool({.of_one = 8 * kPage, .of_all = 100 * kPage});
  EXPECT_FALSE(pool.Acquire(0, UINT64_MAX).has_value());
  const MappingPool::Mapping small = Map(kPage), first = Map(2 * kPage), second = Map(2 * kPage),
                             large = Map(4 * kPage);
  for (const MappingPool::Mapping& mapping : {small, first, second, large})
    pool.Leave(mapping, mapping.bytes);
  EXPECT_EQ(pool.Acquire(2 * kPage, 2 * kPage)->data, second.data);
  EXPECT_EQ(pool.Acquire(2 * kPage, UINT64_MAX)->data, large.data);
  EXPECT_FALSE(pool.Acquire(3 * kPage, UINT64_MAX).has_value());
  EXPECT_EQ(pool.Acquire(0, 2 * kPage)->data, first.data);
  EXPECT_EQ(pool.Acquire(0, UINT64_MAX)->data, small.data);
  EXPECT_FALSE(pool.Acquire(0, UINT64_MAX).has_value()) << "each is one user's";
  for (const MappingPool::Mapping& mapping : {small, first, second, large})
    pool.Leave(mapping, mapping.bytes);
}

TEST(MappingPool, KeepsOnlyWhatTakesLittleMemory) {
  MappingPool pool({.of_one = 2 * kPage, .of_all = 4 * kPage});
  pool.Leave(Map(64 * kPage), 2 * kPage + 1);
  EXPECT_FALSE(pool.Acquire(0, UINT64_MAX).has_value()) << "of one";
  // Addresses take no memory.
  pool.Leave(Map(64 * kPage), 2 * kPage);
  pool.Leave(Map(16 * kPage), kPage);
  pool.Leave(Map(4 * kPage), kPage);
  pool.Leave(Map(kPage), kPage);  // the oldest is unmapped
  for (const uint64_t pages : {1, 4, 16}) {
    const auto left = pool.Acquire(0, UINT64_MAX);
    ASSERT_TRUE(left.has_value());
    EXPECT_EQ(left->bytes, pages * kPage);
    EXPECT_EQ(left->writable_bytes, pages * kPage);
    pool.Leave(*left, 2 * kPage + 1);  // unmaps it
  }
  EXPECT_FALSE(pool.Acquire(0, UINT64_MAX).has_value()) << "of all";
}

/// Memory that has been taken does not count, or the pool would come to keep nothing.
TEST(MappingPool, KeepsAsMuchAsEver) {
  RandomStream random(7);
  MappingPool pool({.of_one = 4 * kPage, .of_all = 8 * kPage});
  for (int i = 0; i < 2'000; ++i) {
    const uint64_t bytes = kPage * static_cast<uint64_t>(random.Between(1, 4));
    const auto left = pool.Acquire(bytes, 4 * kPage);
    const MappingPool::Mapping mapping = left ? *left : Map(bytes);
    EXPECT_GE(mapping.bytes, bytes);
    pool.Leave(mapping, mapping.bytes);
    ASSERT_EQ(pool.Acquire(mapping.bytes, mapping.bytes)->data, mapping.data) << "at round " << i;
    pool.Leave(mapping, mapping.bytes);
  }
}

TEST(MappingPool, ThreadsNeverHaveTheSame) {
  MappingPool pool({.of_one = kPage, .of_all = 6 * kPage});
  Mutex mutex;
  std::set<std::byte*> in_use;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) {
        const auto left = pool.Acquire(kPage, kPage);
        const MappingPool::Mapping mapping = left ? *left : Map(kPage);
        {
          const MutexLock lock(mutex);
          EXPECT_TRUE(in_use.insert(mapping.data).second);
        }
        std::memset(mapping.data, t, kPage);
        {
          const MutexLock lock(mutex);
          in_use.erase(mapping.data);
        }
        pool.Leave(mapping, kPage);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nam::execution
