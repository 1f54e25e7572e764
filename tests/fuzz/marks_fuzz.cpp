// The file of marks in a cache directory: whatever it contains, only builds that ended processes
// are refused.
#include <algorithm>
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

/// Builds whose marks are within `file_bytes`: the i-th was begun i times.
std::vector<Digest> builds() {
  std::vector<Digest> all;
  for (int i = 0; all.size() < 4; ++i) {
    const Digest what = Hasher().add("build " + std::to_string(i)).finish();
    put_marks({});
    auto marks = cache::BuildMarks::open(marks_path()).value();
    expect(marks.begin(what).has_value());
    if (marks_written().size() <= file_bytes) all.push_back(what);
  }
  return all;
}

std::vector<std::byte> valid_marks(const std::vector<Digest>& all) {
  put_marks({});
  auto marks = cache::BuildMarks::open(marks_path()).value();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t n = 0; n < i; ++n) expect(marks.begin(all[i]).has_value());
  return marks_written();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Digest> all = builds();
  static const std::vector<std::byte> valid = valid_marks(all);
  test::Input input(data, size);
  const std::vector<std::byte> bytes = test::edited(valid, input);
  put_marks(bytes);
  auto marks = cache::BuildMarks::open(marks_path()).value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const unsigned deaths = marks.deaths(all[i]).value();
    const unsigned died = i == 0 ? 0 : static_cast<unsigned>(i - 1);  // the last one may be alive
    expect(deaths == died || (deaths == 0 && bytes != valid));
    const unsigned found = marks.begin(all[i]).value();
    expect(found == 0 || found == std::min<unsigned>(died + 1, cache::BuildMarks::most_deaths));
    marks.end(all[i]);
    expect(marks.deaths(all[i]).value() == 0);
  }
  expect(marks.clear().has_value());
  expect(marks_written().empty());
  return 0;
}
