// Imports another library's tensor as an array and exports it again, without a copy.
#include <cstdio>
#include <span>
#include <wye/interop/dlpack.hpp>
#include <wye/wye.hpp>

// The structs of dlpack/dlpack.h; a program that includes it omits this.
extern "C" {
struct DLTensor {
  void* data;
  struct {
    std::int32_t device_type, device_id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
}

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

}  // namespace

int main() {
  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({
      .name = "scale",
      .sources = {wye::host([](wye::Range range, std::span<float> x, float s) {
        for (auto i : range) x[i] *= s;
      })},
  });
  if (!scale) return fail(scale.error());
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());

  // The other library's tensor: two rows of three floats, and the function that releases them.
  alignas(64) float values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  std::int64_t shape[2] = {2, 3};
  bool given_back = false;
  DLManagedTensor tensor{{values, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0},
                         &given_back,
                         [](DLManagedTensor* t) { *static_cast<bool*>(t->manager_ctx) = true; }};
  {
    auto array = wye::interop::from_dlpack<float>(*runtime, &tensor);
    if (!array) return fail(array.error());
    if (auto done = runtime->submit((*scale)(*array, 10.0f)).wait(); !done) return fail(done.error());

    auto view = wye::interop::to_dlpack_unversioned(*array, {.shape = {3, 2}, .writable = true});
    if (!view) return fail(view.error());
    std::printf("element [2][1] is %g, at its old address: %s\n",
                static_cast<float*>((*view)->dl_tensor.data)[5],
                (*view)->dl_tensor.data == values ? "yes" : "no");
    (*view)->deleter(*view);
  }
  runtime->close();  // a worker may release the job shortly after wait returns
  return given_back && values[1][2] > 59 && values[1][2] < 61 ? 0 : 1;
}
