#pragma once
/// The texts that the program prints, and their JSON.
#include <string>
#include <vector>
#include <wye/wye.hpp>

#include "doctor.hpp"

namespace wye_tool {

/// The machine as wye sees it.
struct Info {
  std::vector<wye::AdapterInfo> adapters;
  std::vector<wye::QualificationReport> reports;
  wye::Variables options;  ///< that a variable sets
  std::string cache_directory;
  std::uint64_t cached_files = 0;
  wye::Bytes cached_bytes;
};

/// Errors: those of `Runtime::open`.
wye::Result<Info> read_info();

std::string text_of(const Info& info);
std::string json_of(const Info& info);
std::string text_of(const std::vector<Finding>& findings);
std::string json_of(const std::vector<Finding>& findings);

}  // namespace wye_tool
