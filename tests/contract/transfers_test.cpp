// Uploads, downloads, copies and fills, and the bytes that they leave unchanged.
#include <algorithm>

#include "contract/suite.hpp"
#include "support/sanitizers.hpp"

namespace wye::test {
namespace {

using Content = std::vector<std::byte>;

Content random_content(std::mt19937_64& random, std::size_t size) {
  Content content(size);
  for (std::byte& b : content) b = static_cast<std::byte>(random() | 1);
  return content;
}

std::ptrdiff_t at(std::uint64_t offset) { return static_cast<std::ptrdiff_t>(offset); }

}  // namespace

CONTRACT_CASE("transfers write their destination and nothing else, at odd offsets and sizes",
              {Ability::data}) {
  std::mt19937_64 random(21);
  for (std::size_t size :
       {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1001}, std::size_t{70001}}) {
    const auto buffer = subject.buffer(Bytes{size});
    Content model = random_content(random, size);
    auto lane = subject.lane();
    lane->upload(model, range(buffer));
    std::vector<Content> got, wanted;
    got.reserve(20);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t offset = random() % size, length = random() % (size - offset) + 1;
      const Content part = random_content(random, length);
      lane->upload(part, range(buffer, offset, length));
      lane->submit();
      std::copy(part.begin(), part.end(), model.begin() + at(offset));
      const std::uint64_t from = random() % size, count = random() % (size - from) + 1;
      lane->download(range(buffer, from, count), got.emplace_back(count));
      wanted.emplace_back(model.begin() + at(from), model.begin() + at(from + count));
    }
    Content whole_content(size);
    lane->download(range(buffer), whole_content);
    subject.settle(*lane);
    CHECK(whole_content == model);
    CHECK(got == wanted);
  }
}

CONTRACT_CASE("copies and fills move exactly their bytes", {Ability::data}) {
  std::mt19937_64 random(22);
  constexpr std::size_t size = 5003;
  const std::vector<std::shared_ptr<BufferBase>> buffers = {subject.buffer(Bytes{size}),
                                                            subject.buffer(Bytes{size})};
  std::vector<Content> model = {random_content(random, size), random_content(random, size)};
  auto lane = subject.lane();
  for (std::size_t i = 0; i < 2; ++i) lane->upload(model[i], range(buffers[i]));
  lane->submit();
  for (int round = 0; round < 60; ++round) {
    const std::size_t target = random() % 2;
    if (random() % 3 == 0) {
      const std::uint64_t offset = random() % (size / 4) * 4,
                          length = random() % ((size - offset) / 4 + 1) * 4;
      const auto pattern = static_cast<Word>(random());
      lane->fill(range(buffers[target], offset, length), pattern);
      for (std::uint64_t i = 0; i < length; i += 4) std::memcpy(&model[target][offset + i], &pattern, 4);
    } else if (random() % 2 == 0) {
      const std::uint64_t from = random() % size, to = random() % size;
      const std::uint64_t length = random() % (size - std::max(from, to)) + 1;
      lane->copy(range(buffers[1 - target], from, length), range(buffers[target], to, length));
      std::copy_n(model[1 - target].begin() + at(from), length, model[target].begin() + at(to));
    } else {  // within one buffer, apart
      const std::uint64_t from = random() % (size / 2), to = size / 2 + random() % (size / 2);
      const std::uint64_t length = random() % (std::min<std::uint64_t>(size / 2 - from, size - to) + 1);
      lane->copy(range(buffers[target], from, length), range(buffers[target], to, length));
      std::copy_n(Content(model[target]).begin() + at(from), length, model[target].begin() + at(to));
    }
  }
  std::vector<Content> got = {Content(size), Content(size)};
  for (std::size_t i = 0; i < 2; ++i) lane->download(range(buffers[i]), got[i]);
  subject.settle(*lane);
  CHECK(got == model);
}

CONTRACT_CASE("transfers larger than any staging memory are complete", {Ability::data}) {
  std::mt19937_64 random(23);
  // 72 MiB, and odd; a sanitizer that tracks each byte takes seconds for that.
  std::vector<Word> words(under_tsan ? 5'000'003 : 19'000'003);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<Word>(i * 2654435761u) | 1;
  const auto buffer = subject.words(words.size());
  std::vector<Word> got(words.size(), 0xdeadbeef);
  auto lane = subject.lane();
  lane->upload(bytes_of(words), range(buffer));
  lane->download(range(buffer), writable_bytes_of(got));
  subject.settle(*lane);
  CHECK(got == words);
}

CONTRACT_CASE("the source of an upload may be used again when it has been submitted",
              {Ability::data, Ability::order}) {
  std::mt19937_64 random(24);
  const auto gate = subject.timeline();
  const auto buffer = subject.words(1000);
  const std::vector<Word> words = random_words(random, 1000);
  std::vector<Word> source = words;
  auto lane = subject.lane();
  lane->wait_for({gate, 1});  // it cannot have been done when submit returns
  lane->upload(bytes_of(source), range(buffer));
  lane->submit();
  std::fill(source.begin(), source.end(), 0xbad);
  REQUIRE(gate->signal(1));
  subject.settle(*lane);
  CHECK(subject.read(buffer) == words);
}

CONTRACT_CASE("downloads that were given up are not written", {Ability::data, Ability::order}) {
  const auto gate = subject.timeline();
  const auto buffer = subject.buffer(std::vector<Word>(500, 7));
  std::vector<Word> target(500, 0xdeadbeef), later(500, 0xdeadbeef);
  auto lane = subject.lane();
  lane->wait_for({gate, 1});
  lane->download(range(buffer), writable_bytes_of(target));
  lane->submit();
  lane->discard();
  lane->download(range(buffer), writable_bytes_of(later));
  REQUIRE(gate->signal(1));
  subject.settle(*lane);
  CHECK(target == std::vector<Word>(500, 0xdeadbeef));
  CHECK(later == std::vector<Word>(500, 7));
}

CONTRACT_CASE(
    "a download has the contents at its place in the order, also if the memory is written before the wait",
    {Ability::data}) {
  for (std::size_t count : std::initializer_list<std::size_t>{100, 500'000}) {
    const auto buffer = subject.buffer(std::vector<Word>(count, 7));
    std::vector<Word> target(count, 0xdeadbeef), again(count, 0xdeadbeef);
    const std::vector<Word> words(count, 13);
    auto lane = subject.lane(), other = subject.lane();
    lane->download(range(buffer), writable_bytes_of(target));
    const TimelinePoint downloaded = lane->submit();
    REQUIRE(downloaded.timeline->wait(
        downloaded.value,
        Instant::max()));  // the device completed it; the lane has not collected it yet
    other->wait_for(downloaded);
    other->dispatch(subject.kernel("add"), arguments_of(argument(buffer), Word{4}), count);
    subject.settle(*other);
    lane->download(range(buffer), writable_bytes_of(again));
    lane->submit();
    lane->upload(bytes_of(words), range(buffer));
    subject.settle(*lane);
    CHECK(target == std::vector<Word>(count, 7));
    CHECK(again == std::vector<Word>(count, 11));
    CHECK(subject.read(buffer) == words);
  }
}

CONTRACT_CASE("transfers of nothing are no mistake", {}) {
  const auto empty = subject.buffer(0_B), full = subject.buffer(16_B);
  auto lane = subject.lane();
  lane->upload({}, range(empty));
  lane->upload({}, range(full, 16, 0));
  lane->download(range(empty), {});
  lane->copy(range(empty), range(full, 3, 0));
  lane->fill(range(full, 8, 0), 1);
  subject.settle(*lane);
}

CONTRACT_CASE("a kernel leaves the bytes beside its arguments unchanged", {Ability::data}) {
  const std::uint64_t step = std::max<std::uint64_t>(subject.info().limits.offset_alignment / 4, 1);
  for (Twin twin : twins(*subject.device)) {
    const auto buffer = subject.words(step * 3 + 100);
    auto lane = subject.lane();
    lane->fill(range(buffer), 0xdeadbeef);
    lane->dispatch(subject.kernel("iota", twin), arguments_of(argument(buffer, step, 37), Word{5}), 37);
    lane->dispatch(subject.kernel("add", twin), arguments_of(argument(buffer, step * 2, 50), Word{1}), 9);
    subject.settle(*lane);
    std::vector<Word> wanted(step * 3 + 100, 0xdeadbeef);
    for (Word i = 0; i < 37; ++i) wanted[step + i] = 5 + i;
    for (Word i = 0; i < 9; ++i) wanted[step * 2 + i] += 1;
    // A workgroup is complete: it may run items beyond the grid, within the argument.
    const std::vector<Word> got = subject.read(buffer);
    CHECK(std::equal(got.begin(), got.begin() + at(step * 2 + 9), wanted.begin()));
    CHECK(std::equal(got.begin() + at(step * 2 + 50), got.end(), wanted.begin() + at(step * 2 + 50)));
  }
}

}  // namespace wye::test
