#pragma once
/// What kernels are written in. Sources are named by language; a device says which languages it takes.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/host_code.hpp>
#include <wye/device/parameter.hpp>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
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
};

/// A preprocessor macro.
struct Macro {
  std::string name;
  std::string value;
};

/// A text that others include by its name.
struct Include {
  std::string name;  ///< "lib/span.glsl"
  std::string text;
};

/// The host's own answer to an `#include`: the text of that name, nothing where it has none, or why it cannot
/// be had. What it throws is such a reason. It is asked on the thread that makes a kernel, while it is made.
using IncludeFinder = std::function<Result<std::optional<std::string>>(const std::string& name)>;

/// A compute shader in GLSL, `#version 450` or `460`. Storage buffers are bound at set 0 in the order of the
/// kernel's buffer parameters; the other parameters are the members of the push-constant block, in order. A
/// shader without bound buffers takes them there too, as structs of {buffer_reference, uvec2 count} or bare
/// buffer_references.
///
/// `#include "x"` is looked for beside what includes it, then, as `#include <x>`, among `includes`, below
/// each of `include_directories` and by `find_include`, in this order. All of it is read once, when a kernel
/// is made of the source, and is part of its key; names and places are not.
struct Glsl {
  std::string text;
  std::string file = {};       ///< name shown in diagnostics
  std::string entry = "main";  ///< any function without parameters
  std::vector<SpecializationConstant> constants = {};
  std::vector<Macro> macros = {};
  std::optional<Extent3> tile = std::nullopt;  ///< items one workgroup covers; unset: its invocations
  std::vector<Include> includes = {};
  std::vector<std::string> include_directories = {};
  IncludeFinder find_include = {};

  /// Reads a source from a file; its folder is the first include directory.
  /// Errors: not_found, io, invalid_argument (empty, larger than 4 MiB, not UTF-8 text).
  WYE_API static Result<Glsl> from_file(const std::string& path);
};

/// A compute shader as SPIR-V words, of the same interface as `Glsl`.
struct SpirV {
  std::vector<std::uint32_t> words;
  std::string entry = "main";
  std::vector<SpecializationConstant> constants = {};
  std::optional<Extent3> tile = std::nullopt;

  /// Reads a module from a file.
  /// Errors: not_found, io, invalid_argument (not SPIR-V in this machine's byte order).
  WYE_API static Result<SpirV> from_file(const std::string& path);
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

namespace kernel {
struct SourceData;
}

/// One source of any language.
class WYE_API AnySource {
 public:
  AnySource(Glsl source);   // NOLINT: a source is a source
  AnySource(SpirV source);  // NOLINT
  AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options);
  /// "Glsl", "SpirV", "host".
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

}  // namespace detail

}  // namespace v0
}  // namespace wye
