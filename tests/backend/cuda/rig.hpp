#pragma once
/// A device of the stand-in, and a piece of work that calls everything there is.
#include <wye/device/buffer.hpp>

#include <numeric>
#include <optional>

#include "backend/cuda/stand_in.hpp"
#include "device/lane.hpp"
#include "device/stamps.hpp"

namespace wye::test {

constexpr std::size_t length = 3000;
constexpr Word poison = 0xdeadbeef;

inline BufferRange range(const std::shared_ptr<BufferBase>& buffer) {
  return {buffer, Bytes{}, buffer->bytes()};
}
inline Operand argument(const std::shared_ptr<BufferBase>& buffer) {
  return Buffer(buffer, ElementType::uint32, sizeof(Word)).operand(Access::read_write);
}
inline Operand argument(Word value) { return Operand::of_value(value); }
template <class... A>
Arguments arguments_of(const A&... values) {
  Arguments list;
  (list.push_back(argument(values)), ...);
  return list;
}
inline std::span<const std::byte> bytes_of(const std::vector<Word>& words) {
  return std::as_bytes(std::span(words));
}
inline std::span<std::byte> writable_bytes_of(std::vector<Word>& words) {
  return std::as_writable_bytes(std::span(words));
}

/// The result of a run: the first error, if any, and the downloaded words.
struct Outcome {
  std::optional<Error> error;
  std::vector<Word> out = std::vector<Word>(length, poison);
};

inline std::vector<Word> numbers(Word first) {
  std::vector<Word> words(length);
  std::iota(words.begin(), words.end(), first);
  return words;
}

inline std::vector<Word> expected() {
  auto a = numbers(1);
  const auto b = numbers(1000);
  for (std::size_t i = 0; i < length; ++i) a[i] = ((a[i] + 4) * 3 + b[i] + 6) + 4 + 1 + 2;
  return a;
}

/// Opens, allocates, loads, uploads, dispatches, waits for other lanes and for the host, downloads.
/// `check` is called after each call.
template <class Check>
Outcome scenario(const std::shared_ptr<Adapter>& adapter, Check check) {
  Outcome outcome;
  const auto stop = [&](const Error& error) { return outcome.error = error, outcome; };
  auto opened = adapter->open();
  check();
  if (!opened) return stop(opened.error());
  const std::shared_ptr<DeviceBase> device = *opened;
  std::vector<std::shared_ptr<BufferBase>> buffers;
  for (int i = 0; i < 3; ++i) {
    auto buffer =
        device->create_buffer({.bytes = Bytes{4 * length}, .use = MemoryUse::device, .account = nullptr});
    check();
    if (!buffer) return stop(buffer.error());
    buffers.push_back(*buffer);
  }
  auto staging =
      device->create_buffer({.bytes = Bytes{4 * length}, .use = MemoryUse::transfer, .account = nullptr});
  check();
  if (!staging) return stop(staging.error());
  (void)device->memory();
  check();
  std::vector<std::shared_ptr<ExecutableBase>> kernels;
  for (const char* name : {"add", "mix"}) {
    auto kernel = device->create_executable(good(test_kernel(name, *device, Twin::addresses)));
    check();
    if (!kernel) return stop(kernel.error());
    kernels.push_back(*kernel);
  }
  auto first = device->create_lane();
  check();
  if (!first) return stop(first.error());
  auto second = device->create_lane({.priority = LanePriority::high});
  if (!second) return stop(second.error());
  auto gate = device->create_timeline();
  check();
  if (!gate) return stop(gate.error());
  auto stamps = device->create_stamps();
  check();
  if (!stamps) return stop(stamps.error());

  Lane lane(*std::move(first)), other(*std::move(second));
  const auto a = numbers(1), b = numbers(1000);
  std::memcpy((*staging)->host(), b.data(), 4 * length);
  lane.upload(bytes_of(a), range(buffers[0]));
  lane.copy(range(*staging), range(buffers[1]));
  lane.dispatch(kernels[0], arguments_of(buffers[0], Word{4}), length);
  const TimelinePoint point = lane.submit();
  check();
  other.wait_for({*gate, 1});
  if (!lane.failure()) other.wait_for(point);
  other.dispatch(kernels[1], arguments_of(buffers[1], buffers[0], Word{6}), length);
  other.copy(range(buffers[0]), range(buffers[2]));
  const TimelinePoint parked = other.submit();
  check();
  if (auto signaled = (*gate)->signal(1); !signaled) return stop(signaled.error());
  check();
  if (auto waited = other.wait(Clock::steady().now() + std::chrono::seconds(60)); !waited)
    return check(), stop(waited.error());
  check();
  if (!lane.failure()) lane.wait_for(parked);
  lane.dispatch(kernels[0], arguments_of(buffers[2], Word{4}), length);
  lane.submit();
  SequenceState sequence(device);
  sequence.open().dispatch(kernels[0], arguments_of(buffers[2], Word{1}), length);
  sequence.open().stamp_begin(*stamps);
  sequence.open().copy(range(buffers[2]), range(buffers[1]));
  sequence.open().fill(range(buffers[0]), 1);
  sequence.open().copy(range(buffers[1]), range(buffers[0]));
  sequence.open().stamp_end(*stamps);
  lane.submit(sequence);
  check();
  (void)sequence.open().set(0, 1, argument(Word{2}));
  lane.submit(sequence);
  check();
  lane.download(range(buffers[0]), writable_bytes_of(outcome.out));
  lane.submit();
  lane.fill(range(buffers[2]), 1);
  auto waited = lane.wait(Instant::max());
  check();
  if (!waited) return stop(waited.error());
  if (const auto times = (*stamps)->read()) REQUIRE(times->begin <= times->end);
  check();
  return outcome;
}

}  // namespace wye::test
