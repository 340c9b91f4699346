#include "base/shared_objects.h"

#include <gtest/gtest.h>

#include <string>

namespace nam {
namespace {

TEST(SharedObjects, OneOfEachTypeWhileItIsUsed) {
  SharedObjects objects;
  int made = 0;
  const auto make = [&] { return std::make_shared<int>(++made); };
  auto first = objects.Get<int>(make);
  auto second = objects.Get<int>(make);
  EXPECT_EQ(first, second);
  const auto text = objects.Get<std::string>([] { return std::make_shared<std::string>("another type"); });
  EXPECT_EQ(*text, "another type");
  first.reset();
  EXPECT_EQ(*objects.Get<int>(make), 1) << "the second user keeps it";
  second.reset();
  EXPECT_EQ(*objects.Get<int>(make), 2);
}

}  // namespace
}  // namespace nam
