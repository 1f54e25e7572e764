// Known failures of other libraries, each reproduced with wye. The numbers are those of the list of
// facts.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "base/worker.hpp"

namespace wye::test {
namespace {

/// x[i] counts up, one step at a time, `steps` times: a few milliseconds of work per thousand
/// workgroups.
std::shared_ptr<ExecutableBase> slow_kernel(Rig& rig) {
  Artefact a;
  a.kernel = "slow";
  a.language = "spirv";
  a.schema = {{buffer_slot("x", Access::read_write), scalar_slot("steps")}};
  a.passing = {{.kind = Passing::Kind::span, .binding = 0, .offset = 0},
               {.kind = Passing::Kind::bytes, .binding = 0, .offset = 16}};
  a.parameter_bytes = 20;
  a.workgroup = a.tile = 64;
  a.code = compile(R"(#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer X { uint at[]; };
layout(push_constant) uniform P { X x; uvec2 size; uint steps; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < size.x) for (uint n = 0; n < steps; ++n) x.at[i] = x.at[i] * 1664525u + 1013904223u;
})");
  return rig.executable(a);
}

Word stepped(Word word, Word steps) {
  for (Word n = 0; n < steps; ++n) word = word * 1664525u + 1013904223u;
  return word;
}

TEST_CASE("peers 1: a device lost while it is waited for gives an error and no stale data, and ends in peace",
          "[vulkan][peers]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto x = rig.buffer(std::vector<Word>(length, 1));
    const auto add = rig.kernel("add");
    auto lane = rig.lane(), other = rig.lane();
    std::vector<Word> out(length, 5);
    const auto once = [&](Lane& l) {
      l.dispatch(add, arguments_of(argument(x), Word{1}), length);
      l.download(range(x), writable_bytes_of(out));
      return l.wait(Instant::max());
    };
    good(once(*lane));
    CHECK(difference(out, std::vector<Word>(length, 2)) == "");
    driver.fail("vkWaitSemaphores", 1, VK_ERROR_DEVICE_LOST);
    out.assign(length, 5);
    auto lost = once(*lane);
    REQUIRE_FALSE(lost);
    CHECK(lost.error() == Errc::device_lost);
    CHECK(lost.error().native()->api == "vkWaitSemaphores");
    CHECK(difference(out, std::vector<Word>(length, 5)) == "");
    // Permanently, on every call.
    REQUIRE(rig.device().lost());
    CHECK(rig.device().lost()->sentence() == lost.error().sentence());
    CHECK(once(*lane).error() == Errc::device_lost);
    CHECK(once(*other).error() == Errc::device_lost);
    CHECK(lane->submit().timeline->wait(1, Instant::max()).error() == Errc::device_lost);
    CHECK(lane->submit().timeline->wait(99, Instant::max()).error() == Errc::device_lost);
    CHECK(rig.device().create_lane({}).error() == Errc::device_lost);
    CHECK(rig.device().create_timeline().error() == Errc::device_lost);
    CHECK(rig.device().create_executable(good(test_kernel("add", "spirv", Twin::addresses))).error() ==
          Errc::device_lost);
    CHECK(rig.device().create_buffer({.bytes = 4_B, .use = MemoryUse::device, .account = nullptr}).error() ==
          Errc::device_lost);
    CHECK(rig.device().memory().total.count > 0);
    CHECK(difference(out, std::vector<Word>(length, 5)) == "");
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("peers 1: data of a device that another thread finds lost is not returned", "[vulkan][peers]") {
  Driver driver;
  std::function<void()> meanwhile;
  driver.replace<PFN_vkWaitSemaphores>(
      "vkWaitSemaphores", [&](PFN_vkWaitSemaphores real, VkDevice device, const VkSemaphoreWaitInfo* info,
                              std::uint64_t timeout) {
        const VkResult result = real(device, info, timeout);
        if (meanwhile) meanwhile();
        return result;
      });
  Rig rig({.wrap = driver.wrap()});
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  std::vector<Word> out(length, 5);
  auto lane = rig.lane();
  meanwhile = [&] { rig.device().lose("vkQueueSubmit"); };
  lane->download(range(x), writable_bytes_of(out));
  CHECK(lane->wait(Instant::max()).error() == Errc::device_lost);
  CHECK(difference(out, std::vector<Word>(length, 5)) == "");
}

TEST_CASE("peers 2: a device lost at submission is not waited for", "[vulkan][peers]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto x = rig.buffer(std::vector<Word>(length, 1));
    const auto gate = good(rig.device().create_timeline());
    auto lane = rig.lane(), parked = rig.lane();
    parked->wait_for({gate, 1});
    parked->fill(range(x), 3);
    const TimelinePoint point = parked->submit();
    std::optional<Result<void>> woken;
    {
      const auto waiter = good(
          base::Worker::start("waiter", [&] { woken = point.timeline->wait(point.value, Instant::max()); }));
      driver.fail("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
      lane->fill(range(x), 2);
      auto lost = lane->wait(Instant::max());
      REQUIRE_FALSE(lost);
      CHECK(lost.error() == Errc::device_lost);
      CHECK(lost.error().native()->api == "vkQueueSubmit");
    }
    REQUIRE(woken);
    CHECK(woken->error() == Errc::device_lost);
    CHECK(gate->signal(1).error() == Errc::device_lost);
    CHECK(parked->wait(Instant::max()).error() == Errc::device_lost);
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("peers 3: a device out of memory returns an error and works again", "[vulkan][peers]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  std::vector<std::shared_ptr<BufferBase>> many;
  std::optional<Error> full;
  while (!full && many.size() < 100) {
    auto next = rig.device().create_buffer({.bytes = 500_MiB, .use = MemoryUse::device, .account = nullptr});
    if (next)
      many.push_back(*next);
    else
      full = next.error();
  }
  if (rig.device().info().memory < Bytes{40ull << 30}) {
    REQUIRE(full);
    CHECK(*full == Errc::out_of_memory);
    CHECK(full->sentence().find("now") != std::string::npos);
  }
  many.clear();
  driver.fail("vkAllocateMemory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  auto injected =
      rig.device().create_buffer({.bytes = 500_MiB, .use = MemoryUse::device, .account = nullptr});
  CHECK((!injected && injected.error() == Errc::out_of_memory));
  injected = Error(Errc::closed, "");
  CHECK(difference(rig.read(rig.buffer(std::vector<Word>(length, 8))), std::vector<Word>(length, 8)) == "");
}

TEST_CASE("peers 4: a buffer of 2^30 + 16 floats is as large as that, or refused", "[vulkan][peers]") {
  Rig rig;
  constexpr std::uint64_t bytes = ((1ull << 30) + 16) * 4;
  auto large =
      rig.device().create_buffer({.bytes = Bytes{bytes}, .use = MemoryUse::device, .account = nullptr});
  if (large) {
    CHECK((*large)->bytes() == Bytes{bytes});
    std::vector<Word> out(4);
    auto lane = rig.lane();
    lane->fill(range(*large, bytes - 16, 16), 6);
    lane->download(range(*large, bytes - 16, 16), writable_bytes_of(out));
    settle(*lane);
    CHECK(difference(out, std::vector<Word>(4, 6)) == "");
  } else {
    CHECK(large.error() == Errc::out_of_memory);
    CHECK(large.error().sentence().find(std::to_string(bytes)) != std::string::npos);
    CHECK(rig.device().info().limits.buffer < Bytes{bytes});
  }
}

TEST_CASE("peers 5: code that is not SPIR-V is an error", "[vulkan][peers]") {
  Rig rig;
  for (const std::size_t size : {0u, 4u, 20u, 64u, 4096u}) {
    Artefact a = good(test_kernel("add", "spirv", Twin::descriptors));
    const auto garbage = random_words(size + 1, size / 4);
    const auto bytes = bytes_of(garbage);
    a.code.assign(bytes.begin(), bytes.end());
    CHECK(rig.device().create_executable(a).error() == Errc::compile_failed);
  }
}

TEST_CASE("peers 6: after a wait that gave up the lane takes more, and nothing in flight is touched",
          "[vulkan][peers]") {
  Rig rig;
  const auto slow = slow_kernel(rig);
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  std::vector<Word> first(length, 5), second(length, 5);
  auto lane = rig.lane();
  lane->dispatch(slow, arguments_of(argument(x), Word{20000}), length);
  lane->download(range(x), writable_bytes_of(first));
  auto gave_up = lane->wait(Clock::steady().now() + 1us);
  if (!gave_up) {
    CHECK(gave_up.error() == Errc::timed_out);
    CHECK(difference(first, std::vector<Word>(length, 5)) == "");
  }
  lane->dispatch(slow, arguments_of(argument(x), Word{10}), length);
  lane->download(range(x), writable_bytes_of(second));
  settle(*lane);
  CHECK(difference(first, std::vector<Word>(length, stepped(1, 20000))) == "");
  CHECK(difference(second, std::vector<Word>(length, stepped(1, 20010))) == "");
}

TEST_CASE("peers 8: four threads share one device", "[vulkan][peers]") {
  Rig rig;
  std::atomic<unsigned> wrong{0};
  {
    std::vector<base::Worker> threads;
    for (Word me = 0; me < 4; ++me)
      threads.push_back(good(base::Worker::start("peer", [&, me] {
        auto made = rig.device().create_lane({});
        if (!made) return void(++wrong);
        Lane lane(*std::move(made));
        for (Word round = 0; round < 25; ++round) {
          // Everything anew each time: buffers, kernels, submissions, all at once with the other
          // threads.
          auto buffer = rig.device().create_buffer(
              {.bytes = Bytes{4 * (length + 100 * me)}, .use = MemoryUse::device, .account = nullptr});
          auto artefact = test_kernel("add", "spirv", round % 2 ? Twin::addresses : Twin::descriptors);
          if (!buffer || !artefact) return void(++wrong);
          auto kernel = rig.device().create_executable(*artefact);
          if (!kernel) return void(++wrong);
          auto words = random_words(me * 1000 + round, length + 100 * me);
          std::vector<Word> out(words.size());
          lane.upload(bytes_of(words), range(*buffer));
          lane.dispatch(*kernel, arguments_of(argument(*buffer), me + round), words.size());
          lane.download(range(*buffer), writable_bytes_of(out));
          if (!lane.wait(Instant::max())) return void(++wrong);
          for (Word& word : words) word += me + round;
          if (out != words) ++wrong;
        }
      })));
  }
  CHECK(wrong == 0);
}

TEST_CASE("peers 9: objects destroyed in flight live until the device completes", "[vulkan][peers]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    const auto x = rig.buffer(std::vector<Word>(length, 1));
    for (int round = 0; round < 8; ++round) {
      auto slow = slow_kernel(rig);
      auto lane = rig.lane();
      auto y = rig.buffer(4 * length), z = rig.buffer(4 * length);
      lane->copy(range(x), range(y));
      lane->dispatch(slow, arguments_of(argument(y), Word{3000}), length);
      lane->copy(range(y), range(z));
      lane->copy(range(z), range(x));
      std::vector<Word> gone(length);
      if (round % 2) lane->download(range(z), writable_bytes_of(gone));
      lane->submit();
      slow.reset();
      y.reset();
      if (round % 4 < 2) z.reset();
      lane.reset();
    }
    CHECK(difference(rig.read(x), std::vector<Word>(length, stepped(1, 8 * 3000))) == "");
  }
  CHECK(driver.alive_text() == "");
}

TEST_CASE("peers 9: a lane destroyed while it waits for the host ends when the host signals",
          "[vulkan][peers]") {
  Rig rig;
  const auto gate = good(rig.device().create_timeline());
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  auto lane = rig.lane();
  lane->wait_for({gate, 1});
  lane->fill(range(x), 4);
  lane->submit();
  {
    const auto dropper = good(base::Worker::start("dropper", [&] { lane.reset(); }));
    good(gate->signal(1));
  }
  CHECK(difference(rig.read(x), std::vector<Word>(length, 4)) == "");
}

TEST_CASE("peers 9: a device that is dropped first ends with its last lane", "[vulkan][peers]") {
  Driver driver;
  {
    Rig rig({.wrap = driver.wrap()});
    auto slow = slow_kernel(rig);
    auto x = rig.buffer(std::vector<Word>(length, 1));
    auto lane = rig.lane();
    std::vector<Word> out(length);
    lane->dispatch(slow, arguments_of(argument(x), Word{2000}), length);
    lane->download(range(x), writable_bytes_of(out));
    lane->submit();
    rig.close();
    slow.reset();
    x.reset();
    settle(*lane);
    CHECK(difference(out, std::vector<Word>(length, stepped(1, 2000))) == "");
    CHECK(driver.alive()["Device"] == 1);
    lane.reset();
    CHECK(driver.alive_text() == "");
  }
}

}  // namespace
}  // namespace wye::test
