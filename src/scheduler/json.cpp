// Explanations and placements as JSON.
#include <wye/scheduler/scheduler.hpp>
#include <wye/scheduler/ticket.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scheduler/record.hpp"

namespace wye::inline v0 {
namespace {

using Json = nlohmann::ordered_json;

/// Names and sentences may hold bytes of other encodings, from drivers and paths: these are
/// replaced.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const Error& error) { return {{"code", name(error.code())}, {"sentence", error.sentence()}}; }

Json json_of(const VariantChoice& choice) {
  Json variants = Json::array();
  for (const Variant& variant : choice.variants) {
    Json one{{"kernel", variant.kernel}, {"selected", variant.selected}, {"runs", variant.runs}};
    if (variant.least_time) one["least_ms"] = scheduler::milliseconds(*variant.least_time);
    if (variant.excluded) one["excluded"] = json_of(*variant.excluded);
    variants.push_back(std::move(one));
  }
  return {{"is_measuring", choice.is_measuring}, {"variants", std::move(variants)}};
}

}  // namespace

std::string Explanation::json() const {
  Json all{{"job", job}};
  if (!tag.empty()) all["tag"] = tag;
  all["candidates"] = Json::array();
  for (const Candidate& candidate : candidates) {
    Json one{{"device", candidate.device},
             {"name", candidate.name},
             {"verdict", name(candidate.verdict)},
             {"code", name(candidate.code)},
             {"reason", candidate.reason}};
    if (candidate.error) one["error"] = json_of(*candidate.error);
    if (const auto& estimate = candidate.estimate) {
      one["estimate"] = {{"time_ms", scheduler::milliseconds(estimate->time)},
                         {"spread_ms", scheduler::milliseconds(estimate->spread)},
                         {"runs", estimate->runs}};
      if (estimate->wait != Duration::zero())
        one["estimate"]["wait_ms"] = scheduler::milliseconds(estimate->wait);
      if (estimate->build != Duration::zero())
        one["estimate"]["build_ms"] = scheduler::milliseconds(estimate->build);
    }
    if (candidate.took) one["took_ms"] = scheduler::milliseconds(*candidate.took);
    all["candidates"].push_back(std::move(one));
  }
  all["variants"] = Json::array();
  for (const VariantChoice& choice : variants) all["variants"].push_back(json_of(choice));
  all["code"] = Json::array();
  for (const KernelCode& one : code) {
    all["code"].push_back({{"kernel", one.kernel}, {"source", one.source}, {"format", one.format}});
    if (!one.architecture.empty()) all["code"].back()["architecture"] = one.architecture;
  }
  return dump(all);
}

std::string Placement::json() const {
  Json all{{"number", number}, {"job", job}};
  if (!tag.empty()) all["tag"] = tag;
  all["type"] = type.name;
  all["size"] = size.count;
  all["decisions"] = Json::array();
  for (const Decision& decision : decisions)
    all["decisions"].push_back(
        {{"device", decision.device}, {"verdict", name(decision.verdict)}, {"code", name(decision.code)}});
  if (error) all["error"] = name(*error);
  all["queue_ms"] = scheduler::milliseconds(queue_time);
  all["build_ms"] = scheduler::milliseconds(build_time);
  all["transfer_ms"] = scheduler::milliseconds(transfer_time);
  all["run_ms"] = scheduler::milliseconds(run_time);
  all["bytes_transferred"] = bytes_transferred.count;
  all["jobs_in_submission"] = jobs_in_submission;
  all["jobs_in_launch"] = jobs_in_launch;
  return dump(all);
}

}  // namespace wye
