#pragma once
/// Products of matrices by NVIDIA's cuBLAS and cuBLASLt, if they can be opened.
#include <wye/base/dynamic_library.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/native_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "product.hpp"

namespace wye::inline v0::workloads {
namespace cublas {

/// Returns why cuBLAS cannot be opened, or nothing if it can. The first call opens it.
/// Threads: thread-safe.
std::optional<Error> absence();

/// Returns whether an attempt to open cuBLAS has failed in this process. Opens nothing.
/// Threads: thread-safe.
bool known_absent();

/// Checks that cuBLAS can be used on the device of `lane`. Fails if cuBLAS is newer than the
/// driver, or if memory is short.
/// Errors: those of cuBLAS, as native().
/// Threads: thread-safe.
Result<void> probe(const NativeLane& lane);
/// Describes the results of `probe`: the devices that use cuBLAS, and the reasons why others do
/// not.
struct Probed {
  bool any = false;
  std::string refusals;
};
Probed probed();

/// The types of the factors, of the sums, and of c. Rounded products have one stretch.
enum class Arithmetic : std::uint8_t {
  float32,           ///< in float32 throughout
  tf32,              ///< float, which may be rounded to TF32
  float16,           ///< half, in float32
  float16_rounded,   ///< the same, rounded to half
  bfloat16,          ///< in float32
  bfloat16_rounded,  ///< the same, rounded to bfloat16
  int8,              ///< in int32: rows and matrices begin at multiples of 4
};

/// Addresses on the device.
struct Matrices {
  const void* a;
  const void* b;
  const void* bias;  ///< null: none
  const void* residual;
  void* c;
};

/// Enqueues c = a b for the first stretch of the inner dimension, c += a b for others, without an
/// epilogue. Called by native functions of kernels.
/// Errors: those of cuBLAS, as native(); unsupported if a lane keeps no handles.
Result<void> multiply(const NativeLane& lane, Arithmetic arithmetic, const Matrices& matrices,
                      const Product& shape);

/// Types as numbers of cuBLAS: cudaDataType of factors, with their size, and of c;
/// cublasComputeType_t.
struct Numbers {
  int element;
  std::size_t size;
  int result;
  int compute;
};
const Numbers& numbers_of(Arithmetic arithmetic);

/// Makes the error of a status code that `api` of `library` returned.
Error failed(std::string_view library, const char* api, int status, std::string_view device);
/// The same if the lane cannot keep the handle of `library`.
Error keeps_nothing(std::string_view library, std::string_view device);

/// Its address is the key of the T of a lane.
template <class T>
inline constexpr char key_of_kept = 0;

/// Returns the T that `lane` keeps for `library`. The first call makes it: `create()` returns a
/// Result<std::shared_ptr<T>>.
/// Errors: unsupported (a lane that keeps nothing); those of `create`.
template <class T, class Create>
Result<T*> kept_by(const NativeLane& lane, std::string_view library, Create create) {
  if (!lane.keep) return keeps_nothing(library, lane.device);
  std::shared_ptr<void>& kept = (*lane.keep)[&key_of_kept<T>];
  if (!kept) {
    auto made = create();
    if (!made) return std::move(made).error();
    kept = *std::move(made);
  }
  return static_cast<T*>(kept.get());
}

/// Finds functions in a library, and remembers the name of the last that it lacks.
class Finder {
 public:
  explicit Finder(const DynamicLibrary& library) : library_(library) {}
  template <class F>
  void operator()(F& function, const char* name) {
    function = library_.function<F>(name);
    if (!function) missing_ = name;
  }
  std::optional<Error> error() const;

 private:
  const DynamicLibrary& library_;
  const char* missing_ = nullptr;
};

}  // namespace cublas

namespace cublaslt {

/// Returns whether an attempt to open cuBLASLt has failed in this process. Opens nothing.
/// Threads: thread-safe.
bool known_absent();

/// Checks that cuBLASLt can be used on the device of `lane`.
Result<void> probe(const NativeLane& lane);

/// Enqueues a stretch with its epilogue. Rows of all matrices begin at multiples of 16 bytes, and a
/// residual has neither an activation nor a stretch before.
/// Errors: as cublas::multiply.
Result<void> multiply(const NativeLane& lane, cublas::Arithmetic arithmetic, const cublas::Matrices& matrices,
                      const Product& shape);

}  // namespace cublaslt
}  // namespace wye::workloads
