#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/random.h"

namespace nam::tpcw {

/// Chooses products to buy: uniformly, or by Zipf's law with exponent theta, with popular products scattered
/// over the table (Gray et al., Quickly Generating Billion-Record Synthetic Databases, 1994). Shared by
/// clients.
class ProductChoice {
 public:
  /// theta in [0, 1).
  ProductChoice(uint64_t products, double theta)
      : products_(products), theta_(theta), step_(products / 2 + 1) {
    while (std::gcd(step_, products_) != 1) ++step_;
    if (theta_ == 0) return;
    for (uint64_t i = 1; i <= products_; ++i) zeta_ += std::pow(static_cast<double>(i), -theta_);
    const double n = static_cast<double>(products_);
    second_ = 1 + std::pow(0.5, theta_);
    eta_ = (1 - std::pow(2 / n, 1 - theta_)) / (1 - second_ / zeta_);
  }

  uint64_t Draw(RandomStream& random) const {
    if (theta_ == 0) return random.Below(products_);
    const auto rank = static_cast<unsigned __int128>(Rank(random.Fraction()));
    return static_cast<uint64_t>(rank * step_ % products_);
  }

 private:
  uint64_t Rank(double u) const {
    if (u * zeta_ < 1) return 0;
    if (u * zeta_ < second_) return 1;
    const double rank = static_cast<double>(products_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - theta_));
    return rank < static_cast<double>(products_) ? static_cast<uint64_t>(rank) : products_ - 1;
  }

  uint64_t products_;
  double theta_;
  uint64_t step_;  // coprime to products_: scatters ranks
  double zeta_ = 0;
  double second_ = 0;
  double eta_ = 0;
};

}  // namespace nam::tpcw
