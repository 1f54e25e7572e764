#pragma once
/// A shared library opened at run time.
#include <wye/base/result.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

/// Owns one handle of the dynamic loader and closes it on destruction. Symbols stay private to this
/// handle (RTLD_LOCAL).
/// Threads: thread-compatible.
class WYE_API DynamicLibrary {
 public:
  /// Opens the first of `names` that the loader finds.
  /// Errors: unavailable, with the loader's message for each name; io, if the process or the system
  ///         can open no further file.
  static Result<DynamicLibrary> open(std::initializer_list<std::string_view> names);
  static Result<DynamicLibrary> open(std::string_view name) { return open({name}); }
  /// Returns the sorted paths of the files called `NAME` or `NAME.MORE` in the first of the
  /// loader's directories that has any. The directories are those of LD_LIBRARY_PATH at the start
  /// of the process, then the system's own.
  static std::vector<std::string> find(std::string_view name);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;  // two owners would close it twice
  ~DynamicLibrary();

  /// Keeps the library loaded until the process ends, even when all handles are closed. Some
  /// libraries do not survive being unloaded.
  void keep_loaded() const noexcept;
  /// Returns the name under which the library was opened.
  const std::string& name() const noexcept { return name_; }
  /// Returns the absolute path of its file, without symbolic links. Empty if the system does not
  /// report it.
  std::string path() const;
  /// Returns the symbol's address, or null.
  void* symbol(const char* symbol_name) const noexcept;
  template <class Function>
  Function function(const char* symbol_name) const noexcept {
    return reinterpret_cast<Function>(symbol(symbol_name));
  }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace wye
