// Functions that give a stream work through the driver itself.
#include <functional>

#include "backend/cuda/rig.hpp"

namespace wye::test {
namespace {

struct NativeCodeOf final : NativeCode {
  using Function =
      std::function<Result<void>(const NativeLane&, Extent3, std::span<const wye::detail::NativeArgument>)>;
  explicit NativeCodeOf(Function f) : function(std::move(f)) {}
  Result<void> enqueue(const NativeLane& lane, Extent3 grid,
                       std::span<const wye::detail::NativeArgument> arguments) const override {
    return function(lane, grid, arguments);
  }
  Function function;
};

std::shared_ptr<ExecutableBase> native(DeviceBase& device, NativeCodeOf::Function function) {
  Artefact artefact;
  artefact.kernel = "by_hand";
  artefact.language = "native";
  artefact.native = std::make_shared<NativeCodeOf>(std::move(function));
  artefact.schema.slots = {buffer_slot("x", Access::write), scalar_slot("by")};
  artefact.passing.resize(2);
  return good(device.create_executable(artefact));
}

}  // namespace

TEST_CASE("a native function enqueues on the lane's stream, in its order", "[cuda]") {
  const StandIn stand_in;
  const auto driver = good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA));
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto buffer =
      good(device->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  const auto set = native(
      *device, [&](const NativeLane& lane, Extent3 items, std::span<const wye::detail::NativeArgument> a) {
        CHECK(lane.backend == "cuda");
        CHECK(lane.device == "cuda:0");
        CHECK(stand_in.current() != nullptr);
        CHECK(items.count() == 50);
        Word by = 0;
        REQUIRE(a[1].value.size() == sizeof(by));
        std::memcpy(&by, a[1].value.data(), sizeof(by));
        CHECK(a[0].count == 100);
        CHECK(driver->cu.MemsetD32Async(a[0].address, by, items.count(),
                                        static_cast<CUstream>(lane.handle)) == CUDA_SUCCESS);
        return Result<void>();
      });
  Lane lane(good(device->create_lane()));
  std::vector<Word> got(100);
  lane.fill(range(buffer), 5);
  lane.dispatch(set, arguments_of(buffer, Word{7}), 50);
  lane.download(range(buffer), writable_bytes_of(got));
  REQUIRE(lane.wait(Instant::max()));
  std::vector<Word> wanted(100, 5);
  std::fill_n(wanted.begin(), 50, 7);
  CHECK(got == wanted);
  CHECK(stand_in.depth() == 0);
}

TEST_CASE("a native function that throws or refuses fails its lane and no other", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto buffer =
      good(device->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  const auto another =
      good(device->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  const auto throws = native(
      *device, [](const NativeLane&, Extent3, std::span<const wye::detail::NativeArgument>) -> Result<void> {
        throw std::runtime_error("no more ink");
      });
  const auto refuses = native(
      *device, [](const NativeLane&, Extent3, std::span<const wye::detail::NativeArgument>) -> Result<void> {
        return Error(Errc::unsupported, "Not on a Sunday.");
      });
  for (const auto& [kernel, code, words] : {std::tuple{throws, Errc::kernel_failed, "no more ink"},
                                            std::tuple{refuses, Errc::unsupported, "Sunday"}}) {
    Lane lane(good(device->create_lane())), bystander(good(device->create_lane()));
    lane.fill(range(buffer), 5);
    lane.dispatch(kernel, arguments_of(buffer, Word{7}), 50);
    for (int i = 0; i < 2; ++i) {
      auto waited = lane.wait(Instant::max());
      REQUIRE_FALSE(waited);
      CHECK(waited.error() == code);
      CHECK(waited.error().describe().find(words) != std::string::npos);
    }
    bystander.fill(range(another), 6);
    CHECK(bystander.wait(Instant::max()));
    CHECK_FALSE(device->lost());
  }
  CHECK(stand_in.depth() == 0);
}

namespace {
const StandIn* standing_in = nullptr;
int asked = 0;
Result<void> probe(const NativeLane& lane) {
  ++asked;
  CHECK(lane.backend == "cuda");
  CHECK(lane.device == "cuda:0");
  CHECK(lane.handle == nullptr);
  CHECK(standing_in->current() != nullptr);
  return Error(Errc::unavailable, "Not with this driver.");
}
}  // namespace

TEST_CASE("a probe of native functions is called once, with the device's context current", "[cuda]") {
  const StandIn stand_in;
  standing_in = &stand_in;
  asked = 0;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  {
    const auto device = good(found[0].adapter->open());
    CHECK_FALSE(device->known_refusal_by(probe));
    for (int i = 0; i < 2; ++i) {
      const auto refused = device->refusal_by(probe);
      REQUIRE(refused);
      CHECK(refused->sentence() == "Not with this driver.");
    }
    CHECK(asked == 1);
    CHECK(device->known_refusal_by(probe));
    CHECK_FALSE(device->refusal_by(nullptr));
    CHECK(stand_in.depth() == 0);
  }
  // Another device, or the same one opened again, is probed again. A lost device proves nothing
  // about the library.
  const auto again = good(found[0].adapter->open());
  stand_in.fail("cuCtxPushCurrent", 1, 719);
  CHECK(*again->refusal_by(probe) == Errc::device_lost);
  CHECK(asked == 1);
  CHECK_FALSE(again->known_refusal_by(probe));
}

}  // namespace wye::test
