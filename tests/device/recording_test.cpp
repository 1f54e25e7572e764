#include "device/recording.hpp"

#include <cstring>

#include "device/doubles.hpp"
#include "device/sequence.hpp"
#include "device/stamps.hpp"

namespace wye::test {
namespace {

std::vector<bool> barriers(const Recording& recording) {
  std::vector<bool> list;
  for (const Command& command : recording.commands()) list.push_back(command.barrier);
  return list;
}

std::shared_ptr<ExecutableBase> executable(DeviceBase& device, ParamSchema schema) {
  return device
      .create_executable(
          host_artefact("k", std::move(schema), [](Range, std::span<const Operand>, const StopToken&) {}))
      .value();
}

}  // namespace

TEST_CASE("a recording keeps its commands in order", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B), b = buffer_of(*device, 64_B);
  std::vector<std::byte> memory(16);
  Recording recording;
  recording.upload(memory, range(a, 8, 16));
  recording.download(range(b, 3, 16), memory);
  recording.copy(range(a, 1, 5), range(b, 2, 5));
  recording.fill(range(a, 4, 8), 77);
  recording.close();

  const auto commands = recording.commands();
  REQUIRE(commands.size() == 4);
  CHECK(commands[0].kind == Command::Kind::upload);
  CHECK(commands[0].source == memory.data());
  CHECK(commands[0].host_bytes == 16_B);
  CHECK(recording.operands(commands[0])[0].object == a);
  CHECK(recording.operands(commands[0])[0].offset == 8);
  CHECK(recording.operands(commands[0])[0].bytes() == 16_B);
  CHECK(recording.operands(commands[0])[0].access == Access::write);
  CHECK(commands[1].target == memory.data());
  CHECK(recording.operands(commands[1])[0].access == Access::read);
  REQUIRE(recording.operands(commands[2]).size() == 2);
  CHECK(recording.operands(commands[2])[0].object == a);
  CHECK(recording.operands(commands[2])[1].object == b);
  CHECK(recording.operands(commands[2])[1].offset == 2);
  CHECK(commands[3].pattern == 77);
}

TEST_CASE("closing a recording plans its barriers from the memory that its commands access", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B), b = buffer_of(*device, 64_B);
  std::vector<std::byte> memory(64);
  const auto run =
      executable(*device, {{buffer_slot("in", Access::read), buffer_slot("out", Access::write)}});
  const auto arguments_of = [](const auto& in, const auto& out) {
    return arguments(Buffer(in, ElementType::uint32, 4), Buffer(out, ElementType::uint32, 4));
  };
  Recording recording;
  recording.upload(memory, range(a));               // writes a
  recording.fill(range(b), 1);                      // writes b: no hazard
  recording.dispatch(run, arguments_of(a, b), 16);  // reads a, writes b: must wait for both
  recording.download(range(a), memory);             // reads a: so did the dispatch
  recording.download(range(b), memory);             // reads b
  recording.copy(range(a, 0, 8), range(b, 8, 8));   // writes b, which the download reads
  recording.fill(range(a, 8, 8), 2);                // no access since the last barrier
  recording.fill(range(a, 4, 8), 2);                // overwrites bytes that the copy read and the fill wrote
  recording.close();
  CHECK(barriers(recording) == std::vector<bool>{false, false, true, false, true, true, false, true});
}

TEST_CASE("accesses of host memory and addresses need barriers too", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B);
  std::vector<std::uint32_t> memory(16);
  const auto on_host = executable(*device, {{buffer_slot("x", Access::read_write)}});
  const auto by_address = executable(
      *device,
      {{{.name = "p", .kind = SlotKind::address, .access = Access::read, .element = {}, .size = 8}}});
  const auto host = [&](std::size_t first, std::size_t count) {
    Arguments list;
    list.push_back(Operand::host_span(std::span(memory).subspan(first, count), Access::read_write));
    return list;
  };
  Operand address;
  address.kind = Operand::Kind::address;
  address.object = a;
  Arguments pointer;
  pointer.push_back(address);

  Recording recording;
  recording.dispatch(on_host, host(0, 4), 4);
  recording.dispatch(on_host, host(4, 4), 4);
  recording.dispatch(on_host, host(3, 2), 2);
  recording.fill(range(a, 60, 4), 1);
  recording.dispatch(by_address, pointer, 1);
  recording.dispatch(by_address, pointer, 1);
  recording.close();
  CHECK(barriers(recording) == std::vector<bool>{false, false, true, false, true, false});
}

TEST_CASE("the access of an argument is the one declared by the kernel", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B);
  const auto reader = executable(*device, {{buffer_slot("x", Access::read), scalar_slot("s")}});
  const auto writer = executable(*device, {{buffer_slot("x", Access::write)}});
  const Buffer buffer(a, ElementType::uint32, 4);
  Recording recording;
  recording.dispatch(reader, arguments(buffer, 5u), 16);
  recording.dispatch(reader, arguments(buffer, 5u), 16);
  Arguments only_to_read;
  only_to_read.push_back(buffer.operand(Access::read));
  recording.dispatch(writer, only_to_read, 16);
  recording.close();
  CHECK(recording.operands(recording.commands()[0])[0].access == Access::read);
  CHECK(recording.operands(recording.commands()[0])[1].access == Access::none);
  CHECK_FALSE(recording.commands()[1].barrier);
  CHECK(recording.operands(recording.commands()[2])[0].access == Access::read);  // left for the checks to see
}

TEST_CASE("a command after closing is not recorded, and marks the recording as misused", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B);
  Recording recording;
  recording.fill(range(a), 1);
  recording.close();
  recording.close();
  CHECK_FALSE(recording.misused());
  recording.fill(range(a), 2);
  CHECK(recording.commands().size() == 1);
  CHECK(recording.misused());
}

TEST_CASE("the begin of a span has a barrier, and its end has none", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B), b = buffer_of(*device, 64_B);
  const auto first = device->create_stamps().value(), second = device->create_stamps().value();
  Recording recording;
  recording.fill(range(a), 1);
  recording.stamp_begin(first);
  recording.fill(range(b), 2);
  recording.stamp_end(first);
  recording.fill(range(a), 3);  // the barrier of the begin is behind the other fill
  recording.stamp_begin(second);
  recording.stamp_end(second);
  recording.close();
  CHECK(barriers(recording) == std::vector<bool>{false, true, false, false, false, true, false});
  CHECK(recording.has_stamps_in_pairs());
  CHECK(&recording.stamps_of(recording.commands()[3]) == first.get());
  CHECK(&recording.stamps_of(recording.commands()[5]) == second.get());
  CHECK(recording.operands(recording.commands()[5]).empty());
  Recording copy;
  copy.assign(recording);
  CHECK(copy.stamps().size() == 2);
  copy.clear();
  CHECK(copy.stamps().empty());
  CHECK(first.use_count() == 2);
  recording.stamp_begin(first);  // it is closed
  CHECK(recording.misused());
  CHECK(recording.stamps().size() == 2);
}

TEST_CASE("a cleared recording is empty and releases its objects", "[device]") {
  const auto device = null_device();
  auto a = buffer_of(*device, 64_B);
  Recording recording;
  for (int round = 0; round < 3; ++round) {
    recording.fill(range(a), 1);
    recording.fill(range(a), 1);
    recording.close();
    recording.fill(range(a), 1);
    CHECK(barriers(recording) == std::vector<bool>{false, true});
    CHECK(a.use_count() == 3);
    recording.clear();
    CHECK(recording.empty());
    CHECK_FALSE(recording.closed());
    CHECK_FALSE(recording.misused());
    CHECK(a.use_count() == 1);
  }
}

TEST_CASE("a recording that was opened again has other arguments, and the barriers for them", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B), b = buffer_of(*device, 64_B);
  const auto run =
      executable(*device, {{buffer_slot("in", Access::read), buffer_slot("out", Access::write)}});
  const Buffer from(a, ElementType::uint32, 4), to(b, ElementType::uint32, 4);
  Recording recording;
  recording.fill(range(a), 1);
  recording.dispatch(run, arguments(from, to), 16);
  recording.close();
  const std::uint64_t before = recording.revision();
  CHECK(barriers(recording) == std::vector<bool>{false, true});
  CHECK(recording.set(1, 0, to.operand(Access::read_write)).error() ==
        Errc::invalid_argument);  // it is closed
  Recording same;
  same.assign(recording);
  CHECK(same.revision() == before);

  recording.reopen();
  REQUIRE(recording.set(
      1, 0, Buffer(buffer_of(*device, 64_B), ElementType::uint32, 4).operand(Access::read_write)));
  for (const auto& wrong :
       {recording.set(0, 0, to.operand(Access::read)), recording.set(2, 0, to.operand(Access::read)),
        recording.set(1, 2, to.operand(Access::read))}) {
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error() == Errc::invalid_argument);
  }
  recording.close();
  CHECK(recording.revision() != before);
  CHECK(barriers(recording) == std::vector<bool>{false, false});
  CHECK(recording.operands(recording.commands()[1])[0].access == Access::read);
  CHECK(barriers(same) == std::vector<bool>{false, true});
  CHECK_FALSE(recording.misused());
}

TEST_CASE("a submitted sequence does not change; its recordings are reused", "[device]") {
  const auto device = null_device();
  const auto a = buffer_of(*device, 64_B);
  const auto run = executable(*device, {{buffer_slot("to", Access::write), scalar_slot("by")}});
  const Buffer to(a, ElementType::uint32, 4);
  SequenceState sequence(device);
  sequence.open().dispatch(run, arguments(to, std::uint32_t{1}), 16);
  const auto number = [](const Recording& recording) {
    std::uint32_t value = 0;
    std::memcpy(&value, recording.operands(recording.commands()[0])[1].value().data(), sizeof(value));
    return value;
  };
  Submission first = sequence.submission();
  CHECK(sequence.submission().recording == first.recording);
  REQUIRE(sequence.open().set(0, 1, Operand::of_value(std::uint32_t{2})));
  Submission second = sequence.submission();
  CHECK(number(*first.recording) == 1);
  CHECK(number(*second.recording) == 2);
  CHECK(second.recording->revision() != first.recording->revision());
  CHECK(second.replay == first.replay);
  const Recording* const old = first.recording.get();
  first.recording.reset();
  REQUIRE(sequence.open().set(0, 1, Operand::of_value(std::uint32_t{3})));
  CHECK(sequence.submission().recording.get() == old);
  CHECK(number(*second.recording) == 2);
}

}  // namespace wye::test
