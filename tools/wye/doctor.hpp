#pragma once
/// Checks of the machine: each finding has evidence and a remedy.
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include <wye/wye.hpp>

namespace wye_tool {

/// One thing that is wrong.
struct Finding {
  std::string check;     ///< "vulkan-driver"
  std::string evidence;  ///< a sentence
  std::string remedy;    ///< a sentence
};

/// The machine to examine. In tests its files are below a folder.
struct Machine {
  std::string root = {};  ///< before each path; empty: those of the system
  std::function<std::optional<std::string>(const char*)> variable;
  /// Returns the message of the loader if it cannot open a library.
  std::function<std::optional<std::string>(const std::string&)> refusal_of;
  std::optional<std::string> refusal_of_options = std::nullopt;  ///< a variable has a wrong value
  std::vector<wye::AdapterInfo> adapters = {};
  std::vector<wye::QualificationReport> reports = {};
  std::string cache_directory = {};  ///< empty: memory only
  std::string share_directory = {};
  wye::Version headers = wye::header_version;
  wye::Version library = wye::library_version();
};

/// Returns this machine, with the devices that wye finds.
Machine this_machine();

/// Makes all checks.
std::vector<Finding> examine(const Machine& machine);

}  // namespace wye_tool
