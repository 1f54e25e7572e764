#include <random>

#include "base/worker.hpp"
#include "device/doubles.hpp"

namespace wye::test {

TEST_CASE("an account holds up to its limit, and lists its holders when it refuses", "[device]") {
  MemoryAccount account("preview", 1_MiB);
  REQUIRE(account.reserve(1_MiB));
  CHECK(account.held() == account.limit());
  auto more = account.reserve(1_B);
  REQUIRE_FALSE(more);
  CHECK(more.error() == Errc::over_budget);
  CHECK(more.error().sentence() ==
        "Allocation (1 byte) exceeds what is left of the budget of 'preview' (1.00 MiB held of 1.00 MiB).");
  CHECK(account.reserve(0_B));
  account.release(1_MiB);
  CHECK(account.held() == 0_B);
  CHECK_FALSE(account.reserve(Bytes{~std::uint64_t{0}}));
  CHECK(account.held() == 0_B);
}

TEST_CASE("threads never hold more than the limit of their account together", "[device]") {
  MemoryAccount account("all", 1000_B);
  std::atomic<bool> over{false};
  std::atomic<int> granted{0};
  {
    std::vector<base::Worker> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.push_back(base::Worker::start("account", [&, i] {
                          std::mt19937_64 random(i);
                          for (int n = 0; n < 5000; ++n) {
                            const Bytes bytes{random() % 600 + 1};
                            if (!account.reserve(bytes)) continue;
                            ++granted;
                            if (account.held() > account.limit()) over = true;
                            account.release(bytes);
                          }
                        }).value());
  }
  CHECK_FALSE(over);
  CHECK(granted > 0);
  CHECK(account.held() == 0_B);
}

}  // namespace wye::test
