#pragma once
/// The function that runs on the records of a set, and its worker.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>
#include <wye/runtime/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0 {

namespace records {
class Serving;
}

/// The type of a record or result.
struct RecordType {
  std::string_view name;  ///< as the compiler writes it
  std::size_t size = 0;
  friend bool operator==(const RecordType&, const RecordType&) = default;
};

namespace detail {

template <class T>
constexpr std::string_view type_name() {
  // "... [with T = Name; ...]" of g++, "... [T = Name]" of clang.
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  return name.substr(0, name.find_first_of(";]"));
}

template <class T>
constexpr RecordType record_type() {
  return {type_name<T>(), sizeof(T)};
}

/// Without a state.
struct NoRecordState {};

/// The types of the parameters of a function of records.
template <class Parameters>
struct RecordParameters;
template <class In, class Out>
struct RecordParameters<std::tuple<std::span<const In>, std::span<Out>>> {
  using State = NoRecordState;
  using Input = In;
  using Output = Out;
};
template <class S, class In, class Out>
struct RecordParameters<std::tuple<S&, std::span<const In>, std::span<Out>>> {
  using State = S;
  using Input = In;
  using Output = Out;
};
/// The same for a function of items that another function has loaded.
template <class Parameters>
struct ItemParameters;
template <class S, class I, class Out>
struct ItemParameters<std::tuple<S&, std::span<I>, std::span<Out>>> {
  using State = S;
  using Item = I;
  using Output = Out;
};
/// The state and the record of a function that loads.
template <class Parameters>
struct LoadParameters;
template <class S, class In>
struct LoadParameters<std::tuple<const S&, const In&>> {
  using State = S;
  using Input = In;
};
template <class Run>
using ParametersOfRecords = RecordParameters<typename SignatureOf<Run>::Parameters>;

template <class T>
struct ValueOfResult {
  using Type = T;
};
template <class T>
struct ValueOfResult<Result<T>> {
  using Type = T;
};

}  // namespace detail

/// A worker, as the function of a record set sees it.
/// Threads: thread-safe.
class WYE_API RecordWorker {
 public:
  /// Returns the runtime of the worker. It has the device of the worker as its only device, with
  /// the number 0.
  Runtime& runtime() noexcept { return *runtime_; }
  /// Returns the id of the device in the runtime of the caller of `distribute`: "vulkan:1".
  const std::string& device() const noexcept { return device_; }
  /// Returns the number of the worker in its set, from 0. A worker that replaces another one has
  /// the number of that.
  std::uint32_t number() const noexcept { return number_; }
  /// Requests to stop when the set ends before its batch: after a time-out, or if the device is
  /// taken out. Valid as long as the worker.
  StopToken stop() const noexcept { return stop_; }

 private:
  friend class records::Serving;
  RecordWorker(Runtime* runtime, std::string device, std::uint32_t number, StopToken stop)
      : runtime_(runtime), device_(std::move(device)), number_(number), stop_(stop) {}
  Runtime* runtime_;
  std::string device_;
  std::uint32_t number_;
  StopToken stop_;
};

/// A named function of records: one result for each record.
///
///     const wye::RecordFunction score{
///         "score",
///         [](wye::RecordWorker& worker) { return Model::load(worker.runtime(), "scores.gguf"); },
///         [](Model& model, std::span<const Record> in, std::span<Score> out) { return model.score(in, out); }};
///
/// The first function, which may be omitted, runs once in each worker. It returns the state of the
/// worker, or a Result of it. The second function gets that state, and a batch of records. It
/// returns nothing, or a Result<void>. Both may throw. A worker without the first function opens no
/// runtime.
/// Between the two, a function may load: it gets the state, which is const, and one record, and returns
/// an item, or a Result of it. The last function gets the items of a batch in place of its records.
/// Items of the next batch are loaded beside it, on `RecordOptions::io_workers` threads:
///
///     const wye::RecordFunction label{
///         "label", [](wye::RecordWorker& worker) { return Model::load(worker.runtime()); },
///         [](const Model&, const Path& path) { return Image::read(path.text); },
///         [](Model& model, std::span<Image> images, std::span<Label> out) { return model.label(images, out); }};
///
/// Shape:   `in` and `out` have the same length, at least 1. Both are trivially copyable.
/// Threads: thread-safe. Workers that are threads call one function object at the same time.
class RecordFunction {
 public:
  template <class Init, class Run>
  RecordFunction(std::string name, Init init, Run run) {
    set_state<typename detail::ParametersOfRecords<Run>::State>(std::move(init));
    set_run(std::move(name), std::move(run));
  }
  template <class Run>
  RecordFunction(std::string name, Run run) {
    using Parameters = detail::ParametersOfRecords<Run>;
    static_assert(std::is_same_v<typename Parameters::State, detail::NoRecordState>,
                  "The function takes a state, and no function makes it.");
    set_run(std::move(name), std::move(run));
  }

  template <class Init, class Load, class Run>
  RecordFunction(std::string name, Init init, Load load, Run run) {
    using Parameters = detail::ItemParameters<typename detail::SignatureOf<Run>::Parameters>;
    using Loads = detail::LoadParameters<typename detail::SignatureOf<Load>::Parameters>;
    using State = typename Parameters::State;
    using Item = typename Parameters::Item;
    using In = typename Loads::Input;
    using Out = typename Parameters::Output;
    using Loaded = std::invoke_result_t<const Load&, const State&, const In&>;
    static_assert(std::is_same_v<State, typename Loads::State>, "The functions take different states.");
    static_assert(std::is_same_v<typename detail::ValueOfResult<Loaded>::Type, Item>,
                  "The function takes other items than those that are loaded.");
    set_state<State>(std::move(init));
    set_types<In, Out>(std::move(name));
    // A batch of items: they are loaded in any order.
    using Items = std::vector<std::optional<Item>>;
    make_items_ = [](std::size_t count) {
      return std::shared_ptr<void>(std::shared_ptr<Items>(new Items(count)));
    };
    load_ = [load = std::move(load)](const void* state, const std::byte* in, void* items,
                                     std::size_t number) -> Result<void> {
      auto& item = (*static_cast<Items*>(items))[number];
      auto loaded = load(*static_cast<const State*>(state), reinterpret_cast<const In*>(in)[number]);
      if constexpr (std::is_same_v<Loaded, Item>) {
        item.emplace(std::move(loaded));
      } else {
        if (!loaded) return std::move(loaded).error();
        item.emplace(*std::move(loaded));
      }
      return {};
    };
    run_items_ = [run = std::move(run)](void* state, void* items, std::byte* out,
                                        std::size_t count) -> Result<void> {
      std::vector<Item> batch;
      batch.reserve(count);
      for (std::optional<Item>& item : *static_cast<Items*>(items)) batch.push_back(*std::move(item));
      return as_result([&] {
        return run(*static_cast<State*>(state), std::span<Item>(batch),
                   std::span<Out>(reinterpret_cast<Out*>(out), count));
      });
    };
  }

  const std::string& name() const noexcept { return name_; }
  RecordType input() const noexcept { return input_; }
  RecordType output() const noexcept { return output_; }

 private:
  friend class records::Serving;

  template <class State, class Init>
  void set_state(Init init) {
    using Made = std::invoke_result_t<const Init&, RecordWorker&>;
    static_assert(std::is_same_v<typename detail::ValueOfResult<Made>::Type, State>,
                  "The type of the state differs between the two functions.");
    make_state_ = [init = std::move(init)](RecordWorker* worker) -> Result<std::shared_ptr<void>> {
      if constexpr (std::is_same_v<Made, State>) {
        return std::shared_ptr<void>(std::shared_ptr<State>(new State(init(*worker))));
      } else {
        Made made = init(*worker);
        if (!made) return std::move(made).error();
        return std::shared_ptr<void>(std::shared_ptr<State>(new State(*std::move(made))));
      }
    };
  }

  template <class In, class Out>
  void set_types(std::string name) {
    static_assert(std::is_trivially_copyable_v<In> && std::is_trivially_copyable_v<Out>,
                  "Records and results pass between processes as bytes: they must be trivially copyable.");
    name_ = std::move(name);
    input_ = detail::record_type<In>();
    output_ = detail::record_type<Out>();
  }

  /// Returns the result of a function that returns nothing or a Result<void>.
  template <class Call>
  static Result<void> as_result(Call call) {
    using Returned = decltype(call());
    static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Result<void>>,
                  "The function returns nothing, or a wye::Result<void>.");
    if constexpr (std::is_void_v<Returned>)
      return call(), Result<void>();
    else
      return call();
  }

  template <class Run>
  void set_run(std::string name, Run run) {
    using Parameters = detail::ParametersOfRecords<Run>;
    using State = typename Parameters::State;
    using In = typename Parameters::Input;
    using Out = typename Parameters::Output;
    set_types<In, Out>(std::move(name));
    run_ = [run = std::move(run)](void* state, const std::byte* in, std::byte* out,
                                  std::size_t count) -> Result<void> {
      const std::span<const In> records(reinterpret_cast<const In*>(in), count);
      const std::span<Out> results(reinterpret_cast<Out*>(out), count);
      return as_result([&] {
        if constexpr (std::is_same_v<State, detail::NoRecordState>) {
          (void)state;
          return run(records, results);
        } else {
          return run(*static_cast<State*>(state), records, results);
        }
      });
    };
  }

  std::string name_;
  RecordType input_, output_;
  std::function<Result<std::shared_ptr<void>>(RecordWorker*)> make_state_;
  std::function<Result<void>(void* state, const std::byte* in, std::byte* out, std::size_t count)> run_;
  // In place of `run_`:
  std::function<std::shared_ptr<void>(std::size_t count)> make_items_;
  std::function<Result<void>(const void* state, const std::byte* in, void* items, std::size_t number)> load_;
  std::function<Result<void>(void* state, void* items, std::byte* out, std::size_t count)> run_items_;
};

}  // namespace wye
