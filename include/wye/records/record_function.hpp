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
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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
/// Shape:   `in` and `out` have the same length, at least 1. Both are trivially copyable.
/// Threads: thread-safe. Workers that are threads call one function object at the same time.
class RecordFunction {
 public:
  template <class Init, class Run>
  RecordFunction(std::string name, Init init, Run run) {
    using Parameters = detail::ParametersOfRecords<Run>;
    using State = typename Parameters::State;
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
    set_run(std::move(name), std::move(run));
  }
  template <class Run>
  RecordFunction(std::string name, Run run) {
    using Parameters = detail::ParametersOfRecords<Run>;
    static_assert(std::is_same_v<typename Parameters::State, detail::NoRecordState>,
                  "The function takes a state, and no function makes it.");
    set_run(std::move(name), std::move(run));
  }

  const std::string& name() const noexcept { return name_; }
  RecordType input() const noexcept { return input_; }
  RecordType output() const noexcept { return output_; }

 private:
  friend class records::Serving;

  template <class Run>
  void set_run(std::string name, Run run) {
    using Parameters = detail::ParametersOfRecords<Run>;
    using State = typename Parameters::State;
    using In = typename Parameters::Input;
    using Out = typename Parameters::Output;
    static_assert(std::is_trivially_copyable_v<In> && std::is_trivially_copyable_v<Out>,
                  "Records and results pass between processes as bytes: they must be trivially copyable.");
    name_ = std::move(name);
    input_ = detail::record_type<In>();
    output_ = detail::record_type<Out>();
    run_ = [run = std::move(run)](void* state, const std::byte* in, std::byte* out,
                                  std::size_t count) -> Result<void> {
      const std::span<const In> records(reinterpret_cast<const In*>(in), count);
      const std::span<Out> results(reinterpret_cast<Out*>(out), count);
      const auto call = [&] {
        if constexpr (std::is_same_v<typename Parameters::State, detail::NoRecordState>) {
          (void)state;
          return run(records, results);
        } else {
          return run(*static_cast<State*>(state), records, results);
        }
      };
      using Returned = decltype(call());
      static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Result<void>>,
                    "The function returns nothing, or a wye::Result<void>.");
      if constexpr (std::is_void_v<Returned>)
        return call(), Result<void>();
      else
        return call();
    };
  }

  std::string name_;
  RecordType input_, output_;
  std::function<Result<std::shared_ptr<void>>(RecordWorker*)> make_state_;
  std::function<Result<void>(void* state, const std::byte* in, std::byte* out, std::size_t count)> run_;
};

}  // namespace wye
