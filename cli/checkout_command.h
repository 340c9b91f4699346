#pragma once

#include <cstdint>
#include <string>

#include "localcluster/connect.h"

namespace nam::cli {

struct CheckoutCommandOptions {
  ClusterOptions cluster;
  int clients = 2;
  double seconds = 20;
  uint64_t transactions = 0;  // 0: as many as fit into the time
  uint64_t products = 0;      // 0: a million, or as many as fit
  uint64_t product_bytes = 1'024;
  uint32_t versions = 1;
  double zipf = 0;
  uint64_t seed = 1;
  bool replace = false;
  bool check = false;
  std::string history;  // folder
  std::string format = "table";
};

/// `nam checkout`: RSI in a cluster. kExitCheckFailed if the stocks, the orders or the history are wrong.
int RunCheckout(const CheckoutCommandOptions& options);

}  // namespace nam::cli
