// Events and log messages as JSON.
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/logger.hpp"
#include "base/text.hpp"
#include "base/wall_time.hpp"
#include "runtime/events.hpp"

namespace wye::inline v0 {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string Event::json() const {
  Json all{{"event", wye::name(kind)}, {"time", base::utc(time)}, {"thread", thread}};
  const auto add_text = [&](const char* member, std::string_view value) {
    if (!value.empty()) all[member] = value;
  };
  const auto add_time = [&](const char* member, Duration value) { all[member] = base::milliseconds(value); };
  if (id) all["id"] = id.number;
  if (number != 0) all["number"] = number;
  add_text("name", name);
  add_text("type", type);
  add_text("device", device);
  add_text("context", context);
  add_text("backend", backend);
  add_text("from", from);
  if (kind == EventKind::job_completed) {
    add_time("queue_ms", times.queue);
    add_time("build_ms", times.build);
    add_time("transfer_ms", times.transfer);
    add_time("run_ms", times.run);
    all["attempts"] = attempts;
  }
  if (kind == EventKind::context_switched || kind == EventKind::slot_waited ||
      kind == EventKind::kernel_built || kind == EventKind::reloaded)
    add_time("took_ms", took);
  if (kind == EventKind::kernel_built) {
    all["tier"] = wye::name(tier);
    all["hit_rate"] = hit_rate;
  }
  if (pressure)
    all["pressure"] = {{"silicon", pressure->silicon},
                       {"limited", pressure->limited},
                       {"held", pressure->held.count},
                       {"limit", pressure->limit.count},
                       {"level", runtime::name_of(pressure->level)}};
  if (bytes != Bytes{}) all["bytes"] = bytes.count;
  if (error) all["error"] = {{"code", wye::name(error->code())}, {"sentence", error->sentence()}};
  // Names may hold bytes of other encodings, from drivers and paths: these are replaced.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LogSink log_json() {
  return [](const LogRecord& record) {
    const Json line{{"time", base::utc(base::calendar_time(Clock::steady().now()))},
                    {"level", name(record.level)},
                    {"room", record.room},
                    {"text", record.text}};
    base::write_to_stderr(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  };
}

}  // namespace wye
