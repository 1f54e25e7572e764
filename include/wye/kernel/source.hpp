#pragma once
/// What kernels are written in. Sources are named by language; a device says which languages it takes.
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

namespace wye {
inline namespace v0 {

/// The value of a specialization constant: `{0, 16u}` makes the one with id 0 a 16.
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

/// A preprocessor macro, or a function-like one: `{"psc(x)", "(x)"}`.
struct Macro {
  std::string name;  ///< "N", "mad(a, b, c)"
  std::string value;
  friend bool operator==(const Macro&, const Macro&) = default;
};

/// A text that others include by its name.
struct Include {
  std::string name;  ///< "lib/span.glsl"
  std::string text;
  friend bool operator==(const Include&, const Include&) = default;
};

/// The host's own answer to an `#include`: the text of that name, nothing where it has none, or why it cannot
/// be had. What it throws is such a reason. It is asked on the thread that makes a kernel, while it is made; with hot
/// reload again, on a thread of the runtime's.
using IncludeFinder = std::function<Result<std::optional<std::string>>(const std::string& name)>;

/// A compute shader in GLSL, `#version 450` or `460`. Storage and uniform buffers are bound at set 0 in the order of the
/// kernel's buffer parameters; a uniform buffer is a `Read<T>`, and may be of any size; the other parameters are the members of the push-constant block, in order. A
/// shader without bound buffers takes them there too, as structs of {buffer_reference, uvec2 count} or bare
/// buffer_references. Elements of 8 and 16 bits behind those may be declared as uint, several to a word: that needs no feature
/// of a device, but an address that begins within a word is for the shader to see.
///
/// `#include "x"` is looked for beside what includes it, then, as `#include <x>`, among `includes`, below
/// each of `include_directories` and by `find_include`, in this order. All of it is read once, when a kernel
/// is made of the source, and is part of its key; names and places are not.
struct Glsl {
  std::string text;
  std::string file = {};       ///< name shown in diagnostics
  std::string entry = "main";  ///< any function that can be called without arguments
  std::vector<SpecializationConstant> constants = {};
  std::vector<Macro> macros = {};
  std::optional<Extent3> tile = std::nullopt;  ///< items one workgroup covers; unset: its invocations
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<Glsl> from_file(const std::string& path);
};

/// The value of a Slang link-time constant: `{"tile", 16u}` is `tile` where a source has
/// `extern static const uint tile;`. Loop bounds and `numthreads` may depend on it.
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
  std::string_view type;  ///< as Slang calls it; the constant has the same
  std::uint64_t bits = 0;
  friend bool operator==(const LinkConstant&, const LinkConstant&) = default;
};

/// A compute kernel in Slang, compiled by libslang-compiler (2026.5 or newer) where the machine has it; where
/// not, devices that need it refuse the kernel with that reason. It becomes SPIR-V, and for CUDA C++ that NVRTC
/// compiles. What it takes are `uniform` parameters of its
/// entry point: `StructuredBuffer`s, `RWStructuredBuffer`s and `ConstantBuffer`s are the kernel's buffer parameters in order, the
/// others its other parameters in order; a kernel without such buffers may take them as pointers. Parameters
/// outside the entry point are refused. Structs have the layout that C gives them, matrices are row-major. CUDA aligns
/// 2- and 4-vectors: a struct that lies otherwise there is refused when it is compiled for CUDA, with the padding that mends it.
///
/// `#include "x"`, `import x` and `__include x` are looked for as `Glsl` says of `#include "x"`, and are part of
/// the key in the same way, with their names: `import a.b` means "a/b.slang".
struct Slang {
  std::string text = {};
  std::string file = {};  ///< name shown in diagnostics
  std::string entry =
      {};  ///< unset: the only function marked `[shader("compute")]`; "scale<float>" is one too
  std::vector<LinkConstant> constants = {};
  std::vector<Macro> macros = {};
  std::optional<Extent3> tile = std::nullopt;  ///< items one workgroup covers; unset: its invocations
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  /// A module that Slang wrote, of the same release and without imports, in place of `text`.
  std::vector<std::byte> module = {};
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<Slang> from_file(const std::string& path);
};

/// A compute shader as SPIR-V words, of the same interface as `Glsl`.
struct SpirV {
  std::vector<std::uint32_t> words;
  std::string entry = "main";
  std::vector<SpecializationConstant> constants = {};
  std::optional<Extent3> tile = std::nullopt;
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches

  /// Reads a module from a file.
  /// Errors: not_found, io, invalid_argument (not SPIR-V in this machine's byte order).
  WYE_API static Result<SpirV> from_file(const std::string& path);
};

/// A kernel in CUDA C++: an `extern "C" __global__` function whose parameters are the kernel's, in order. A
/// buffer is a `wye_span<T>`, which every source has as
///
///     template <class T> struct wye_span { T* data; unsigned long long size; };
///
/// with an operator [], or a bare `T*`; numbers and structs are themselves. It is compiled for the device it
/// is needed on, by NVRTC, which is opened when there is one. What it includes is found as that of `Glsl` is,
/// and then among the headers of the CUDA Toolkit that NVRTC belongs to (<cuda_fp16.h>), where they are there.
struct CudaCpp {
  std::string text;
  std::string file = {};   ///< name shown in diagnostics
  std::string entry = {};  ///< the function; empty: it is called as the kernel
  std::vector<Macro> macros = {};
  /// Threads of one block; unset: what `__block_size__` requires, else 256, or fewer where `__launch_bounds__` says.
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;  ///< items one block covers; unset: its threads
  Bytes dynamic_shared = {};                   ///< what `extern __shared__` has
  std::uint32_t max_registers = 0;             ///< of one thread; 0: the compiler decides
  bool fast_math = false;                      ///< less exact division, roots and functions; denormals are 0
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches
  LaunchOptions launch = {};
  std::uint32_t standard = 17;  ///< of C++: 11, 14, 17, 20, or a newer standard that NVRTC knows

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<CudaCpp> from_file(const std::string& path);
};

/// A kernel in PTX, of the same interface as `CudaCpp`. A device takes what is for its architecture or an
/// older one, and its driver compiles that.
struct Ptx {
  std::string text;
  std::string entry = {};  ///< the function; empty: it is called as the kernel
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;
  Bytes dynamic_shared = {};
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches
  LaunchOptions launch = {};

  /// Reads PTX from a file.
  /// Errors: not_found, io, invalid_argument (empty, not UTF-8 text).
  WYE_API static Result<Ptx> from_file(const std::string& path);
};

/// A kernel as machine code of one architecture, of the same interface as `CudaCpp`. A kernel may have several
/// for different architectures; a device takes the newest of its own generation that is not newer than it.
struct Cubin {
  std::vector<std::byte> bytes;
  std::string entry = {};  ///< the function; empty: it is called as the kernel
  std::optional<Extent3> workgroup = std::nullopt;
  std::optional<Extent3> tile = std::nullopt;
  Bytes dynamic_shared = {};
  std::string path = {};  ///< the file it was read from, which `RuntimeOptions::hot_reload` watches
  LaunchOptions launch = {};

  /// Reads a cubin from a file.
  /// Errors: not_found, io, invalid_argument (not machine code of an NVIDIA GPU).
  WYE_API static Result<Cubin> from_file(const std::string& path);
};

/// How a host function wants to be called.
struct HostOptions {
  /// Items that every call covers at least; runs are multiples of it. A zero in a dimension means all of it:
  /// `{0, 16}` gives whole rows, 16 at a time. Unset: chosen from the grid.
  std::optional<Extent3> tile = std::nullopt;
};

/// A host function that is to be a kernel source: what `host(f)` makes.
template <class F>
struct HostFunction {
  F function;
  HostOptions options;
};

/// Makes a function of the host a kernel source. It is called as
/// `f(wye::Range, <std::span or value per parameter>..., [wye::StopToken])`, from several threads with
/// disjoint ranges. What it throws becomes the job's error.
template <class F>
HostFunction<std::decay_t<F>> host(F&& function, HostOptions options = {}) {
  return {std::forward<F>(function), options};
}

/// A function that gives a device work through its vendor's own interface, and is to be a kernel source: what
/// `native(backend, f)` makes.
template <class F>
struct NativeFunction {
  std::string backend;
  F function;
  NativeProbe probe = nullptr;
};

/// Makes a function that calls a vendor's library, or the host's own kernels, a kernel source for the devices
/// of `backend`. It is called as `f(const wye::NativeLane&, <wye::DeviceSpan or value per parameter>...)`, or
/// with a `wye::Extent3`, the grid, after the lane, on the thread that submits, when the kernel's turn in the
/// lane has come. It enqueues on the lane and waits for nothing; what it enqueues runs in the lane's order. It
/// gives nothing, or a `wye::Result<void>`; what it throws becomes the job's error.
///
/// `probe` is asked once for each device, before the first use of any function that names it. Where it refuses, that device takes
/// the next source of the kernel instead, and jobs say so (`Outcome::reason`).
template <class F>
NativeFunction<std::decay_t<F>> native(std::string backend, F&& function, NativeProbe probe = nullptr) {
  return {std::move(backend), std::forward<F>(function), probe};
}

namespace kernel {
struct SourceData;
}

/// One source of any language.
class WYE_API AnySource {
 public:
  AnySource(Glsl source);     // NOLINT: a source is a source
  AnySource(Slang source);    // NOLINT
  AnySource(SpirV source);    // NOLINT
  AnySource(CudaCpp source);  // NOLINT
  AnySource(Ptx source);      // NOLINT
  AnySource(Cubin source);    // NOLINT
  AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options);
  AnySource(std::shared_ptr<const device::NativeCode> code, std::string backend);
  /// "Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin", "host", "native".
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
  NativeCodeOf(F function, NativeProbe asked_by) : function_(std::move(function)), probe_(asked_by) {}
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

/// Parameter `Number` of a host function, from 1 after the range: what the kernel has there, what it arrives as, and what
/// the function takes. The compiler names this type in its message.
template <std::size_t Number, class KernelParameter, class ArrivesAs, class FunctionTakes>
struct HostFunctionParameter {
  static_assert(std::is_convertible_v<ArrivesAs, FunctionTakes>,
                "this parameter of the host function does not take what arrives: Read<T> arrives as "
                "std::span<const T>, Write<T> and ReadWrite<T> arrive as std::span<T>, a value as itself");
  static constexpr bool fits = true;
};

template <class FunctionTakes>
struct HostFunctionRange {
  static_assert(std::is_convertible_v<Range, FunctionTakes>,
                "the first parameter of a host function is a wye::Range: the items it is called for");
  static constexpr bool fits = true;
};

template <class FunctionTakes>
struct HostFunctionStop {
  static_assert(
      std::is_convertible_v<StopToken, FunctionTakes>,
      "the last parameter of a host function is a wye::StopToken, or that of the kernel's last parameter");
  static constexpr bool fits = true;
};

template <std::size_t ParametersOfTheKernel, std::size_t ParametersOfTheFunction>
struct HostFunctionArity {
  static_assert(ParametersOfTheFunction == ParametersOfTheKernel + 1 ||
                    ParametersOfTheFunction == ParametersOfTheKernel + 2,
                "a host function has a wye::Range, one parameter for each parameter of the kernel, and at "
                "most a wye::StopToken after them");
  static constexpr bool fits = ParametersOfTheFunction == ParametersOfTheKernel + 1 ||
                               ParametersOfTheFunction == ParametersOfTheKernel + 2;
};

/// What the parameters of a function are, if it has one signature.
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

}  // namespace v0
}  // namespace wye
