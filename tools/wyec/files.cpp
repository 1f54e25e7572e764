#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "write.hpp"

namespace wyec {
namespace {

/// A path as make and ninja read it.
std::string escaped(const std::string& path) {
  std::string result;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') result += '\\';
    if (c == '$') result += '$';
    result += c;
  }
  return result;
}

}  // namespace

std::string dependencies(const std::string& output, const std::vector<std::string>& inputs) {
  std::string text = escaped(output) + ":";
  for (const std::string& input : inputs) text += " \\\n  " + escaped(input);
  return text + "\n";
}

std::optional<std::string> write_file(const std::string& path, std::string_view content) {
  // A reader sees the old file or the new file. Devices and pipes are not replaced.
  std::error_code ignored;
  const bool replace =
      !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored);
  const std::string beside = replace ? path + "." + std::to_string(::getpid()) + ".tmp" : path;
  errno = 0;
  std::ofstream file(beside, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  std::error_code error(errno, std::generic_category());
  if (file) {
    if (!replace) return std::nullopt;
    std::filesystem::rename(beside, path, error);
    if (!error) return std::nullopt;
  }
  if (replace) std::filesystem::remove(beside, ignored);
  return "File '" + path + "' cannot be written: " + error.message() + ".";
}

}  // namespace wyec
