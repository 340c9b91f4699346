#include "memserver/extent_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace nam::memserver {
namespace {

constexpr uint64_t kPage = kExtentAlignment;

uint64_t Sum(const std::vector<Extent>& extents) {
  uint64_t sum = 0;
  for (const Extent& extent : extents) sum += extent.bytes;
  return sum;
}

TEST(ExtentAllocatorTest, TheFirstPageIsNeverHandedOut) {
  ExtentAllocator allocator(4 * kPage, 8 * kPage);
  EXPECT_EQ(allocator.capacity_bytes(), 7 * kPage);
  const auto all = allocator.Allocate(7 * kPage);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(*all, (std::vector<Extent>{{kPage, 3 * kPage}, {4 * kPage, 4 * kPage}}));
  EXPECT_FALSE(allocator.Allocate(1).has_value());
}

TEST(ExtentAllocatorTest, RoundsUpAndNeverOverflows) {
  ExtentAllocator allocator(4 * kPage, 8 * kPage);
  EXPECT_EQ(Sum(*allocator.Allocate(1)), kPage);
  EXPECT_EQ(Sum(*allocator.Allocate(kPage + 1)), 2 * kPage);
  EXPECT_EQ(allocator.used_bytes(), 3 * kPage);
  EXPECT_FALSE(allocator.Allocate(0).has_value());
  EXPECT_FALSE(allocator.Allocate(UINT64_MAX).has_value());
  EXPECT_FALSE(allocator.Allocate(4 * kPage + 1).has_value());
}

TEST(ExtentAllocatorTest, WhatFitsInOnePieceStaysInOnePiece) {
  ExtentAllocator allocator(8 * kPage, 32 * kPage);
  const auto first = allocator.Allocate(5 * kPage);
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ(allocator.Allocate(8 * kPage)->size(), 1u);  // not the rest of region 0 and a part of region 1
  EXPECT_EQ((*allocator.Allocate(2 * kPage))[0].offset, 6 * kPage);  // the gap that fits best
}

TEST(ExtentAllocatorTest, FreedNeighboursBecomeOneGapAgain) {
  ExtentAllocator allocator(8 * kPage, 8 * kPage);
  std::vector<Extent> pages;
  for (int i = 0; i < 7; ++i) pages.push_back((*allocator.Allocate(kPage))[0]);
  EXPECT_EQ(allocator.gaps(), 0u);
  for (const int i : {1, 3, 5, 0, 2, 4, 6}) allocator.Free(pages[i]);
  EXPECT_EQ(allocator.gaps(), 1u);
  EXPECT_EQ(allocator.Allocate(7 * kPage)->size(), 1u);
}

TEST(ExtentAllocatorDeathTest, FreeingTwiceIsABrokenInvariant) {
  ExtentAllocator allocator(8 * kPage, 8 * kPage);
  const Extent extent = (*allocator.Allocate(2 * kPage))[0];
  allocator.Free(extent);
  EXPECT_DEATH(allocator.Free(extent), "freed twice");
  EXPECT_DEATH(allocator.Free({0, kPage}), "broken invariant");
}

// Any sequence of allocations and frees, against a map of every page's owner.
RC_GTEST_PROP(ExtentAllocatorProperty, NoOverlapNoLeakAllOrNothing, ()) {
  const uint64_t region_pages = *rc::gen::inRange<uint64_t>(1, 12);
  const uint64_t pages = *rc::gen::inRange<uint64_t>(2, 64);
  ExtentAllocator allocator(region_pages * kPage, pages * kPage);
  std::vector<int> owner(pages, 0);  // 0: free
  std::map<int, std::vector<Extent>> held;
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, uint32_t>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::arbitrary<uint32_t>()));
  int next = 1;
  for (const auto& [allocate, number] : steps) {
    const uint64_t free_pages = pages - 1 - (allocator.used_bytes() / kPage);
    if (allocate) {
      const uint64_t bytes = number % (pages * kPage) + 1;
      const auto extents = allocator.Allocate(bytes);
      const uint64_t needed = (bytes + kPage - 1) / kPage;
      RC_ASSERT(extents.has_value() == (needed <= free_pages));
      if (!extents.has_value()) continue;
      RC_ASSERT(Sum(*extents) == needed * kPage);
      for (const Extent& extent : *extents) {
        RC_ASSERT(extent.bytes > 0 && extent.offset % kPage == 0 && extent.offset >= kPage);
        const uint64_t first = extent.offset / kPage;
        const uint64_t last = (extent.offset + extent.bytes) / kPage - 1;
        RC_ASSERT(last < pages && first / region_pages == last / region_pages);
        for (uint64_t page = first; page <= last; ++page) {
          RC_ASSERT(owner[page] == 0);
          owner[page] = next;
        }
      }
      held[next++] = *extents;
    } else if (!held.empty()) {
      auto victim = std::next(held.begin(), number % held.size());
      for (const Extent& extent : victim->second) {
        allocator.Free(extent);
        for (uint64_t page = extent.offset / kPage; page < (extent.offset + extent.bytes) / kPage; ++page) {
          owner[page] = 0;
        }
      }
      held.erase(victim);
    }
    const auto used =
        static_cast<uint64_t>(std::count_if(owner.begin(), owner.end(), [](int o) { return o != 0; }));
    RC_ASSERT(allocator.used_bytes() == used * kPage);
  }
  for (const auto& [id, extents] : held) {
    for (const Extent& extent : extents) allocator.Free(extent);
  }
  RC_ASSERT(allocator.used_bytes() == 0u);
  // One gap a region: everything has coalesced.
  const uint64_t regions = (pages + region_pages - 1) / region_pages;
  RC_ASSERT(allocator.gaps() == regions - (region_pages == 1 ? 1 : 0));
}

}  // namespace
}  // namespace nam::memserver
