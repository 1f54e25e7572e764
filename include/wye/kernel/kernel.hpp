#pragma once
/// Kernels: a name, a list of parameters, and sources that agree with it; and calls of kernels.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/parameter.hpp>
#include <wye/device/schema.hpp>
#include <wye/kernel/source.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0 {

namespace device {
class Program;
}

namespace detail {

/// The program of a kernel, and the programs of its variants (`fastest_of`).
/// Threads: thread-compatible; copies share the programs.
class Programs {
 public:
  Programs(std::shared_ptr<const device::Program> first)
      : first_(std::move(first)) {}  // NOLINT: most kernels have one
  Programs(std::shared_ptr<const device::Program> first,
           std::vector<std::shared_ptr<const device::Program>> others)
      : first_(std::move(first)),
        // Not by make_shared, see WYE_LOCAL.
        others_(new std::vector<std::shared_ptr<const device::Program>>(std::move(others))) {}

  std::size_t size() const noexcept { return 1 + (others_ ? others_->size() : 0); }
  const std::shared_ptr<const device::Program>& operator[](std::size_t i) const {
    return i == 0 ? first_ : (*others_)[i - 1];
  }

 private:
  std::shared_ptr<const device::Program> first_;
  std::shared_ptr<const std::vector<std::shared_ptr<const device::Program>>> others_;  ///< null: none
};

/// The parts of a kernel. A ShaderCache treats equal descriptions as one kernel.
struct KernelDescription {
  std::string name;
  ParamSchema schema;
  std::vector<AnySource> sources;
  std::vector<std::size_t> batchable = {};
  std::vector<AdapterType> adapters = {};
  Features features = {};
  bool has_short_loops = false;
};

}  // namespace detail

/// A kernel with its arguments and its grid: the smallest unit of work.
/// Threads: thread-compatible. Borrows host memory among the arguments until the job completes.
class WYE_API Call {
 public:
  Call(detail::Programs programs, Arguments arguments)
      : programs_(std::move(programs)), arguments_(std::move(arguments)), items_(default_items()) {}

  /// Sets the grid, in items. The default is the element count of the first written operand.
  Call& over(Extent3 items) & { return items_ = items, *this; }
  Call&& over(Extent3 items) && { return items_ = items, std::move(*this); }

  const Arguments& arguments() const noexcept { return arguments_; }
  Arguments& arguments() noexcept { return arguments_; }
  Extent3 items() const noexcept { return items_; }
  std::string_view name() const noexcept;

 private:
  friend struct detail::Internals;
  Extent3 default_items() const noexcept;
  detail::Programs programs_;
  Arguments arguments_;
  Extent3 items_;
};

/// A kernel whose parameter types are known only at run time; the base class of `Kernel<P...>`.
/// Threads: thread-safe; copies share one kernel.
class WYE_API AnyKernel {
 public:
  /// Makes a kernel from its sources: at most one per language, one `Cubin` per architecture, and
  /// one native function per backend. Reads included files immediately; later changes have no
  /// effect without hot reload. Compiles a source on its first use, and then checks that it matches
  /// `schema`. A missing include is an error only then, because the compiler may never reach it.
  /// Errors: invalid_argument (no name, no sources, an empty source, one larger than 4 MiB, two of
  ///         one language; SPIR-V, PTX or a cubin that is invalid or does not match `schema`,
  ///         naming the parameter), unsupported (a source uses a feature that wye does not offer,
  ///         named).
  static Result<AnyKernel> make(std::string name, ParamSchema schema, std::vector<AnySource> sources);
  /// Errors: the same; invalid_argument (`batchable` names a parameter that is not there or is no
  ///         buffer, or does not name all parameters that the kernel writes).
  static Result<AnyKernel> make(detail::KernelDescription description);

  const std::string& name() const noexcept;
  const ParamSchema& schema() const noexcept;
  /// Returns the languages of its sources: "Glsl, host".
  std::string languages() const;

 protected:
  friend struct detail::Internals;
  friend class Job;  // `Job::build` makes a call without arguments
  explicit AnyKernel(detail::Programs programs) : programs_(std::move(programs)) {}
  detail::Programs programs_;
};

/// A kernel with the parameters `P`: `Read<T>`, `Write<T>`, `ReadWrite<T>`, or a plain value.
///
///     const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({
///         .name = "scale",
///         .sources = {wye::Glsl{...}, wye::host([](wye::Range r, std::span<float> x, float s) {...})}});
///     runtime->submit((*scale)(x, 2.0f));
///
/// Threads: thread-safe; copies share one kernel.
template <class... P>
class Kernel : public AnyKernel {
 public:
  /// A source of this kernel. A host function that cannot be called with the kernel's parameters
  /// does not compile; the compiler's message names the first parameter that does not fit, and its
  /// type.
  class Source : public AnySource {
   public:
    Source(Glsl source) : AnySource(std::move(source)) {}     // NOLINT
    Source(Slang source) : AnySource(std::move(source)) {}    // NOLINT
    Source(SpirV source) : AnySource(std::move(source)) {}    // NOLINT
    Source(CudaCpp source) : AnySource(std::move(source)) {}  // NOLINT
    Source(Ptx source) : AnySource(std::move(source)) {}      // NOLINT
    Source(Cubin source) : AnySource(std::move(source)) {}    // NOLINT
    template <class F>
    Source(HostFunction<F> f)  // NOLINT
        : AnySource(detail::host_code<F, P...>(std::move(f.function)), f.options) {}
    template <class F>
    Source(NativeFunction<F> f)  // NOLINT
        : AnySource(detail::native_code<F, P...>(std::move(f.function), f.probe), std::move(f.backend)) {}
  };
  struct Options {
    std::string name;
    std::vector<Source> sources;
    std::vector<std::string> parameters = {};  ///< names, for messages; default: those in the sources
    /// The parameters with a leading index, counted from 0: all that the kernel writes, and others.
    /// Their elements follow each other for each z of the grid, as `x[z][...]`. A scheduler may
    /// then run equal calls on host memory, each over a grid of depth 1, as one launch over a grid
    /// of that depth. The other arguments of these calls are the same.
    std::vector<std::size_t> batchable = {};
    /// The types of adapters that run the kernel; empty: all. For variants that suit only some
    /// devices (`fastest_of`).
    std::vector<AdapterType> adapters = {};
    /// The features that a device needs. Those of SPIR-V are known anyway, those of texts only
    /// after they are compiled. A variant that names them here is not compiled for a device that
    /// lacks them.
    Features features = {};
    /// A promise: all loops of one invocation together have at most 65,535 iterations, for all
    /// arguments. No warning then names the kernel on a device whose driver ends loops there
    /// (`Limits::loop_iterations`). Loops that constants bound need no promise.
    bool has_short_loops = false;
  };

  /// Returns a description of the kernel, for `ShaderCache::find_or_build`.
  static detail::KernelDescription describe(Options options) {
    detail::KernelDescription description{
        std::move(options.name), {{detail::ParameterTraits<P>::slot()...}}, {}};
    std::vector<Slot>& slots = description.schema.slots;
    for (std::size_t i = 0; i < slots.size() && i < options.parameters.size(); ++i)
      slots[i].name = std::move(options.parameters[i]);
    description.sources.reserve(options.sources.size());
    for (Source& source : options.sources) description.sources.push_back(std::move(source));
    description.batchable = std::move(options.batchable);
    description.adapters = std::move(options.adapters);
    description.features = options.features;
    description.has_short_loops = options.has_short_loops;
    return description;
  }

  /// Errors: those of `AnyKernel::make`.
  static Result<Kernel> make(Options options) {
    auto made = AnyKernel::make(describe(std::move(options)));
    if (!made) return std::move(made).error();
    return Kernel(std::move(*made));
  }

  /// Returns a call of this kernel with `arguments`.
  Call operator()(P... arguments) const {
    Arguments list;
    (list.push_back(detail::ParameterTraits<P>::operand(arguments)), ...);
    return Call(programs_, std::move(list));
  }

 private:
  explicit Kernel(AnyKernel any) : AnyKernel(std::move(any)) {}
  explicit Kernel(detail::Programs programs) : AnyKernel(std::move(programs)) {}
  template <class... Q>
  friend Kernel<Q...> fastest_of(const Kernel<Q...>& first, const std::vector<Kernel<Q...>>& others);
};

/// Returns a kernel with variants: equivalent kernels with the same parameters, for example with and without
/// tensor cores. A scheduler autotunes them per device and size. The first jobs of a size time each variant
/// three times; later jobs use the fastest variant. A variant that takes more than twice as long as another
/// one is timed twice. Two sizes are equal if the grid and each operand lie in the same quarter of an octave.
/// Jobs with `start_by` or a time limit of their own are not measured. `Outcome::reason` reports the choice
/// and the times.
///
/// A variant is skipped if it has no source for the device, or names other types of adapters or features that
/// the device lacks (`Kernel::Options`), and with a reason if it does not compile. The job that first times a
/// variant waits for its build; `Job::build` and `ShaderCache::prewarm` build all variants.
///
///     const auto scan = wye::fastest_of(*by_subgroups, {*by_shared_memory});
///
/// Leases and `ShaderCache::find_or_build` use `first`. A scheduler with `SchedulerOptions::measure_variants`
/// off uses the first variant that has a source for the device, and prefers variants that name its type of
/// adapter. Results are then bit-identical between runs, even if variants round differently.
template <class... P>
Kernel<P...> fastest_of(const Kernel<P...>& first, const std::vector<Kernel<P...>>& others) {
  std::vector<std::shared_ptr<const device::Program>> rest;
  const auto add = [&](const detail::Programs& programs, std::size_t from) {
    for (std::size_t i = from; i < programs.size(); ++i) rest.push_back(programs[i]);
  };
  add(first.programs_, 1);
  for (const Kernel<P...>& kernel : others) add(kernel.programs_, 0);
  return Kernel<P...>(detail::Programs(first.programs_[0], std::move(rest)));
}

}  // namespace wye
