// The file of marks in a cache directory: whatever it contains, deaths are found only in builds in
// which processes have ended.
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "cache/store/build_marks.hpp"
#include "fuzz/edits.hpp"

namespace {

using namespace wye;

constexpr std::size_t file_bytes = 4096;  // of 256 KiB: places of 64 bytes

constexpr std::uint8_t step = 2;
constexpr std::uint32_t minute = 1'000'000;

void expect(bool holds) {
  if (!holds) std::abort();
}

/// In memory: 20,000 files on a disk take a minute.
const std::string& marks_path() {
  static const std::string path = "/dev/shm/wye_marks_fuzz." + std::to_string(getpid());
  static const int removed_at_exit = std::atexit([] { unlink(marks_path().c_str()); });
  (void)removed_at_exit;
  return path;
}

void put_marks(std::span<const std::byte> bytes) {
  std::ofstream out(marks_path(), std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> marks_written() {
  std::ifstream in(marks_path(), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

cache::BuildMarks open_marks() {
  return cache::BuildMarks::open(marks_path(), [] { return minute; }).value();
}

/// Leaves a mark as a process does that ends in a build.
void die_in(cache::BuildMarks& marks, const Digest& what) {
  const auto before = marks.settle(what);
  expect(before.has_value());
  marks.reach(what, *before, step);
}

/// Builds whose marks are within `file_bytes`: in the i-th, i processes have ended.
std::vector<Digest> builds() {
  std::vector<Digest> all;
  for (int i = 0; all.size() < 4; ++i) {
    const Digest what = Hasher().add("build " + std::to_string(i)).finish();
    put_marks({});
    auto marks = open_marks();
    die_in(marks, what);
    if (marks_written().size() <= file_bytes) all.push_back(what);
  }
  return all;
}

std::vector<std::byte> valid_marks(const std::vector<Digest>& all) {
  put_marks({});
  auto marks = open_marks();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t n = 0; n < i; ++n) die_in(marks, all[i]);
  return marks_written();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Digest> all = builds();
  static const std::vector<std::byte> valid = valid_marks(all);
  test::Input input(data, size);
  const std::vector<std::byte> bytes = test::edited(valid, input);
  put_marks(bytes);
  auto marks = open_marks();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto ended_in_it = [&](std::size_t processes) {
      if (i == 0) return cache::Deaths{};
      return cache::Deaths{.interrupted = static_cast<unsigned>(processes), .step = step, .minute = minute};
    };
    const cache::Deaths none, deaths = marks.deaths(all[i]).value();
    const bool is_whole = bytes == valid;
    expect(deaths == ended_in_it(i - 1) || (deaths == none && !is_whole));  // the last one may be alive
    const cache::Deaths found = marks.settle(all[i]).value();
    expect(found == ended_in_it(i) || (found == none && !is_whole));
    marks.end(all[i]);
    expect(marks.deaths(all[i]).value() == none);
  }
  expect(marks.clear().has_value());
  expect(marks_written().empty());
  return 0;
}
