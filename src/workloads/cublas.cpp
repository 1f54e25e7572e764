#include "cublas.hpp"

#include <wye/base/dynamic_library.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace wye::inline v0::workloads {
namespace {

/// A status code of cuBLAS, with its meaning.
struct Status {
  int number;
  std::string_view name;
  Errc code;
  std::string_view words;
};
constexpr Status statuses[] = {
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", Errc::unavailable, "it was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", Errc::out_of_memory, "it has no memory left"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", Errc::internal, "an argument is invalid"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", Errc::unsupported, "it does not support this device"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", Errc::kernel_failed, "it could not access its memory"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", Errc::kernel_failed, "the device could not execute it"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", Errc::kernel_failed, "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", Errc::unsupported, "it does not support this"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", Errc::unavailable, "its licence does not allow it"},
};

/// Whether an attempt to open the library has failed.
std::atomic<bool> absent{false};

/// The functions of the library, from version 2 of its interface.
class Library {
 public:
  /// Returns the library of this process. It stays open until wye is unloaded and the last lane
  /// with a handle has ended.
  static const Result<std::shared_ptr<const Library>>& shared() {
    static const Result<std::shared_ptr<const Library>> library = open();
    return library;
  }

  using Handle = void*;
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, void*) = nullptr;
  int (*set_math_mode)(Handle, int) = nullptr;
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*,
              int, int, long long, const void*, void*, int, int, long long, int, int, int) = nullptr;

 private:
  explicit Library(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<const Library>> open() {
    auto opened = DynamicLibrary::open({"libcublas.so.13", "libcublas.so.12"});
    if (!opened) {
      absent = true;
      return std::move(opened).error();
    }
    Library library(*std::move(opened));
    cublas::Finder find(library.library_);
    find(library.create, "cublasCreate_v2");
    find(library.destroy, "cublasDestroy_v2");
    find(library.set_stream, "cublasSetStream_v2");
    find(library.set_math_mode, "cublasSetMathMode");
    find(library.gemm, "cublasGemmStridedBatchedEx");
    if (auto error = find.error()) {
      absent = true;
      return *std::move(error);
    }
    return std::make_shared<const Library>(std::move(library));
  }
  DynamicLibrary library_;
};

/// The cuBLAS handle of one lane. Streams with a common handle would share its workspace, and so
/// change the bits of their results.
class LaneHandle {
 public:
  static Result<std::shared_ptr<LaneHandle>> create(std::shared_ptr<const Library> shared,
                                                    const NativeLane& lane) {
    const Library& library = *shared;
    std::shared_ptr<LaneHandle> made(new LaneHandle(std::move(shared)));
    if (const int status = library.create(&made->handle_))
      return made->handle_ = nullptr, cublas::failed("cuBLAS", "cublasCreate", status, lane.device);
    if (const int status = library.set_stream(made->handle_, lane.handle))
      return cublas::failed("cuBLAS", "cublasSetStream", status, lane.device);
    // Sums have at least the requested bits, also over parts of the inner dimension; TF32 only if a
    // call requests it.
    constexpr int disallow_reduced_precision_reduction = 16;
    if (const int status = library.set_math_mode(made->handle_, disallow_reduced_precision_reduction))
      return cublas::failed("cuBLAS", "cublasSetMathMode", status, lane.device);
    return made;
  }
  LaneHandle(const LaneHandle&) = delete;
  ~LaneHandle() {
    if (handle_) (void)library_->destroy(handle_);
  }
  Library::Handle get() const { return handle_; }

 private:
  explicit LaneHandle(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  std::shared_ptr<const Library> library_;
  Library::Handle handle_ = nullptr;
};

/// The last result of the probe for each device: the reason why the device does not use cuBLAS, or
/// nothing.
struct Answers {
  std::mutex mutex;
  std::map<std::string, std::string> by_device;
};
Answers& answers() {
  static Answers all;
  return all;
}

constexpr int real_32f = 0, real_16f = 2, real_8i = 3, real_32i = 10, real_16bf = 14;
constexpr int compute_32f = 68, compute_32i = 72, compute_32f_fast_tf32 = 77;
constexpr cublas::Numbers numbers[] = {
    {real_32f, 4, real_32f, compute_32f},  {real_32f, 4, real_32f, compute_32f_fast_tf32},
    {real_16f, 2, real_32f, compute_32f},  {real_16f, 2, real_16f, compute_32f},
    {real_16bf, 2, real_32f, compute_32f}, {real_16bf, 2, real_16bf, compute_32f},
    {real_8i, 1, real_32i, compute_32i}};

}  // namespace

const cublas::Numbers& cublas::numbers_of(Arithmetic arithmetic) {
  return numbers[static_cast<std::size_t>(arithmetic)];
}

Error cublas::failed(std::string_view library, const char* api, int number, std::string_view device) {
  const auto known = std::find_if(std::begin(statuses), std::end(statuses),
                                  [&](const Status& s) { return s.number == number; });
  const Status status = known != std::end(statuses)
                            ? *known
                            : Status{number, "unknown", Errc::kernel_failed, "it returned an unknown code"};
  return Error(status.code,
               std::string(library) + " cannot multiply on device '" + std::string(device) +
                   "': " + std::string(status.words) + ".",
               NativeError{api, number, std::string(status.name)});
}

Error cublas::keeps_nothing(std::string_view library, std::string_view device) {
  return Error(Errc::unsupported, std::string(library) + " needs a handle per lane, but device '" +
                                      std::string(device) + "' cannot keep one here.");
}

std::optional<Error> cublas::Finder::error() const {
  if (!missing_) return std::nullopt;
  return Error(Errc::unavailable, "Library '" + library_.name() + "' has no function '" + missing_ + "'.");
}

std::optional<Error> cublas::absence() {
  const auto& library = Library::shared();
  return library ? std::nullopt : std::optional(library.error());
}

bool cublas::known_absent() { return absent; }

Result<void> cublas::probe(const NativeLane& lane) {
  const auto& library = Library::shared();
  if (!library) return library.error();
  const auto made = LaneHandle::create(*library, lane);
  Answers& all = answers();
  const std::lock_guard lock(all.mutex);
  all.by_device[std::string(lane.device)] = made ? std::string() : made.error().sentence();
  if (!made) return made.error();
  return {};
}

cublas::Probed cublas::probed() {
  Answers& all = answers();
  const std::lock_guard lock(all.mutex);
  Probed probed;
  for (const auto& [device, refusal] : all.by_device) {
    probed.any |= refusal.empty();
    if (!refusal.empty()) probed.refusals += (probed.refusals.empty() ? "" : " ") + refusal;
  }
  return probed;
}

Result<void> cublas::multiply(const NativeLane& lane, Arithmetic arithmetic, const Matrices& matrices,
                              const Product& shape) {
  if (shape.rows == 0 || shape.columns == 0) return {};
  const auto& library = Library::shared();
  if (!library) return library.error();
  const auto handle = kept_by<LaneHandle>(lane, "cuBLAS", [&] { return LaneHandle::create(*library, lane); });
  if (!handle) return handle.error();
  // cuBLAS is column-major: it reads row-major matrices as transposes and writes the transpose of
  // c, b^T a^T. Dimensions are below 2^31.
  constexpr int as_is = 0, transposed = 1, default_algorithm = -1;
  const auto number = [](std::uint32_t n) { return static_cast<int>(std::max(n, 1u)); };
  const auto step = [&](std::uint64_t n) { return shape.batch > 1 ? static_cast<long long>(n) : 0; };
  const Numbers& type = numbers_of(arithmetic);
  const auto at = [&](const void* matrix, std::uint64_t element) {
    return static_cast<const std::byte*>(matrix) + element * type.size;
  };
  // Factors of the type of the sums.
  const float one = 1.0f, keep = shape.first == 0 ? 0.0f : 1.0f;
  const std::int32_t whole_one = 1, whole_keep = shape.first == 0 ? 0 : 1;
  const bool whole = type.result == real_32i;
  const int status = (*library)->gemm(
      (*handle)->get(), shape.transposed_b ? transposed : as_is, shape.transposed_a ? transposed : as_is,
      number(shape.columns), number(shape.rows), static_cast<int>(shape.last - shape.first),
      whole ? static_cast<const void*>(&whole_one) : static_cast<const void*>(&one),
      at(matrices.b, b_start(shape)), type.element, number(b_row(shape)), step(shape.b_step),
      at(matrices.a, a_start(shape)), type.element, number(a_row(shape)), step(shape.a_step),
      whole ? static_cast<const void*>(&whole_keep) : static_cast<const void*>(&keep), matrices.c,
      type.result, number(shape.columns), step(shape.c_step), number(shape.batch), type.compute,
      default_algorithm);
  if (status) return cublas::failed("cuBLAS", "cublasGemmStridedBatchedEx", status, lane.device);
  return {};
}

}  // namespace wye::workloads
