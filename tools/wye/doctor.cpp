#include "doctor.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <wye/base/dynamic_library.hpp>

namespace wye_tool {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<Finding>;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first <= list.size();) {
    const std::size_t last = std::min(list.find(':', first), list.size());
    if (last > first) parts.push_back(list.substr(first, last - first));
    first = last + 1;
  }
  return parts;
}

/// Returns the files of a folder whose names begin and end so, sorted.
std::vector<std::string> files_in(const std::string& folder, std::string_view begin, std::string_view end) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

/// Returns the folders in which Vulkan's loader looks for the manifests of drivers, in its order
/// (Vulkan-Loader, LoaderDriverInterface.md).
std::vector<std::string> manifest_folders(const Machine& machine) {
  const auto value = [&](const char* name, const std::string& otherwise) {
    const auto set = machine.variable(name);
    return set && !set->empty() ? *set : otherwise;
  };
  const std::string home = value("HOME", "");
  std::vector<std::string> folders =
      parts_of(value("XDG_CONFIG_HOME", home.empty() ? "" : home + "/.config"));
  for (const std::string& list : {value("XDG_CONFIG_DIRS", "/etc/xdg"), std::string("/etc"),
                                  value("XDG_DATA_HOME", home.empty() ? "" : home + "/.local/share"),
                                  value("XDG_DATA_DIRS", "/usr/local/share:/usr/share")})
    for (std::string& folder : parts_of(list)) folders.push_back(std::move(folder));
  for (std::string& folder : folders) folder += "/vulkan/icd.d";
  return folders;
}

/// Returns the manifests of Vulkan drivers.
std::vector<std::string> manifests(const Machine& machine) {
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    if (const auto list = machine.variable(name); list && !list->empty()) {
      std::vector<std::string> files;
      for (const std::string& file : parts_of(*list)) files.push_back(machine.root + file);
      return files;
    }
  std::vector<std::string> all;
  for (const std::string& folder : manifest_folders(machine))
    for (std::string& file : files_in(machine.root + folder, "", ".json")) all.push_back(std::move(file));
  return all;
}

/// Returns the library that a manifest names; nothing if it names none.
std::optional<std::string> library_of(const Machine& machine, const std::string& manifest) {
  const auto parsed = nlohmann::json::parse(content_of(manifest), nullptr, false);
  if (!parsed.is_object() || !parsed.contains("ICD") || !parsed["ICD"].is_object()) return std::nullopt;
  const auto& driver = parsed["ICD"];
  if (!driver.contains("library_path") || !driver["library_path"].is_string()) return std::nullopt;
  const std::string library = driver["library_path"];
  if (library.find('/') == library.npos) return library;  // the loader of the system finds it
  if (library.starts_with('/')) return machine.root + library;
  return (fs::path(manifest).parent_path() / library).lexically_normal().string();
}

bool has_nvidia_driver(const Machine& machine) {
  return fs::exists(machine.root + "/proc/driver/nvidia/version") ||
         fs::exists(machine.root + "/dev/nvidiactl");
}

void examine_vulkan(const Machine& machine, Findings& findings) {
  if (const auto why = machine.refusal_of("libvulkan.so.1")) {
    findings.push_back(
        {"vulkan-loader", "The Vulkan loader cannot be opened: " + *why,
         "Install it: 'apt install libvulkan1', or the package 'vulkan-loader' of other systems."});
    return;
  }
  const std::vector<std::string> files = manifests(machine);
  bool is_any_good = false;
  for (const std::string& file : files) {
    const auto library = library_of(machine, file);
    const auto why =
        library ? machine.refusal_of(*library) : std::optional<std::string>("It names no library.");
    is_any_good |= !why.has_value();
    if (why)
      findings.push_back({"vulkan-driver",
                          "The Vulkan driver of '" + file + "'" + (library ? " ('" + *library + "')" : "") +
                              " cannot be opened: " + *why,
                          "Install the package of this driver again, or remove the file."});
  }
  if (files.empty())
    findings.push_back({"vulkan-driver",
                        "The Vulkan loader finds no driver: there is no manifest in a folder 'vulkan/icd.d'.",
                        "Install the driver of the GPU, or 'apt install mesa-vulkan-drivers' for Mesa's."});
  const bool has_nvidia = std::ranges::any_of(files, [](const std::string& file) {
    return fs::path(file).filename().string().find("nvidia") != std::string::npos;
  });
  if (has_nvidia_driver(machine) && !has_nvidia)
    findings.push_back(
        {"nvidia-vulkan-driver", "The kernel has NVIDIA's driver, and there is no Vulkan driver for it here.",
         "In a container set NVIDIA_DRIVER_CAPABILITIES=all (or graphics,compute,utility); otherwise "
         "install the Vulkan part of the driver ('nvidia-vulkan-icd' in Debian)."});
}

void examine_nodes(const Machine& machine, Findings& findings) {
  std::vector<std::string> nodes = files_in(machine.root + "/dev/dri", "renderD", "");
  for (std::string& node : files_in(machine.root + "/dev", "nvidia", "")) nodes.push_back(std::move(node));
  for (const std::string& node : nodes) {
    struct stat status {};
    if (::stat(node.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    if (::access(node.c_str(), R_OK | W_OK) == 0) continue;
    const bool is_render = node.find("/dri/") != node.npos;
    findings.push_back({"device-permissions", "The device '" + node + "' cannot be opened by this user.",
                        is_render
                            ? "Add the user to its group ('usermod -aG render USER'), and log in again. In a "
                              "container pass the device ('--device " +
                                  node.substr(machine.root.size()) + "')."
                            : "Give the user access to it: 'chmod a+rw " + node.substr(machine.root.size()) +
                                  "', or in a container '--gpus all'."});
  }
}

/// Returns the number before the first point: 12 of "CUDA 12.4".
std::optional<int> major_of(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  int number = 0;
  if (digit == text.npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + digit, text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

void examine_cuda(const Machine& machine, Findings& findings) {
  for (const wye::AdapterInfo& adapter : machine.adapters) {
    if (adapter.backend != "cuda") continue;
    if (!adapter.usable && has_nvidia_driver(machine))
      findings.push_back(
          {"cuda-driver", "CUDA device '" + adapter.id + "' cannot be used: " + adapter.reason,
           "Install the driver library of NVIDIA's driver in the version of its kernel module; in a "
           "container use '--gpus all'."});
    const auto driver = major_of(adapter.api);
    if (!adapter.usable || !driver) continue;
    for (int compiler = *driver + 1; compiler <= *driver + 3; ++compiler) {
      const std::string library = "libnvrtc.so." + std::to_string(compiler);
      if (machine.refusal_of(library)) continue;
      findings.push_back({"nvrtc",
                          "The compiler '" + library + "' is newer than the driver of '" + adapter.id +
                              "' (" + adapter.api + "), which may not load its code.",
                          "Install NVRTC " + std::to_string(*driver) + ", or a newer driver."});
    }
  }
}

void examine_reports(const Machine& machine, Findings& findings) {
  for (const wye::QualificationReport& report : machine.reports) {
    if (report.passed() && report.failed_features() == wye::Features{}) continue;
    std::string failed;
    for (const wye::QualificationCheck& check : report.checks)
      if (check.state == wye::CheckState::failed || check.state == wye::CheckState::stopped)
        failed += (failed.empty() ? "" : "; ") + check.name + ": " + check.detail;
    findings.push_back({"qualification",
                        "Device '" + report.device + "' (" + report.name + ", " + report.driver +
                            ") has failed checks: " + failed,
                        report.passed()
                            ? "wye does not use these features of it. Update the driver, and check again "
                              "with WYE_QUALIFICATION=again."
                            : "wye does not use the device. Update its driver, and check again with "
                              "WYE_QUALIFICATION=again."});
  }
}

/// Examines a folder that wye writes to. A missing folder is created when it is needed.
void examine_folder(const char* check, const std::string& purpose, const char* variable,
                    const std::string& path, Findings& findings) {
  constexpr std::uint64_t least_free = 64ull << 20;
  if (path.empty()) return;
  const std::string set_another =
      std::string("Change its owner or mode, or set ") + variable + " to another folder.";
  fs::path present = path;
  std::error_code error;
  while (!fs::exists(present, error) && present.has_parent_path() && present != present.parent_path())
    present = present.parent_path();
  struct stat status {};
  if (::stat(present.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    findings.push_back({check,
                        "The folder of " + purpose + " ('" + path + "') cannot be created: '" +
                            present.string() + "' is no folder.",
                        set_another});
    return;
  }
  if (present == fs::path(path) && status.st_uid != ::geteuid()) {
    findings.push_back({check,
                        "The folder of " + purpose + " ('" + path + "') belongs to another user (" +
                            std::to_string(status.st_uid) + ").",
                        set_another});
    return;
  }
  struct statvfs system {};
  const bool is_known = ::statvfs(present.c_str(), &system) == 0;
  if (is_known && (system.f_flag & ST_RDONLY) != 0) {
    findings.push_back(
        {check, "The folder of " + purpose + " ('" + path + "') is on a file system that is read-only.",
         std::string("Set ") + variable + " to a folder that can be written."});
  } else if (::access(present.c_str(), W_OK | X_OK) != 0) {
    findings.push_back(
        {check, "The folder of " + purpose + " ('" + path + "') cannot be written.", set_another});
  } else if (is_known && std::uint64_t{system.f_bavail} * system.f_frsize < least_free) {
    findings.push_back({check,
                        "The file system of the folder of " + purpose + " ('" + path + "') is full: " +
                            to_string(wye::Bytes{std::uint64_t{system.f_bavail} * system.f_frsize}) +
                            " are free.",
                        std::string("Free 64 MiB there, or set ") + variable + " to a folder elsewhere."});
  }
}

/// Returns the limit of the control group, and its file; nothing if there is none.
std::optional<std::pair<std::uint64_t, std::string>> memory_limit(const Machine& machine) {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::string text = content_of(machine.root + path);
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error == std::errc() && end != text.data()) return std::pair{bytes, std::string(path)};
  }
  return std::nullopt;
}

void examine_memory(const Machine& machine, Findings& findings) {
  constexpr std::uint64_t least = 1ull << 30;
  const auto limit = memory_limit(machine);
  if (!limit || limit->first >= least) return;
  findings.push_back(
      {"memory-limit",
       "The control group of this process has " + to_string(wye::Bytes{limit->first}) + " of memory (" +
           limit->second + ").",
       "Raise the limit of the container or service to 1 GiB or more; wye refuses allocations beyond it."});
}

void examine_options(const Machine& machine, Findings& findings) {
  if (!machine.refusal_of_options) return;
  findings.push_back({"options", *machine.refusal_of_options, "Correct the variable, or unset it."});
}

void examine_version(const Machine& machine, Findings& findings) {
  if (machine.headers == machine.library) return;
  findings.push_back({"library-version",
                      "This program was built with headers of wye " + to_string(machine.headers) +
                          " and has loaded the library of wye " + to_string(machine.library) + ".",
                      "Build the program again, or install the library of its version."});
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  machine.refusal_of = [](const std::string& library) -> std::optional<std::string> {
    auto opened = wye::DynamicLibrary::open(library);
    if (!opened) return opened.error().sentence();
    opened->keep_loaded();  // some drivers do not survive being unloaded
    return std::nullopt;
  };
  auto options = wye::RuntimeOptions::from_environment();
  if (!options) machine.refusal_of_options = options.error().sentence();
  if (options) {
    machine.cache_directory = options->cache.directory;
    options->cache.require_directory = false;
    machine.share_directory = options->pool.share_folder;
    if (options->pool.share == wye::Share::machine && machine.share_directory.empty())
      machine.share_directory = "/dev/shm/wye-" + std::to_string(::geteuid());
    if (auto runtime = wye::Runtime::open(*std::move(options))) {
      machine.adapters = runtime->adapters();
      machine.reports = runtime->qualifications();
    }
  }
  return machine;
}

std::vector<Finding> examine(const Machine& machine) {
  Findings findings;
  examine_version(machine, findings);
  examine_options(machine, findings);
  examine_vulkan(machine, findings);
  examine_nodes(machine, findings);
  examine_cuda(machine, findings);
  examine_reports(machine, findings);
  examine_folder("cache-folder", "the cache", "WYE_CACHE_DIR", machine.cache_directory, findings);
  examine_folder("share-folder", "shared slots", "WYE_SHARE_DIR", machine.share_directory, findings);
  examine_memory(machine, findings);
  return findings;
}

}  // namespace wye_tool
