// Memory: sizes, limits, accounts.
#include "contract/suite.hpp"

namespace wye::test {
namespace {

/// Returns a buffer of `size`, or null if the device refused it because of its limit or its
/// available memory.
std::shared_ptr<BufferBase> large_buffer(const Subject& subject, Bytes size) {
  const Bytes available = subject.device->memory().available;
  // Gibibytes of zeros would take the memory of the machine.
  auto buffer = subject.device->create_buffer({.bytes = size, .account = nullptr, .is_overwritten = true});
  INFO(to_string(size) << " of " << to_string(available));
  if (buffer) {
    CHECK(size <= subject.info().limits.buffer);
    return *buffer;
  }
  CHECK(buffer.error() == Errc::out_of_memory);
  CHECK((size > subject.info().limits.buffer || size * 2 > available));
  return nullptr;
}

bool names(const Error& error, std::string_view word) {
  return error.sentence().find(word) != std::string::npos;
}

}  // namespace

CONTRACT_CASE("a buffer has the requested size, from zero to more than four gibibytes", {}) {
  const std::vector<Bytes> sizes = {
      0_B, 1_B, 3_B, 4_B, 4097_B, (1_MiB + 5_B), (129_MiB + 3_B), (1_GiB + 12_B), (4_GiB + 20_B)};
  std::uint64_t last_id = 0;
  for (Bytes size : sizes) {
    INFO(to_string(size));
    const auto buffer = large_buffer(subject, size);
    if (!buffer) continue;
    CHECK(buffer->bytes() == size);
    CHECK(buffer->device() == subject.device);
    CHECK(buffer->id() > last_id);
    last_id = buffer->id();
  }
}

CONTRACT_CASE("the last bytes of a buffer of any size can be reached", {Ability::data}) {
  std::mt19937_64 random(11);
  for (Bytes size : {20_B, (129_MiB + 4_B), (1_GiB + 12_B), (4_GiB + 20_B)}) {
    INFO(to_string(size));
    const auto buffer = large_buffer(subject, size);
    if (!buffer) continue;
    const std::vector<Word> words = random_words(random, 2);
    std::vector<Word> got(5, 0xdeadbeef);
    auto lane = subject.lane();
    lane->fill(range(buffer, 0, 8), 0x01020304);
    lane->upload(bytes_of(words), range(buffer, size.count - 8, 8));
    lane->copy(range(buffer, size.count - 8, 8), range(buffer, 4, 8));
    lane->fill(range(buffer, size.count - 8, 4), 0x0a0b0c0d);
    lane->download(range(buffer, 0, 12), writable_bytes_of(got).first(12));
    lane->download(range(buffer, size.count - 8, 8), writable_bytes_of(got).subspan(12));
    subject.settle(*lane);
    CHECK(got == std::vector<Word>{0x01020304, words[0], words[1], 0x0a0b0c0d, words[1]});
  }
}

CONTRACT_CASE("kernels reach the end of a large buffer", {Ability::data}) {
  const Bytes size = 1_GiB + 256_B;
  const auto buffer = large_buffer(subject, size);
  if (!buffer) return skip("device '" + subject.info().id + "' has no room for " + to_string(size));
  const std::uint64_t first = size.count / 4 - 64;
  auto lane = subject.lane();
  lane->fill(range(buffer, first * 4, 256), 7);
  lane->dispatch(subject.kernel("iota"), arguments_of(argument(buffer, first, 64), Word{1000}), 64);
  std::vector<Word> got(64);
  lane->download(range(buffer, first * 4, 256), writable_bytes_of(got));
  subject.settle(*lane);
  for (Word i = 0; i < 64; ++i) CHECK(got[i] == 1000 + i);
}

CONTRACT_CASE("a buffer beyond the device's limit is refused with its size, the limit and the device", {}) {
  const Bytes limit = subject.info().limits.buffer;
  for (Bytes size : {limit + 1_B, limit * 2, Bytes{~std::uint64_t{0}}, Bytes{~std::uint64_t{0} - 4095}}) {
    if (size <= limit) continue;
    auto buffer = subject.device->create_buffer({.bytes = size, .account = nullptr});
    REQUIRE_FALSE(buffer);
    CHECK(buffer.error() == Errc::out_of_memory);
    INFO(buffer.error().sentence());
    CHECK(names(buffer.error(), std::to_string(size.count)));
    CHECK(names(buffer.error(), std::to_string(limit.count)));
    CHECK(names(buffer.error(), subject.info().id));
  }
  CHECK(subject.buffer(64_B)->bytes() == 64_B);
}

CONTRACT_CASE("the public handle refuses sizes that overflow", {}) {
  const Device device(subject.device);
  auto wrapped = device.buffer<double>((std::uint64_t{1} << 61) + 2);
  REQUIRE_FALSE(wrapped);
  CHECK(wrapped.error() == Errc::invalid_argument);
  CHECK(names(wrapped.error(), std::to_string((std::uint64_t{1} << 61) + 2)));
  auto fine = device.buffer<double>(5);
  REQUIRE(fine);
  CHECK(fine->size() == 5);
  CHECK(fine->bytes() == 40_B);
}

CONTRACT_CASE("many small buffers lie apart from each other", {Ability::data}) {
  std::mt19937_64 random(12);
  std::vector<std::shared_ptr<BufferBase>> buffers;
  std::vector<std::vector<std::byte>> contents;
  auto lane = subject.lane();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) {
      std::vector<std::byte> content(random() % 700 + 1);
      for (std::byte& b : content) b = static_cast<std::byte>(random());
      buffers.push_back(subject.buffer(Bytes{content.size()}));
      lane->upload(content, range(buffers.back()));
      contents.push_back(std::move(content));
    }
    subject.settle(*lane);
    if (round == 0)  // holes of all sizes, for the second round to fall into
      for (std::size_t i = 0; i < buffers.size(); i += 2) {
        buffers[i].reset();
        contents[i].clear();
      }
  }
  std::vector<std::vector<std::byte>> got(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    got[i].resize(contents[i].size());
    if (buffers[i]) lane->download(range(buffers[i]), got[i]);
  }
  subject.settle(*lane);
  CHECK(got == contents);
}

CONTRACT_CASE("the memory in use is the memory of the buffers", {}) {
  const Bytes before = subject.device->memory().in_use;
  const Bytes size = 3_MiB + 1_B;
  auto buffer = subject.buffer(size);
  const MemoryInfo during = subject.device->memory();
  CHECK(during.in_use >= before + size);
  CHECK(during.total >= during.in_use);
  CHECK(during.total >= during.available);
  buffer.reset();
  CHECK(subject.device->memory().in_use < before + size);
}

CONTRACT_CASE("an account is charged while a buffer lives, and refuses more than its limit", {}) {
  auto account = std::make_shared<MemoryAccount>("lane 7", 1000_B);
  auto first = subject.buffer(600_B, account);
  CHECK(account->held() == 600_B);
  auto second = subject.device->create_buffer({.bytes = 401_B, .account = account});
  REQUIRE_FALSE(second);
  CHECK(second.error() == Errc::over_budget);
  CHECK(names(second.error(), "lane 7"));
  CHECK(names(second.error(), "1000 bytes"));
  CHECK(account->held() == 600_B);
  auto third = subject.buffer(400_B, account);
  CHECK(account->held() == 1000_B);
  first.reset();
  CHECK(account->held() == 400_B);
  auto too_big = subject.device->create_buffer({.bytes = Bytes{~std::uint64_t{0}}, .account = account});
  CHECK_FALSE(too_big);
  third.reset();
  CHECK(account->held() == 0_B);
}

CONTRACT_CASE("a new buffer is zero in memory that other buffers have filled", {Ability::data}) {
  for (const MemoryUse use : {MemoryUse::device, MemoryUse::transfer}) {
    for (const std::uint64_t size : {1u, 67u, 4096u, 262144u, (3u << 20) + 5}) {
      INFO(size);
      const auto make = [&](std::uint64_t bytes) {
        auto made = subject.device->create_buffer({.bytes = Bytes{bytes}, .use = use, .account = nullptr});
        if (!made) throw std::runtime_error(made.error().describe());
        return *made;
      };
      const std::vector<std::byte> pattern(size, std::byte{0xa5});
      {
        std::vector<std::shared_ptr<BufferBase>> filled;
        auto lane = subject.lane();
        for (int i = 0; i < 4; ++i) {
          filled.push_back(make(size));
          lane->upload(pattern, range(filled.back()));
        }
        subject.settle(*lane);
      }
      std::size_t wrong = 0;
      std::vector<std::shared_ptr<BufferBase>> buffers;
      for (std::uint64_t i = 0; i < 6; ++i) {
        buffers.push_back(make(size - std::min(i, size - 1)));
        std::vector<std::byte> seen(buffers.back()->bytes().count, std::byte{0xee});
        auto lane = subject.lane();
        lane->download(range(buffers.back()), seen);
        subject.settle(*lane);
        for (const std::byte one : seen) wrong += one != std::byte{0};
      }
      CHECK(wrong == 0);
    }
  }
}

CONTRACT_CASE("a new buffer is zero before the work of a lane that waits for another one", {Ability::order}) {
  if (subject.info().backend == "null") return;
  const auto buffer = subject.words(1000);
  const std::vector<Word> words(1000, 7);
  const auto host = subject.timeline();
  auto first = subject.lane(), second = subject.lane();
  first->wait_for({host, 1});  // it is submitted before the work that it follows
  const auto copied = subject.words(1000);
  first->copy(range(buffer), range(copied));
  first->submit();
  second->upload(bytes_of(words), range(buffer));
  subject.settle(*second);
  REQUIRE(host->signal(1));
  subject.settle(*first);
  CHECK(subject.read(copied) == words);
}

CONTRACT_CASE("staging memory can be reached by the host", {Ability::data}) {
  auto staging =
      subject.device->create_buffer({.bytes = 256_B, .use = MemoryUse::transfer, .account = nullptr});
  REQUIRE(staging);
  REQUIRE((*staging)->host() != nullptr);
  std::mt19937_64 random(13);
  const std::vector<Word> words = random_words(random, 64);
  std::memcpy((*staging)->host(), words.data(), 256);
  const auto buffer = subject.words(64);
  auto lane = subject.lane();
  lane->copy(range(*staging), range(buffer));
  subject.settle(*lane);
  CHECK(subject.read(buffer) == words);
}

CONTRACT_CASE("memory that threads take at the same time is there for the lane of each", {Ability::data}) {
  in_threads(4, [&](unsigned i) {
    auto lane = subject.lane();
    for (Word round = 0; round < 30; ++round) {
      const std::vector<Word> words(500, round * 10 + i);
      std::vector<Word> got(500);
      const auto buffer = subject.words(500);
      lane->upload(bytes_of(words), range(buffer));
      lane->download(range(buffer), writable_bytes_of(got));
      subject.settle(*lane);
      expect(got == words, "what was uploaded is downloaded");
    }
  });
}

}  // namespace wye::test
