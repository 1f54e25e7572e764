// Commands that a lease records and does not submit, or does not wait for.
#include <wye/pool/context_pool.hpp>

#include <vector>

#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;

TEST_CASE("commands that a lease has not submitted are dropped when it ends", "[pool]") {
  const auto device = test::scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 1});
  std::vector<float> values(4, 1.0f), early(4), late(4);
  {
    Lease lease = pool.lease().value();
    Buffer source = lease.buffer<float>(4).value();
    lease.upload(values, source);
    REQUIRE(lease.wait());
    lease.download(source, early);
  }
  CHECK(device->buffers_alive() == 0);  // the recorded copy does not hold it
  Lease lease = pool.lease().value();
  auto other = lease.buffer<float>(4).value();
  lease.upload(values, other);
  lease.download(other, late);
  REQUIRE(lease.wait());
  CHECK(late == values);
  CHECK(early == std::vector<float>(4));
}

TEST_CASE("downloads that a lease has not waited for are not written when it has ended", "[pool]") {
  const auto device = test::scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 1});
  std::vector<float> values(4, 1.0f), early(4);
  {
    Lease lease = pool.lease().value();
    Buffer source = lease.buffer<float>(4).value();
    lease.upload(values, source);
    lease.download(source, early);
    lease.submit();
  }
  Lease lease = pool.lease().value();
  REQUIRE(lease.wait());
  CHECK(early == std::vector<float>(4));
}
