#include "contract/suite.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"
#include "base/worker.hpp"

namespace wye::test {
namespace {

/// Returns the abilities that a backend lacks. A backend that is not listed lacks only the
/// abilities of host functions.
std::vector<Ability> missing(std::string_view backend) {
  if (backend == "cpu") return {};
  if (backend == "null") return {Ability::data, Ability::order, Ability::functions};
  return {Ability::functions};
}

bool has(const Subject& subject, Ability ability) {
  if (ability == Ability::checks) return subject.checked;
  const std::vector<Ability> lacking = missing(subject.info().backend);
  return std::find(lacking.begin(), lacking.end(), ability) == lacking.end();
}

std::vector<const Case*>& cases() {
  static std::vector<const Case*> list;
  return list;
}

/// An adapter, with a word for the options that it was found with.
struct Found : Discovered {
  std::string note;
};

/// Returns all adapters. Discovers them once per run.
const std::vector<Found>& discovered() {
  static const std::vector<Found> found = [] {
    std::vector<Found> all;
    const auto look = [&](const BackendEntry& entry, const BackendOptions& options, const char* note = "") {
      for (Discovered& one : entry.make()->discover(options)) all.push_back({std::move(one), note});
    };
    for (const BackendEntry& entry : backend_table()) {
      if (!entry.make) continue;
      const std::size_t before = all.size();
      look(entry, {});
      if (entry.name != "cuda") continue;
      BackendOptions options;
      options.cuda_driver = stand_in_cuda();
      look(entry, options, "stand-in");
      options.isolation = Isolation::partition;
      look(entry, options, "stand-in, partition");
      options.isolation = Isolation::device;
      look(entry, options, "stand-in, context of its own");
      if (const std::string why = no_cuda_kernels(); !why.empty()) {
        std::printf("contract: cuda is left out, for there are no kernels for it: %s\n", why.c_str());
        for (std::size_t i = before; i < all.size(); ++i) {
          all[i].info.usable = false;
          all[i].info.reason = why;
          all[i].adapter = nullptr;
        }
      }
    }
    return all;
  }();
  return found;
}

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const Found& one : discovered()) {
    if (!one.info.usable) continue;
    list.push_back({one.adapter, nullptr, false, one.note});
    list.push_back({one.adapter, nullptr, true, one.note});
  }
  return list;
}

/// The stand-in has the name of a possible card.
std::string title(const Subject& subject) {
  const std::string id = subject.info().id + (subject.note.empty() ? "" : " (" + subject.note + ")");
  return subject.checked ? "checked(" + id + ")" : id;
}

/// Counts the cases that ran on each adapter. Prints the counts when the program ends.
struct Ledger {
  struct Line {
    std::set<std::string_view> ran, skipped;
  };
  std::map<std::string, Line> lines;
  ~Ledger() {
    std::size_t runs = 0, skips = 0;
    for (const auto& [subject, line] : lines) {
      std::printf("contract: %s ran %zu cases, skipped %zu it does not support\n", subject.c_str(),
                  line.ran.size(), line.skipped.size());
      runs += line.ran.size();
      skips += line.skipped.size();
    }
    std::printf("contract: %zu cases x %zu adapters = %zu runs, %zu skipped\n", cases().size(), lines.size(),
                runs, skips);
  }
};

Ledger& ledger() {
  static Ledger the_ledger;
  return the_ledger;
}

}  // namespace

Case::Case(std::string_view sentence, std::initializer_list<Ability> abilities,
           void (*function)(const Subject&))
    : name(sentence), needs(abilities), run_(function) {
  cases().push_back(this);
}

void Case::run() const {
  ledger();
  for (Subject& subject : subjects()) {
    Ledger::Line& line = ledger().lines[title(subject)];
    if (!std::all_of(needs.begin(), needs.end(), [&](Ability a) { return has(subject, a); })) {
      line.skipped.insert(name);
      continue;
    }
    DYNAMIC_SECTION("on " << title(subject)) {
      auto device = subject.adapter->open();
      if (!device) FAIL(device.error().describe());
      subject.device = *std::move(device);
      line.ran.insert(name);
      run_(subject);
    }
  }
}

std::shared_ptr<DeviceBase> Subject::open_another() const {
  auto another = adapter->open();
  if (!another) throw std::runtime_error(another.error().describe());
  return *another;
}

std::unique_ptr<LaneBase> Subject::lane_base() const {
  auto lane = device->create_lane();
  if (!lane) throw std::runtime_error(lane.error().describe());
  return this->checked ? wye::device::checked(*std::move(lane)) : *std::move(lane);
}

std::shared_ptr<BufferBase> Subject::buffer(Bytes bytes, std::shared_ptr<MemoryAccount> account) const {
  auto made =
      device->create_buffer({.bytes = bytes, .use = MemoryUse::device, .account = std::move(account)});
  if (!made) throw std::runtime_error(made.error().describe());
  return *made;
}

std::shared_ptr<BufferBase> Subject::buffer(std::span<const Word> words) const {
  auto made = buffer(Bytes{words.size_bytes()});
  auto filling = lane();
  filling->upload(std::as_bytes(words), range(made));
  settle(*filling);
  return made;
}

std::shared_ptr<Timeline> Subject::timeline() const {
  auto made = device->create_timeline();
  if (!made) throw std::runtime_error(made.error().describe());
  return *made;
}

void Subject::settle(Lane& lane) const {
  if (auto settled = lane.wait(patience()); !settled) throw std::runtime_error(settled.error().describe());
}

std::vector<Word> Subject::read(const std::shared_ptr<BufferBase>& buffer) const {
  std::vector<Word> words(buffer->bytes().count / sizeof(Word), 0xdeadbeef);
  auto reading = lane();
  reading->download(range(buffer), writable_bytes_of(words));
  settle(*reading);
  return words;
}

BufferRange range(const std::shared_ptr<BufferBase>& buffer) { return {buffer, Bytes{}, buffer->bytes()}; }

BufferRange range(const std::shared_ptr<BufferBase>& buffer, std::uint64_t offset, std::uint64_t size) {
  return {buffer, Bytes{offset}, Bytes{size}};
}

Operand argument(const std::shared_ptr<BufferBase>& buffer, ElementType element) {
  return Buffer(buffer, element, sizeof(Word)).operand(Access::read_write);
}

Operand argument(const std::shared_ptr<BufferBase>& buffer, std::uint64_t first, std::uint64_t count) {
  return Buffer(buffer, ElementType::uint32, sizeof(Word)).operand(Access::read_write, first, count);
}

std::vector<Word> random_words(std::mt19937_64& random, std::size_t count) {
  std::vector<Word> words(count);
  for (Word& word : words) word = static_cast<Word>(random()) | 1;  // never zero
  return words;
}

void in_threads(unsigned count, const std::function<void(unsigned)>& function) {
  std::mutex mutex;
  std::optional<std::string> failure;
  {
    std::vector<base::Worker> threads;
    for (unsigned i = 0; i < count; ++i) {
      auto started = base::Worker::start("contract", [&, i] {
        try {
          function(i);
        } catch (const std::exception& exception) {
          const std::lock_guard lock(mutex);
          failure = base::text("thread {}: {}", i, exception.what());
        }
      });
      if (!started) throw std::runtime_error(started.error().describe());
      threads.push_back(*std::move(started));
    }
  }
  if (failure) throw std::runtime_error(*failure);
}

void expect(bool condition, std::string_view what) {
  if (!condition) throw std::runtime_error(std::string(what));
}

namespace {

/// The backends that must be there.
std::vector<std::string> required() {
  const char* names = std::getenv("WYE_REQUIRE_BACKENDS");
  std::vector<std::string> list;
  std::istringstream words(names ? names : "");
  for (std::string word; std::getline(words, word, ',');) list.push_back(word);
  return list;
}

}  // namespace

TEST_CASE("every backend that must be there is", "[contract]") {
  for (const std::string& backend : required()) {
    std::string reasons;
    const bool there = std::any_of(discovered().begin(), discovered().end(), [&](const Discovered& one) {
      if (one.info.backend == backend) reasons += one.info.id + ": " + one.info.reason + "; ";
      return one.info.backend == backend && one.info.usable;
    });
    INFO(backend << " is not usable: " << reasons);
    CHECK(there);
  }
}

TEST_CASE("every present device runs cases and has a description", "[contract]") {
  const std::vector<Subject> all = subjects();
  REQUIRE_FALSE(all.empty());
  for (const Subject& subject : all) {
    INFO(title(subject));
    CHECK(std::any_of(cases().begin(), cases().end(), [&](const Case* one) {
      return std::all_of(one->needs.begin(), one->needs.end(), [&](Ability a) { return has(subject, a); });
    }));
    const AdapterInfo& info = subject.info();
    CHECK(info.id.compare(0, info.backend.size() + 1, info.backend + ":") == 0);
    CHECK_FALSE(info.name.empty());
    CHECK_FALSE(info.driver.empty());
    CHECK(info.reason.empty());
    CHECK(info.limits.buffer.count > 0);
    CHECK(info.memory.count > 0);
  }
}

TEST_CASE("a device that cannot be used has a reason", "[contract]") {
  for (const Discovered& one : discovered()) {
    INFO(one.info.id);
    CHECK(one.info.usable == one.info.reason.empty());
    CHECK(one.info.usable == (one.adapter != nullptr));
  }
}

}  // namespace wye::test
