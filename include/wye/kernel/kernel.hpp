#pragma once
/// A kernel: a name, one list of parameters, and sources that all agree with it.
#include <wye/base/result.hpp>
#include <wye/device/parameter.hpp>
#include <wye/device/schema.hpp>
#include <wye/kernel/call.hpp>
#include <wye/kernel/source.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {

/// All that a kernel is made of. Two that say the same are of one kernel to a ShaderCache.
struct KernelDescription {
  std::string name;
  ParamSchema schema;
  std::vector<AnySource> sources;
};

/// A kernel whose parameter types are known only at run time; `Kernel<P...>` is one.
/// Threads: thread-safe; copies share one kernel.
class WYE_API AnyKernel {
 public:
  /// Makes a kernel of its sources: at most one per language, of `Cubin` one per architecture and of native
  /// functions one per backend. What GLSL, Slang and CUDA C++ include is read now: the kernel stays what it was made
  /// of, hot reload apart. They are compiled, and seen to agree, when they are first needed; an include that is missing is an
  /// error only then, because the compiler may never come to it.
  /// Errors: invalid_argument (no name, no sources, an empty source, one larger than 4 MiB, two of one
  ///         language; SPIR-V, PTX or a cubin that is not valid or disagrees with `schema`, naming the
  ///         parameter), unsupported (one that uses what wye does not offer, named).
  static Result<AnyKernel> make(std::string name, ParamSchema schema, std::vector<AnySource> sources);
  static Result<AnyKernel> make(KernelDescription description) {
    return make(std::move(description.name), std::move(description.schema), std::move(description.sources));
  }

  const std::string& name() const noexcept;
  const ParamSchema& schema() const noexcept;
  /// The languages it has sources in, "Glsl, host".
  std::string languages() const;
  /// Its own program.
  const std::shared_ptr<const device::Program>& program() const noexcept { return programs_[0]; }
  /// Its own, and those of the kernels that do the same.
  const Programs& programs() const noexcept { return programs_; }

 protected:
  explicit AnyKernel(Programs programs) : programs_(std::move(programs)) {}
  Programs programs_;
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
  /// A source for this kernel. A host function that cannot be called with its parameters does not compile;
  /// the compiler's message names the first parameter that does not fit, and what it arrives as.
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
    std::vector<std::string> parameters = {};  ///< their names, for messages; else those of the sources
  };

  /// What `make` makes a kernel of, for `ShaderCache::find_or_build`.
  static KernelDescription describe(Options options) {
    KernelDescription description{std::move(options.name), {{detail::ParameterTraits<P>::slot()...}}, {}};
    std::vector<Slot>& slots = description.schema.slots;
    for (std::size_t i = 0; i < slots.size() && i < options.parameters.size(); ++i)
      slots[i].name = std::move(options.parameters[i]);
    description.sources.reserve(options.sources.size());
    for (Source& source : options.sources) description.sources.push_back(std::move(source));
    return description;
  }

  /// Errors: those of `AnyKernel::make`.
  static Result<Kernel> make(Options options) {
    auto made = AnyKernel::make(describe(std::move(options)));
    if (!made) return std::move(made).error();
    return Kernel(std::move(*made));
  }

  /// This kernel with arguments.
  Call operator()(P... arguments) const {
    Arguments list;
    (list.push_back(detail::ParameterTraits<P>::operand(arguments)), ...);
    return Call(programs_, std::move(list));
  }

 private:
  explicit Kernel(AnyKernel any) : AnyKernel(std::move(any)) {}
  explicit Kernel(Programs programs) : AnyKernel(std::move(programs)) {}
  template <class... Q>
  friend Kernel<Q...> fastest_of(const Kernel<Q...>& first, const std::vector<Kernel<Q...>>& others);
};

/// One kernel of several that do the same with the same arguments and grid, where nobody knows which is the quickest: by
/// tensor cores and without, by subgroups and by shared memory. A scheduler finds out, for each device and each size of work:
/// the first jobs of that size run them in turns, three times each, and are timed; from then on the quickest is taken. One
/// that takes over twice the time of another is left alone after two. A job with a `start_by` or time limit of its own takes
/// what is known. `Outcome::reason` says which it was, and the times. Sizes are the same where the grid and each operand lie
/// in one quarter of an octave. One that has no source for a device is none there; one that does not compile for it is left
/// alone, and the reason says so. The job that first tries one waits while it is built; `Job::build` and
/// `ShaderCache::prewarm` make all of them ready.
///
///     const auto scan = wye::fastest_of(*by_subgroups, {*by_shared_memory});
///
/// Whatever runs kernels without a scheduler (leases, `ShaderCache::find_or_build`) takes `first`. A scheduler with
/// `SchedulerOptions::measure_variants` off takes the first that has a source for the device: kernels that round differently then
/// give the same bits each time.
template <class... P>
Kernel<P...> fastest_of(const Kernel<P...>& first, const std::vector<Kernel<P...>>& others) {
  std::vector<std::shared_ptr<const device::Program>> rest;
  const auto add = [&](const Programs& programs, std::size_t from) {
    for (std::size_t i = from; i < programs.size(); ++i) rest.push_back(programs[i]);
  };
  add(first.programs(), 1);
  for (const Kernel<P...>& kernel : others) add(kernel.programs(), 0);
  return Kernel<P...>(Programs(first.program(), std::move(rest)));
}

}  // namespace v0
}  // namespace wye
