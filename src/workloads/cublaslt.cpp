// Products with epilogues by cuBLASLt, found at run time. Its structures are opaque: they have the
// sizes and numbers of its documentation (cuBLAS 12 and 13).
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "cublas.hpp"

namespace wye::inline v0::workloads {
namespace {

std::atomic<bool> lt_absent{false};

Error lt_failed(const char* api, int status, std::string_view device) {
  return cublas::failed("cuBLASLt", api, status, device);
}

/// The functions of the library, on objects that it makes.
class LtLibrary {
 public:
  static const Result<std::shared_ptr<const LtLibrary>>& shared() {
    static const Result<std::shared_ptr<const LtLibrary>> library = open();
    return library;
  }

  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*operation_create)(void**, int, int) = nullptr;
  int (*operation_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*operation_destroy)(void*) = nullptr;
  int (*layout_create)(void**, int, std::uint64_t, std::uint64_t, std::int64_t) = nullptr;
  int (*layout_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*preference_create)(void**) = nullptr;
  int (*preference_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*preference_destroy)(void*) = nullptr;
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, void*, int*) = nullptr;
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                void*, void*, void*, const void*, void*, std::size_t, void*) = nullptr;

 private:
  explicit LtLibrary(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<const LtLibrary>> open() {
    auto opened = DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12"});
    if (!opened) {
      lt_absent = true;
      return std::move(opened).error();
    }
    LtLibrary library(*std::move(opened));
    cublas::Finder find(library.library_);
    find(library.create, "cublasLtCreate");
    find(library.destroy, "cublasLtDestroy");
    find(library.operation_create, "cublasLtMatmulDescCreate");
    find(library.operation_set, "cublasLtMatmulDescSetAttribute");
    find(library.operation_destroy, "cublasLtMatmulDescDestroy");
    find(library.layout_create, "cublasLtMatrixLayoutCreate");
    find(library.layout_set, "cublasLtMatrixLayoutSetAttribute");
    find(library.layout_destroy, "cublasLtMatrixLayoutDestroy");
    find(library.preference_create, "cublasLtMatmulPreferenceCreate");
    find(library.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(library.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(library.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(library.matmul, "cublasLtMatmul");
    if (auto error = find.error()) {
      lt_absent = true;
      return *std::move(error);
    }
    return std::make_shared<const LtLibrary>(std::move(library));
  }
  DynamicLibrary library_;
};

/// An object of the library, with the function that destroys it.
using Object = std::unique_ptr<void, int (*)(void*)>;

/// Calls functions until one fails.
class Calls {
 public:
  explicit Calls(std::string_view device) : device_(device) {}
  template <class F, class... A>
  void operator()(const char* api, F function, A... arguments) {
    if (error_) return;
    if (const int status = function(arguments...)) error_ = lt_failed(api, status, device_);
  }
  template <class F, class... A>
  Object make(const char* api, int (*destroy)(void*), F function, A... arguments) {
    void* made = nullptr;
    (*this)(api, function, &made, arguments...);
    return Object(error_ ? nullptr : made, destroy);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string_view device_;
  std::optional<Error> error_;
};

/// The attributes of cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t and
/// cublasLtMatmulPreferenceAttributes_t that are used here.
enum Operation { transposed_first = 3, transposed_second = 4, epilogue_kind = 7, bias_pointer = 8 };
enum Layout { batch_count = 5, batch_step = 6 };
enum Preference { most_workspace = 1, reductions = 3, alignments = 5 };
/// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

/// The greatest power of two up to 256 that divides an address.
std::uint32_t alignment_of(const void* address) {
  return 1u << std::countr_zero(reinterpret_cast<std::uintptr_t>(address) | 256);
}

/// The description of a product without its addresses. cuBLASLt is column-major: the first matrix
/// is b, the second is a, and their product is the transpose of c.
struct Plan {
  Object operation, first, second, result;
  Heuristic heuristic{};
};

/// All that the choice of an algorithm depends on.
using Key = std::array<std::uint64_t, 18>;

/// The handle of one lane, and the plans of its products.
class LtLane {
 public:
  static Result<std::shared_ptr<LtLane>> create(std::shared_ptr<const LtLibrary> shared,
                                                std::string_view device) {
    std::shared_ptr<LtLane> made(new LtLane(std::move(shared)));
    if (const int status = made->library_->create(&made->handle_))
      return made->handle_ = nullptr, lt_failed("cublasLtCreate", status, device);
    return made;
  }
  LtLane(const LtLane&) = delete;
  ~LtLane() {
    plans_.clear();
    if (handle_) (void)library_->destroy(handle_);
  }

  Result<void> multiply(const NativeLane& lane, cublas::Arithmetic arithmetic,
                        const cublas::Matrices& matrices, const Product& shape) {
    const cublas::Numbers& type = cublas::numbers_of(arithmetic);
    const auto at = [&](const void* matrix, std::uint64_t element) {
      return static_cast<const std::byte*>(matrix) + element * type.size;
    };
    const void *const first = at(matrices.b, b_start(shape)), *const second = at(matrices.a, a_start(shape));
    // c is added to, unless it is replaced; a residual is added instead.
    const void* const added = matrices.residual ? matrices.residual : matrices.c;
    const Key key{static_cast<std::uint64_t>(arithmetic),
                  shape.rows,
                  shape.columns,
                  shape.last - shape.first,
                  a_row(shape),
                  b_row(shape),
                  shape.transposed_a,
                  shape.transposed_b,
                  shape.batch,
                  shape.a_step,
                  shape.b_step,
                  shape.c_step,
                  static_cast<std::uint64_t>(shape.activation),
                  matrices.bias ? alignment_of(matrices.bias) : 0u,
                  alignment_of(first),
                  alignment_of(second),
                  alignment_of(added),
                  alignment_of(matrices.c)};
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      auto plan = make(lane.device, type, key, matrices.bias, shape);
      if (!plan) return std::move(plan).error();
      if (plans_.size() == most_plans) plans_.clear();
      found = plans_.emplace(key, *std::move(plan)).first;
    }
    const Plan& plan = found->second;
    if (matrices.bias)
      if (const int status = library_->operation_set(plan.operation.get(), bias_pointer, &matrices.bias,
                                                     sizeof(matrices.bias)))
        return lt_failed("cublasLtMatmulDescSetAttribute", status, lane.device);
    const float factor = shape.scale,
                keep = matrices.residual ? 1.0f : (shape.first == 0 ? 0.0f : shape.scale);
    if (const int status =
            library_->matmul(handle_, plan.operation.get(), &factor, first, plan.first.get(), second,
                             plan.second.get(), &keep, added, plan.result.get(), matrices.c,
                             plan.result.get(), plan.heuristic.algorithm, nullptr, 0, lane.handle))
      return lt_failed("cublasLtMatmul", status, lane.device);
    return {};
  }

 private:
  static constexpr std::size_t most_plans = 256;

  explicit LtLane(std::shared_ptr<const LtLibrary> library) : library_(std::move(library)) {}

  Result<Plan> make(std::string_view device, const cublas::Numbers& type, const Key& key, const void* bias,
                    const Product& shape) const {
    const LtLibrary& lt = *library_;
    Calls call(device);
    const auto set = [&](const char* api, auto function, const Object& object, int attribute, auto value) {
      call(api, function, object.get(), attribute, static_cast<const void*>(&value), sizeof(value));
    };
    /// Of a part of the rows of a matrix.
    const auto layout = [&](int element, std::uint64_t part, std::uint64_t rows, std::uint64_t row,
                            std::uint64_t step) {
      Object made = call.make("cublasLtMatrixLayoutCreate", lt.layout_destroy, lt.layout_create, element,
                              part, rows, static_cast<std::int64_t>(row));
      constexpr auto api = "cublasLtMatrixLayoutSetAttribute";
      set(api, lt.layout_set, made, batch_count, static_cast<std::int32_t>(shape.batch));
      set(api, lt.layout_set, made, batch_step,
          shape.batch > 1 ? static_cast<std::int64_t>(step) : std::int64_t{0});
      return made;
    };
    const std::uint64_t depth = shape.last - shape.first;
    constexpr int factor_type = 0;  // float32
    Plan plan{call.make("cublasLtMatmulDescCreate", lt.operation_destroy, lt.operation_create, type.compute,
                        factor_type),
              shape.transposed_b ? layout(type.element, depth, shape.columns, shape.inner, shape.b_step)
                                 : layout(type.element, shape.columns, depth, shape.columns, shape.b_step),
              shape.transposed_a ? layout(type.element, shape.rows, depth, shape.rows, shape.a_step)
                                 : layout(type.element, depth, shape.rows, shape.inner, shape.a_step),
              layout(type.result, shape.columns, shape.rows, shape.columns, shape.c_step)};
    constexpr int relu = 2, gelu = 32, with_bias = 4, none = 1;
    const int activation = shape.activation == Activation::relu        ? relu
                           : shape.activation == Activation::gelu_tanh ? gelu
                                                                       : 0;
    const int epilogue = activation + (bias ? with_bias : 0);
    constexpr auto api = "cublasLtMatmulDescSetAttribute";
    set(api, lt.operation_set, plan.operation, transposed_first, shape.transposed_b ? 1 : 0);
    set(api, lt.operation_set, plan.operation, transposed_second, shape.transposed_a ? 1 : 0);
    set(api, lt.operation_set, plan.operation, epilogue_kind, epilogue == 0 ? none : epilogue);
    // The algorithm depends on the alignment of the bias, too.
    if (bias) set(api, lt.operation_set, plan.operation, bias_pointer, bias);

    const Object preference =
        call.make("cublasLtMatmulPreferenceCreate", lt.preference_destroy, lt.preference_create);
    constexpr auto prefer = "cublasLtMatmulPreferenceSetAttribute";
    // No memory beside the matrices, and no sums in the type of c.
    set(prefer, lt.preference_set, preference, most_workspace, std::uint64_t{0});
    set(prefer, lt.preference_set, preference, reductions, std::uint32_t{0});
    for (int i = 0; i < 4; ++i)
      set(prefer, lt.preference_set, preference, alignments + i,
          static_cast<std::uint32_t>(key[14 + static_cast<std::size_t>(i)]));
    int count = 0;
    call("cublasLtMatmulAlgoGetHeuristic", lt.heuristic, handle_, plan.operation.get(), plan.first.get(),
         plan.second.get(), plan.result.get(), plan.result.get(), preference.get(), 1,
         static_cast<void*>(&plan.heuristic), &count);
    if (call.error()) return *call.error();
    constexpr int not_supported = 15;
    if (count == 0) return lt_failed("cublasLtMatmulAlgoGetHeuristic", not_supported, device);
    return plan;
  }

  std::shared_ptr<const LtLibrary> library_;
  void* handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace

bool cublaslt::known_absent() { return lt_absent; }

Result<void> cublaslt::probe(const NativeLane& lane) {
  const auto& library = LtLibrary::shared();
  if (!library) return library.error();
  const auto made = LtLane::create(*library, lane.device);
  if (!made) return made.error();
  return {};
}

Result<void> cublaslt::multiply(const NativeLane& lane, cublas::Arithmetic arithmetic,
                                const cublas::Matrices& matrices, const Product& shape) {
  if (shape.rows == 0 || shape.columns == 0) return {};
  const auto& library = LtLibrary::shared();
  if (!library) return library.error();
  const auto kept =
      cublas::kept_by<LtLane>(lane, "cuBLASLt", [&] { return LtLane::create(*library, lane.device); });
  if (!kept) return kept.error();
  return (*kept)->multiply(lane, arithmetic, matrices, shape);
}

}  // namespace wye::workloads
