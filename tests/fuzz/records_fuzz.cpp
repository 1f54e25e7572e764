// The memory of a worker, as a set reads it. Whatever a worker writes there, each batch that it was
// given comes back once.
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "process/workers.hpp"
#include "seat.hpp"

using namespace wye;
using records::Batch;
using records::Seat;
using records::SlotHeader;
using records::SlotLayout;

namespace {

constexpr SlotLayout layout{.batch = 4, .input = 8, .output = 8};

/// Takes bytes from the input, zeros after its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  template <class T>
  T number(unsigned bytes = sizeof(T)) {
    T value{};
    const auto size = std::min<std::size_t>(bytes, rest_.size());
    std::memcpy(&value, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  void fill(std::span<std::byte> memory, std::size_t most) {
    const auto size = std::min({memory.size(), most, rest_.size()});
    std::memcpy(memory.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

void write_garbage(Input& in, SlotHeader& header) {
  header.stage = in.number<std::uint32_t>(1) % 5;
  header.error_bytes = in.number<std::uint64_t>(2) * in.number<std::uint64_t>(1);
  in.fill(header.error, in.number<std::uint8_t>());
  for (records::Slot& slot : header.slots) {
    slot.state = in.number<std::uint32_t>(1) % 6;
    slot.has_error = in.number<std::uint32_t>(1) % 3;
    slot.count = in.number<std::uint64_t>();
    slot.order = in.number<std::uint64_t>(1);
    slot.error_bytes = in.number<std::uint64_t>(2) * in.number<std::uint64_t>(1);
    in.fill(slot.error, in.number<std::uint8_t>());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in({data, size});
  static auto workers = process::Workers::open().value();
  Seat seat({.device_name = "CPU", .layout = layout, .timeout = std::chrono::seconds(5)});
  auto worker = workers
                    .start({.name = "fuzz",
                            .memory = *layout.size(),
                            .body =
                                [](process::WorkerEnd& end) {
                                  while (!end.is_ending()) end.wait(end.calls());
                                }})
                    .value();
  const auto memory = worker.memory();
  SlotHeader& header = records::header_of(memory);
  Instant now = Clock::steady().now();
  seat.seat(std::move(worker), now);
  header.stage = 1;
  (void)seat.check(now);

  std::vector<bool> is_out;  // by the first record of a batch
  const auto take = [&](const Batch& batch) {
    if (batch.range.count != 4 || batch.range.first % 4 != 0 || !is_out[batch.range.first / 4])
      __builtin_trap();
    is_out[batch.range.first / 4] = false;
  };
  for (int round = 0; round < 4; ++round) {
    while (seat.wants()) {
      seat.give({.range = {is_out.size() * 4, 4}}, now);
      is_out.push_back(true);
    }
    write_garbage(in, header);
    now += std::chrono::seconds(in.number<std::uint8_t>() % 4);
    if (in.number<std::uint8_t>() % 4 == 0)
      if (const auto batch = seat.take_back()) take(*batch);
    while (const auto answer = seat.answer(now)) {
      if (!answer->error && answer->results.size() != 32) __builtin_trap();
      take(answer->batch);
    }
    if (const auto end = seat.check(now)) {
      for (const Batch& batch : end->ran) take(batch);
      for (const Batch& batch : end->not_run) take(batch);
      if (seat.is_running() || !seat.is_vacant()) __builtin_trap();
      break;
    }
  }
  std::size_t left = 0;
  for (const bool one : is_out) left += one ? 1 : 0;
  if (left * 4 != seat.records()) __builtin_trap();
  return 0;
}
