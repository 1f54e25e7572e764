#include <wye/records/record_report.hpp>

#include <algorithm>
#include <chrono>
#include <string>

#include "text.hpp"

namespace wye::inline v0 {
namespace records {

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string seconds(double value) {
  const auto tenths = static_cast<std::uint64_t>(value * 10 + 0.5);
  return text(tenths / 10, ".", tenths % 10, " s");
}

namespace {

/// Returns "4 GPUs", "1 CPU" or "3 devices".
std::string devices_text(const std::vector<RecordDevice>& devices) {
  const auto are_all = [&](std::string_view kind) {
    return std::ranges::all_of(devices, [&](const RecordDevice& d) { return d.name.starts_with(kind); });
  };
  const std::string kind = are_all("GPU") ? "GPU" : are_all("CPU") ? "CPU" : "device";
  return text(devices.size(), " ", kind, devices.size() == 1 ? "" : "s");
}

}  // namespace
}  // namespace records

std::uint64_t RecordReport::failed_records() const noexcept {
  std::uint64_t count = 0;
  for (const RecordFailure& one : failed) count += one.last - one.first + 1;
  return count;
}

std::uint32_t RecordReport::restarts() const noexcept {
  std::uint32_t count = 0;
  for (const RecordDevice& device : devices) count += device.restarts;
  return count;
}

const Error* RecordReport::error_of(std::uint64_t record) const noexcept {
  const auto after = std::ranges::upper_bound(failed, record, {}, &RecordFailure::first);
  if (after == failed.begin()) return nullptr;
  const RecordFailure& before = *(after - 1);
  return record <= before.last ? &before.error : nullptr;
}

std::string RecordReport::text() const {
  using records::grouped;
  const std::string before = resumed != 0 ? records::text(" (", grouped(resumed), " before)") : "";
  std::string line =
      records::text(grouped(records), " records on ", records::devices_text(devices), ": ", grouped(done),
                    " done", before, ", ", grouped(failed_records()), " failed");
  if (not_run != 0) line += records::text(", ", grouped(not_run), " not run");
  line += records::text(", ", restarts(), restarts() == 1 ? " restart, " : " restarts, ",
                        records::seconds(std::chrono::duration<double>(took).count()));
  const auto out = std::ranges::count_if(devices, [](const RecordDevice& d) { return d.out.has_value(); });
  if (out != 0) line += records::text("; ", out, out == 1 ? " device failed" : " devices failed");
  return line;
}

}  // namespace wye
