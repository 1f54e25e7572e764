// Tensors of other libraries become arrays and arrays tensors, without copies; each deleter is
// called once, and not early.
#include <wye/interop/dlpack.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "interop/dlpack_abi.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"

namespace wye::test {
namespace {

namespace dl = interop::dl;
using interop::from_dlpack;
using interop::to_dlpack;
using interop::to_dlpack_unversioned;
using namespace std::chrono_literals;

Runtime open_runtime() {
  return Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 2}}).value();
}

/// A tensor as another library would give it.
template <class Managed>
struct Tensor {
  explicit Tensor(std::vector<std::int64_t> sizes, bool with_strides = true) : shape(std::move(sizes)) {
    std::int64_t count = 1;
    strides.resize(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; count *= shape[d]) strides[d] = count;
    values.resize(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 1.0f);
    managed.dl_tensor = {.data = values.data(),
                         .device = {dl::cpu, 0},
                         .ndim = static_cast<std::int32_t>(shape.size()),
                         .dtype = {dl::real, 32, 1},
                         .shape = shape.data(),
                         .strides = with_strides ? strides.data() : nullptr,
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* m) { ++static_cast<Tensor*>(m->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 1};
  }
  Tensor(const Tensor&) = delete;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<float> values;
  std::atomic<int> deleted = 0;
  Managed managed{};
};
using New = Tensor<DLManagedTensorVersioned>;
using Old = Tensor<DLManagedTensor>;

TEST_CASE("a tensor is an array without a copy, and its deleter is called once after the last use",
          "[interop]") {
  Runtime runtime = open_runtime();
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> shape(random() % 5);
    for (auto& n : shape) n = 1 + static_cast<std::int64_t>(random() % 7);
    New tensor(shape, random() % 2 == 0);
    const std::vector<float> before = tensor.values;
    {
      auto array = from_dlpack<float>(runtime, &tensor.managed).value();
      CHECK(array.size() == before.size());
      runtime.submit(scale()(array, 2.0f)).wait().value();
      const auto view = array.read().value();
      CHECK(view.data() == tensor.values.data());
      CHECK(tensor.deleted == 0);
    }
    CHECK(tensor.deleted == 1);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(tensor.values[i] == 2 * before[i]);
  }
}

TEST_CASE("a tensor of the old struct is taken too, with its byte offset, or without a deleter",
          "[interop]") {
  Runtime runtime = open_runtime();
  Old tensor({4, 5});
  tensor.managed.dl_tensor.byte_offset = 8;
  tensor.managed.dl_tensor.shape[0] = 3;
  {
    auto array = from_dlpack<float>(runtime, &tensor.managed).value();
    CHECK(array.size() == 15);
    CHECK(array.read()->data() == tensor.values.data() + 2);
  }
  CHECK(tensor.deleted == 1);
  Old another({2});
  another.managed.deleter = nullptr;
  from_dlpack<float>(runtime, &another.managed).value();
}

TEST_CASE("the deleter waits for a job that still uses the tensor", "[interop]") {
  Runtime runtime = open_runtime();
  New tensor({100});
  test::StopPoint running;
  std::atomic<bool> deleted_early = false;
  auto kernel = on_host("slow", [&](Range range, std::span<float> x) {
    running.pass();
    deleted_early = tensor.deleted != 0;
    for (auto i : range) x[i] = 0;
  });
  {
    auto array = from_dlpack<float>(runtime, &tensor.managed).value();
    (void)runtime.submit(kernel(array));  // its ticket is let go of at once
  }
  CHECK(tensor.deleted == 0);
  running.open();
  runtime.close();
  CHECK_FALSE(deleted_early);
  CHECK(tensor.deleted == 1);
}

TEST_CASE("a job returns its borrowed tensors before the wait for its ticket returns, for every result",
          "[interop]") {
  Runtime runtime = open_runtime();
  for (const bool fails : {false, true}) {
    New tensor({100});
    tensor.managed.deleter = [](DLManagedTensorVersioned* m) {
      std::this_thread::sleep_for(30ms);  // longer than a waiter needs to wake
      ++static_cast<New*>(m->manager_ctx)->deleted;
    };
    auto kernel = on_host("once", [&](Range range, std::span<float> x) {
      std::this_thread::sleep_for(5ms);
      if (fails) throw std::runtime_error("as planned");
      for (auto i : range) x[i] = 0;
    });
    auto array = from_dlpack<float>(runtime, &tensor.managed).value();
    Ticket ticket = runtime.submit(kernel(array));
    array = {};
    // With a deadline it is a worker that runs the job.
    CHECK(ticket.wait(1min).has_value() != fails);
    CHECK(tensor.deleted == 1);
  }
}

TEST_CASE("a read-only tensor is read by jobs and never written", "[interop]") {
  Runtime runtime = open_runtime();
  New tensor({64});
  tensor.managed.flags = dl::read_only;
  const std::vector<float> before = tensor.values;
  auto array = from_dlpack<float>(runtime, &tensor.managed).value();
  auto out = runtime.array<float>(64);
  runtime.submit(copy()(array, out)).wait().value();
  CHECK((*out.read())[63] == before[63]);
  const auto refused = runtime.submit(scale()(array, 2.0f)).wait();
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence().find("read-only") != std::string::npos);
  CHECK(array.write().error() == Errc::invalid_argument);
  CHECK(to_dlpack(array, {.writable = true}).error() == Errc::invalid_argument);
  CHECK(array.read().has_value());  // the array is still usable
  CHECK(tensor.values == before);
}

TEST_CASE("a tensor that cannot be an array is refused with the reason, and stays its owner's", "[interop]") {
  Runtime runtime = open_runtime();
  const auto refused = [&](auto spoil, const char* words, Errc code = Errc::invalid_argument) {
    New tensor({4, 6});
    spoil(tensor);
    auto array = from_dlpack<float>(runtime, &tensor.managed);
    REQUIRE_FALSE(array);
    INFO(array.error().describe());
    CHECK(array.error() == code);
    CHECK(array.error().sentence().find(words) != std::string::npos);
    CHECK(tensor.deleted == 0);
  };
  refused([](New& t) { t.strides[0] = 12; },
          "not contiguous: the stride of dimension 0 is 12 elements; expected 6");
  refused([](New& t) { t.strides[1] = -1; }, "dimension 1");
  refused([](New& t) { std::swap(t.strides[0], t.strides[1]); }, "not contiguous");
  refused([](New& t) { t.managed.dl_tensor.dtype.bits = 64; }, "float32");
  refused([](New& t) { t.managed.dl_tensor.dtype.code = dl::signed_integer; }, "code 0");
  refused([](New& t) { t.managed.dl_tensor.dtype.code = 4; }, "code 4");  // bfloat16
  refused([](New& t) { t.managed.dl_tensor.dtype.lanes = 4; }, "4 lanes");
  refused([](New& t) { t.managed.dl_tensor.ndim = -1; }, "-1 dimensions");
  refused([](New& t) { t.managed.dl_tensor.shape = nullptr; }, "no shape");
  refused([](New& t) { t.managed.dl_tensor.data = nullptr; }, "no data");
  refused([](New& t) { t.shape[1] = -6; }, "negative size (-6) in dimension 1");
  refused([](New& t) { t.shape[0] = t.shape[1] = std::int64_t{1} << 40; }, "64 bits");
  refused(
      [](New& t) {
        t.shape[0] = std::int64_t{1} << 62, t.shape[1] = 1, t.managed.dl_tensor.strides = nullptr;
      },
      "64 bits");
  refused([](New& t) { t.managed.dl_tensor.byte_offset = 2; }, "multiple");
  refused([](New& t) { t.managed.version.major = 2; }, "2.1", Errc::unsupported);
  refused([](New& t) { t.managed.dl_tensor.device.device_type = 10; },
          "device type of the DLPack tensor (10)", Errc::unsupported);
  refused([](New& t) { t.managed.dl_tensor.device = {dl::cuda, 0}; }, "'cuda'", Errc::unsupported);
  refused([](New& t) { t.managed.dl_tensor.device = {dl::vulkan, 5}; }, "device 5", Errc::unsupported);
  CHECK(from_dlpack<float>(runtime, static_cast<DLManagedTensor*>(nullptr)).error() ==
        Errc::invalid_argument);
  New tensor({4});
  CHECK(from_dlpack<double>(runtime, &tensor.managed).error() == Errc::invalid_argument);
}

TEST_CASE("a tensor without elements is an array without elements, with any strides", "[interop]") {
  Runtime runtime = open_runtime();
  New tensor({3, 0, 2});
  tensor.strides = {99, 99, 99};
  tensor.managed.dl_tensor.strides = tensor.strides.data();
  tensor.managed.dl_tensor.data = nullptr;
  CHECK(from_dlpack<float>(runtime, &tensor.managed)->size() == 0);
  CHECK(tensor.deleted == 1);
}

TEST_CASE("strides of dimensions of one element mean nothing", "[interop]") {
  Runtime runtime = open_runtime();
  New tensor({1, 5, 1});
  tensor.strides = {77, 1, -3};
  tensor.managed.dl_tensor.strides = tensor.strides.data();
  CHECK(from_dlpack<float>(runtime, &tensor.managed)->size() == 5);
}

TEST_CASE("an array becomes a tensor and an array again without a copy", "[interop]") {
  Runtime runtime = open_runtime();
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::int64_t> shape(1 + random() % 4);
    std::uint64_t count = 1;
    for (auto& n : shape) count *= static_cast<std::uint64_t>(n = static_cast<std::int64_t>(random() % 6));
    std::vector<float> values(count, 3.0f);
    auto array = runtime.array(values);
    runtime.submit(scale()(array, 2.0f)).wait().value();
    DLManagedTensorVersioned* tensor = to_dlpack(array, {.shape = shape}).value();
    CHECK(tensor->version.major == 1);
    CHECK(tensor->flags == dl::read_only);
    const DLTensor& t = tensor->dl_tensor;
    CHECK(t.device.device_type == dl::cpu);
    CHECK(t.dtype.code == dl::real);
    CHECK(t.dtype.bits == 32);
    CHECK(t.dtype.lanes == 1);
    CHECK(t.byte_offset == 0);
    CHECK(std::vector(t.shape, t.shape + t.ndim) == shape);
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0; stride *= std::max<std::int64_t>(shape[d], 1))
      CHECK(t.strides[d] == stride);
    for (std::uint64_t i = 0; i < count; ++i) CHECK(static_cast<float*>(t.data)[i] == 6.0f);
    auto again = from_dlpack<float>(runtime, tensor).value();
    CHECK(again.size() == count);
    CHECK(again.write().error() == Errc::invalid_argument);  // it is read-only
  }
}

TEST_CASE("jobs that would change an array wait for the owner of its tensor, others do not", "[interop]") {
  Runtime runtime = open_runtime();
  const std::vector<float> ones(10, 1.0f);
  auto array = runtime.array(ones);
  auto out = runtime.array<float>(10);
  DLManagedTensorVersioned* tensor = to_dlpack(array).value();
  runtime.submit(copy()(array, out)).wait().value();
  auto change = runtime.submit(scale()(array, 5.0f));
  CHECK(change.wait(50ms).error() == Errc::timed_out);
  CHECK(static_cast<float*>(tensor->dl_tensor.data)[0] == 1.0f);
  tensor->deleter(tensor);
  change.wait().value();
  CHECK((*array.read())[0] == 5.0f);
  DLManagedTensor* writable = to_dlpack_unversioned(array, {.writable = true}).value();
  CHECK(array.read(20ms).error() == Errc::timed_out);
  static_cast<float*>(writable->dl_tensor.data)[0] = 9.0f;
  writable->deleter(writable);
  CHECK((*array.read())[0] == 9.0f);
}

TEST_CASE("a tensor outlives its runtime and its array", "[interop]") {
  DLManagedTensorVersioned* tensor = nullptr;
  {
    Runtime runtime = open_runtime();
    tensor = to_dlpack(runtime.array(std::vector<float>(3, 4.0f))).value();
  }
  CHECK(static_cast<float*>(tensor->dl_tensor.data)[2] == 4.0f);
  tensor->deleter(tensor);
}

TEST_CASE("an array that cannot be the requested tensor reports the reason", "[interop]") {
  Runtime runtime = open_runtime();
  Runtime other = open_runtime();
  struct Pair {
    float a, b;
  };
  auto array = runtime.array<float>(12);
  CHECK(to_dlpack(array, {.shape = {3, 5}}).error() == Errc::invalid_argument);
  CHECK(to_dlpack(array, {.shape = {-3, -4}}).error() == Errc::invalid_argument);
  CHECK(to_dlpack(Array<float>()).error() == Errc::invalid_argument);
  CHECK(to_dlpack(runtime.array<Pair>(2)).error() == Errc::invalid_argument);
  CHECK(to_dlpack_unversioned(array, {}).error() == Errc::invalid_argument);
  CHECK(to_dlpack(array, {.on = runtime.devices().front()}).error() ==
        Errc::unsupported);  // the CPU is the host
  DLManagedTensorVersioned* good =
      to_dlpack(array, {.shape = {3, 4}}).value();  // no refusal keeps the array borrowed
  good->deleter(good);
}

TEST_CASE("an array on a Vulkan device is a tensor there, and an array again in another runtime",
          "[interop]") {
  auto runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"}}});
  if (!runtime) return test::skip(runtime.error().sentence());
  Device vulkan;
  for (const Device& device : runtime->devices())
    if (device.info().backend == "vulkan") vulkan = device;
  if (!vulkan) return test::skip("there is no Vulkan device");
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0f);
  auto array = runtime->array(values);
  DLManagedTensorVersioned* tensor = to_dlpack(array, {.on = vulkan}).value();
  CHECK(tensor->dl_tensor.device.device_type == dl::vulkan);
  CHECK(tensor->dl_tensor.data);
  {
    tensor->flags = 0;  // this consumer is trusted
    auto again = from_dlpack<float>(*runtime, tensor).value();
    runtime->submit(scale()(again, 2.0f), {.fallback = Fallback::forbid, .on = "vulkan"}).wait().value();
    CHECK((*again.read())[999] == 1998.0f);
    CHECK((*array.read())[999] == 999.0f);  // the copy on the host was always valid
  }
  runtime->submit(scale()(array, 3.0f), {.fallback = Fallback::forbid, .on = "vulkan"}).wait(1min).value();
}

}  // namespace
}  // namespace wye::test
