#pragma once
/// Jobs given to wye, and an account of where each ran and why.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <wye/wye.hpp>

#include "report.hpp"

namespace document_network {

/// Opens a runtime that has `backend`, which is "auto", a backend ("vulkan") or a device ("vulkan:0").
/// Errors: not_found: no such backend or device, with those there are; unavailable: not on this machine, with the
///         reason.
wye::Result<wye::Runtime> open_runtime(const std::string& backend);

/// How far `values` are from `reference`, which is as long: the largest difference in relation to the reference, or to
/// a millionth of its largest value where that is more.
double max_relative_error(const std::vector<double>& values, const std::vector<double>& reference);

/// Runs jobs, one after the other.
/// Threads: one thread at a time.
class Runner {
 public:
  /// Runs on `backend`, as above. With `compare`, every job also runs on each backend there is.
  Runner(wye::Runtime runtime, const std::string& backend, bool compare);

  /// Runs the job that `make(output)` gives, which fills `output`, from what was in it and other things. Several jobs
  /// may make up one step. `number` says which number of an element is compared.
  /// Errors: how the job failed, here or on the backends it is compared on.
  template <class T, class Make, class Number = std::identity>
  wye::Result<void> run(std::string_view step, std::span<T> output, Make make, Number number = {}) {
    const std::vector<T> before(output.begin(), compares() ? output.end() : output.begin());
    auto done = run_here(step, make(output));
    if (!done || !compares()) return done;

    std::vector<double> reference;
    for (const std::string& backend : backends_) {
      std::vector<T> values = before;
      done = run_again(step, backend, make(std::span(values)));
      if (!done) return done;
      std::vector<double> numbers;
      for (const T& value : values) numbers.push_back(static_cast<double>(number(value)));
      if (reference.empty())
        reference = std::move(numbers);
      else
        note_agreement(step, backend, max_relative_error(numbers, reference));
    }
    return done;
  }

  /// What ran so far, in order.
  const std::vector<Step>& steps() const { return steps_; }
  /// How far the backends' answers are from the CPU's.
  const std::vector<Agreement>& agreements() const { return agreements_; }

 private:
  bool compares() const { return backends_.size() > 1; }
  wye::Result<void> run_here(std::string_view step, wye::Job job);
  wye::Result<void> run_again(std::string_view step, const std::string& backend, wye::Job job);
  void note_agreement(std::string_view step, const std::string& backend, double error);

  wye::Runtime runtime_;
  std::string on_;                     ///< empty: wherever the scheduler sees fit
  std::vector<std::string> backends_;  ///< to compare, the measure first; empty if nothing is
  std::vector<Step> steps_;
  std::vector<Agreement> agreements_;
};

}  // namespace document_network
