// Stored times of jobs: reading them returns what was written, or they are rejected.
#include <cstdlib>

#include "fuzz/edits.hpp"
#include "scheduler/stored_times.hpp"
#include "scheduler/time_book.hpp"

namespace {

using namespace wye;
using scheduler::StoredTimes;

StoredTimes sample() {
  const scheduler::Timing time{
      .mean = Duration(2'000), .spread = Duration(3), .least = Duration(900), .count = 9};
  return {.kernels = {{7, Duration(5'000), Duration(4'000), {{40, time, time}, {255, time, time}}},
                      {8, Duration(1), Duration(0), {{0, time, time}}}},
          .variants = {{9, 12, time}, {10, 0, time}}};
}

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> valid = scheduler::encode(sample());
  test::Input input(data, size);
  const std::vector<std::byte> bytes = test::edited(valid, input);
  const auto read = scheduler::decode_times(bytes);
  if (bytes == valid) expect(read == sample());
  if (!read) return 0;
  expect(scheduler::encode(*read) == bytes);  // times have one form
  const StoredTimes merged = merge(*read, sample());
  const auto again = scheduler::decode_times(scheduler::encode(merged));
  expect(again == merged);
  scheduler::TimeBook book;
  book.adopt(1, merged);
  for (const StoredTimes::Kernels& kernels : merged.kernels) {
    const scheduler::TimeBook::Key key{.kernels = kernels.number, .size_class = 41, .group = 1};
    if (auto* const row = book.row(key, {.stored = kernels.number})) {
      expect(book.estimate(*row) >= Duration::zero());
      book.note(*row, Duration(5), {}, Instant());
    }
  }
  expect(scheduler::decode_times(scheduler::encode(book.noted(1))).has_value());
  return 0;
}
