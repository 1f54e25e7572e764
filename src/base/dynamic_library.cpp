#include <wye/base/dynamic_library.hpp>

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/float_environment.hpp"
#include "base/text.hpp"

namespace wye::inline v0 {

namespace {

/// Returns the directories in which the loader searches for a library that is opened by its name.
std::vector<std::string> directories() {
  std::vector<std::string> result;
#ifdef __GLIBC__
  const auto close = [](void* handle) { ::dlclose(handle); };
  const std::unique_ptr<void, decltype(close)> program(::dlopen(nullptr, RTLD_LAZY), close);
  Dl_serinfo size{};
  if (!program || ::dlinfo(program.get(), RTLD_DI_SERINFOSIZE, &size) != 0) return result;
  // The list consists of a header, the entries, and their texts.
  const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(size.dls_size), std::free);
  if (!memory) throw std::bad_alloc();
  auto* list = static_cast<Dl_serinfo*>(memory.get());
  list->dls_size = size.dls_size;
  list->dls_cnt = size.dls_cnt;
  if (::dlinfo(program.get(), RTLD_DI_SERINFO, list) != 0) return result;
  const Dl_serpath* entry = list->dls_serpath;
  for (unsigned i = 0; i < list->dls_cnt; ++i, ++entry) result.emplace_back(entry->dls_name);
#endif
  return result;
}

}  // namespace

std::vector<std::string> DynamicLibrary::find(std::string_view name) {
  std::vector<std::string> found;
  for (const std::string& directory : directories()) {
    const auto entries = base::list_directory(directory);
    if (!entries) continue;
    for (const std::string& entry : *entries)
      if (entry.starts_with(name) && (entry.size() == name.size() || entry[name.size()] == '.'))
        found.push_back(directory + "/" + entry);
    if (!found.empty()) break;
  }
  return found;
}

Result<DynamicLibrary> DynamicLibrary::open(std::initializer_list<std::string_view> names) {
  const base::DefaultFloatEnvironment environment;  // of initializers
  std::string reasons;
  std::optional<std::string> shortage;
  for (std::string_view candidate : names) {
    std::string name(candidate);
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return DynamicLibrary(handle, std::move(name));
    }
    const char* reason = ::dlerror();
    if (!shortage) shortage = base::descriptor_shortage(1);
    reasons += base::text("{}{}", reasons.empty() ? "" : "; ", reason ? reason : "no reason given");
  }
  if (names.size() == 0) return Error(Errc::invalid_argument, "The list of library names is empty.");
  if (shortage)
    return Error(Errc::io, base::text("Library '{}' cannot be opened: {}.", *names.begin(), *shortage));
  return Error(Errc::unavailable, base::text("Library '{}' cannot be opened ({}).", *names.begin(), reasons));
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (!handle_) return;
  const base::DefaultFloatEnvironment environment;
  ::dlclose(handle_);
}

void DynamicLibrary::keep_loaded() const noexcept {
  if (!handle_) return;
  if (void* again = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) ::dlclose(again);
}

std::string DynamicLibrary::path() const {
  const link_map* map = nullptr;
  if (!handle_ || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return {};
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(map->l_name, nullptr), std::free);
  return real ? real.get() : std::string();
}

void* DynamicLibrary::symbol(const char* symbol_name) const noexcept {
  return handle_ ? ::dlsym(handle_, symbol_name) : nullptr;
}

}  // namespace wye
