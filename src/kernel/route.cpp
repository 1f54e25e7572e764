// How a program chooses the source for a device.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "kernel/program.hpp"

namespace wye::inline v0::kernel {

namespace {

/// Joins names: "Cubin, CudaCpp or Ptx".
std::string alternatives(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i]);
  return text;
}

}  // namespace

/// The languages that devices accept, and the sources that are converted to them, best first.
struct KernelProgram::Conversion {
  std::string_view takes;
  std::string_view language;
};
constexpr KernelProgram::Conversion KernelProgram::conversions[] = {
    {"native", "native"}, {"host", "host"},   {"spirv", "SpirV"},   {"spirv", "Glsl"},
    {"spirv", "Slang"},   {"cubin", "Cubin"}, {"cubin", "CudaCpp"}, {"cubin", "Slang"},
    {"ptx", "Ptx"},       {"ptx", "CudaCpp"}, {"ptx", "Slang"}};

std::optional<KernelProgram::Choice> KernelProgram::serves(const Prepared& source,
                                                           const Conversion& conversion,
                                                           const device::DeviceBase& device, Probe call,
                                                           std::string& why) const {
  const auto refuse = [&](auto make_reason) -> std::optional<Choice> {
    why.append(why.empty() ? "" : "; ").append(make_reason());
    return std::nullopt;
  };
  if (source.language == "Glsl" && !compiler_)
    return refuse([] { return std::string("this build of wye has no GLSL compiler"); });
  if (source.language == "Glsl" && features_.has(Feature::cooperative_matrix) &&
      !GlslCompiler::knows_cooperative_matrix())
    return refuse([] {
      return std::string(
          "the GLSL compiler of this build of wye does not know cooperative matrices (glslang 14 does)");
    });
  if (!source.lacking.empty()) {
    if (why.find(source.lacking) != why.npos) return std::nullopt;
    return refuse([&] { return source.lacking; });
  }
  if (source.language == "native") {
    if (source.backend != device.info().backend) return std::nullopt;
    if (const NativeProbe probe = source.ready->native->probe()) {
      // The probe changes no state that the const interface of the device exposes.
      const auto refused = call == Probe::yes ? const_cast<device::DeviceBase&>(device).refusal_by(probe)
                                              : device.known_refusal_by(probe);
      if (refused) return refuse([&] { return refused->sentence(); });
    }
  }
  if (conversion.takes != "cubin" && conversion.takes != "ptx") return Choice{&source};

  const auto architecture = parse_architecture(device.info().architecture);
  if (!architecture)
    return refuse([&] {
      return base::text("its architecture ('{}') is not a CUDA architecture", device.info().architecture);
    });
  const std::uint64_t driver = device.info().driver_version;  // a CUDA version; 0: unknown
  const auto to_version = [](std::uint64_t v) { return base::text("{}.{}", v / 1000, v % 1000 / 10); };
  if (source.language != "CudaCpp" && source.language != "Slang") {
    const bool runs = source.language == "Ptx" ? runs_ptx(source.architecture, *architecture)
                                               : runs_cubin(source.architecture, *architecture);
    if (!runs)
      return refuse([&] {
        return base::text("its {} is for {}, but the device is {}", source.language,
                          to_string(source.architecture), to_string(*architecture));
      });
    if (driver == 0 || source.driver <= driver) return Choice{&source};
    return refuse([&] {
      return base::text("its {} for {} needs a driver for CUDA {}, but this one is for CUDA {}",
                        source.language, to_string(source.architecture), to_version(source.driver),
                        to_version(driver));
    });
  }
  const Cuda& cuda = this->cuda(source);
  if (!cuda.compiler) {
    if (why.find(cuda.compiler.error().sentence()) != why.npos) return std::nullopt;
    return refuse([&] { return cuda.compiler.error().sentence(); });
  }
  const CudaCompiler& compiler = **cuda.compiler;
  // A driver accepts machine code of its CUDA major version or an older one, and PTX of its CUDA
  // version or an older one.
  const std::uint64_t made = compiler.version();
  if (driver != 0 && (conversion.takes == "ptx" ? made > driver : made / 1000 > driver / 1000))
    return refuse([&] {
      return base::text("{} generates {} that drivers for CUDA {} do not accept", compiler.name(),
                        conversion.takes == "ptx" ? "PTX" : "machine code", to_version(driver));
    });
  if (conversion.takes == "cubin" && compiler.knows(*architecture))
    return Choice{&source, CudaTarget{*architecture}};
  if (conversion.takes == "ptx")
    if (const auto newest = compiler.newest_ptx(*architecture)) return Choice{&source, *newest};
  return refuse([&] {
    const auto all = compiler.architectures();
    return base::text("{} generates {} for sm_{} to sm_{}, but the device is {}", compiler.name(),
                      conversion.takes == "ptx" ? "PTX" : "machine code", all.front(), all.back(),
                      to_string(*architecture));
  });
}

KernelProgram::Choice KernelProgram::choose(const device::DeviceBase& device, Probe call,
                                            std::string& why) const {
  for (const std::string_view language : device.languages())
    for (const Conversion& conversion : conversions) {
      if (conversion.takes != language) continue;
      std::optional<Choice> best;
      for (const Prepared& source : sources_) {
        if (source.language != conversion.language) continue;
        const auto choice = serves(source, conversion, device, call, why);
        // If the code of several architectures fits, takes the newest.
        const auto newness = [](const Prepared& p) {
          return std::pair(p.architecture.number, p.architecture.only != 0);
        };
        if (choice && (!best || newness(*best->source) < newness(source))) best = choice;
      }
      if (best) return *best;
    }
  return {};
}

const KernelProgram::Route* KernelProgram::find_route(const device::DeviceBase& device) const noexcept {
  const Route* route = newest_route_.load(std::memory_order_acquire);
  while (route && route->device != device.ref()) route = route->next.get();
  return route;
}

const KernelProgram::Route& KernelProgram::route(const device::DeviceBase& device) const {
  if (const Route* known = find_route(device)) return *known;
  auto made = std::make_unique<Route>(make_route(device, Probe::yes));
  // Several threads may make a route at the same time. The first route stays.
  const std::lock_guard lock(mutex_);
  if (const Route* known = find_route(device)) return *known;
  made->next = std::move(routes_);
  routes_ = std::move(made);
  newest_route_.store(routes_.get(), std::memory_order_release);
  return *routes_;
}

KernelProgram::Route KernelProgram::make_route(const device::DeviceBase& device, Probe call) const {
  std::string why;
  Route route;
  route.device = device.ref();
  const std::string& id = device.info().id;
  const AdapterType type = device.info().type;
  if (!adapters_.empty() && std::find(adapters_.begin(), adapters_.end(), type) == adapters_.end()) {
    std::vector<std::string_view> types;
    for (const AdapterType named : adapters_) types.push_back(wye::name(named));
    route.refusal = Error(Errc::unsupported, base::text("Kernel '{}' is for {} adapters, but '{}' is {}.",
                                                        name_, alternatives(types), id, wye::name(type)));
    return route;
  }
  const auto lacks = [&](Features needs) {
    if (device.info().features.contains(needs)) return false;
    route.refusal = Error(Errc::unsupported, base::text("Kernel '{}' needs {}, which '{}' does not have.",
                                                        name_, device::lacking(device.info(), needs), id));
    return true;
  };
  if (lacks(features_)) return route;
  route.choice = choose(device, call, why);
  const Prepared* source = route.choice.source;
  if (!source) {
    std::vector<std::string_view> needs;
    for (const std::string_view language : device.languages())
      for (const Conversion& conversion : conversions)
        if (conversion.takes == language &&
            std::find(needs.begin(), needs.end(), conversion.language) == needs.end())
          needs.push_back(conversion.language);
    if (!why.empty() && why.back() == '.') why.pop_back();
    route.refusal = Error(Errc::unsupported,
                          base::text("Kernel '{}' has no source for '{}' (has {}; needs {}){}{}.", name_, id,
                                     languages(), alternatives(needs), why.empty() ? "" : ": ", why));
    return route;
  }
  if (source->ready) lacks(source->ready->needs);
  return route;
}

bool KernelProgram::has_native_probe(const device::DeviceBase& device) const {
  return std::any_of(sources_.begin(), sources_.end(), [&](const Prepared& source) {
    return source.language == "native" && source.backend == device.info().backend &&
           source.ready->native->probe();
  });
}

std::optional<Error> KernelProgram::refusal(const device::DeviceBase& device) const {
  if (!find_route(device) && has_native_probe(device)) return make_route(device, Probe::no).refusal;
  return route(device).refusal;
}

bool KernelProgram::runs_on(const device::DeviceBase& device) const {
  if (const Route* known = find_route(device)) return !known->refusal;
  if (has_native_probe(device)) return !make_route(device, Probe::no).refusal;
  return !route(device).refusal;
}

KernelCode KernelProgram::code(const device::DeviceBase& device) const {
  const Route* known = find_route(device);
  const Route made = known ? Route{} : make_route(device, Probe::no);
  const Choice& choice = (known ? *known : made).choice;
  KernelCode code{name_, {}, {}};
  if (!choice.source) return code;
  code.source = choice.source->language;
  if (choice.source->ready) {
    code.format = choice.source->ready->language;
    if (choice.source->architecture.number != 0)
      code.architecture = to_string(CudaTarget{choice.source->architecture, code.format == "ptx"});
  } else if (choice.target) {
    code.format = choice.target->ptx ? "ptx" : "cubin";
    code.architecture = to_string(*choice.target);
  } else {
    code.format = "spirv";
  }
  return code;
}

bool KernelProgram::is_native(const device::DeviceBase& device) const noexcept {
  const Route* const known = find_route(device);
  return known ? known->choice.source && known->choice.source->language == "native"
               : has_native_probe(device);
}

std::optional<Error> KernelProgram::refused_native(const device::DeviceBase& device) const {
  for (const Prepared& source : sources_) {
    if (source.language != "native" || source.backend != device.info().backend) continue;
    if (const NativeProbe probe = source.ready->native->probe())
      if (auto why = device.known_refusal_by(probe)) return why;
  }
  return std::nullopt;
}

bool KernelProgram::passes_over(const device::DeviceBase& device) const {
  return refused_native(device).has_value();
}

std::optional<Error> KernelProgram::passed_over(const device::DeviceBase& device) const {
  const auto why = refused_native(device);
  if (!why) return std::nullopt;
  return Error(why->code(), base::text("The native function of kernel '{}' is not used on '{}': {}", name_,
                                       device.info().id, why->sentence()));
}

std::string KernelProgram::languages() const {
  std::string text;
  std::string_view before;
  for (const Prepared& source : sources_) {
    if (source.language == std::exchange(before, source.language)) continue;  // of several architectures
    text.append(text.empty() ? "" : ", ").append(source.language);
  }
  return text;
}

}  // namespace wye::kernel
