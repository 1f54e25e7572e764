#include <cstdio>
#include <limits>
#include <wye/cache/cache_directory.hpp>
#include <wye/runtime/options.hpp>

#include "write.hpp"

namespace wyec {
namespace {

/// "1.5 h".
std::string ago(wye::Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  char text[32];
  if (seconds < 3600)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else if (seconds < 48 * 3600)
    std::snprintf(text, sizeof text, "%.0f h", seconds / 3600);
  else
    std::snprintf(text, sizeof text, "%.0f d", seconds / 86400);
  return text;
}

/// Replaces the control characters of a name from a file.
std::string shown(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

void print(const wye::StoredFile& file) {
  const bool whole = file.kind == wye::StoredFile::Kind::kernel || file.kind == wye::StoredFile::Kind::driver;
  std::printf("%-9s  %12s  %7s  %s  %s\n", std::string(name(file.kind)).c_str(),
              to_string(file.bytes).c_str(), ago(file.unused).c_str(),
              whole ? file.key.hex().substr(0, 12).c_str() : "-           ",
              whole ? shown(file.name + " (" + file.made_for + ")").c_str() : file.path.c_str());
}

wye::Result<int> list(const std::string& directory, bool only_damaged) {
  const auto files = wye::list_cache(directory);
  if (!files) return files.error();
  std::size_t damaged = 0;
  wye::Bytes bytes;
  for (const wye::StoredFile& file : *files) {
    const bool is_damaged = file.kind == wye::StoredFile::Kind::damaged;
    damaged += is_damaged;
    bytes += file.bytes;
    if (is_damaged || !only_damaged) print(file);
  }
  std::printf("%zu files, %s, %zu damaged, in %s\n", files->size(), to_string(bytes).c_str(), damaged,
              directory.c_str());
  return only_damaged && damaged != 0 ? 1 : 0;
}

int removed(const wye::RemovedFiles& what, const std::string& directory) {
  std::printf("%llu files removed, %s, from %s\n", static_cast<unsigned long long>(what.files),
              to_string(what.bytes).c_str(), directory.c_str());
  return 0;
}

}  // namespace

wye::Result<int> run_on_directory(const Command& command) {
  const std::string directory = command.directory.empty() ? wye::user_cache_directory() : command.directory;
  if (directory.empty())
    return wye::Error(wye::Errc::not_found, "The user has no cache directory here: give one.");
  switch (command.action) {
    case Action::cache_ls:
    case Action::cache_verify: return list(directory, command.action == Action::cache_verify);
    case Action::cache_trim: {
      constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
      const auto gone =
          wye::trim_cache(directory, wye::Bytes{command.bytes.value_or(any)}, command.files.value_or(any));
      if (!gone) return gone.error();
      return removed(*gone, directory);
    }
    case Action::cache_clear: {
      const auto gone = wye::clear_cache(directory);
      if (!gone) return gone.error();
      return removed(*gone, directory);
    }
    default: break;
  }
  wye::Manifest manifest;
  if (!command.manifest.empty()) {
    auto read = wye::Manifest::read(command.manifest);
    if (!read) return read.error();
    manifest = std::move(*read);
  }
  const auto packed =
      wye::bundle_cache(directory, command.output, command.manifest.empty() ? nullptr : &manifest);
  if (!packed) return packed.error();
  std::printf("%llu kernels of %s packed into %s\n", static_cast<unsigned long long>(*packed),
              directory.c_str(), command.output.c_str());
  return 0;
}

}  // namespace wyec
