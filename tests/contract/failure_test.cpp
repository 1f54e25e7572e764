// Kernels that fail. The failure is permanent for its lane and concerns no other lane.
#include <stdexcept>

#include "contract/suite.hpp"

namespace wye::test {
namespace {

std::shared_ptr<ExecutableBase> failing(const Subject& subject, std::function<void()> fail) {
  auto made = subject.device->create_executable(host_artefact(
      "doomed", {{buffer_slot("x", Access::read_write)}},
      [fail = std::move(fail)](Range, std::span<const Operand>, const StopToken&) { fail(); }, whole));
  if (!made) throw std::runtime_error(made.error().describe());
  return *made;
}

}  // namespace

CONTRACT_CASE("a kernel that fails is that submission's error, and that of every later one of its lane",
              {Ability::functions}) {
  const auto doomed = failing(subject, [] { throw std::out_of_range("row 7 of 5"); });
  const auto buffer = subject.buffer(std::vector<Word>(100, 1));
  const auto add = subject.kernel("add");
  auto lane = subject.lane(), bystander = subject.lane();
  lane->dispatch(add, arguments_of(argument(buffer), Word{1}), 100);
  const TimelinePoint good = lane->submit();
  lane->dispatch(doomed, arguments_of(argument(buffer)), 100);
  lane->submit();
  lane->dispatch(add, arguments_of(argument(buffer), Word{50}), 100);
  auto settled = lane->wait(subject.patience());
  REQUIRE_FALSE(settled);
  CHECK(settled.error() == Errc::kernel_failed);
  INFO(settled.error().sentence());
  CHECK(settled.error().sentence().find("doomed") != std::string::npos);
  CHECK(settled.error().sentence().find("row 7 of 5") != std::string::npos);
  CHECK(settled.error().sentence().find(subject.info().id) != std::string::npos);

  lane->fill(range(buffer), 9);
  auto again = lane->wait(subject.patience());
  REQUIRE_FALSE(again);
  CHECK(again.error().sentence() == settled.error().sentence());

  CHECK(good.timeline->reached() == good.value);  // the earlier work completed
  auto beyond = good.timeline->wait(good.value + 1, subject.patience());
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error() == Errc::kernel_failed);

  bystander->dispatch(add, arguments_of(argument(buffer), Word{10}), 100);
  subject.settle(*bystander);
  CHECK(subject.read(buffer) == std::vector<Word>(100, 12));
}

CONTRACT_CASE("a failure is the answer to every later submission of a lane without a front too",
              {Ability::functions}) {
  const auto buffer = subject.words(10);
  auto lane = subject.lane_base();
  auto recording = std::make_shared<Recording>();
  recording->dispatch(failing(subject, [] { throw 5; }), arguments_of(argument(buffer)), 10);
  recording->close();
  auto value = lane->submit({.recording = recording, .waits = {}, .stop = {}});
  REQUIRE(value);
  auto settled = lane->wait(*value, subject.patience());
  REQUIRE_FALSE(settled);
  CHECK(settled.error() == Errc::kernel_failed);
  auto fine = std::make_shared<Recording>();
  fine->fill(range(buffer), 1);
  fine->close();
  auto later = lane->submit({.recording = fine, .waits = {}, .stop = {}});
  auto answer = later ? lane->wait(*later, subject.patience()) : Result<void>(later.error());
  REQUIRE_FALSE(answer);
  CHECK(answer.error() == Errc::kernel_failed);
}

CONTRACT_CASE("a failure reaches the lanes that wait for it", {Ability::functions, Ability::order}) {
  const auto gate = subject.timeline();
  const auto buffer = subject.buffer(std::vector<Word>(10, 1));
  auto first = subject.lane(), second = subject.lane();
  first->wait_for({gate, 1});
  first->dispatch(failing(subject, [] { throw std::runtime_error("no more ink"); }),
                  arguments_of(argument(buffer)), 10);
  second->wait_for(first->submit());
  second->fill(range(buffer), 2);
  second->submit();
  REQUIRE(gate->signal(1));
  auto settled = second->wait(subject.patience());
  REQUIRE_FALSE(settled);
  CHECK(settled.error() == Errc::kernel_failed);
  CHECK(settled.error().sentence().find("no more ink") != std::string::npos);
  CHECK_FALSE(first->wait(subject.patience()));
  CHECK(subject.read(buffer) == std::vector<Word>(10, 1));
}

CONTRACT_CASE("a failing lane may be destroyed with pending work", {Ability::functions}) {
  for (int i = 0; i < 20; ++i) {
    const auto buffer = subject.words(10);
    auto lane = subject.lane();
    for (int n = 0; n < 5; ++n) {
      lane->dispatch(failing(subject, [] { throw std::runtime_error("x"); }), arguments_of(argument(buffer)),
                     10);
      lane->submit();
    }
  }
}

}  // namespace wye::test
