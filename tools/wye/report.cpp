#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <wye/cache/cache_directory.hpp>

namespace wye_tool {
namespace {

using Json = nlohmann::ordered_json;

/// Names may hold bytes of other encodings, from drivers and paths: these are replaced.
std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// Returns `text` with spaces up to a width.
std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string checks_of(const Info& info, const std::string& device) {
  for (const wye::QualificationReport& report : info.reports) {
    if (report.device != device) continue;
    std::string text = report.passed() ? ", checks passed" : ", checks failed";
    if (report.is_stored) text += " (stored)";
    return text;
  }
  return "";
}

}  // namespace

wye::Result<Info> read_info() {
  auto options = wye::RuntimeOptions::from_environment();
  if (!options) return std::move(options).error();
  Info info;
  info.options = options->to_variables();
  info.cache_directory = options->cache.directory;
  if (!info.cache_directory.empty())
    if (const auto files = wye::list_cache(info.cache_directory)) {
      info.cached_files = files->size();
      for (const wye::StoredFile& file : *files) info.cached_bytes += file.bytes;
    }
  auto runtime = wye::Runtime::open(*std::move(options));
  if (!runtime) return std::move(runtime).error();
  info.adapters = runtime->adapters();
  info.reports = runtime->qualifications();
  return info;
}

std::string text_of(const Info& info) {
  std::string text = "wye " + to_string(wye::library_version()) + "\n\ndevices\n";
  std::size_t width = 0;
  for (const wye::AdapterInfo& adapter : info.adapters) width = std::max(width, adapter.id.size());
  for (const wye::AdapterInfo& adapter : info.adapters) {
    const std::string indent = "  " + padded("", width) + "  ";
    text += "  " + padded(adapter.id, width) + "  ";
    if (!adapter.usable) {
      text += "not usable: " + adapter.reason + "\n";
      continue;
    }
    text += adapter.name + " (" + std::string(name(adapter.type)) + ", " + to_string(adapter.memory) +
            checks_of(info, adapter.id) + ")\n";
    if (!adapter.api.empty() || !adapter.driver.empty())
      text += indent + adapter.api + (adapter.driver.empty() ? "" : ", " + adapter.driver) + "\n";
    if (adapter.features != wye::Features{})
      text += indent + "features: " + to_string(adapter.features) + "\n";
    if (adapter.failed_features != wye::Features{})
      text += indent + "failed their checks: " + to_string(adapter.failed_features) + "\n";
  }
  text += "\ncache\n  ";
  text += info.cache_directory.empty() ? "memory only\n"
                                       : info.cache_directory + ": " + std::to_string(info.cached_files) +
                                             " files, " + to_string(info.cached_bytes) + "\n";
  text += "\noptions that differ from their defaults\n";
  for (const auto& [variable, value] : info.options) text += "  " + variable + "=" + value + "\n";
  return text;
}

std::string json_of(const Info& info) {
  Json all{{"version", to_string(wye::library_version())}, {"devices", Json::array()}};
  for (const wye::AdapterInfo& adapter : info.adapters) {
    Json one{
        {"id", adapter.id}, {"backend", adapter.backend}, {"name", adapter.name}, {"usable", adapter.usable}};
    if (!adapter.usable) one["reason"] = adapter.reason;
    if (adapter.usable) {
      one["type"] = name(adapter.type);
      one["memory"] = adapter.memory.count;
      one["api"] = adapter.api;
      one["driver"] = adapter.driver;
      one["uuid"] = wye::to_string(adapter.device_uuid);
      one["features"] = to_string(adapter.features);
    }
    all["devices"].push_back(std::move(one));
  }
  all["qualification"] = Json::array();
  for (const wye::QualificationReport& report : info.reports) {
    Json one{{"device", report.device},
             {"passed", report.passed()},
             {"stored", report.is_stored},
             {"checks", Json::object()}};
    for (const wye::QualificationCheck& check : report.checks) one["checks"][check.name] = name(check.state);
    all["qualification"].push_back(std::move(one));
  }
  all["cache"] = {
      {"directory", info.cache_directory}, {"files", info.cached_files}, {"bytes", info.cached_bytes.count}};
  all["options"] = Json::object();
  for (const auto& [variable, value] : info.options) all["options"][variable] = value;
  return dump(all);
}

std::string text_of(const std::vector<Finding>& findings) {
  if (findings.empty()) return "Nothing is wrong.\n";
  std::string text;
  for (const Finding& finding : findings)
    text += finding.check + ": " + finding.evidence + "\n  " + finding.remedy + "\n";
  return text;
}

std::string json_of(const std::vector<Finding>& findings) {
  Json all{{"findings", Json::array()}};
  for (const Finding& finding : findings)
    all["findings"].push_back(
        {{"check", finding.check}, {"evidence", finding.evidence}, {"remedy", finding.remedy}});
  return dump(all);
}

}  // namespace wye_tool
