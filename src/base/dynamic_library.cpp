#include <wye/base/dynamic_library.hpp>

#include <dlfcn.h>

#include <utility>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {

Result<DynamicLibrary> DynamicLibrary::open(std::initializer_list<std::string_view> names) {
  std::string reasons;
  for (std::string_view candidate : names) {
    std::string name(candidate);
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return DynamicLibrary(handle, std::move(name));
    }
    const char* reason = ::dlerror();
    reasons += base::text("{}{}", reasons.empty() ? "" : "; ", reason ? reason : "no reason given");
  }
  if (names.size() == 0) return Error(Errc::invalid_argument, "A library to open has no name.");
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
  if (handle_) ::dlclose(handle_);
}

void* DynamicLibrary::symbol(const char* symbol_name) const noexcept {
  return handle_ ? ::dlsym(handle_, symbol_name) : nullptr;
}

}  // namespace v0
}  // namespace wye
