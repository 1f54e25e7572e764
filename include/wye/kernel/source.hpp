#pragma once
/// Sources of kernels, one type per language. Each device takes some languages.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/host_code.hpp>
#include <wye/device/detail/native_code.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/native.hpp>
#include <wye/device/parameter.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0 {

/// The value of a specialization constant: `{0, 16u}` sets the constant with id 0 to 16.
struct SpecializationConstant {
  template <class T>
  requires(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || std::is_same_v<T, bool>))
      SpecializationConstant(std::uint32_t constant_id, T value)
      : id(constant_id), size(sizeof(T) == 8 ? 8 : 4) {
    if constexpr (std::is_same_v<T, bool>)
      bits = value ? 1 : 0;
    else
      std::memcpy(&bits, &value, sizeof(T));
  }
  std::uint32_t id;
  std::uint32_t size;
  std::uint64_t bits = 0;
  friend bool operator==(const SpecializationConstant&, const SpecializationConstant&) = default;
};

/// A preprocessor macro, which may have parameters: `{"psc(x)", "(x)"}`.
struct Macro {
  std::string name;  ///< "N", "mad(a, b, c)"
  std::string value;
  friend bool operator==(const Macro&, const Macro&) = default;
};

/// A text that sources include by its name.
struct Include {
  std::string name;  ///< "lib/span.glsl"
  std::string text;
  friend bool operator==(const Include&, const Include&) = default;
};

/// Resolves an `#include`. Returns the text of that name, `std::nullopt` if there is none, or an
/// error. An exception counts as an error. Called on the thread that makes the kernel. Hot reload
/// calls it again on a thread of the runtime.
using IncludeFinder = std::function<Result<std::optional<std::string>>(const std::string& name)>;

/// A compute shader in GLSL, `#version 450` or `460`. Storage and uniform buffers belong to set 0.
/// Their bindings follow the order of the kernel's buffer parameters. A uniform buffer is a
/// `Read<T>` of any size. The other parameters are the members of the push-constant block, in
/// order. A shader without bound buffers takes its buffers there too, as structs of
/// {buffer_reference, uvec2 count} or as bare buffer_references. Such a shader may declare elements
/// of 8 and 16 bits as uint, several per word. This requires no device feature, but the shader must
/// then handle addresses that are not aligned to words.
///
/// `#include "x"` is searched beside the including file. Then, as `#include <x>`, it is searched in
/// `includes`, below each of `include_directories`, and by `find_include`, in this order. Included
/// texts are read once, when the kernel is made. Their content is part of its key; their names and
/// locations are not.
struct Glsl {
  std::string text;
  std::string file = {};       ///< name in diagnostics
  std::string entry = "main";  ///< a function without parameters
  std::vector<SpecializationConstant> constants = {};
  std::vector<Macro> macros = {};
  std::optional<Extent3> tile = std::nullopt;  ///< items per workgroup; unset: its number of invocations
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<Glsl> from_file(const std::string& path);
};

/// The value of a Slang link-time constant: `{"tile", 16u}` sets `extern static const uint tile;`.
/// Loop bounds and `numthreads` may depend on it.
struct LinkConstant {
  template <class T>
  requires(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || std::is_same_v<T, bool>))
      LinkConstant(std::string constant_name, T value)
      : name(std::move(constant_name)) {
    if constexpr (std::is_same_v<T, bool>)
      type = "bool", bits = value ? 1 : 0;
    else if constexpr (std::is_floating_point_v<T>)
      type = sizeof(T) == 8 ? "double" : "float";
    else if constexpr (std::is_signed_v<T>)
      type = sizeof(T) == 8 ? "int64_t" : "int";
    else
      type = sizeof(T) == 8 ? "uint64_t" : "uint";
    if constexpr (!std::is_same_v<T, bool>) std::memcpy(&bits, &value, sizeof(T));
  }
  std::string name;
  std::string_view type;  ///< Slang's name of the type, which is the type of the constant
  std::uint64_t bits = 0;
  friend bool operator==(const LinkConstant&, const LinkConstant&) = default;
};

/// A compute kernel in Slang, compiled by libslang-compiler (2026.5 or newer) at run time. Without
/// the library, devices that need it refuse the kernel and report the reason. Slang generates
/// SPIR-V, and CUDA C++ for NVRTC. The `uniform` parameters of the entry point are the kernel's
/// parameters: `StructuredBuffer`, `RWStructuredBuffer` and `ConstantBuffer` are its buffer
/// parameters in order, the others its other parameters in order. A kernel without such buffers may
/// take pointers. Parameters outside the entry point are refused. Structs have the layout of C;
/// matrices are row-major. CUDA aligns 2- and 4-vectors to their size. A struct with a different
/// layout in CUDA is refused when it is compiled for CUDA. The error names the padding to add.
///
/// `#include "x"`, `import x` and `__include x` are searched like `#include "x"` of `Glsl`. Their
/// texts and names are part of the key. `import a.b` means "a/b.slang".
struct Slang {
  std::string text = {};
  std::string file = {};   ///< name in diagnostics
  std::string entry = {};  ///< unset: the only function marked `[shader("compute")]`; may be "scale<float>"
  std::vector<LinkConstant> constants = {};
  std::vector<Macro> macros = {};
  std::optional<Extent3> tile = std::nullopt;  ///< items per workgroup; unset: its number of invocations
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  /// Replaces `text`: a module without imports, written by the same release of Slang.
  std::vector<std::byte> module = {};
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<Slang> from_file(const std::string& path);
};

/// A compute shader as SPIR-V words, with the interface of `Glsl`.
struct SpirV {
  std::vector<std::uint32_t> words;
  std::string entry = "main";
  std::vector<SpecializationConstant> constants = {};
  std::optional<Extent3> tile = std::nullopt;
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`

  /// Reads a module from a file.
  /// Errors: not_found, io, invalid_argument (not SPIR-V in this machine's byte order).
  WYE_API static Result<SpirV> from_file(const std::string& path);
};

/// A kernel in CUDA C++: an `extern "C" __global__` function with the kernel's parameters, in order. A buffer is
/// a `wye_span<T>` or a bare `T*`. Every source has this definition, with an operator []:
///
///     template <class T> struct wye_span { T* data; unsigned long long size; };
///
/// NVRTC compiles the source for each device that needs it, if NVRTC is installed. Includes are searched as for
/// `Glsl`, then among the headers of NVRTC's CUDA Toolkit (<cuda_fp16.h>), if they are installed.
struct CudaCpp {
  std::string text;
  std::string file = {};   ///< name in diagnostics
  std::string entry = {};  ///< name of the function; empty: the name of the kernel
  std::vector<Macro> macros = {};
  /// Threads per block. Unset: as `__block_size__` requires, otherwise 256, or fewer with
  /// `__launch_bounds__`.
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;  ///< items per block; unset: its number of threads
  Bytes dynamic_shared = {};                   ///< size of `extern __shared__`
  std::uint32_t max_registers = 0;             ///< per thread; 0: the compiler decides
  bool fast_math = false;  ///< less accurate division, roots and functions; flushes denormals to 0
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`
  LaunchOptions launch = {};
  std::uint32_t standard = 17;  ///< of C++: 11, 14, 17, 20, or a newer standard that NVRTC knows

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<CudaCpp> from_file(const std::string& path);
};

/// A kernel in PTX, with the interface of `CudaCpp`. A kernel may have PTX for several
/// architectures. A device uses the newest that is not newer than the device; its driver compiles
/// it.
struct Ptx {
  std::string text;
  std::string entry = {};  ///< name of the function; empty: the name of the kernel
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;
  Bytes dynamic_shared = {};
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`
  LaunchOptions launch = {};

  /// Reads PTX from a file.
  /// Errors: not_found, io, invalid_argument (empty, not UTF-8 text).
  WYE_API static Result<Ptx> from_file(const std::string& path);
};

/// A kernel as machine code of one architecture, with the interface of `CudaCpp`. A kernel may have
/// one cubin per architecture. A device uses the newest cubin of its generation that is not newer
/// than the device.
struct Cubin {
  std::vector<std::byte> bytes;
  std::string entry = {};  ///< name of the function; empty: the name of the kernel
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;
  Bytes dynamic_shared = {};
  std::string path = {};  ///< its file, watched by `RuntimeOptions::hot_reload`
  LaunchOptions launch = {};

  /// Reads a cubin from a file.
  /// Errors: not_found, io, invalid_argument (not machine code of an NVIDIA GPU).
  WYE_API static Result<Cubin> from_file(const std::string& path);
};

/// Options of a host function.
struct HostOptions {
  /// Minimum number of items per call; ranges are multiples of it. A function that works on blocks,
  /// or that does something once per call, gets few short ranges so. Zero means the whole dimension:
  /// `{0, 16}` gives whole rows, 16 at a time. Unset: chosen from the grid, and a range may begin
  /// and end within a row.
  std::optional<Extent3> tile = std::nullopt;
};

/// A host function as a kernel source. Made by `host(f)`.
template <class F>
struct HostFunction {
  F function;
  HostOptions options;
};

/// Makes a kernel source from a host function. Jobs call it as `f(wye::Range, <std::span or value
/// per parameter>..., [wye::StopToken])`, from several threads with disjoint ranges. If it throws,
/// the job fails.
template <class F>
HostFunction<std::decay_t<F>> host(F&& function, HostOptions options = {}) {
  return {std::forward<F>(function), options};
}

/// A function that submits work through a vendor's interface, as a kernel source. Made by
/// `native(backend, f)`.
template <class F>
struct NativeFunction {
  std::string backend;
  F function;
  NativeProbe probe = nullptr;
};

/// Makes a kernel source for the devices of `backend` from a function that calls a vendor's library
/// or launches kernels of the application. Jobs call it as `f(const wye::NativeLane&,
/// <wye::DeviceSpan or value per parameter>...)`, or with the grid, a `wye::Extent3`, after the
/// lane. The submitting thread calls it, in the order of the lane. The function submits work to the
/// lane and must not wait. That work executes in the order of the lane. The function returns
/// nothing or a `wye::Result<void>`. If it throws, the job fails.
///
/// `probe` is called once per device, before the first use of a function that names it. If it
/// returns an error, the device uses the next source of the kernel, and `Outcome::reason` reports
/// it.
template <class F>
NativeFunction<std::decay_t<F>> native(std::string backend, F&& function, NativeProbe probe = nullptr) {
  return {std::move(backend), std::forward<F>(function), probe};
}

namespace kernel {
struct SourceData;
}

/// A source of any language.
/// Threads: thread-compatible.
class WYE_API AnySource {
 public:
  AnySource(Glsl source);     // NOLINT: implicit by design
  AnySource(Slang source);    // NOLINT
  AnySource(SpirV source);    // NOLINT
  AnySource(CudaCpp source);  // NOLINT
  AnySource(Ptx source);      // NOLINT
  AnySource(Cubin source);    // NOLINT
  AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options);
  AnySource(std::shared_ptr<const device::NativeCode> code, std::string backend);
  /// Returns "Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin", "host", "native".
  std::string_view language() const noexcept;
  const std::shared_ptr<const kernel::SourceData>& data() const noexcept { return data_; }

 private:
  std::shared_ptr<const kernel::SourceData> data_;
};

namespace detail {

template <class F, class... P>
concept HostKernel = std::invocable<const F&, Range, typename ParameterTraits<P>::Host...> ||
    std::invocable<const F&, Range, typename ParameterTraits<P>::Host..., StopToken>;

template <class F, class... P>
class HostCodeOf final : public device::HostCode {
 public:
  explicit HostCodeOf(F function) : function_(std::move(function)) {}
  void run(Range range, std::span<const Operand> operands, const StopToken& stop) const override {
    call(range, operands, stop, std::index_sequence_for<P...>{});
  }

 private:
  template <std::size_t... I>
  void call(Range range, [[maybe_unused]] std::span<const Operand> operands,
            [[maybe_unused]] const StopToken& stop, std::index_sequence<I...>) const {
    if constexpr (std::invocable<const F&, Range, typename ParameterTraits<P>::Host..., StopToken>)
      function_(range, ParameterTraits<P>::host(operands[I])..., stop);
    else
      function_(range, ParameterTraits<P>::host(operands[I])...);
  }
  F function_;
};

template <class F, class... P>
concept NativeKernel = std::invocable<const F&, const NativeLane&, typename ParameterTraits<P>::Native...> ||
    std::invocable<const F&, const NativeLane&, Extent3, typename ParameterTraits<P>::Native...>;

template <class F, class... P>
class NativeCodeOf final : public device::NativeCode {
 public:
  NativeCodeOf(F function, NativeProbe probe_of) : function_(std::move(function)), probe_(probe_of) {}
  NativeProbe probe() const noexcept override { return probe_; }
  Result<void> enqueue(const NativeLane& lane, Extent3 grid,
                       std::span<const NativeArgument> arguments) const override {
    return call(lane, grid, arguments, std::index_sequence_for<P...>{});
  }

 private:
  template <std::size_t... I>
  Result<void> call(const NativeLane& lane, [[maybe_unused]] Extent3 grid,
                    [[maybe_unused]] std::span<const NativeArgument> arguments,
                    std::index_sequence<I...>) const {
    const auto run = [&]() -> decltype(auto) {
      if constexpr (std::invocable<const F&, const NativeLane&, Extent3,
                                   typename ParameterTraits<P>::Native...>)
        return function_(lane, grid, ParameterTraits<P>::native(arguments[I])...);
      else
        return function_(lane, ParameterTraits<P>::native(arguments[I])...);
    };
    if constexpr (std::is_void_v<decltype(run())>)
      return run(), Result<void>();
    else
      return run();
  }
  F function_;
  NativeProbe probe_;
};

/// Parameter `Number` of a host function, counted from 1 after the range: the kernel's type, the
/// type of the argument, and the type that the function takes. The compiler names this type in its
/// message.
template <std::size_t Number, class KernelParameter, class ArrivesAs, class FunctionTakes>
struct HostFunctionParameter {
  static_assert(std::is_convertible_v<ArrivesAs, FunctionTakes>,
                "this parameter of the host function does not accept its argument: Read<T> is passed as "
                "std::span<const T>, Write<T> and ReadWrite<T> as std::span<T>, a value as itself");
  static constexpr bool fits = true;
};

template <class FunctionTakes>
struct HostFunctionRange {
  static_assert(std::is_convertible_v<Range, FunctionTakes>,
                "the first parameter of a host function must be a wye::Range, the items of the call");
  static constexpr bool fits = true;
};

template <class FunctionTakes>
struct HostFunctionStop {
  static_assert(
      std::is_convertible_v<StopToken, FunctionTakes>,
      "the last parameter of a host function must be a wye::StopToken or match the kernel's last parameter");
  static constexpr bool fits = true;
};

template <std::size_t ParametersOfTheKernel, std::size_t ParametersOfTheFunction>
struct HostFunctionArity {
  static_assert(ParametersOfTheFunction == ParametersOfTheKernel + 1 ||
                    ParametersOfTheFunction == ParametersOfTheKernel + 2,
                "a host function must have a wye::Range, one parameter for each parameter of the kernel, and "
                "optionally a wye::StopToken after them");
  static constexpr bool fits = ParametersOfTheFunction == ParametersOfTheKernel + 1 ||
                               ParametersOfTheFunction == ParametersOfTheKernel + 2;
};

/// \cond  Doxygen reads this as an endless recursion.
/// Lists the parameter types of a function that has a single signature.
template <class F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> {
  using Parameters = std::tuple<A...>;
};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class F, class R, class... A>
struct SignatureOf<R (F::*)(A...)> : SignatureOf<R (*)(A...)> {};
template <class F, class R, class... A>
struct SignatureOf<R (F::*)(A...) const> : SignatureOf<R (*)(A...)> {};
template <class F, class R, class... A>
struct SignatureOf<R (F::*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class F, class R, class... A>
struct SignatureOf<R (F::*)(A...) const noexcept> : SignatureOf<R (*)(A...)> {};
/// \endcond

template <class F>
concept HasSignature = std::is_pointer_v<F> || requires {
  &F::operator();
};

template <class F, class... P, std::size_t... I>
constexpr bool explain_signature(std::index_sequence<I...>) {
  using Parameters = typename SignatureOf<F>::Parameters;
  constexpr std::size_t given = std::tuple_size_v<Parameters>;
  if constexpr (!HostFunctionArity<sizeof...(P), given>::fits) {
    return false;
  } else {
    bool fits = HostFunctionRange<std::tuple_element_t<0, Parameters>>::fits &&
                (HostFunctionParameter<I + 1, P, typename ParameterTraits<P>::Host,
                                       std::tuple_element_t<I + 1, Parameters>>::fits &&
                 ... && true);
    if constexpr (given == sizeof...(P) + 2)
      fits = fits && HostFunctionStop<std::tuple_element_t<given - 1, Parameters>>::fits;
    return fits;
  }
}

template <class F, class... P>
std::shared_ptr<const device::HostCode> host_code(F function) {
  if constexpr (HostKernel<F, P...>) {
    return std::shared_ptr<const device::HostCode>(
        new HostCodeOf<F, P...>(std::move(function)));  // see WYE_LOCAL
  } else {
    constexpr bool is_explained = [] {
      if constexpr (HasSignature<F>)
        return !explain_signature<F, P...>(std::index_sequence_for<P...>{});
      else
        return false;
    }();
    static_assert(
        is_explained,
        "the host function cannot be called as f(wye::Range, <std::span<const T> for Read<T>, "
        "std::span<T> for Write<T> and ReadWrite<T>, the value for a value>..., [wye::StopToken]) const");
    return nullptr;
  }
}

template <class F, class... P>
std::shared_ptr<const device::NativeCode> native_code(F function, NativeProbe probe) {
  if constexpr (NativeKernel<F, P...>) {
    return std::shared_ptr<const device::NativeCode>(
        new NativeCodeOf<F, P...>(std::move(function), probe));  // see WYE_LOCAL
  } else {
    static_assert(
        NativeKernel<F, P...>,
        "the native function cannot be called as f(const wye::NativeLane&, [wye::Extent3], "
        "<wye::DeviceSpan<const T> for Read<T>, wye::DeviceSpan<T> for Write<T> and ReadWrite<T>, the "
        "value for a value>...) const");
    return nullptr;
  }
}

}  // namespace detail

}  // namespace wye
