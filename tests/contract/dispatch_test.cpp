// Kernels: grids, executables, limits.
#include <algorithm>
#include <numeric>

#include "contract/suite.hpp"

namespace wye::test {

CONTRACT_CASE("a kernel runs over grids that are no multiple of its workgroup", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto iota = subject.kernel("iota", twin), axpy = subject.kernel("axpy", twin);
    for (std::size_t count : std::initializer_list<std::size_t>{1, 2, 63, 64, 65, 1000, 4096, 300007}) {
      INFO(count << " items, twin " << static_cast<int>(twin));
      const auto buffer = subject.words(count), x = subject.words(count), y = subject.words(count);
      std::vector<float> a(count), b(count), got(count);
      for (std::size_t i = 0; i < count; ++i) {
        a[i] = static_cast<float>(i % 1000) + 0.5f;
        b[i] = static_cast<float>(i % 77) - 30.0f;
      }
      auto lane = subject.lane();
      lane->upload(bytes_of(a), range(x));
      lane->upload(bytes_of(b), range(y));
      lane->fill(range(buffer), 0xdeadbeef);
      lane->dispatch(iota, arguments_of(argument(buffer), Word{17}), count);
      lane->dispatch(axpy,
                     arguments_of(argument(x, ElementType::float32), argument(y, ElementType::float32), 2.0f),
                     count);
      lane->download(range(y), writable_bytes_of(got));
      subject.settle(*lane);
      const std::vector<Word> words = subject.read(buffer);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i)
        wrong +=
            words[i] != 17 + i || got[i] != 2.0f * a[i] + b[i];  // exact: all are small multiples of a half
      CHECK(wrong == 0);
    }
  }
}

CONTRACT_CASE("a grid may have three dimensions", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto paint = subject.kernel("paint", twin);
    for (const Extent3 grid :
         {Extent3(1, 1, 1), Extent3(4, 4, 4), Extent3(5, 1, 3), Extent3(13, 7, 9), Extent3(1, 30, 2)}) {
      INFO(grid.x << " x " << grid.y << " x " << grid.z);
      const auto w = static_cast<Word>(grid.x), h = static_cast<Word>(grid.y), d = static_cast<Word>(grid.z);
      const auto buffer = subject.buffer(std::vector<Word>(grid.count() + 5, 0xdeadbeef));
      auto lane = subject.lane();
      lane->dispatch(paint, arguments_of(argument(buffer, 0, grid.count()), w, h, d), grid);
      subject.settle(*lane);
      std::vector<Word> wanted(grid.count() + 5, 0xdeadbeef);
      for (Word z = 0; z < d; ++z)
        for (Word y = 0; y < h; ++y)
          for (Word x = 0; x < w; ++x) wanted[(z * h + y) * w + x] = x + 1000 * y + 1000000 * z;
      CHECK(subject.read(buffer) == wanted);
    }
  }
}

CONTRACT_CASE("a grid with nothing in it runs nothing", {Ability::data}) {
  for (Twin twin : twins(*subject.device)) {
    const auto buffer = subject.buffer(std::vector<Word>(64, 0xdeadbeef));
    auto lane = subject.lane();
    for (const Extent3 grid : {Extent3(0, 1, 1), Extent3(4, 0, 1), Extent3(4, 4, 0), Extent3(0, 0, 0)})
      lane->dispatch(subject.kernel("paint", twin), arguments_of(argument(buffer), Word{4}, Word{4}, Word{4}),
                     grid);
    lane->dispatch(subject.kernel("iota", twin), arguments_of(argument(buffer), Word{1}), 0);
    subject.settle(*lane);
    CHECK(subject.read(buffer) == std::vector<Word>(64, 0xdeadbeef));
  }
}

CONTRACT_CASE("an argument may have no elements", {}) {
  for (Twin twin : twins(*subject.device)) {
    const auto empty = subject.buffer(0_B), full = subject.words(10);
    auto lane = subject.lane();
    lane->dispatch(subject.kernel("add", twin), arguments_of(argument(empty), Word{1}), 0);
    lane->dispatch(subject.kernel("add", twin), arguments_of(argument(empty), Word{1}), 1);
    lane->dispatch(subject.kernel("add", twin), arguments_of(argument(full, 0, 0), Word{1}), 1);
    subject.settle(*lane);
  }
}

CONTRACT_CASE("host memory is used in place if the device has the feature", {Ability::data}) {
  if (!subject.info().features.has(Feature::host_memory))
    return skip("device '" + subject.info().id + "' does not use host memory in place");
  std::vector<Word> from(500, 3), to(500, 4);
  const auto device_side = subject.buffer(std::vector<Word>(500, 1));
  auto lane = subject.lane();
  const auto mix = subject.kernel("mix");
  Arguments in_place;
  in_place.push_back(Operand::host_span(std::span<const Word>(from), Access::read));
  in_place.push_back(Operand::host_span(std::span<Word>(to), Access::read_write));
  in_place.push_back(Operand::of_value(Word{1}));
  lane->dispatch(mix, in_place, 500);
  Arguments mixed;
  mixed.push_back(Operand::host_span(std::span<const Word>(to), Access::read));
  mixed.push_back(argument(device_side));
  mixed.push_back(Operand::of_value(Word{2}));
  lane->dispatch(mix, mixed, 500);
  subject.settle(*lane);
  CHECK(to == std::vector<Word>(500, 16));
  CHECK(subject.read(device_side) == std::vector<Word>(500, 21));
}

CONTRACT_CASE("an executable has the names and sizes of its artefact", {}) {
  auto artefact = test_kernel("mix", *subject.device, Twin::addresses);
  REQUIRE(artefact);
  auto executable = subject.device->create_executable(*artefact);
  REQUIRE(executable);
  CHECK((*executable)->artefact().kernel == "mix");
  CHECK((*executable)->artefact().schema == artefact->schema);
  CHECK((*executable)->artefact().code.empty());
  CHECK((*executable)->device() == subject.device);
}

CONTRACT_CASE("an executable in a language the device does not take is refused with both names",
              {Ability::data}) {
  auto artefact = test_kernel("add", *subject.device, Twin::addresses);
  REQUIRE(artefact);
  artefact->language = "cuneiform";
  auto executable = subject.device->create_executable(*artefact);
  REQUIRE_FALSE(executable);
  CHECK(executable.error() == Errc::unsupported);
  INFO(executable.error().sentence());
  CHECK(executable.error().sentence().find("cuneiform") != std::string::npos);
  CHECK(executable.error().sentence().find("add") != std::string::npos);
  CHECK(executable.error().sentence().find(subject.info().id) != std::string::npos);
}

CONTRACT_CASE("an executable that needs a feature the device lacks is refused", {Ability::data}) {
  auto artefact = test_kernel("add", *subject.device, Twin::addresses);
  REQUIRE(artefact);
  const Features every = {Feature::float16,         Feature::float64,    Feature::int8,
                          Feature::int16,           Feature::int64,      Feature::storage8,
                          Feature::storage16,       Feature::subgroups,  Feature::atomics_int64,
                          Feature::atomics_float32, Feature::host_memory};
  const Features lacking = every.without(subject.info().features);
  if (lacking.empty()) return;
  artefact->needs = lacking;
  auto executable = subject.device->create_executable(*artefact);
  REQUIRE_FALSE(executable);
  CHECK(executable.error() == Errc::unsupported);
  CHECK(executable.error().sentence().find(to_string(lacking)) != std::string::npos);
}

CONTRACT_CASE("a grid over the limit is refused with the dimension and the limit", {Ability::checks}) {
  const Extent3 limit = subject.info().limits.groups;
  const auto buffer = subject.words(16);
  const auto paint = subject.kernel("paint");
  const Extent3 tile = paint->artefact().tile;
  const auto try_grid = [&](Extent3 grid, std::uint64_t over) {
    auto lane = subject.lane();
    lane->dispatch(paint, arguments_of(argument(buffer), Word{1}, Word{1}, Word{1}), grid);
    auto settled = lane->wait(subject.patience());
    REQUIRE_FALSE(settled);
    CHECK(settled.error() == Errc::unsupported);
    CHECK(settled.error().sentence().find("paint") != std::string::npos);
    CHECK(settled.error().sentence().find(std::to_string(over)) != std::string::npos);
  };
  constexpr std::uint64_t any = ~std::uint64_t{0};
  const std::uint64_t longest = std::max(limit.x, paint->row_groups());
  if (limit.x != any) try_grid({longest * tile.x + 1, 1, 1}, longest);
  if (limit.x != any) try_grid({limit.x * tile.x + 1, tile.y + 1, 1}, limit.x);
  if (limit.y != any) try_grid({1, limit.y * tile.y + 1, 1}, limit.y);
  if (limit.z != any) try_grid({1, 1, limit.z * tile.z + 1}, limit.z);
}

CONTRACT_CASE("a grid of one row over the limit in x runs if its executable takes it", {Ability::data}) {
  const auto iota = subject.kernel("iota");
  const std::uint64_t limit = subject.info().limits.groups.x;
  if (iota->row_groups() <= limit || limit > 65535) return;
  const std::uint64_t count = (limit + 1) * iota->artefact().tile.x;
  const auto to = subject.words(count);
  SequenceState sequence(subject.device);
  sequence.open().dispatch(iota, arguments_of(argument(to), Word{5}), count);
  sequence.open().dispatch(subject.kernel("add"), arguments_of(argument(to), Word{7}), count);
  auto lane = subject.lane();
  for (int run = 0; run < 2; ++run) lane->submit(sequence);
  subject.settle(*lane);
  std::vector<Word> expected(count);
  std::iota(expected.begin(), expected.end(), Word{12});
  CHECK((subject.read(to) == expected));  // millions of words
}

CONTRACT_CASE("an executable is refused with arguments that do not match its schema, naming the slot",
              {Ability::checks}) {
  const auto words = subject.words(16);
  const auto try_arguments = [&](const Arguments& arguments, std::string_view named) {
    auto lane = subject.lane();
    lane->dispatch(subject.kernel("mix"), arguments, 16);
    auto settled = lane->wait(subject.patience());
    REQUIRE_FALSE(settled);
    CHECK(settled.error() == Errc::invalid_argument);
    INFO(settled.error().sentence());
    CHECK(settled.error().sentence().find("mix") != std::string::npos);
    CHECK(settled.error().sentence().find(named) != std::string::npos);
  };
  const auto other = subject.words(16);
  try_arguments(arguments_of(argument(words), argument(other)), "3 arguments");
  try_arguments(arguments_of(argument(words), argument(other), 1.0f), "'by' (slot 2)");
  try_arguments(arguments_of(argument(words), argument(other), std::uint64_t{1}), "'by' (slot 2)");
  try_arguments(arguments_of(argument(words), Word{1}, Word{1}), "'to' (slot 1)");
  try_arguments(arguments_of(argument(words, ElementType::float32), argument(other), Word{1}),
                "'from' (slot 0)");
  try_arguments(arguments_of(argument(words), argument(words), Word{1}), "'to' (slot 1)");
  try_arguments(arguments_of(argument(words, 4, 13), argument(other), Word{1}), "'from' (slot 0)");
}

CONTRACT_CASE("objects of another device are refused", {Ability::checks}) {
  Subject foreign = subject;
  foreign.device = subject.open_another();
  const auto theirs = foreign.words(16), ours = subject.words(16);
  const auto refused = [&](const std::function<void(Lane&)>& use) {
    auto lane = subject.lane();
    use(*lane);
    auto settled = lane->wait(subject.patience());
    REQUIRE_FALSE(settled);
    CHECK(settled.error() == Errc::invalid_argument);
    CHECK(settled.error().sentence().find("another device") != std::string::npos);
  };
  refused([&](Lane& lane) { lane.fill(range(theirs), 1); });
  refused([&](Lane& lane) { lane.copy(range(ours), range(theirs)); });
  refused(
      [&](Lane& lane) { lane.dispatch(subject.kernel("add"), arguments_of(argument(theirs), Word{1}), 16); });
  refused(
      [&](Lane& lane) { lane.dispatch(foreign.kernel("add"), arguments_of(argument(ours), Word{1}), 16); });
  refused([&](Lane& lane) {
    lane.wait_for({foreign.timeline(), 1});
    lane.fill(range(ours), 1);
  });
}

CONTRACT_CASE("a lane works after a refused submission", {Ability::checks}) {
  const auto buffer = subject.buffer(64_B);
  auto lane = subject.lane_base();
  const auto submit = [&](std::uint64_t offset) {
    auto recording = std::make_shared<Recording>();
    recording->fill(range(buffer, offset, 64), 5);
    recording->close();
    return lane->submit({.recording = recording, .waits = {}, .stop = {}});
  };
  CHECK_FALSE(submit(4));
  auto value = submit(0);
  REQUIRE(value);
  CHECK(lane->wait(*value, subject.patience()));
}

}  // namespace wye::test
